//! Readers of what a host is and does: netlink, ethtool, procfs, DMI.
//!
//! Readers hold no policy and never change a host. What a host does not tell is absent, not 0. Facts of the network come
//! from netlink and ioctl and never from `/sys/class/net`: an agent runs in a network namespace, and `/sys` may show
//! another one.
#![forbid(unsafe_code)]

mod difference;
mod error;
mod identity;
mod interrupts;
mod link;
mod nearness;
mod netlink;
mod observer;
mod processor;
mod protocol;
mod queueing;
mod reading;
mod snapshot;
mod softnet;
mod source;
mod watch;

pub use error::HostError;
pub use link::MtuRange;
pub use nearness::{Nearness, Node};
pub use netlink::RouteSocket;
pub use observer::{Before, Observer};
pub use snapshot::{addresses_of, interface_names, mtu_range, snapshot, snapshot_of};
pub use source::{DeviceSource, LinkSource, Sources};
