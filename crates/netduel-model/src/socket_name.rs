//! HOST:PORT as people write it: a name, an IPv4 address, or an IPv6 address with or without brackets and zone.
use std::fmt;
use std::net::Ipv6Addr;

/// The default port of `netduel serve`.
pub const SERVE_PORT: u16 = 5210;
/// Longest host, bytes. With brackets, colon and port it is still a file name (255 bytes, `NAME_MAX` of limits.h). RFC 1035 section 2.3.4
/// allows few bytes more.
const HOST_LEN_MAX: usize = 247;

/// A host and a port. It is shown so that it parses again, and so that it is a file name without a folder: no constructor accepts a
/// slash, a control character, a leading hyphen or dot, or port 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketName {
    host: String,
    port: u16,
}

impl SocketName {
    /// A host without brackets and a port; `None` when either is invalid.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        (is_host(host) && port > 0).then(|| Self { host: host.to_owned(), port })
    }

    /// A name, or an address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// 1 to 65535.
    pub fn port(&self) -> u16 {
        self.port
    }

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
        Self::new(host, port)
    }

    /// What to write in place of a host with letters that [`Self::parse`] rejects. Absent when the text has none.
    pub fn remedy_for(text: &str) -> Option<&'static str> {
        (!text.is_ascii())
            .then_some("a host has ASCII letters: write its xn-- name (Punycode) or its address")
    }
}

/// Whether it is a name or an address. A host that starts with a hyphen would be an option of a command. It is ASCII, as names in DNS are:
/// letters of other scripts can look like Latin ones or change the direction of writing.
fn is_host(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    !text.is_empty()
        && text.len() <= HOST_LEN_MAX
        && !text.starts_with(['-', '.'])
        && text.chars().all(good)
        && (!text.contains([':', '%']) || is_ipv6(text))
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
            assert_eq!((name.host(), name.port()), (host, port), "{text}");
            assert_eq!(SocketName::new(host, port).as_ref(), Some(&name));
            assert_eq!(SocketName::parse(&name.to_string()), Some(name));
        }
    }

    #[test]
    fn text_without_valid_host_and_port_is_rejected() {
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
            "/etc/x",
            "../x",
            "..",
            ".x",
            "a\u{1b}[2J",
            "fe80::1%a/b",
            // A Cyrillic letter that looks like a Latin one, and a letter that is written from the right.
            "f\u{430}r",
            "f\u{5d0}r",
        ] {
            assert_eq!(SocketName::parse(text), None, "{text}");
            assert_eq!(SocketName::new(text.trim_end_matches(":5"), 5), None, "{text}");
        }
        assert_eq!(SocketName::new("far", 0), None);
        assert!(SocketName::remedy_for("f\u{e4}r:5").is_some() && SocketName::remedy_for("far:0").is_none());
    }

    #[test]
    fn longest_name_is_a_file_name() {
        let zone = format!("fe80::1%{}", "z".repeat(HOST_LEN_MAX - "fe80::1%".len()));
        let name = SocketName::new(&zone, u16::MAX).expect("the longest host");
        assert_eq!(name.to_string().len(), 255);
        assert_eq!(SocketName::new(&format!("{zone}z"), 1), None);
    }
}
