//! Simulations with known answers: the error rates that the verdicts promise, counted. Seeds are fixed, so a failure is a
//! change of the code and not of luck. Nothing here may be loosened without a word in `docs/design/0002-statistics.md`.
mod chance;
mod coverage;
mod device;
mod doubts;
mod family;
mod searching;
mod stopping;
