//! Traffic: one file per workload and engine. Threads, no async, no allocation in the loops that move data.
//!
//! A trial has two ends. [`prepare_server`] binds ports, [`prepare_client`] connects, and both prove to each other that they know
//! the trial's token; no payload has moved then. [`ServerEnd::start`] and [`ClientEnd::start`] run the traffic, and
//! [`Running::join`] returns the report. `docs/design/0003-load.md` has the reasons.
//!
//! This crate knows nothing of plans, arms, agents or storage, and reads no counter but those of its own sockets.
#![forbid(unsafe_code)]

mod client;
mod connection_info;
mod connection_source;
mod control;
mod counted;
mod datagram;
mod deadline;
mod echo_socket;
mod end_context;
mod end_markers;
mod error;
mod error_counts;
mod flow_count;
mod free_port;
pub mod handshake;
pub mod in_band;
mod interval_median;
mod job;
mod kernel_timestamping;
mod listening;
mod live_latency;
mod local_ports;
mod own_responses;
mod pacing;
mod packets;
mod pending_handshakes;
mod port;
mod port_probe;
mod preflight;
mod recorder;
mod report;
mod round_trip;
mod running;
mod segmentation;
mod send_count;
mod sequence_window;
mod server;
mod socket_source;
mod sockets;
mod source;
mod spawn;
mod spin_yield;
mod start_barrier;
mod stream_counter;
mod supervisor;
mod tcp_acceptor;
mod tcp_epoll;
mod tcp_pacing;
mod tcp_settings;
mod tcp_source;
mod tcp_stream;
mod thread_count;
mod transaction;
mod udp_acceptor;
mod udp_handshake;
mod udp_jobs;
mod udp_receive;
mod udp_send;
mod waker;
mod worker;
mod workload;

pub use client::{ClientEnd, prepare_bound_client, prepare_client};
pub use end_markers::END_MARKERS;
pub use error::{Cause, LoadError};
pub use packets::{Attachment, BypassPath, frame_payload};
pub use port::{ControlHandler, Port};
pub use port_probe::{OpenPorts, probe_ports};
pub use preflight::check_ranges;
pub use running::{Notify, Running};
pub use sequence_window::{Arrival, SequenceWindow};
pub use server::{ServerEnd, prepare_server};
pub use source::Source;
