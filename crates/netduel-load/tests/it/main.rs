//! Both ends in one process over loopback, with unknown peers, proxies and aborts.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test by it, as the tests themselves do")]
mod abort;
mod datagrams;
mod dscp;
mod failover;
mod handshake;
mod harness;
mod loaded;
mod open_loop;
mod path_mtu;
mod port;
mod port_shortage;
mod port_unknown_peers;
mod round_trip;
mod sequence_window;
mod tcp_stream;
mod timestamps;
mod transaction;
mod two_processes;
mod udp_stream;
