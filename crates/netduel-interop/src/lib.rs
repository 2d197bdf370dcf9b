//! Other tools as child processes: their command lines, their output, and what is needed to run them. They are run as programs of their own
//! and never linked; nothing of this crate is on the way of the data.
#![forbid(unsafe_code)]

pub mod dpdk_host;
pub mod testpmd;
