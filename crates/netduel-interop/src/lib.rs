//! Other tools as child processes: command lines, output, and requirements. They run as separate programs and are never linked;
//! this crate is not part of the data path.
#![forbid(unsafe_code)]

pub mod dpdk_host;
pub mod testpmd;
