//! HOST:PORT as people write it: a name, an IPv4 address, or an IPv6 address with or without brackets and zone.
use std::fmt;
use std::net::Ipv6Addr;

/// The default port of `netduel serve`.
pub const SERVE_PORT: u16 = 5210;
/// Longest host, bytes: a name by RFC 1035 section 2.3.4, or an address with its zone.
const HOST_LEN_MAX: usize = 255;

/// A host and a port. It is shown so that it parses again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketName {
    /// A name or an address without brackets.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
}

impl SocketName {
    /// Reads `host`, `host:port`, `1.2.3.4:port`, `2001:db8::1`, `[2001:db8::1%eth0]:port`. Without a port it is
    /// [`SERVE_PORT`].
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                if !is_ipv6(host) {
                    return None;
                }
                (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
            }
            None if is_ipv6(text) => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            // `parse` would take "+5".
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().ok()?,
            Some(_) => return None,
            None => SERVE_PORT,
        };
        let good = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        let is_host = !host.is_empty()
            && host.len() <= HOST_LEN_MAX
            && !host.starts_with('-')
            && host.chars().all(good)
            && (!host.contains([':', '%']) || is_ipv6(host));
        (is_host && port > 0).then(|| Self { host: host.to_owned(), port })
    }
}

/// Whether it is an IPv6 address, with or without a zone (RFC 4007 section 11).
fn is_ipv6(text: &str) -> bool {
    let address =
        text.split_once('%').map_or(text, |(address, zone)| if zone.is_empty() { "" } else { address });
    address.parse::<Ipv6Addr>().is_ok()
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_read() {
        for (text, host, port) in [
            ("far", "far", SERVE_PORT),
            ("far.example.org:99", "far.example.org", 99),
            ("10.0.0.2", "10.0.0.2", SERVE_PORT),
            ("10.0.0.2:1", "10.0.0.2", 1),
            ("2001:db8::1", "2001:db8::1", SERVE_PORT),
            ("fe80::1%eth0", "fe80::1%eth0", SERVE_PORT),
            ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
            ("[::1]", "::1", SERVE_PORT),
        ] {
            let name = SocketName::parse(text).unwrap_or_else(|| panic!("{text} is good"));
            assert_eq!((name.host.as_str(), name.port), (host, port), "{text}");
            assert_eq!(SocketName::parse(&name.to_string()), Some(name));
        }
    }

    #[test]
    fn what_is_no_host_and_port_is_refused() {
        for text in [
            "",
            ":5",
            "far:",
            "far:0",
            "far:65536",
            "far:+5",
            "[far]:5",
            "[::1",
            "[::1]5",
            "-x",
            "a b",
            "fe80::1%",
            "a%b",
            "a;b",
        ] {
            assert_eq!(SocketName::parse(text), None, "{text}");
        }
    }
}
