//! Readers of the facts and counters of a host: netlink, ethtool, procfs, sysfs, DMI, a cloud's metadata service.
//!
//! Readers hold no policy and never change a host. A fact that a host does not report is absent, not 0. Facts of the network come
//! from netlink and ioctl: an agent runs in a network namespace, and `/sys/class/net` may show another one. Only what the kernel
//! shows nowhere else, the steering of queues, comes from there, and only when it shows the same links.
#![forbid(unsafe_code)]

mod bus_address;
mod counter;
mod data_path;
mod device;
mod device_settings;
mod difference;
mod drain;
mod error;
mod file;
mod filter;
mod identity;
mod interrupts;
mod irqbalance;
mod kernel_log;
mod kernel_settings;
mod key_value_pool;
mod link;
mod link_watch;
mod live;
mod locality;
mod machine;
pub mod metadata;
mod netlink;
mod observer;
mod pci;
mod platform;
mod processor;
mod protocol;
mod queueing;
mod reading;
mod route;
mod snapshot;
mod softnet;
mod source;
mod watch;
mod xdp;

pub use bus_address::interrupt_queues;
pub use data_path::{DataPath, packets_sent};
pub use drain::{DRAIN_PATIENCE, queued_packets, wait_for_drained_queues};
pub use error::HostError;
pub use irqbalance::{IrqbalanceSearch, irqbalance_process};
pub use link::{MtuRange, StackedLink};
pub use locality::{Locality, Node};
pub use netlink::RouteSocket;
pub use observer::{Before, Observer};
pub use snapshot::{
    added_routes, addresses_of, default_route_links, interface_names, mtu_range, snapshot, snapshot_again,
    snapshot_of, stacked_links,
};
pub use source::{DeviceSource, FilterSource, LinkSource, MetadataService, Sources};
pub use watch::{LinkState, link_states, wait_for_links};
