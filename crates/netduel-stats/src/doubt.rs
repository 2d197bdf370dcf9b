//! Warnings about a set of values that a single number does not show: order, shape, and level within a trial.
//!
//! Each test returns `None` without a warning. A report runs many of them for every arm and metric, so false warnings about order
//! occur in about one test of 100, and about shape in fewer than one run of 20. Each warning must be relevant in size as well as
//! significant. None of them changes or excludes a value.
mod level;
mod order;
mod shape;
mod values;

pub use level::{Burst, burst, plateau};
pub use order::{Drift, autocorrelation, drift};
pub use shape::{Modes, Outlier, bimodal, outliers};
