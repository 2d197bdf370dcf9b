//! The pseudonyms of one output: equal names have equal pseudonyms, in the order in which the names were learned.
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Bound;

/// Shortest name that is replaced in texts: a shorter one is a part of any text.
pub const NAME_LEN_MIN: usize = 3;
/// Longest name that is replaced wherever it stands in a text, bytes. A name of a file has 255 at most, one of a user 256, one of a host 253.
pub const SOUGHT_LEN_MAX: usize = 320;
/// Names that say nothing of a host, a user, an organization or a resource, and that stand in texts of netduel and of the system.
const COMMON: [&str; 17] = [
    "agent",
    "azure",
    "bed",
    "both",
    "client",
    "default",
    "host",
    "lab",
    "linux",
    "localhost",
    "netduel",
    "root",
    "server",
    "tcp",
    "udp",
    "ssh",
    "user",
];
/// Longest DNS name, bytes (RFC 1035). A longer text has no domains.
const DNS_NAME_LEN_MAX: usize = 253;
/// First octets of the networks for documentation (RFC 5737).
const DOCUMENTATION: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
/// Addresses that each of them has, without the network's own and broadcast.
const ADDRESSES: u32 = 254;

/// What a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A host, or its name without a domain.
    Host,
    /// A domain of hosts.
    Domain,
    /// A user.
    User,
    /// A resource group, or another name of a cloud's resource.
    Resource,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Host, Self::Domain, Self::User, Self::Resource];

    /// What its pseudonyms begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Host => "host-",
            Self::Domain => "domain-",
            Self::User => "user-",
            Self::Resource => "resource-",
        }
    }

    /// Whether a name has the form of its pseudonyms.
    fn has(self, name: &str) -> bool {
        let number = name.strip_prefix(self.prefix());
        number.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

/// Whether a name is a pseudonym already, of an output that is redacted again.
pub fn is_pseudonym(name: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.has(name))
}

/// Whether a name has the form of a host's pseudonym.
pub fn is_host_pseudonym(name: &str) -> bool {
    Kind::Host.has(name)
}

/// The text with other names in place of pseudonyms of hosts, where they are words; `other` returns `None` for those that stay.
pub fn with_host_pseudonyms_replaced(text: &str, other: impl Fn(&str) -> Option<String>) -> String {
    let is_joined = |c: char| c.is_ascii_alphanumeric();
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(Kind::Host.prefix()) {
        result.push_str(before);
        let after = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = behind.strip_suffix(after).unwrap_or_default();
        let is_word = !result.ends_with(is_joined) && !after.starts_with(is_joined);
        let pseudonym = format!("{}{digits}", Kind::Host.prefix());
        let name = if is_word { other(&pseudonym) } else { None };
        result.push_str(&name.unwrap_or(pseudonym));
        rest = after;
    }
    result.push_str(rest);
    result
}

/// Names, addresses and identifiers with their pseudonyms.
#[derive(Debug, Default)]
pub struct Pseudonyms {
    /// Names in lower case: DNS does not distinguish letters' cases.
    names: BTreeMap<String, String>,
    /// Domains, for hosts of which only the domain is known.
    domains: BTreeSet<String>,
    /// First labels of hosts in a domain, each with the domain of the host that has its pseudonym.
    labels: BTreeMap<String, String>,
    /// Hosts of plans, as they are written: they are keys, and two of them are never one.
    plan_hosts: BTreeMap<String, String>,
    /// The pseudonyms of hosts of plans.
    of_plan_hosts: BTreeSet<String>,
    v4: BTreeMap<Ipv4Addr, Ipv4Addr>,
    v6: BTreeMap<Ipv6Addr, Ipv6Addr>,
    /// The pseudonyms of addresses, and those that stand in the input. A message may be redacted that has pseudonyms already.
    taken_addresses: BTreeSet<IpAddr>,
    /// Number of pseudonyms of IPv4 addresses that were tried so far.
    tried_v4: u32,
    /// Number of those of IPv6 addresses.
    tried_v6: u64,
    /// Link-layer addresses, hexadecimal digits in lower case.
    macs: BTreeMap<String, u64>,
    /// As `taken_addresses`, of link-layer addresses that stand in the input.
    taken_macs: BTreeSet<String>,
    /// Number of those of link-layer addresses.
    tried_macs: u64,
    ids: BTreeMap<String, u64>,
    counts: BTreeMap<Kind, u32>,
    /// Pseudonyms that stand in the input: another name must not get them.
    taken: BTreeSet<String>,
    /// Words of the format that occur: a name that is one of them is not replaced in texts.
    words: BTreeSet<String>,
}

impl Pseudonyms {
    /// Notes a word of the format.
    pub fn note_word(&mut self, word: &str) {
        self.words.insert(lowered(word));
    }

    /// Whether a name is replaced wherever it is a word of a text.
    pub fn is_secret(&self, name: &str) -> bool {
        let name = lowered(name);
        name.len() >= NAME_LEN_MIN
            && !COMMON.contains(&name.as_str())
            && !self.words.contains(&name)
            && !is_pseudonym(&name)
            && !name.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// The pseudonym of a name; the name itself when it says nothing.
    pub fn name(&mut self, kind: Kind, name: &str) -> String {
        let key = lowered(name);
        if let Some(known) = self.names.get(&key) {
            return known.clone();
        }
        if is_pseudonym(&key) {
            self.taken.insert(key);
            return name.to_owned();
        }
        if key.is_empty() || COMMON.contains(&key.as_str()) {
            return name.to_owned();
        }
        let pseudonym = match key.split_once('.') {
            // With and without its domain it is one host.
            Some((label, domain))
                if kind == Kind::Host && !domain.is_empty() && key.len() <= DNS_NAME_LEN_MAX =>
            {
                self.domain(domain);
                if self.is_in_another_domain(label, domain) {
                    self.next(kind)
                } else {
                    self.name(kind, label)
                }
            }
            _ => self.next(kind),
        };
        self.names.insert(key, pseudonym.clone());
        pseudonym
    }

    /// The pseudonym of a host of a plan, which no other host of a plan has. `pseudonym` is the one of its name.
    pub fn plan_host(&mut self, name: &str, pseudonym: impl FnOnce(&mut Self) -> String) -> String {
        if let Some(known) = self.plan_hosts.get(name) {
            return known.clone();
        }
        let mut own = pseudonym(self);
        if !self.of_plan_hosts.insert(own.clone()) {
            own = self.next(Kind::Host);
            self.of_plan_hosts.insert(own.clone());
            self.names.insert(lowered(name), own.clone());
        }
        self.plan_hosts.insert(name.to_owned(), own.clone());
        own
    }

    /// Whether a host with this first label is known in a domain that this one neither continues nor begins: `db.east` is not `db.west`.
    fn is_in_another_domain(&mut self, label: &str, domain: &str) -> bool {
        let known = self.labels.entry(label.to_owned()).or_insert_with(|| domain.to_owned()).as_str();
        let continues = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        !continues(domain, known) && !continues(known, domain)
    }

    /// Learns a domain with the ones above it, but for the last label, which is public.
    fn domain(&mut self, domain: &str) {
        if !domain.contains('.') {
            return;
        }
        if self.domains.insert(domain.to_owned()) {
            let pseudonym = self.next(Kind::Domain);
            self.names.entry(domain.to_owned()).or_insert(pseudonym);
        }
        if let Some((_, above)) = domain.split_once('.') {
            self.domain(above);
        }
    }

    /// Length of the shortest known domain that the name of a host, in ASCII, is below.
    pub fn domain_len(&self, host: &str) -> Option<usize> {
        let ends = host.bytes().rev().take(DNS_NAME_LEN_MAX + 1).enumerate();
        let mut lengths = ends.filter(|(_, byte)| *byte == b'.').map(|(length, _)| length);
        lengths.find(|length| {
            let domain = host.len().checked_sub(*length).and_then(|start| host.get(start..));
            domain.is_some_and(|domain| self.domains.contains(&domain.to_ascii_lowercase()))
        })
    }

    fn next(&mut self, kind: Kind) -> String {
        loop {
            let count = self.counts.entry(kind).or_default();
            *count += 1;
            let pseudonym = format!("{}{count}", kind.prefix());
            if !self.taken.contains(&pseudonym) {
                return pseudonym;
            }
        }
    }

    /// The pseudonym of a known name, whatever its letters' cases.
    pub fn known(&self, name: &str) -> Option<&str> {
        self.names.get(&lowered(name)).map(String::as_str)
    }

    /// The address for documentation in place of this one; one that says nothing stays.
    pub fn address(&mut self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => IpAddr::V4(self.v4(address)),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(mapped) => IpAddr::V6(self.v4(mapped).to_ipv6_mapped()),
                None => IpAddr::V6(self.v6(address)),
            },
        }
    }

    /// Notes an address of the input: no other address gets it when it has the form of a pseudonym.
    pub fn note_address(&mut self, address: IpAddr) {
        if is_address_pseudonym(address) {
            self.taken_addresses.insert(address);
        }
    }

    /// Whether an address is a pseudonym already, which stays.
    fn is_noted(&mut self, address: IpAddr) -> bool {
        self.note_address(address);
        self.taken_addresses.contains(&address)
    }

    fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        if address.is_loopback() || address.is_unspecified() || address.is_broadcast() || is_netmask(address)
        {
            return address;
        }
        if let Some(known) = self.v4.get(&address) {
            return *known;
        }
        if self.is_noted(address.into()) {
            return address;
        }
        let pseudonym = loop {
            let next = v4_at(self.tried_v4);
            self.tried_v4 = self.tried_v4.saturating_add(1);
            // Beyond the last one several addresses have one.
            if self.taken_addresses.insert(next.into()) || self.tried_v4 > V4_PSEUDONYMS {
                break next;
            }
        };
        self.v4.insert(address, pseudonym);
        pseudonym
    }

    fn v6(&mut self, address: Ipv6Addr) -> Ipv6Addr {
        if address.is_loopback() || address.is_unspecified() {
            return address;
        }
        if let Some(known) = self.v6.get(&address) {
            return *known;
        }
        if self.is_noted(address.into()) {
            return address;
        }
        // Whether an address is one of its link only has a meaning for findings.
        let network = if address.is_unicast_link_local() { LINK_NETWORK } else { V6_NETWORK };
        let pseudonym = loop {
            self.tried_v6 += 1;
            let next = Ipv6Addr::from(network | u128::from(self.tried_v6));
            if self.taken_addresses.insert(next.into()) {
                break next;
            }
        };
        self.v6.insert(address, pseudonym);
        pseudonym
    }

    /// The link-layer address in place of this one, both as hexadecimal digits; one that says nothing stays.
    pub fn mac(&mut self, digits: &str) -> String {
        let digits = digits.to_lowercase();
        if digits.bytes().all(|digit| digit == b'0') || digits.bytes().all(|digit| digit == b'f') {
            return digits;
        }
        if let Some(known) = self.known_mac(&digits) {
            return known;
        }
        if is_mac_pseudonym(&digits) {
            self.taken_macs.insert(digits.clone());
            return digits;
        }
        let pseudonym = loop {
            self.tried_macs += 1;
            let next = mac_at(self.tried_macs, digits.len());
            if !self.taken_macs.contains(&next) {
                break next;
            }
        };
        self.macs.insert(digits, self.tried_macs);
        pseudonym
    }

    /// The link-layer address in place of this one, when it is known.
    pub fn known_mac(&self, digits: &str) -> Option<String> {
        self.macs.get(&digits.to_lowercase()).map(|number| mac_at(*number, digits.len()))
    }

    /// The identifier in place of this one, in the form of a UUID.
    pub fn id(&mut self, id: &str) -> String {
        let id = id.to_lowercase();
        if id.is_empty() || id.starts_with(ID_START) || id.bytes().all(|byte| matches!(byte, b'0' | b'-')) {
            return id;
        }
        let count = self.ids.len() as u64 + 1;
        // A UUID is one with and without its hyphens.
        let number = *self.ids.entry(id.replace('-', "")).or_insert(count);
        format!("{ID_START}{number:012x}")
    }

    /// Length of the longest name at the start of a text that is replaced in texts and may end where it does.
    pub fn longest_secret(&self, text: &str, is_end: impl Fn(usize) -> bool) -> Option<usize> {
        let text = lowered(start_of(text, SOUGHT_LEN_MAX));
        let mut sought = text.as_str();
        while sought.len() >= NAME_LEN_MIN {
            // Each name that the text begins with comes before the text in the order of the names, and is the start of all names between.
            let before = (Bound::Unbounded, Bound::Included(sought));
            let (name, _) = self.names.range::<str, _>(before).next_back()?;
            let common = name.bytes().zip(sought.bytes()).take_while(|(left, right)| left == right).count();
            let is_whole = common == name.len();
            if is_whole && is_end(common) && self.is_secret(name) {
                return Some(common);
            }
            sought = start_of(sought, common.saturating_sub(usize::from(is_whole)));
        }
        None
    }
}

/// The text in lower case, as far as the letters then have as many bytes: a place in it is one in the text.
fn lowered(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = |c: char| {
        let mut letters = c.to_lowercase();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.len_utf8() == c.len_utf8() => letter,
            _ => c,
        }
    };
    text.chars().map(lower).collect()
}

/// The start of a text, of so many bytes at most.
fn start_of(text: &str, len_max: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| *end <= len_max).last().unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// The form of a random UUID (RFC 9562), but not one that a generator makes.
const ID_START: &str = "00000000-0000-4000-8000-";

/// Number of different addresses of [`v4_at`]: those of three networks for documentation and of the one for benchmarks.
const V4_PSEUDONYMS: u32 = 3 * ADDRESSES + 0x2_0000;
/// The IPv6 network for documentation (RFC 3849).
const V6_NETWORK: u128 = 0x2001_0db8 << 96;
/// The network of link-local addresses (RFC 4291).
const LINK_NETWORK: u128 = 0xfe80 << 112;
/// Numbers of link-layer and link-local addresses up to this one are taken for pseudonyms: devices have higher ones.
const LINK_NUMBER_MAX: u128 = 0xffff;

/// Whether an address has the form of a pseudonym. Those for documentation belong to no host of the internet, though some sandboxes use them.
fn is_address_pseudonym(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            DOCUMENTATION.contains(&[a, b, c])
        }
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            bits >> 96 == V6_NETWORK >> 96 || bits & !LINK_NUMBER_MAX == LINK_NETWORK
        }
    }
}

/// Whether hexadecimal digits have the form of a pseudonym of a link-layer address.
fn is_mac_pseudonym(digits: &str) -> bool {
    let Some(number) = digits.strip_prefix("02").map(|number| number.trim_start_matches('0')) else {
        return false;
    };
    u128::from_str_radix(number, 16).is_ok_and(|number| number <= LINK_NUMBER_MAX)
}

fn v4_at(index: u32) -> Ipv4Addr {
    let network = DOCUMENTATION.get((index / ADDRESSES) as usize);
    match network {
        Some([a, b, c]) => Ipv4Addr::new(*a, *b, *c, u8::try_from(index % ADDRESSES + 1).unwrap_or(u8::MAX)),
        // The network for benchmarks (RFC 2544), when there are more addresses than those for documentation.
        None => Ipv4Addr::from(u32::from_be_bytes([198, 18, 0, 0]) + (index & 0x1_ffff)),
    }
}

/// A locally administered address of so many hexadecimal digits.
fn mac_at(number: u64, digits: usize) -> String {
    format!("02{number:0width$x}", width = digits.saturating_sub(2))
}

/// Whether the address is the mask of a network: 255.255.0.0.
fn is_netmask(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    address.octets()[0] == 255 && bits.leading_ones() + bits.trailing_zeros() == 32
}
