//! Both ends in one process over loopback, and strangers, proxies and aborts between them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test by it, as the tests themselves do")]
mod abort;
mod accounting;
mod datagrams;
mod dscp;
mod failover;
mod greeting;
mod harness;
mod loaded;
mod open_loop;
mod path_mtu;
mod port;
mod port_shortage;
mod port_strangers;
mod round_trip;
mod stamps;
mod tcp_stream;
mod transaction;
mod two_processes;
mod udp_stream;
