//! The only unsafe code of the workspace: thin, typed wrappers over system calls. One file per kernel concept, owned
//! descriptors, no raw pointer in a public signature, no policy, plain `io::Result`.
#![expect(unsafe_code, reason = "this crate is the fence around it; every block names its invariant")]

pub mod affinity;
pub mod bpf;
pub mod busy_poll;
pub mod clock;
pub mod descriptor_limit;
pub mod descriptor_pass;
mod echo_id;
pub mod error_name;
pub mod ethtool;
pub mod icmp;
pub mod link;
pub mod local_bind;
pub mod memory;
pub mod mount;
pub mod name_lookup;
pub mod namespace;
pub mod namespace_handle;
pub mod netlink;
pub mod packet;
pub mod packet_info;
pub mod page_pipe;
pub mod pages;
pub mod pattern;
pub mod process;
pub mod pty;
pub mod random;
pub mod range_lock;
pub mod readiness;
pub mod shared_port;
pub mod socket;
mod socket_filter;
mod socket_option;
pub mod tcp;
pub mod tcp_info;
pub mod tcp_table;
pub mod timestamping;
pub mod udp;
pub mod udp_segment;
pub mod uring;
pub mod usage;
pub mod xdp;
pub mod zerocopy;
