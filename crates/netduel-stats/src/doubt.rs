//! Placeholder of the doubts until the statistics land: finds outliers by the median alone, and nothing else.
/// A drift.
#[derive(Debug, Clone, Copy)]
pub struct Drift {
    /// Change as a fraction of the median.
    pub change: f64,
    /// Chance of it.
    pub p_value: f64,
}
/// Two groups.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    /// Lower centre.
    pub low: f64,
    /// Upper centre.
    pub high: f64,
}
/// An outlier.
#[derive(Debug, Clone, Copy)]
pub struct Outlier {
    /// Where.
    pub index: usize,
    /// How far.
    pub times_median: f64,
}
/// A fall.
#[derive(Debug, Clone, Copy)]
pub struct Burst {
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// Where.
    pub at: usize,
}
/// None.
pub fn drift(_: &[f64]) -> Option<Drift> {
    None
}
/// None.
pub fn autocorrelation(_: &[f64]) -> Option<f64> {
    None
}
/// None.
pub fn bimodal(_: &[f64]) -> Option<Modes> {
    None
}
/// Three times the median or a third of it.
pub fn outliers(values: &[f64]) -> Vec<Outlier> {
    let Some(median) = crate::summary::median(values).filter(|median| *median > 0.0) else { return Vec::new() };
    values
        .iter()
        .enumerate()
        .map(|(index, value)| Outlier { index, times_median: value / median })
        .filter(|outlier| outlier.times_median > 3.0 || outlier.times_median < 1.0 / 3.0)
        .collect()
}
/// None.
pub fn plateau(_: &[f64]) -> Option<f64> {
    None
}
/// None.
pub fn burst(_: &[f64]) -> Option<Burst> {
    None
}
