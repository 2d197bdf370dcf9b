//! Netlink (netlink(7), RFC 3549): requests are written, messages are read, and sockets exchange them with the kernel. Must not
//! depend on links, routes or rules.
mod constants;
mod error;
mod message;
mod request;
mod socket;

pub use constants::{
    AF_BRIDGE, AF_INET, AF_INET6, NDA_DST, NDA_LLADDR, NFT_FIRST, NFT_GET_RULE, NFT_NEW_RULE, NFT_SUBSYSTEM,
    RT_TABLE_MAIN, RTA_DST, RTA_OIF, RTN_UNICAST, TC_H_ROOT, TCA_KIND, TCMSG_LEN,
};
pub use error::NetlinkError;
pub use libc::{
    RTM_DELLINK, RTM_GETADDR, RTM_GETLINK, RTM_GETNEIGH, RTM_GETQDISC, RTM_GETROUTE, RTM_NEWADDR,
    RTM_NEWLINK, RTM_NEWNEIGH, RTM_NEWQDISC, RTM_NEWROUTE, RTM_SETLINK,
};
pub use message::{HEADER_LEN, Message, attribute, attributes, messages, u16_at, u32_at, u64_at};
pub use request::{APPEND, CREATE, EXCL, REPLACE, Request};
pub use socket::{NetlinkSocket, generic_notifications, link_notifications};
