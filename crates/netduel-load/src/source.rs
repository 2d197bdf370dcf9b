//! The source of a connection, for fair limits: a peer that opens many connections must not keep out the peers of other sources. No
//! connection is held here.
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// The addresses that one host controls: an IPv4 address, or the /64 of an IPv6 address, from which a host takes any address (RFC 8981).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source(IpAddr);

impl Source {
    /// Of a peer's address. An IPv4 address that is mapped into IPv6 is that IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address @ IpAddr::V4(_) => address,
        })
    }

    /// The source with the most entries; among equals the one whose first entry comes first.
    pub fn most_frequent(sources: impl Iterator<Item = Self>) -> Option<Self> {
        let mut counts: BTreeMap<Self, (usize, usize)> = BTreeMap::new();
        for (index, source) in sources.enumerate() {
            counts.entry(source).or_insert((0, index)).0 += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, (count, first))| (*count, usize::MAX - first));
        most.map(|(source, _)| source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Source {
        Source::of(text.parse().expect("an address"))
    }

    #[test]
    fn addresses_of_one_host_are_one_source() {
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("::ffff:10.0.0.1"), of("::ffff:10.0.0.2"));
    }

    #[test]
    fn source_with_the_most_entries_is_found() {
        let most = |words: &str| Source::most_frequent(words.split(' ').map(of));
        assert_eq!(most("10.0.0.2 10.0.0.1 10.0.0.1"), Some(of("10.0.0.1")));
        assert_eq!(most("10.0.0.2 10.0.0.1"), Some(of("10.0.0.2")));
        assert_eq!(Source::most_frequent(std::iter::empty()), None);
    }
}
