//! The targets, one file for each kind of input. Must not import each other.
pub(crate) mod plan;
pub(crate) mod protocol;
