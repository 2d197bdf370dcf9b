//! The program in use: real processes, real namespaces, real signals.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod bad_input;
mod bind;
mod command_line;
mod crash;
mod damaged_runs;
mod datagrams;
mod disk_full;
mod dpdk;
mod failover;
mod inspect;
mod kernel_bypass;
mod lab_commands;
mod latency;
mod ordinary_user;
mod path_proof;
mod placement;
mod quick;
mod quick_packets;
mod run;
mod search;
mod serve;
mod support;
mod terminal;
mod treatment;
mod truth;
mod under_load;
