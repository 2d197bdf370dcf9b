//! Random numbers with a seed: the distributions of the simulations. For tests only.

use netduel_stats::split_mix::SplitMix;

/// Random numbers of several distributions.
pub struct Chance(SplitMix);

/// Distributions of noise. Each has a spread of the order of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Normal.
    Normal,
    /// Uniform.
    Uniform,
    /// Skewed: a minimum and a tail to the right.
    Exponential,
    /// Very skewed: log-normal.
    LogNormal,
    /// Heavy tails on both sides: Student's t with 3 degrees of freedom.
    Student3,
    /// Tails so heavy that there is no mean: Cauchy.
    Cauchy,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Normal, Self::Uniform, Self::Exponential, Self::LogNormal, Self::Student3, Self::Cauchy];
}

impl Chance {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Between 0 and 1, exclusive.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// One value of a shape.
    pub fn draw(&mut self, shape: Shape) -> f64 {
        match shape {
            Shape::Normal => self.normal(),
            Shape::Uniform => self.uniform() * 12.0_f64.sqrt(),
            Shape::Exponential => -self.uniform().ln(),
            Shape::LogNormal => self.normal().exp(),
            Shape::Student3 => {
                let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                self.normal() / (squares / 3.0).sqrt()
            }
            Shape::Cauchy => self.normal() / self.normal(),
        }
    }

    /// Many values of a shape.
    pub fn series(&mut self, shape: Shape, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.draw(shape)).collect()
    }

    /// Blocks of two arms whose values share the block's level, differ by the factor `ratio`, and have independent noise of the
    /// given distribution on the log scale.
    pub fn blocks(&mut self, n: usize, ratio: f64, noise: f64, shape: Shape) -> Vec<(f64, f64)> {
        (0..n)
            .map(|_| {
                let level = 1e9 * (0.3 * self.normal()).exp();
                let baseline = level * (noise * self.draw(shape)).exp();
                (baseline, ratio * level * (noise * self.draw(shape)).exp())
            })
            .collect()
    }
}

/// Four standard errors of a fraction counted in `runs` runs: a larger deviation is not chance.
pub fn margin(share: f64, runs: u32) -> f64 {
    4.0 * (share * (1.0 - share) / f64::from(runs)).sqrt()
}

/// Share of runs for which the event happened.
pub fn share(runs: u32, mut event: impl FnMut() -> bool) -> f64 {
    f64::from((0..runs).map(|_| u32::from(event())).sum::<u32>()) / f64::from(runs)
}
