//! A host of the lab: a network namespace, a host-name (UTS) namespace, and sockets in them.
use std::os::fd::OwnedFd;

use netduel_sys::ethtool::Ethtool;
use netduel_sys::namespace::{self, Kind};

use crate::error::LabError;
use crate::netlink::socket::Netlink;

/// A host. Its namespaces live as long as this value, or as long as a process runs in them.
pub(crate) struct Host {
    /// Name.
    pub name: &'static str,
    /// Its network namespace.
    pub network: OwnedFd,
    /// Its host-name namespace.
    pub names: OwnedFd,
    /// Links, addresses, neighbours, queueing.
    pub route: Netlink,
    /// nftables.
    pub filter: Netlink,
    /// Features of its interfaces.
    pub drivers: Ethtool,
}

impl Host {
    /// Creates the host's namespaces and leaves the calling thread in them.
    pub(crate) fn create(name: &'static str) -> Result<Self, LabError> {
        namespace::unshare(&[Kind::Net, Kind::Uts])
            .map_err(LabError::namespaces(format!("network of host {name}")))?;
        namespace::set_host_name(name).map_err(LabError::namespaces(format!("name of host {name}")))?;
        let open = |kind| {
            namespace::open_own(kind).map_err(LabError::local(format!("open a namespace of host {name}")))
        };
        let (network, names) = (open(Kind::Net)?, open(Kind::Uts)?);
        let socket = |what| LabError::local::<std::io::Error>(format!("open a {what} socket in host {name}"));
        Ok(Self {
            name,
            network,
            names,
            route: Netlink::route().map_err(socket("NETLINK_ROUTE"))?,
            drivers: Ethtool::open().map_err(socket("ethtool"))?,
            filter: Netlink::netfilter().map_err(socket("NETLINK_NETFILTER (CONFIG_NETFILTER_NETLINK)"))?,
        })
    }

    /// The name of an interface of this host in errors.
    pub(crate) fn object(&self, interface: &str) -> String {
        format!("{}/{interface}", self.name)
    }
}
