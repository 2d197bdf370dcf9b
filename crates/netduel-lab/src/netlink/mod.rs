//! The lab's netlink: messages put together by hand, sent synchronously, every one acknowledged. Must not know the lab's
//! topology.
pub(crate) mod address;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod neighbour;
pub(crate) mod netfilter;
pub(crate) mod queueing;
pub(crate) mod socket;
