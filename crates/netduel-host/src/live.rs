//! The sources of the running host. Tests have others.
use std::path::PathBuf;

use netduel_sys::ethtool::Ethtool;

use crate::error::HostError;
use crate::netlink::{NetfilterSocket, RouteSocket};
use crate::source::{MetadataService, Sources};

impl Sources {
    /// The sources of this host and of the calling thread's network namespace.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub fn live() -> Result<Self, HostError> {
        let links = RouteSocket::open().map_err(|cause| HostError::Open { what: "route netlink", cause })?;
        let devices = Ethtool::open().map_err(|cause| HostError::Open { what: "ethtool", cause })?;
        Ok(Self {
            root: PathBuf::from("/"),
            links: Box::new(links),
            devices: Box::new(devices),
            filter: Box::new(NetfilterSocket),
            allowed: netduel_sys::affinity::allowed().ok(),
            metadata: Some(MetadataService::LINK_LOCAL),
        })
    }
}
