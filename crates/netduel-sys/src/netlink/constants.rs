//! What several crates write to and read from messages of the kernel, under the kernel's names. A constant that one crate uses alone
//! stands there.
//!
//! Routes, neighbours and disciplines: include/uapi/linux/rtnetlink.h, neighbour.h and pkt_sched.h. Address families:
//! include/linux/socket.h. nftables: include/uapi/linux/netfilter/nfnetlink.h and nf_tables.h.
pub use libc::{NDA_DST, NDA_LLADDR, RT_TABLE_MAIN, RTA_DST, RTA_OIF, RTN_UNICAST, TCA_KIND};

/// IPv4, as messages have it.
pub const AF_INET: u8 = libc::AF_INET as u8;
/// IPv6, as messages have it.
pub const AF_INET6: u8 = libc::AF_INET6 as u8;
/// Bridges, as messages have it.
pub const AF_BRIDGE: u8 = libc::AF_BRIDGE as u8;

/// Bytes of `struct tcmsg`.
pub const TCMSG_LEN: usize = 20;
/// The parent of the outermost egress discipline.
pub const TC_H_ROOT: u32 = 0xffff_ffff;

/// The number of nftables among the subsystems of netfilter.
pub const NFT_SUBSYSTEM: u8 = libc::NFNL_SUBSYS_NFTABLES as u8;
/// The type of the first message of nftables (`NFT_MSG_NEWTABLE`); the others follow it. The high byte is the subsystem.
pub const NFT_FIRST: u16 = (NFT_SUBSYSTEM as u16) << 8;
/// A new rule.
pub const NFT_NEW_RULE: u16 = NFT_FIRST | libc::NFT_MSG_NEWRULE as u16;
/// A request for rules.
pub const NFT_GET_RULE: u16 = NFT_FIRST | libc::NFT_MSG_GETRULE as u16;
