//! Traffic: one file per workload and engine. Threads, no async, no allocation in the loops that move data.
//!
//! A trial has two ends. [`prepare_server`] binds ports, [`prepare_client`] connects and both prove to each other that they
//! know the trial's token; no payload has moved then. [`ServerEnd::start`] and [`ClientEnd::start`] run the traffic, and
//! [`Running::join`] gives what was counted. `docs/design/0003-load.md` says why it is so.
//!
//! This crate knows nothing of plans, arms, agents or storage, and reads no counter but those of its own sockets.
#![forbid(unsafe_code)]

mod accounting;
mod call_error;
mod client;
mod control;
mod core_sharing;
mod counted;
mod datagram;
mod end;
mod error;
mod flow_count;
mod flow_greeting;
mod gate;
mod greeting;
mod in_band;
mod interval_median;
mod job;
mod lane;
mod later;
mod live_trips;
mod local_ports;
mod markers;
mod pacing;
mod packets;
mod peer;
mod pending_handshakes;
mod port;
mod recorder;
mod report;
mod round_trip;
mod running;
mod segmentation;
mod send_count;
mod server;
mod sockets;
mod stamping;
mod start_line;
mod supervisor;
mod tally;
mod tcp_account;
mod tcp_crowd;
mod tcp_gate;
mod tcp_pacing;
mod tcp_settings;
mod tcp_source;
mod tcp_stream;
mod thread_count;
mod transaction;
mod udp_gate;
mod udp_jobs;
mod udp_receive;
mod udp_send;
mod wake;
mod worker;
mod workload;

pub use accounting::{Accounting, Arrival};
pub use client::{ClientEnd, prepare_client};
pub use error::LoadError;
pub use packets::RawPath;
pub use peer::check_ranges;
pub use port::{Control, Port};
pub use running::{Notify, Running};
pub use server::{ServerEnd, prepare_server};
