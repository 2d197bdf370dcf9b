//! Netlink requests of the lab: interfaces, addresses, neighbours, rate caps and nftables. Must not know the lab's topology.
pub(crate) mod address;
pub(crate) mod link;
pub(crate) mod neighbour;
pub(crate) mod netfilter;
pub(crate) mod queueing;
pub(crate) mod socket;
