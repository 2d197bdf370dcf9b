//! The vocabulary of netduel: units, names, plans, beds, workloads, samples, trials, runs, events, warnings.
//!
//! Pure data and pure functions. This crate reads no file, no clock and no socket, and imports no other crate of the
//! workspace; every other crate may import it.
//!
//! Types that derive `Serialize` are written to the store and sent between coordinator and agent. Changing one of them
//! changes a format: the golden files of `netduel-store` and `netduel-control` fail until the format's version is raised.
#![forbid(unsafe_code)]

/// Name and version of the program, for example `netduel 0.1.0`. All crates have one version.
pub const PROGRAM: &str = concat!("netduel ", env!("CARGO_PKG_VERSION"));

pub mod attempts;
pub mod bed;
pub mod data_ports;
pub mod dpdk;
pub mod event;
pub mod failover;
pub mod file_error;
pub mod ids;
pub mod json_text;
pub mod lab;
pub mod link_event;
mod link_events_on_path;
pub mod metric;
pub mod nearest;
pub mod observation;
mod own_traffic;
pub mod packet_path;
pub mod pairing;
mod path_proof;
pub mod plain_text;
pub mod plan;
pub mod publication;
pub mod published;
mod recorded;
pub mod redact;
pub mod resource_name;
pub mod run;
pub mod sample;
pub mod search;
pub mod shell;
pub mod size;
pub mod snapshot;
pub mod socket_name;
pub mod stamps;
pub mod sysctl;
pub mod trial;
pub mod units;
pub mod user_folder;
pub mod warning;
pub mod word;
pub mod workload;
