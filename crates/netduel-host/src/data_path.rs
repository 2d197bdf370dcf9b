//! Where frames of a trial leave and arrive with kernel bypass: the interface, its queues, and the hardware
//! addresses of both ends of the first hop (rtnetlink(7), `RTM_GETROUTE` and `RTM_GETNEIGH`).
use std::net::IpAddr;

use netduel_model::snapshot::XdpFeature;
use netduel_sys::ethtool::{Channels, Ethtool};
use netduel_sys::local_bind::LocalBind;
use netduel_sys::netlink::{
    NDA_DST, NDA_LLADDR, RTA_OIF, RTM_NEWNEIGH, attributes, messages, u16_at, u32_at,
};

use crate::error::HostError;
use crate::link::{Link, addresses, ip, links};
use crate::netlink::{RouteSocket, xdp_devices};
use crate::route::{GATEWAY as ROUTE_GATEWAY, VIA as ROUTE_VIA};
use crate::source::LinkSource as _;
use crate::xdp;

/// Bytes of `struct rtmsg` and of `struct ndmsg`.
const HEAD_LEN: usize = 12;
/// `NDA_MASTER`: the bridge of a forwarding entry.
const NEIGHBOUR_MASTER: u16 = 9;
/// `NUD_INCOMPLETE | NUD_FAILED | NUD_NOARP`: no hardware address is known, or there is none.
const STATES_WITHOUT: u16 = 0x01 | 0x20 | 0x40;

/// An interface, and the next hop of its frames. Below a bridge it is the port that the bridge forwards them to: the bridge itself has no
/// queues and no driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPath {
    /// Name of the interface.
    pub interface: String,
    /// Its index.
    pub index: u32,
    /// XDP features of its driver now; absent where the kernel does not report it (before Linux 6.3).
    pub xdp: Option<Vec<XdpFeature>>,
    /// Queues that it receives by.
    pub rx_queues: u32,
    /// Queues that it sends by.
    pub tx_queues: u32,
    /// The hardware address of this host towards the peer: of the interface that the route names, which may lie above the one that
    /// carries the frames.
    pub own_mac: [u8; 6],
    /// The hardware address of the next hop; zeros for [`DataPath::at`].
    pub peer_mac: [u8; 6],
}

impl DataPath {
    /// The path from this network namespace to a peer, over the named interface or the one that its route names; the route is that of
    /// sockets with this `bind`. Send to the peer before, so that its next hop is resolved.
    ///
    /// # Errors
    /// Without a route, over the loopback, without the named interface, without the next hop's hardware address.
    pub fn to_peer(peer: IpAddr, bind: &LocalBind, named: Option<&str>) -> Result<Self, HostError> {
        let (mut socket, all) = listed()?;
        let failed = |reason: String| HostError::NoRoute { peer, reason };
        let device = bind.device.as_deref().map(|name| by_name(&all, name).map_err(failed)).transpose()?;
        let answer = socket
            .route_to(peer, bind.address, device.map(|link| link.index))
            .map_err(|error| failed(format!("the kernel has no route: {error}")))?;
        let route = messages(&answer).find_map(|message| route(message.payload));
        let (index, hop) = route.ok_or_else(|| failed("its route names no interface".to_owned()))?;
        let routed = all.iter().find(|link| link.index == index);
        let routed = routed.ok_or_else(|| failed("the interface of its route is gone".to_owned()))?;
        let hop = hop.unwrap_or(peer);
        let mut neighbours = Vec::new();
        socket.neighbours(&mut neighbours).map_err(|cause| HostError::List { what: "neighbours", cause })?;
        let peer_mac = neighbour(&neighbours, index, hop).ok_or_else(|| {
            failed(format!(
                "{} is on {}, and no hardware address of it is known there; frames can only be written for an Ethernet interface whose \
                 next hop answers (see `ip neigh`); the generator `socket` works everywhere",
                if hop == peer { "it".to_owned() } else { format!("its next hop {hop}") },
                routed.name
            ))
        })?;
        let own_mac = routed.mac.as_deref().and_then(hardware).unwrap_or_default();
        let link = match named {
            Some(name) => by_name(&all, name).map_err(failed)?,
            None => port(&mut socket, &all, routed, peer_mac)?.unwrap_or(routed),
        };
        let (rx_queues, tx_queues) = queues(link);
        let (interface, index, xdp) = (link.name.clone(), link.index, xdp_of(link));
        Ok(Self { interface, index, xdp, rx_queues, tx_queues, own_mac, peer_mac })
    }

    /// Where frames of a peer to an address of this network namespace arrive: as [`DataPath::at`], or, where that is a bridge, at its
    /// port towards the peer.
    ///
    /// # Errors
    /// As [`DataPath::at`].
    pub fn from_peer(
        own: IpAddr,
        (peer, bind): (IpAddr, &LocalBind),
        named: Option<&str>,
    ) -> Result<Self, HostError> {
        let at = Self::at(own, named)?;
        let (_, all) = listed()?;
        let is_port =
            |path: &Self| all.iter().any(|link| link.index == path.index && link.master == Some(at.index));
        // Without a route back, or over the loopback, the interface of the address takes the frames.
        let port = Self::to_peer(peer, bind, named).ok().filter(is_port);
        Ok(port.map_or(at, |port| Self { peer_mac: [0; 6], ..port }))
    }

    /// Where frames to an address of this network namespace arrive: at the named interface, or at the one that has the address.
    ///
    /// # Errors
    /// When no interface has that name or that address.
    pub fn at(own: IpAddr, named: Option<&str>) -> Result<Self, HostError> {
        let (mut socket, all) = listed()?;
        let failed = |reason: String| HostError::NoRoute { peer: own, reason };
        let link = if let Some(name) = named {
            by_name(&all, name).map_err(failed)?
        } else {
            let mut list = Vec::new();
            socket.addresses(&mut list).map_err(|cause| HostError::List { what: "addresses", cause })?;
            let index =
                addresses(&list).into_iter().find(|(_, address)| *address == own).map(|(index, _)| index);
            let found = all.iter().find(|link| Some(link.index) == index);
            found.ok_or_else(|| failed("no interface of this host has that address".to_owned()))?
        };
        let (rx_queues, tx_queues) = queues(link);
        let own_mac = link.mac.as_deref().and_then(hardware).unwrap_or_default();
        let (interface, index, xdp) = (link.name.clone(), link.index, xdp_of(link));
        Ok(Self { interface, index, xdp, rx_queues, tx_queues, own_mac, peer_mac: [0; 6] })
    }

    /// Whether the named interface has no other packets than those of this one: it is this one, or below it.
    ///
    /// # Errors
    /// When links cannot be listed.
    pub fn carries_all_of(&self, name: &str) -> Result<bool, HostError> {
        Ok(name == self.interface || is_part(&listed()?.1, name, self.index))
    }
}

/// Sent packets by the counter of an interface of this network namespace.
///
/// # Errors
/// When links cannot be listed.
pub fn packets_sent(index: u32) -> Result<Option<u64>, HostError> {
    let (_, all) = listed()?;
    let link = all.into_iter().find(|link| link.index == index);
    Ok(link.and_then(|link| link.counters).map(|counters| counters.tx_packets))
}

fn listed() -> Result<(RouteSocket, Vec<Link>), HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "netlink", cause })?;
    let mut list = Vec::new();
    socket.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    Ok((socket, links(&list)))
}

fn by_name<'a>(all: &'a [Link], name: &str) -> Result<&'a Link, String> {
    all.iter().find(|link| link.name == name).ok_or_else(|| {
        let names = all.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
        format!("no interface {name}; this namespace has {names}")
    })
}

/// Whether the named link is a virtual function or a port of one device or bond. The ports of a bridge have packets of others, too.
fn is_part(all: &[Link], name: &str, of: u32) -> bool {
    let above = all.iter().find(|link| link.index == of);
    above.is_some_and(|link| matches!(link.kind.as_deref(), None | Some("bond" | "team")))
        && all.iter().any(|link| link.name == name && link.master == Some(of))
}

fn xdp_of(link: &Link) -> Option<Vec<XdpFeature>> {
    xdp::features(&xdp_devices().ok()?).remove(&link.index)
}

/// Queues in use, for receiving and for sending; one where neither driver nor kernel reports them.
fn queues(link: &Link) -> (u32, u32) {
    let channels = Ethtool::open().and_then(|mut ethtool| ethtool.channels(&link.name));
    let (rx, tx) = channels.map_or((0, 0), |channels| in_use(&channels));
    let or = |driver: u32, link: Option<u32>| if driver > 0 { driver } else { link.unwrap_or(1).max(1) };
    (or(rx, link.rx_queues), or(tx, link.tx_queues))
}

/// Receive and transmit queues of a driver's channels. The numbers are the driver's, whatever they are.
fn in_use(channels: &Channels) -> (u32, u32) {
    let with_combined = |queues: u32| queues.saturating_add(channels.combined);
    (with_combined(channels.rx), with_combined(channels.tx))
}

/// The index of the link that a route leaves by, and its gateway if it has one.
fn route(payload: &[u8]) -> Option<(u32, Option<IpAddr>)> {
    let (mut index, mut gateway) = (None, None);
    for (kind, value) in attributes(payload.get(HEAD_LEN..)?) {
        match kind {
            RTA_OIF => index = u32_at(value, 0),
            ROUTE_GATEWAY => gateway = ip(value),
            // A family before the address.
            ROUTE_VIA => gateway = value.get(2..).and_then(ip),
            _ => {}
        }
    }
    Some((index?, gateway))
}

/// The port to which a bridge forwards frames for a hardware address; absent for other links, and where the bridge would flood.
fn port<'a>(
    socket: &mut RouteSocket,
    all: &'a [Link],
    link: &Link,
    to: [u8; 6],
) -> Result<Option<&'a Link>, HostError> {
    if link.kind.as_deref() != Some("bridge") {
        return Ok(None);
    }
    let mut entries = Vec::new();
    socket
        .forwarding(&mut entries)
        .map_err(|cause| HostError::List { what: "forwarding entries of bridges", cause })?;
    let index = forwarded(&entries, link.index, to);
    Ok(all.iter().find(|link| Some(link.index) == index))
}

/// The index of the port of a bridge with the forwarding entry of a hardware address.
fn forwarded(list: &[u8], bridge: u32, to: [u8; 6]) -> Option<u32> {
    messages(list).filter(|message| message.kind == RTM_NEWNEIGH).find_map(|message| {
        let port = u32_at(message.payload, 4)?;
        let (mut is_of_bridge, mut is_wanted) = (false, false);
        for (kind, value) in message.attributes(HEAD_LEN) {
            match kind {
                NEIGHBOUR_MASTER => is_of_bridge = u32_at(value, 0) == Some(bridge),
                NDA_LLADDR => is_wanted = value == to,
                _ => {}
            }
        }
        // An entry on the bridge itself is its own address.
        (is_of_bridge && is_wanted && port != bridge).then_some(port)
    })
}

/// The hardware address of a neighbour on a link.
fn neighbour(list: &[u8], index: u32, address: IpAddr) -> Option<[u8; 6]> {
    messages(list).filter(|message| message.kind == RTM_NEWNEIGH).find_map(|message| {
        let of = (u32_at(message.payload, 4)?, u16_at(message.payload, 8)?);
        if of.0 != index || of.1 & STATES_WITHOUT != 0 {
            return None;
        }
        let (mut is_wanted, mut found) = (false, None);
        for (kind, value) in message.attributes(HEAD_LEN) {
            match kind {
                NDA_DST => is_wanted = ip(value) == Some(address),
                NDA_LLADDR => found = value.try_into().ok(),
                _ => {}
            }
        }
        found.filter(|_| is_wanted)
    })
}

/// `02:70:6c:00:00:0a` as bytes.
fn hardware(text: &str) -> Option<[u8; 6]> {
    let bytes: Vec<u8> =
        text.split(':').map(|part| u8::from_str_radix(part, 16)).collect::<Result<_, _>>().ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use netduel_sys::netlink::{RTM_NEWROUTE, Request};

    use super::*;

    fn message(kind: u16, head: &[u8], listed: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = head.to_vec();
        body.resize(HEAD_LEN, 0);
        let request = Request::new(kind, 0, &body);
        listed.iter().fold(request, |request, (kind, value)| request.bytes(*kind, value)).finish(0)
    }

    #[test]
    fn channels_of_a_driver_beyond_reason_do_not_overflow() {
        let channels = Channels { rx: 3, tx: u32::MAX, combined: 4, ..Channels::default() };
        assert_eq!(in_use(&channels), (7, u32::MAX));
    }

    #[test]
    fn neighbour_is_of_the_link_and_reachable() {
        let head = |index: u8, state: u8| [2, 0, 0, 0, index, 0, 0, 0, state, 0, 0, 0];
        let mac = |last: u8| [2, 0, 0, 0, 0, last];
        let of = |index, state, address: [u8; 4], last| {
            let mac = mac(last);
            message(RTM_NEWNEIGH, &head(index, state), &[(NDA_DST, &address), (NDA_LLADDR, &mac)])
        };
        let list = [
            of(3, 2, [10, 0, 0, 1], 1),
            of(4, 2, [10, 0, 0, 2], 2),
            // Failed, and then reachable.
            of(4, 0x20, [10, 0, 0, 1], 3),
            of(4, 2, [10, 0, 0, 1], 4),
        ]
        .concat();
        assert_eq!(neighbour(&list, 4, "10.0.0.1".parse().unwrap()), Some(mac(4)));
        assert_eq!(neighbour(&list, 4, "10.0.0.3".parse().unwrap()), None);
        for cut in 0..list.len() {
            let _ = neighbour(&list[..cut], 4, "10.0.0.1".parse().unwrap());
        }
    }

    #[test]
    fn bridge_forwards_to_the_port_of_the_entry_for_the_address() {
        let mac = |last: u8| [2, 0, 0, 0, 0, last];
        let entry = |port: u8, bridge: u32, last: u8| {
            message(
                RTM_NEWNEIGH,
                &[7, 0, 0, 0, port, 0, 0, 0],
                &[(NDA_LLADDR, &mac(last)), (NEIGHBOUR_MASTER, &bridge.to_ne_bytes())],
            )
        };
        let multicast = message(RTM_NEWNEIGH, &[7, 0, 0, 0, 8, 0, 0, 0], &[(NDA_LLADDR, &mac(1))]);
        // The address is also forwarded by another bridge; the bridge has its own address.
        let list = [multicast, entry(5, 9, 1), entry(3, 3, 2), entry(6, 3, 1), entry(7, 3, 4)].concat();
        assert_eq!(forwarded(&list, 3, mac(1)), Some(6));
        assert_eq!(forwarded(&list, 3, mac(2)), None);
        assert_eq!(forwarded(&list, 3, mac(3)), None);
        for cut in 0..list.len() {
            let _ = forwarded(&list[..cut], 3, mac(1));
        }
    }

    #[test]
    fn parts_of_a_device_or_bond_have_its_packets_and_ports_of_a_bridge_those_of_others() {
        let of_kind = |kind: Option<&str>| {
            let link = |index: u32, name: &str, master: Option<u32>| Link {
                index,
                name: name.to_owned(),
                master,
                ..Link::default()
            };
            let above = Link { kind: kind.map(str::to_owned), ..link(2, "above", None) };
            [above, link(3, "below", Some(2)), link(4, "other", Some(9)), link(5, "alone", None)]
        };
        for (kind, is_shared) in
            [(None, false), (Some("bond"), false), (Some("bridge"), true), (Some("vrf"), true)]
        {
            let all = of_kind(kind);
            assert_eq!(is_part(&all, "below", 2), !is_shared, "{kind:?}");
            for name in ["above", "other", "alone", "nonesuch0"] {
                assert!(!is_part(&all, name, 2), "{kind:?} {name}");
            }
        }
    }

    #[test]
    fn route_has_its_link_and_its_gateway() {
        let direct = message(RTM_NEWROUTE, &[2], &[(RTA_OIF, &7_u32.to_ne_bytes())]);
        let by =
            message(RTM_NEWROUTE, &[2], &[(ROUTE_GATEWAY, &[10, 0, 0, 9]), (RTA_OIF, &7_u32.to_ne_bytes())]);
        let of = |bytes: &[u8]| messages(bytes).find_map(|message| route(message.payload));
        assert_eq!(of(&direct), Some((7, None)));
        assert_eq!(of(&by), Some((7, Some("10.0.0.9".parse().unwrap()))));
    }

    #[test]
    fn loopback_has_a_route_and_no_neighbour() {
        let refused =
            DataPath::to_peer("127.0.0.1".parse().unwrap(), &LocalBind::ANY, None).unwrap_err().to_string();
        assert!(refused.contains("is on lo"), "{refused}");
        let refused = DataPath::at("192.0.2.1".parse().unwrap(), Some("nonesuch0")).unwrap_err().to_string();
        assert!(refused.contains("no interface nonesuch0"), "{refused}");
        assert_eq!(DataPath::at("127.0.0.1".parse().unwrap(), None).unwrap().interface, "lo");
    }

    #[test]
    fn hardware_addresses_are_read() {
        assert_eq!(hardware("02:70:6c:00:00:0a"), Some([2, 0x70, 0x6c, 0, 0, 10]));
        assert_eq!(hardware("02:70"), None);
    }
}
