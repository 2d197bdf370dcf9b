//! Doubts about a set of figures that a number alone does not show: order, shape, and level within a trial.
//!
//! Each test answers `None` when there is nothing to say. A report asks many of them of every arm and metric, so order is doubted
//! without cause in about one case of a hundred, and shape in fewer than one whole run of twenty; each doubt must be material as
//! well as significant. None of them changes or leaves out a figure.
mod level;
mod order;
mod shape;
mod values;

pub use level::{Burst, burst, plateau};
pub use order::{Drift, autocorrelation, drift};
pub use shape::{Modes, Outlier, bimodal, outliers};
