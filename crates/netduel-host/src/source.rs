//! The sources of the readers: a root for files, interfaces to the kernel, and the address of a cloud's metadata service. Tests
//! replace them by captured bytes.
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use netduel_sys::ethtool::{Channels, Coalesce, DriverInfo, Ethtool, Feature, Rings, Rss};

/// Lists of a network namespace, as raw netlink messages.
pub trait LinkSource: Send {
    /// Replaces `into` by the `RTM_NEWLINK` messages of every link.
    ///
    /// # Errors
    /// The kernel's error.
    fn links(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
    /// Replaces `into` by the `RTM_NEWADDR` messages of every address.
    ///
    /// # Errors
    /// The kernel's error.
    fn addresses(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
    /// Replaces `into` by the `RTM_NEWQDISC` messages of every queueing discipline.
    ///
    /// # Errors
    /// The kernel's error; `EOPNOTSUPP` when it is built without them.
    fn queueing(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
    /// Replaces `into` by the messages of `NETDEV_CMD_DEV_GET` of every device: its XDP features.
    ///
    /// # Errors
    /// The kernel's error; `ENOENT` before Linux 6.3.
    fn xdp(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
    /// Replaces `into` by the `RTM_NEWROUTE` messages of both families: the default routes of every table, and a limited number of other
    /// routes of the main table.
    ///
    /// # Errors
    /// The kernel's error.
    fn routes(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
}

/// The packet filter of a network namespace.
pub trait FilterSource: Send {
    /// nftables rules of all families. Query only when the kernel has nftables: the query would load the module.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_ADMIN`; any other error of the kernel.
    fn rules(&mut self) -> io::Result<u32>;
}

/// The drivers of a network namespace.
pub trait DeviceSource: Send {
    /// Driver and bus info (`ethtool -i`).
    ///
    /// # Errors
    /// The kernel's error; `EOPNOTSUPP` when the device has none.
    fn driver(&mut self, interface: &str) -> io::Result<DriverInfo>;
    /// Link speed, Mbit/s.
    ///
    /// # Errors
    /// As above.
    fn speed(&mut self, interface: &str) -> io::Result<Option<u32>>;
    /// Features (`ethtool -k`).
    ///
    /// # Errors
    /// As above.
    fn features(&mut self, interface: &str) -> io::Result<Vec<Feature>>;
    /// Names of the counters (`ethtool -S`).
    ///
    /// # Errors
    /// As above.
    fn statistic_names(&mut self, interface: &str) -> io::Result<Vec<String>>;
    /// Counters in the order of their names; left empty when there are no longer `count` of them.
    ///
    /// # Errors
    /// As above.
    fn statistics(&mut self, interface: &str, count: usize, values: &mut Vec<u64>) -> io::Result<()>;
    /// Queues (`ethtool -l`).
    ///
    /// # Errors
    /// As above.
    fn channels(&mut self, interface: &str) -> io::Result<Channels>;
    /// Descriptor rings (`ethtool -g`).
    ///
    /// # Errors
    /// As above.
    fn rings(&mut self, interface: &str) -> io::Result<Rings>;
    /// Interrupt coalescing (`ethtool -c`).
    ///
    /// # Errors
    /// As above.
    fn coalesce(&mut self, interface: &str) -> io::Result<Coalesce>;
    /// Receive side scaling (`ethtool -x`).
    ///
    /// # Errors
    /// As above.
    fn rss(&mut self, interface: &str) -> io::Result<Rss>;
}

impl DeviceSource for Ethtool {
    fn driver(&mut self, interface: &str) -> io::Result<DriverInfo> {
        Self::driver(self, interface)
    }
    fn speed(&mut self, interface: &str) -> io::Result<Option<u32>> {
        Self::speed(self, interface)
    }
    fn features(&mut self, interface: &str) -> io::Result<Vec<Feature>> {
        Self::features(self, interface)
    }
    fn statistic_names(&mut self, interface: &str) -> io::Result<Vec<String>> {
        Self::statistic_names(self, interface)
    }
    fn statistics(&mut self, interface: &str, count: usize, values: &mut Vec<u64>) -> io::Result<()> {
        Self::statistics(self, interface, count, values)
    }
    fn channels(&mut self, interface: &str) -> io::Result<Channels> {
        Self::channels(self, interface)
    }
    fn rings(&mut self, interface: &str) -> io::Result<Rings> {
        Self::rings(self, interface)
    }
    fn coalesce(&mut self, interface: &str) -> io::Result<Coalesce> {
        Self::coalesce(self, interface)
    }
    fn rss(&mut self, interface: &str) -> io::Result<Rss> {
        Self::rss(self, interface)
    }
}

/// A cloud's metadata service and its timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataService {
    /// Its address.
    pub address: SocketAddr,
    /// For one request and its answer, milliseconds.
    pub try_ms: u64,
    /// For all requests of a snapshot, milliseconds.
    pub total_ms: u64,
}

impl MetadataService {
    /// The address of every cloud's service: link-local, so no router forwards it. It answers within some
    /// milliseconds; EC2 and GCP need five or six requests.
    pub const LINK_LOCAL: Self = Self {
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80),
        try_ms: 300,
        total_ms: 700,
    };
}

/// All sources.
pub struct Sources {
    /// The root of `proc`, `sys`, `etc`, `dev` and `var`; `/` on a live host.
    pub root: PathBuf,
    /// Links, addresses, queueing disciplines, routes.
    pub links: Box<dyn LinkSource>,
    /// Drivers.
    pub devices: Box<dyn DeviceSource>,
    /// Packet filter.
    pub filter: Box<dyn FilterSource>,
    /// Cores that this process may run on (`sched_getaffinity(2)`); absent when unknown.
    pub allowed: Option<Vec<u16>>,
    /// A cloud's metadata service, queried when the machine's firmware names that cloud; absent: no service is queried.
    pub metadata: Option<MetadataService>,
}
