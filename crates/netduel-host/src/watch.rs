//! The current links, and a wait for their change by the kernel's notifications. Must not interpret them.
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use netduel_sys::clock::monotonic_ns;
use netduel_sys::netlink::link_notifications;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::error::HostError;
use crate::link;
use crate::netlink::RouteSocket;
use crate::source::LinkSource;

/// The state of a link at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkState {
    /// Its index, which is constant for the lifetime of the device.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its link-layer address; none for the loopback and tunnels.
    pub mac: Option<String>,
    /// The index of the interface above it.
    pub master: Option<u32>,
    /// The index of the interface beneath a VLAN or macvlan (`IFLA_LINK`), and of the other end of a veth in the same namespace.
    pub lower: Option<u32>,
    /// The bus of the device behind it, as `pci`; Linux 5.14 and later.
    pub bus: Option<String>,
    /// The device behind it, as `virtio0`; Linux 5.14 and later.
    pub device: Option<String>,
    /// The name of its port, when its driver reports one (`IFLA_PHYS_PORT_NAME`).
    pub port: Option<String>,
    /// Whether it is set up (`IFF_UP`).
    pub up: bool,
    /// Whether it has a carrier, when the kernel reports it.
    pub carrier: Option<bool>,
}

/// The name of the port of a virtio NIC that is a standby (`virtnet_get_phys_port_name` in Linux).
const STANDBY_PORT: &str = "sby";

impl LinkState {
    /// Whether it is the standby of a `net_failover` interface: the virtio NIC below that carries packets while no virtual function is
    /// there. The driver gives the interface above it the same device.
    pub fn is_standby(&self, links: &[Self]) -> bool {
        let Some(master) = self.master else { return false };
        let of_master = links.iter().find(|link| link.index == master).and_then(|link| link.device.as_ref());
        self.port.as_deref() == Some(STANDBY_PORT)
            || self.device.is_some() && self.device.as_ref() == of_master
    }
}

/// The links of the calling thread's network namespace, in the kernel's order.
///
/// # Errors
/// When netlink cannot be opened or queried.
pub fn link_states() -> Result<Vec<LinkState>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "netlink", cause })?;
    let mut list = Vec::new();
    socket.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    let state = |link: link::Link| LinkState {
        index: link.index,
        name: link.name,
        mac: link.mac,
        master: link.master,
        lower: link.lower,
        bus: link.bus,
        device: link.device,
        port: link.port,
        up: link.up,
        carrier: link.carrier,
    };
    Ok(link::links(&list).into_iter().map(state).collect())
}

/// Waits until the links meet a condition: checks at once, and again after every notification about a link. False when the time
/// is over.
///
/// # Errors
/// As [`link_states`].
pub fn wait_for_links(
    within: Duration,
    mut wanted: impl FnMut(&[LinkState]) -> bool,
) -> Result<bool, HostError> {
    // Subscribed before the first check, so no change is missed.
    let news = link_notifications().map_err(|cause| HostError::Open { what: "netlink", cause })?;
    let deadline = monotonic_ns().saturating_add(within.as_nanos() as u64);
    loop {
        if wanted(&link_states()?) {
            return Ok(true);
        }
        let has_event =
            heard_by(&news, deadline).map_err(|cause| HostError::List { what: "changes of links", cause })?;
        if !has_event {
            return Ok(false);
        }
    }
}

/// Whether a notification arrived before the deadline; receives all available ones.
fn heard_by(news: &OwnedFd, deadline_ns: u64) -> io::Result<bool> {
    loop {
        let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
        match poll(&mut [PollFd::new(news, PollFlags::IN)], Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    let mut message = [0; 4096];
    loop {
        match recv(news, &mut message[..], RecvFlags::empty()) {
            // Lost notifications (ENOBUFS) count as well.
            Ok(_) | Err(Errno::INTR | Errno::NOBUFS) => {}
            Err(Errno::AGAIN) => return Ok(true),
            Err(cause) => return Err(cause.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_at_once_when_satisfied_and_at_its_timeout() {
        let loopback = |links: &[LinkState]| links.iter().any(|link| link.name == "lo");
        assert!(wait_for_links(Duration::from_secs(60), loopback).unwrap());
        assert!(!wait_for_links(Duration::from_millis(1), |_| false).unwrap());
    }
}
