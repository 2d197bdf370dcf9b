//! Address prefixes that may connect to the VMs of a bed. Pure.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Shortest prefix: a shorter one opens ssh to networks of others.
const LENGTH_MIN: u8 = 16;
/// Bits of an address.
const LENGTH_MAX: u8 = 32;

/// A prefix of IPv4 addresses, for example `192.0.2.0/24`. Bits behind the prefix are 0. Every public address of a bed is IPv4, so that no IPv6
/// address can connect; and Azure refuses a rule with prefixes of both versions
/// (`ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: Ipv4Addr,
    length: u8,
}

/// Why a text is no prefix that may connect, with what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// It is no prefix at all.
    #[error("{0:?} is no address prefix: write ADDRESS/LENGTH, for example 192.0.2.1/32")]
    Form(String),
    /// It is one of IPv6 addresses.
    #[error(
        "{0} is an IPv6 prefix, and all public addresses of a bed are IPv4: write the IPv4 address with which this machine appears to Azure, for \
         example 192.0.2.1/32"
    )]
    Ipv6(String),
    /// It is too short.
    #[error("{0} opens ssh to too many addresses: at least /{LENGTH_MIN} is needed")]
    Short(Prefix),
    /// No address of it is public.
    #[error(
        "{0} is not public, and Azure sees only public addresses as sources of ssh: write the IPv4 address with which this machine appears to \
         Azure, for example 192.0.2.1/32"
    )]
    Private(Prefix),
    /// It has bits beyond its length.
    #[error("{text} has bits behind its length: write {prefix}, or the address with /32")]
    Bits {
        /// The text.
        text: String,
        /// The prefix without these bits.
        prefix: Prefix,
    },
}

impl Prefix {
    /// Of this address alone; `None` for an address that other networks use as well, or that is no host's: Azure never sees it as a source.
    pub fn of_public(address: Ipv4Addr) -> Option<Self> {
        let [first, second, third, _] = address.octets();
        let is_reserved = matches!(
            (first, second, third),
            (192, 0, 0 | 2) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113)
        );
        let is_public = !is_private(address) && !is_reserved;
        is_public.then_some(Self { address, length: LENGTH_MAX })
    }
}

/// Whether an address is private, of one link or machine, or that of no host. With the addresses for documentation and benchmarks these are
/// "Globally reachable: false" in the IANA IPv4 special-purpose address registry, and multicast. No network of them is smaller than the shortest
/// prefix, so one address of a prefix shows all.
fn is_private(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    matches!(
        (first, second),
        (0 | 10 | 127 | 224..=255, _) | (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168)
    )
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let form = || PrefixError::Form(text.to_owned());
        let (address, length) = text.split_once('/').ok_or_else(form)?;
        let address: IpAddr = address.parse().map_err(|_| form())?;
        let length: u8 = length.parse().map_err(|_| form())?;
        let IpAddr::V4(address) = address else { return Err(PrefixError::Ipv6(text.to_owned())) };
        let mask = u32::MAX.checked_shl(u32::from(LENGTH_MAX.saturating_sub(length))).unwrap_or(0);
        let prefix = Self { address: Ipv4Addr::from(u32::from(address) & mask), length };
        if length > LENGTH_MAX {
            Err(form())
        } else if length < LENGTH_MIN {
            Err(PrefixError::Short(prefix))
        } else if is_private(address) {
            Err(PrefixError::Private(prefix))
        } else if prefix.address != address {
            Err(PrefixError::Bits { text: text.to_owned(), prefix })
        } else {
            Ok(prefix)
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_written_as_it_was_read() {
        for text in ["192.0.2.1/32", "192.0.2.0/24", "20.1.0.0/16"] {
            assert_eq!(text.parse::<Prefix>().map(|prefix| prefix.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn only_a_public_address_has_a_prefix_of_its_own() {
        let of = |text: &str| {
            let prefix = Prefix::of_public(text.parse().expect("an address"));
            prefix.map(|prefix| prefix.to_string())
        };
        for public in ["1.1.1.1", "20.0.0.7", "100.63.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1"] {
            assert_eq!(of(public), Some(format!("{public}/32")));
        }
        let private = ["10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.1.1", "172.31.0.1", "192.168.1.1"];
        let special = ["0.0.0.0", "192.0.2.1", "198.19.0.1", "203.0.113.1", "224.0.0.1", "255.255.255.255"];
        for other in private.into_iter().chain(special) {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_world_and_texts_that_are_no_prefix_are_refused() {
        for (text, part) in [
            ("0.0.0.0/0", "too many addresses"),
            ("10.0.0.0/8", "too many addresses"),
            ("::/0", "all public addresses of a bed are IPv4"),
            ("2001:db8::1/128", "2001:db8::1/128 is an IPv6 prefix"),
            ("192.168.1.5/32", "192.168.1.5/32 is not public"),
            ("10.1.0.0/16", "10.1.0.0/16 is not public"),
            ("100.64.0.1/32", "write the IPv4 address with which this machine appears to Azure"),
            ("127.0.0.1/32", "is not public"),
            ("192.0.2.1/24", "write 192.0.2.0/24"),
            ("192.0.2.1", "is no address prefix"),
            ("192.0.2.1/33", "is no address prefix"),
            ("2001:db8::1", "is no address prefix"),
            ("*", "is no address prefix"),
            ("Internet", "is no address prefix"),
            ("", "is no address prefix"),
        ] {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
