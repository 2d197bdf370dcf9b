//! The lab's policy: N stateless deny rules that the software switch evaluates one by one per packet, and the same policy as one
//! hashed lookup in the NIC's switch. The traffic of a measurement matches none of them.
use crate::error::LabError;
use netduel_sys::netlink::Request;

use crate::netlink::netfilter::{self, Expression, Header, Meta};
use crate::netlink::socket::Netlink;

/// Table of the software switch's rules.
const LINEAR: &str = "nsg";
/// Table of the NIC's lookup.
const HASHED: &str = "nicpol";

/// Parameters of an address family.
struct Family {
    /// Ether type, network order.
    ether_type: [u8; 2],
    /// Offset of the source address in the header, bytes.
    source_offset: u32,
    /// Length of an address, bytes.
    address_bytes: u32,
    /// nft's number for addresses of the family.
    key_type: u32,
    /// The software switch's chain.
    chain: &'static str,
    /// The NIC's set.
    set: &'static str,
    /// The denied source with this number.
    source: fn(u32) -> Vec<u8>,
}

const FAMILIES: [Family; 2] = [
    Family {
        ether_type: [0x08, 0x00],
        source_offset: 12,
        address_bytes: 4,
        key_type: 7,
        chain: "acl4",
        set: "deny4",
        source: |number| vec![192, 168, (number >> 8) as u8, number as u8],
    },
    Family {
        ether_type: [0x86, 0xdd],
        source_offset: 8,
        address_bytes: 16,
        key_type: 8,
        chain: "acl6",
        set: "deny6",
        source: |number| {
            let mut bytes = vec![0xfd, 0xde, 0xad];
            bytes.resize(12, 0);
            bytes.extend_from_slice(&number.to_be_bytes());
            bytes
        },
    },
];

impl Family {
    /// Matches packets of the family; leaves the source address loaded.
    fn load_source(&self) -> Vec<Expression> {
        vec![
            Expression::Meta(Meta::Protocol),
            Expression::Equals(self.ether_type.to_vec()),
            Expression::Payload(Header::Network, self.source_offset, self.address_bytes),
        ]
    }

    /// `SADDR tcp dport 1-1023 drop`, with the steps in nft's order, and the family check in every rule as in nft.
    fn deny(&self, source: Expression) -> Vec<Expression> {
        const TCP: u8 = 6;
        let mut steps = self.load_source();
        steps.extend([
            source,
            Expression::Meta(Meta::Transport),
            Expression::Equals(vec![TCP]),
            Expression::Payload(Header::Transport, 2, 2),
            Expression::Within(1u16.to_be_bytes().to_vec(), 1023u16.to_be_bytes().to_vec()),
            Expression::Drop,
        ]);
        steps
    }
}

/// Loads the rules of the software switch. nft's hook sees every bridge of the namespace, so the rules are limited to packets
/// from the switch's own ports; otherwise the accelerated path would traverse them too.
pub(crate) fn load_linear(
    netlink: &mut Netlink,
    host: &str,
    rules: u32,
    ports: [&str; 2],
) -> Result<(), LabError> {
    let object = format!("{host}/{LINEAR}");
    let mut frame = vec![
        netfilter::table(LINEAR),
        netfilter::chain(LINEAR, "acl4"),
        netfilter::chain(LINEAR, "acl6"),
        netfilter::chain(LINEAR, "acl"),
        netfilter::forward_chain(LINEAR, "fw"),
    ];
    for family in &FAMILIES {
        let [load, compare] =
            [Expression::Meta(Meta::Protocol), Expression::Equals(family.ether_type.to_vec())];
        frame.push(netfilter::rule(LINEAR, "acl", &[load, compare, Expression::Jump(family.chain)]));
    }
    for port in ports {
        let [load, compare] = Expression::port(Meta::InputPort, port);
        frame.push(netfilter::rule(LINEAR, "fw", &[load, compare, Expression::Jump("acl")]));
    }
    netfilter::load(netlink, &frame, "create the switch's policy", &object)?;
    for family in &FAMILIES {
        let deny: Vec<Request> = (1..=rules)
            .map(|number| {
                let source = Expression::Equals((family.source)(number));
                netfilter::rule(LINEAR, family.chain, &family.deny(source))
            })
            .collect();
        netfilter::load(netlink, &deny, "load the switch's rules", &object)?;
        let found = netfilter::count_rules(netlink, LINEAR, family.chain, &object)?;
        complete(host, family.chain, rules, found)?;
    }
    Ok(())
}

/// Loads the same policy as a lookup for packets from and to the NIC's virtual function.
pub(crate) fn load_hashed(
    netlink: &mut Netlink,
    host: &str,
    rules: u32,
    function_port: &str,
) -> Result<(), LabError> {
    let object = format!("{host}/{HASHED}");
    let mut frame = vec![netfilter::table(HASHED)];
    for family in &FAMILIES {
        frame.push(netfilter::set(HASHED, family.set, family.key_type, family.address_bytes, rules));
    }
    frame.push(netfilter::chain(HASHED, "acl"));
    frame.push(netfilter::forward_chain(HASHED, "fw"));
    for family in &FAMILIES {
        frame.push(netfilter::rule(HASHED, "acl", &family.deny(Expression::InSet(family.set))));
    }
    for which in [Meta::InputPort, Meta::OutputPort] {
        let [load, compare] = Expression::port(which, function_port);
        frame.push(netfilter::rule(HASHED, "fw", &[load, compare, Expression::Jump("acl")]));
    }
    netfilter::load(netlink, &frame, "create the NIC's policy", &object)?;
    for family in &FAMILIES {
        let keys: Vec<Vec<u8>> = (1..=rules).map(family.source).collect();
        // One message of keys per transaction, so that transactions stay small.
        for message in netfilter::elements(HASHED, family.set, &keys) {
            netfilter::load(netlink, &[message], "load the NIC's policy", &object)?;
        }
        let found = netfilter::count_elements(netlink, HASHED, family.set, &object)?;
        complete(host, family.set, rules, found)?;
    }
    Ok(())
}

/// Number of rules of each linear chain (IPv4, IPv6) in the kernel.
pub(crate) fn count_linear(netlink: &mut Netlink, host: &str) -> Result<[u32; 2], LabError> {
    let object = format!("{host}/{LINEAR}");
    Ok([
        netfilter::count_rules(netlink, LINEAR, FAMILIES[0].chain, &object)?,
        netfilter::count_rules(netlink, LINEAR, FAMILIES[1].chain, &object)?,
    ])
}

/// With fewer rules than requested both paths would be alike, so this is an error.
fn complete(host: &str, object: &str, wanted: u32, found: u32) -> Result<(), LabError> {
    if found == wanted {
        return Ok(());
    }
    Err(LabError::PolicyIncomplete { host: host.to_owned(), object: object.to_owned(), wanted, found })
}
