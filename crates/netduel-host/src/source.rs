//! Where the readers read: a root for files, and two doors to the kernel. Replaced by captured bytes in tests.
use std::io;
use std::path::PathBuf;

use netduel_sys::ethtool::{DriverInfo, Ethtool, Feature};

use crate::error::HostError;
use crate::netlink::RouteSocket;

/// Lists of a network namespace, as raw netlink messages.
pub trait LinkSource: Send {
    /// Replaces `into` by the `RTM_NEWLINK` messages of every link.
    ///
    /// # Errors
    /// What the kernel said.
    fn links(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
    /// Replaces `into` by the `RTM_NEWADDR` messages of every address.
    ///
    /// # Errors
    /// What the kernel said.
    fn addresses(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
    /// Replaces `into` by the `RTM_NEWQDISC` messages of every queueing discipline.
    ///
    /// # Errors
    /// What the kernel said; `EOPNOTSUPP` when it is built without them.
    fn queueing(&mut self, into: &mut Vec<u8>) -> io::Result<()>;
}

/// What the drivers of a network namespace tell.
pub trait DeviceSource: Send {
    /// Driver and place (`ethtool -i`).
    ///
    /// # Errors
    /// What the kernel said; `EOPNOTSUPP` when the device has none.
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
}

/// Everything that is read.
pub struct Sources {
    /// Under which `proc`, `sys` and `etc` lie; `/` on a live host.
    pub root: PathBuf,
    /// Links and addresses.
    pub links: Box<dyn LinkSource>,
    /// Drivers.
    pub devices: Box<dyn DeviceSource>,
}

impl Sources {
    /// Those of this host and of the calling thread's network namespace.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub fn live() -> Result<Self, HostError> {
        let links = RouteSocket::open().map_err(|cause| HostError::Open { what: "route netlink", cause })?;
        let devices = Ethtool::open().map_err(|cause| HostError::Open { what: "ethtool", cause })?;
        Ok(Self { root: PathBuf::from("/"), links: Box::new(links), devices: Box::new(devices) })
    }
}
