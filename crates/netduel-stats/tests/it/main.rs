//! Simulations with known answers: the actual error rates of the verdicts. Seeds are fixed, so a failure is a change of the code,
//! not chance. A looser tolerance needs a reason in `docs/design/0002-statistics.md`.
mod chance;
mod changes;
mod coverage;
mod device;
mod doubts;
mod family;
mod searching;
mod stopping;
