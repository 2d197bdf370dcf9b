//! Instrument tests: effects of known size are created, and the program's own agents must measure them. Tolerances and their
//! reasons are in docs/limits.md, under "Accuracy".
pub mod bed;
mod cap;
mod clock;
mod counts;
mod cpu;
mod datagrams;
mod delay;
mod fates;
mod hop;
mod limits;
mod packets;
mod queue;
