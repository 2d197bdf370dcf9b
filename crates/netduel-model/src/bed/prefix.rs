//! Address prefixes that may connect to the VMs of a bed. Pure.
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Shortest prefixes: a shorter one opens ssh to networks of others.
const IPV4_LENGTH_MIN: u8 = 16;
const IPV6_LENGTH_MIN: u8 = 32;

/// A prefix of addresses, for example `192.0.2.0/24`. Bits behind the prefix are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Why a text is no prefix that may connect, with what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// It is no prefix at all.
    #[error("{0:?} is no address prefix: write ADDRESS/LENGTH, for example 192.0.2.1/32")]
    Form(String),
    /// It is too short.
    #[error(
        "{0} opens ssh to too many addresses: at least /{IPV4_LENGTH_MIN} (IPv4) or /{IPV6_LENGTH_MIN} (IPv6) is needed"
    )]
    Short(Prefix),
    /// It has bits beyond its length.
    #[error(
        "{text} has bits behind its length: write {prefix}, or the address with /32 (IPv4) or /128 (IPv6)"
    )]
    Bits {
        /// The text.
        text: String,
        /// The prefix without these bits.
        prefix: Prefix,
    },
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let form = || PrefixError::Form(text.to_owned());
        let (address, length) = text.split_once('/').ok_or_else(form)?;
        let address: IpAddr = address.parse().map_err(|_| form())?;
        let length: u8 = length.parse().map_err(|_| form())?;
        let (masked, bits, shortest) = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length.into())).unwrap_or(0);
                (IpAddr::from((u32::from(v4) & mask).to_be_bytes()), 32, IPV4_LENGTH_MIN)
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length.into())).unwrap_or(0);
                (IpAddr::from((u128::from(v6) & mask).to_be_bytes()), 128, IPV6_LENGTH_MIN)
            }
        };
        let prefix = Self { address: masked, length };
        if length > bits {
            Err(form())
        } else if length < shortest {
            Err(PrefixError::Short(prefix))
        } else if masked != address {
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
        for text in ["192.0.2.1/32", "192.0.2.0/24", "10.1.0.0/16", "2001:db8::/32", "2001:db8::1/128"] {
            assert_eq!(text.parse::<Prefix>().map(|prefix| prefix.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn the_world_and_texts_that_are_no_prefix_are_refused() {
        for (text, part) in [
            ("0.0.0.0/0", "too many addresses"),
            ("::/0", "too many addresses"),
            ("10.0.0.0/8", "too many addresses"),
            ("192.0.2.1/24", "write 192.0.2.0/24"),
            ("192.0.2.1", "is no address prefix"),
            ("192.0.2.1/33", "is no address prefix"),
            ("2001:db8::1/129", "is no address prefix"),
            ("*", "is no address prefix"),
            ("Internet", "is no address prefix"),
            ("", "is no address prefix"),
        ] {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
