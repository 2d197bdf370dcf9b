//! Routes from the kernel's netlink list (rtnetlink(7), `RTM_NEWROUTE`). Pure: bytes in, links out.
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netduel_sys::netlink::{
    AF_INET, AF_INET6, Message, RT_TABLE_MAIN, RTA_DST, RTA_OIF, RTM_NEWROUTE, RTN_UNICAST, attribute,
    messages, u16_at, u32_at,
};

use crate::link::ip;

/// Most routes that are listed, without default routes and link-local destinations: a host with more is a router.
pub(crate) const ROUTES_MAX: usize = 256;

/// Bytes of `struct rtmsg`.
const HEAD_LEN: usize = 12;
/// Offsets of the family, the prefix length of the destination, the type of service, the table, the protocol, the type and the flags.
const FAMILY: usize = 0;
const PREFIX: usize = 1;
const TYPE_OF_SERVICE: usize = 3;
const TABLE: usize = 4;
const PROTOCOL: usize = 5;
const TYPE: usize = 7;
const FLAGS: usize = 8;
/// `RT_TABLE_LOCAL`: the table of the host's own addresses.
const TABLE_LOCAL: u8 = 255;
/// `RTPROT_KERNEL`: a route that the kernel adds with an address, each time that the link is set up.
const PROTOCOL_KERNEL: u8 = 2;
/// `RTM_F_CLONED`: an exception for one address, for example of path MTU discovery. It expires, and is no setting.
const FLAG_CLONED: u32 = 0x200;
/// `RTA_GATEWAY`: the next hop, in the family of the route.
pub(crate) const GATEWAY: u16 = 5;
/// `RTA_PRIORITY`: the metric; absent when it is 0.
const METRIC: u16 = 6;
/// `RTA_PREFSRC`: the source address.
const PREFERRED_SOURCE: u16 = 7;
/// `RTA_METRICS`: a list of attributes, and in it `RTAX_MTU`.
const METRICS: u16 = 8;
const METRICS_MTU: u16 = 2;
/// The others of them that are numbers (linux/rtnetlink.h, `RTAX_`), with the names that ip-route(8) has for them.
const METRICS_NUMBERS: [(u16, &str); 15] = [
    (1, "lock"),
    (3, "window"),
    (4, "rtt"),
    (5, "rttvar"),
    (6, "ssthresh"),
    (7, "cwnd"),
    (8, "advmss"),
    (9, "reordering"),
    (10, "hoplimit"),
    (11, "initcwnd"),
    (12, "features"),
    (13, "rto_min"),
    (14, "initrwnd"),
    (15, "quickack"),
    (17, "fastopen_no_cookie"),
];
/// `RTAX_CC_ALGO`: the name of a congestion control.
const METRICS_CONGESTION_CONTROL: (u16, &str) = (16, "congctl");
/// `RTA_MULTIPATH`: several next hops, as a list of `struct rtnexthop`.
const SEVERAL: u16 = 9;
/// `RTA_VIA`: a next hop of another family (`struct rtvia`), whose address follows the family.
pub(crate) const VIA: u16 = 18;
/// Bytes of `struct rtnexthop` before its attributes.
const HOP_HEAD_LEN: usize = 8;

/// A unicast route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedRoute {
    /// First address of its destination.
    pub destination: IpAddr,
    /// Prefix length of its destination.
    pub prefix_length: u8,
    /// Its metric.
    pub metric: u32,
    /// The source address that it states.
    pub source: Option<IpAddr>,
    /// The MTU that it states, bytes.
    pub mtu: Option<u32>,
    /// The other attributes of its metrics, by name.
    pub attributes: BTreeMap<String, String>,
    /// Where packets go.
    pub hops: Vec<Hop>,
}

/// A next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    /// The index of the link that packets leave by.
    pub link: u32,
    /// The address of the next hop; absent when the destination is on the link.
    pub gateway: Option<IpAddr>,
}

/// Whether a message is a default route, of any table and type.
pub(crate) fn is_default(message: &Message<'_>) -> bool {
    message.kind == RTM_NEWROUTE && message.payload.get(PREFIX) == Some(&0)
}

/// Whether a message is a route of the main table, of any type.
fn is_of_main_table(message: &Message<'_>) -> bool {
    message.kind == RTM_NEWROUTE && message.payload.get(TABLE) == Some(&RT_TABLE_MAIN)
}

/// Whether a message is one of the routes that [`ROUTES_MAX`] limits, of any type. Each link has a link-local one, and exceptions are none.
pub(crate) fn is_limited(message: &Message<'_>) -> bool {
    let attributes = message.payload.get(HEAD_LEN..).unwrap_or_default();
    let destination = attribute(attributes, RTA_DST).and_then(ip);
    is_of_main_table(message)
        && !is_default(message)
        && !is_exception(message)
        && !destination.is_some_and(is_link_local)
}

fn is_unicast(message: &Message<'_>) -> bool {
    message.payload.get(TYPE) == Some(&RTN_UNICAST)
}

fn is_exception(message: &Message<'_>) -> bool {
    u32_at(message.payload, FLAGS).is_some_and(|flags| flags & FLAG_CLONED != 0)
}

/// The indexes of the links that the main table's default routes leave by, ascending.
pub(crate) fn links_of_default(list: &[u8]) -> BTreeSet<u32> {
    messages(list)
        .filter(|message| is_default(message) && is_unicast(message) && is_of_main_table(message))
        .flat_map(|message| links_of(&message))
        .collect()
}

/// The same for the default routes of every table, which policy rules may select.
pub(crate) fn links_of_any_default(list: &[u8]) -> BTreeSet<u32> {
    messages(list)
        .filter(|message| is_default(message) && is_unicast(message))
        .flat_map(|message| links_of(&message))
        .collect()
}

/// The destination of an IPv4 or IPv6 route through a link that a user or a program added, of any table but that of the host's own
/// addresses; `None` for other messages.
pub(crate) fn added_through(message: &Message<'_>, link: u32) -> Option<String> {
    let field = |offset: usize| message.payload.get(offset).copied();
    let is_added = message.kind == RTM_NEWROUTE
        && matches!(field(FAMILY), Some(AF_INET | AF_INET6))
        && field(TABLE) != Some(TABLE_LOCAL)
        && field(PROTOCOL) != Some(PROTOCOL_KERNEL)
        && !is_exception(message);
    if !is_added || !links_of(message).contains(&link) {
        return None;
    }
    let route = listed(message)?;
    Some(format!("{}/{}", route.destination, route.prefix_length))
}

/// The unicast routes of the main table, without link-local destinations; `None` where there are more than [`ROUTES_MAX`] beside default
/// routes, because a part of them would name wrong links.
pub(crate) fn routes_of_main_table(list: &[u8]) -> Option<Vec<ListedRoute>> {
    if messages(list).filter(is_limited).count() > ROUTES_MAX {
        return None;
    }
    let is_listed = |message: &Message<'_>| {
        is_of_main_table(message)
            && is_unicast(message)
            && !is_exception(message)
            && is_of_every_service(message)
    };
    let routes = messages(list).filter(is_listed).filter_map(|message| listed(&message));
    Some(routes.filter(|route| !is_link_local(route.destination)).collect())
}

/// Whether a route is not one for packets of a type of service, which traffic of a test does not have.
fn is_of_every_service(message: &Message<'_>) -> bool {
    message.payload.get(TYPE_OF_SERVICE) == Some(&0)
}

fn listed(message: &Message<'_>) -> Option<ListedRoute> {
    let attributes = message.payload.get(HEAD_LEN..)?;
    let of = |kind: u16| attribute(attributes, kind);
    let unspecified = || match message.payload.get(FAMILY) {
        Some(&AF_INET) => Some(IpAddr::from(Ipv4Addr::UNSPECIFIED)),
        Some(&AF_INET6) => Some(IpAddr::from(Ipv6Addr::UNSPECIFIED)),
        _ => None,
    };
    Some(ListedRoute {
        destination: match of(RTA_DST) {
            Some(value) => ip(value)?,
            None => unspecified()?,
        },
        prefix_length: *message.payload.get(PREFIX)?,
        metric: of(METRIC).and_then(|value| u32_at(value, 0)).unwrap_or_default(),
        source: of(PREFERRED_SOURCE).and_then(ip),
        mtu: of(METRICS).and_then(|value| attribute(value, METRICS_MTU)).and_then(|value| u32_at(value, 0)),
        attributes: of(METRICS).map(other_metrics).unwrap_or_default(),
        hops: hops_of(message),
    })
}

/// The attributes of metrics but for the MTU.
fn other_metrics(metrics: &[u8]) -> BTreeMap<String, String> {
    let numbers = METRICS_NUMBERS.into_iter().filter_map(|(kind, name)| {
        let number = u32_at(attribute(metrics, kind)?, 0)?;
        Some((name.to_owned(), number.to_string()))
    });
    let (kind, name) = METRICS_CONGESTION_CONTROL;
    let congestion_control = attribute(metrics, kind).map(|value| {
        let text = String::from_utf8_lossy(value);
        (name.to_owned(), text.trim_end_matches('\0').to_owned())
    });
    numbers.chain(congestion_control).collect()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn links_of(message: &Message<'_>) -> Vec<u32> {
    hops_of(message).iter().map(|hop| hop.link).collect()
}

fn hops_of(message: &Message<'_>) -> Vec<Hop> {
    let attributes = message.payload.get(HEAD_LEN..).unwrap_or_default();
    let mut found = Vec::new();
    for (kind, value) in message.attributes(HEAD_LEN) {
        match kind {
            RTA_OIF => found.extend(u32_at(value, 0).map(|link| Hop { link, gateway: gateway(attributes) })),
            SEVERAL => found.extend(hops(value)),
            _ => {}
        }
    }
    found
}

/// The next hop among attributes of a route, or of one of several hops.
fn gateway(attributes: &[u8]) -> Option<IpAddr> {
    let of_other_family = || ip(attribute(attributes, VIA)?.get(2..)?);
    attribute(attributes, GATEWAY).and_then(ip).or_else(of_other_family)
}

/// `struct rtnexthop`: its length, two bytes of flags and hops, the index of the link, attributes.
fn hops(bytes: &[u8]) -> impl Iterator<Item = Hop> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?).max(HOP_HEAD_LEN);
        let link = u32_at(rest, 4)?;
        let gateway = gateway(rest.get(HOP_HEAD_LEN..length).unwrap_or_default());
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Hop { link, gateway })
    })
}

#[cfg(test)]
mod tests {
    use netduel_sys::netlink::Request;

    use super::*;

    fn message(prefix: u8, table: u8, kind: u8, attribute: (u16, &[u8])) -> Vec<u8> {
        let body = [2, prefix, 0, 0, table, 3, 0, kind, 0, 0, 0, 0];
        Request::new(RTM_NEWROUTE, 0, &body).bytes(attribute.0, attribute.1).finish(0)
    }

    #[test]
    fn routes_of_the_main_table_have_destination_metric_and_links() {
        let route = |head: [u8; 12], attributes: &[(u16, &[u8])]| {
            let request = Request::new(RTM_NEWROUTE, 0, &head);
            attributes.iter().fold(request, |request, (kind, value)| request.bytes(*kind, value)).finish(0)
        };
        let head = |family, prefix, table, kind| [family, prefix, 0, 0, table, 3, 0, kind, 0, 0, 0, 0];
        let (two, three) = (2_u32.to_ne_bytes(), 3_u32.to_ne_bytes());
        let hundred = 100_u32.to_ne_bytes();
        let network = [0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let link_local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let list = [
            route(head(2, 0, RT_TABLE_MAIN, RTN_UNICAST), &[(METRIC, &hundred), (RTA_OIF, &two)]),
            route(head(2, 24, RT_TABLE_MAIN, RTN_UNICAST), &[(RTA_DST, &[10, 77, 2, 0]), (RTA_OIF, &three)]),
            route(head(10, 64, RT_TABLE_MAIN, RTN_UNICAST), &[(RTA_DST, &network), (RTA_OIF, &three)]),
            route(head(10, 64, RT_TABLE_MAIN, RTN_UNICAST), &[(RTA_DST, &link_local), (RTA_OIF, &three)]),
            route(head(2, 24, 100, RTN_UNICAST), &[(RTA_DST, &[10, 77, 3, 0]), (RTA_OIF, &three)]),
            route(head(2, 24, RT_TABLE_MAIN, 7), &[(RTA_DST, &[10, 77, 4, 0]), (RTA_OIF, &three)]),
        ]
        .concat();
        let found: Vec<String> = routes_of_main_table(&list)
            .unwrap()
            .iter()
            .map(|one| {
                let links: Vec<u32> = one.hops.iter().map(|hop| hop.link).collect();
                format!("{}/{} {} {links:?}", one.destination, one.prefix_length, one.metric)
            })
            .collect();
        assert_eq!(found, ["0.0.0.0/0 100 [2]", "10.77.2.0/24 0 [3]", "fd77::/64 0 [3]"]);
        for cut in 0..list.len() {
            let _ = routes_of_main_table(&list[..cut]);
        }
        let many = route(head(2, 24, RT_TABLE_MAIN, RTN_UNICAST), &[(RTA_OIF, &two)]).repeat(ROUTES_MAX);
        let local = route(head(10, 64, RT_TABLE_MAIN, RTN_UNICAST), &[(RTA_DST, &link_local)]);
        let routes = [many.clone(), local.repeat(2)].concat();
        let listed = routes_of_main_table(&routes).unwrap();
        assert_eq!(listed.len(), ROUTES_MAX, "link-local routes do not count");
        let one_more = route(head(2, 24, RT_TABLE_MAIN, RTN_UNICAST), &[(RTA_OIF, &two)]);
        assert_eq!(routes_of_main_table(&[many, one_more].concat()), None);
        assert_eq!(routes_of_main_table(&[]), Some(Vec::new()), "no route is no failure");
        let of_a_service =
            route([2, 24, 0, 16, RT_TABLE_MAIN, 3, 0, RTN_UNICAST, 0, 0, 0, 0], &[(RTA_OIF, &two)]);
        assert_eq!(routes_of_main_table(&of_a_service), Some(Vec::new()));
    }

    #[test]
    fn route_has_its_next_hops_source_and_mtu_and_exceptions_are_none() {
        let head = |flags: u32| {
            let mut head = [2, 24, 0, 0, RT_TABLE_MAIN, 3, 0, RTN_UNICAST, 0, 0, 0, 0];
            head[FLAGS..].copy_from_slice(&flags.to_ne_bytes());
            head
        };
        let nested = |kind: u16, value: &[u8]| {
            let length = (4 + value.len() as u16).to_ne_bytes();
            [&length[..], &kind.to_ne_bytes()[..], value].concat()
        };
        // Each attribute begins at a multiple of four bytes.
        let congestion_control = [nested(16, b"reno\0"), vec![0; 3]].concat();
        let metrics = [
            nested(METRICS_MTU, &1400_u32.to_ne_bytes()),
            congestion_control,
            nested(8, &300_u32.to_ne_bytes()),
        ]
        .concat();
        let destination = [10, 77, 2, 0];
        let one = |flags: u32| {
            Request::new(RTM_NEWROUTE, 0, &head(flags))
                .bytes(RTA_DST, &destination)
                .bytes(METRICS, &metrics)
                .bytes(PREFERRED_SOURCE, &[10, 77, 1, 4])
                .bytes(GATEWAY, &[10, 77, 1, 1])
                .bytes(RTA_OIF, &3_u32.to_ne_bytes())
                .finish(0)
        };
        let found = routes_of_main_table(&[one(0), one(FLAG_CLONED)].concat()).unwrap();
        let [route] = &found[..] else { panic!("{found:?}") };
        let address = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        assert_eq!((route.source, route.mtu), (address("10.77.1.4"), Some(1400)));
        let attributes: Vec<_> =
            route.attributes.iter().map(|(name, value)| format!("{name} {value}")).collect();
        assert_eq!(attributes, ["advmss 300", "congctl reno"]);
        assert_eq!(route.hops, [Hop { link: 3, gateway: address("10.77.1.1") }]);
        // One hop with a next hop of the other family, and one without any.
        let mut via = vec![10, 0];
        via.extend([0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let via = nested(VIA, &via);
        let length = ((HOP_HEAD_LEN + via.len()) as u16).to_ne_bytes();
        // Attributes end at a multiple of four bytes.
        let first = [&length[..], &[0_u8, 0], &7_u32.to_ne_bytes(), &via[..], &[0_u8, 0]].concat();
        let second = [&[8_u8, 0, 0, 0][..], &8_u32.to_ne_bytes()].concat();
        let several = Request::new(RTM_NEWROUTE, 0, &head(0))
            .bytes(RTA_DST, &destination)
            .bytes(SEVERAL, &[first, second].concat())
            .finish(0);
        let found = routes_of_main_table(&several).unwrap();
        let expected = [Hop { link: 7, gateway: address("fd77::1") }, Hop { link: 8, gateway: None }];
        assert_eq!(found.first().map(|route| &route.hops[..]), Some(&expected[..]));
        for cut in 0..several.len() {
            let _ = routes_of_main_table(&several[..cut]);
        }
    }

    #[test]
    fn routes_that_the_kernel_does_not_add_itself_are_listed_with_any_table() {
        let of = |family: u8, prefix: u8, table: u8, protocol: u8, attribute: (u16, &[u8])| {
            let body = [family, prefix, 0, 0, table, protocol, 0, RTN_UNICAST, 0, 0, 0, 0];
            let request = Request::new(RTM_NEWROUTE, 0, &body).bytes(attribute.0, attribute.1);
            let destination: &[u8] = if family == AF_INET { &[10, 9, 0, 0] } else { &[0xfd; 16] };
            let request = if prefix == 0 { request } else { request.bytes(RTA_DST, destination) };
            request.finish(0)
        };
        let (three, four) = (3_u32.to_ne_bytes(), 4_u32.to_ne_bytes());
        let several = [&[8_u8, 0, 0, 0][..], &four, &[8, 0, 0, 0], &three].concat();
        let list = [
            of(AF_INET, 16, RT_TABLE_MAIN, 3, (RTA_OIF, &three)),
            of(AF_INET, 24, 100, 4, (SEVERAL, &several)),
            of(AF_INET6, 0, RT_TABLE_MAIN, 3, (RTA_OIF, &three)),
            // Those of an address, of the host's own addresses, of another link, and of a multicast router.
            of(AF_INET, 24, RT_TABLE_MAIN, PROTOCOL_KERNEL, (RTA_OIF, &three)),
            of(AF_INET6, 128, TABLE_LOCAL, 3, (RTA_OIF, &three)),
            of(AF_INET, 24, RT_TABLE_MAIN, 3, (RTA_OIF, &four)),
            of(128, 32, RT_TABLE_MAIN, 17, (RTA_OIF, &three)),
        ]
        .concat();
        let found: Vec<String> = messages(&list).filter_map(|message| added_through(&message, 3)).collect();
        assert_eq!(found, ["10.9.0.0/16", "10.9.0.0/24", "::/0"]);
    }

    #[test]
    fn only_unicast_default_routes_of_the_main_table_count() {
        let link = |index: u32| index.to_ne_bytes();
        let mut several = Vec::new();
        for index in [7u32, 8] {
            several.extend([8, 0, 0, 0]);
            several.extend(index.to_ne_bytes());
        }
        let list = [
            message(0, RT_TABLE_MAIN, RTN_UNICAST, (RTA_OIF, &link(2))),
            message(24, RT_TABLE_MAIN, RTN_UNICAST, (RTA_OIF, &link(3))),
            message(0, 100, RTN_UNICAST, (RTA_OIF, &link(4))),
            message(0, RT_TABLE_MAIN, 7, (RTA_OIF, &link(5))),
            message(0, RT_TABLE_MAIN, RTN_UNICAST, (SEVERAL, &several)),
        ]
        .concat();
        assert_eq!(links_of_default(&list).into_iter().collect::<Vec<_>>(), [2, 7, 8]);
        assert_eq!(links_of_any_default(&list).into_iter().collect::<Vec<_>>(), [2, 4, 7, 8]);
        for cut in 0..list.len() {
            let _ = links_of_default(&list[..cut]);
        }
    }
}
