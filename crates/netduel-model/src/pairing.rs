//! The pairing string: everything that a client needs to connect to a `netduel serve`, in one word.
//!
//! It has letters and digits only, so that a double click selects it and no shell needs quotes. A checksum distinguishes
//! truncated and mistyped strings from others.
use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::socket_name::SocketName;

/// Prefix of every string, before the digit of its version.
const NAME: &str = "netduel";
/// Prefix of strings of this version.
const PREFIX: &str = "netduel1";
/// Minimum length of a text that is meant as a pairing string, complete or not; a shorter one may be a host name: `netduel1`, or
/// `netduel120`.
const LENGTH_LEAST: usize = PREFIX.len() + 4;
/// Maximum length of a host name's label (RFC 1035 section 2.3.4).
const LABEL_LEN_MAX: usize = 63;
/// Crockford's alphabet: without I, L, O, U, which are easily confused.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const CHECKSUM_LEN: usize = 4;
/// What replaces a string in messages.
const REDACTED: &str = "PAIRING";
const FINGERPRINT_LEN: usize = 32;
/// Digits after the one of the version that have no part of the secret: those of the port and the fingerprint, with five bits each.
const DIGITS_BEFORE_SECRET: usize = (2 + FINGERPRINT_LEN) * 8 / 5;
/// Length of the secret in bytes: 128 bits from the kernel.
pub const SECRET_LEN: usize = 16;

/// Address, identity and secret of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Pairing {
    /// Name or address, and the TCP and UDP port.
    pub server: SocketName,
    /// SHA-256 of the server's certificate.
    pub fingerprint: [u8; FINGERPRINT_LEN],
    /// The secret.
    pub secret: [u8; SECRET_LEN],
}

/// Errors of a pairing string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// Another prefix.
    #[error("the text is no pairing string: `netduel serve` prints one that begins with {PREFIX}")]
    Foreign,
    /// Created by a later version.
    #[error(
        "the pairing string is of another version of netduel, it begins with {NAME} and another digit than 1: install the same version \
         on both hosts"
    )]
    Version,
    /// An invalid character.
    #[error("the pairing string has {0:?} in it, which none has: copy it again, whole")]
    Character(char),
    /// A wrong checksum.
    #[error("the pairing string is incomplete or has a mistake in it: copy it again, whole")]
    Damaged,
    /// A valid checksum, but a host or a port that no server has. Neither is shown: they may contain any character.
    #[error(
        "the pairing string names an invalid host or port, which `netduel serve` never writes: take the string from the server itself"
    )]
    Server,
}

impl Pairing {
    /// Whether a text looks like a pairing string, valid or not.
    pub fn looks_like(text: &str) -> bool {
        let is_word = !text.contains(['.', ':', '-']);
        let head = text.get(..PREFIX.len());
        is_word
            && (is_of_another_version(text)
                || (text.len() >= LENGTH_LEAST && head.is_some_and(|head| head.eq_ignore_ascii_case(PREFIX))))
    }

    /// The number of characters before the pairing string in a text that contains one up to its secret, whole or damaged. Spaces, line breaks
    /// and punctuation may divide it.
    pub fn place_in(text: &str) -> Option<usize> {
        let lower = text.to_ascii_lowercase();
        let mut names = lower.match_indices(NAME);
        let (at, _) = names.find(|(at, name)| lower.get(at + name.len()..).is_some_and(reaches_secret))?;
        Some(lower.get(..at)?.chars().count())
    }

    fn payload(&self) -> Vec<u8> {
        let mut bytes = self.server.port().to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.fingerprint);
        bytes.extend_from_slice(&self.secret);
        bytes.extend_from_slice(self.server.host().as_bytes());
        with_checksum(bytes)
    }

    fn from_payload(bytes: &[u8]) -> Result<Self, PairingError> {
        let body = checked_body(bytes).ok_or(PairingError::Damaged)?;
        let (port, fingerprint, secret, host) = parts(body).ok_or(PairingError::Damaged)?;
        let host = std::str::from_utf8(host).map_err(|_| PairingError::Server)?;
        let server = SocketName::new(host, u16::from_be_bytes(*port)).ok_or(PairingError::Server)?;
        Ok(Self { server, fingerprint: *fingerprint, secret: *secret })
    }
}

/// What precedes a correct checksum.
fn checked_body(bytes: &[u8]) -> Option<&[u8]> {
    let (body, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_LEN)?)?;
    (checksum_of(body) == *checksum).then_some(body)
}

/// Port, fingerprint, secret and host of a string.
type Parts<'a> = (&'a [u8; 2], &'a [u8; FINGERPRINT_LEN], &'a [u8; SECRET_LEN], &'a [u8]);

fn parts(body: &[u8]) -> Option<Parts<'_>> {
    let (port, rest) = body.split_first_chunk::<2>()?;
    let (fingerprint, rest) = rest.split_first_chunk::<FINGERPRINT_LEN>()?;
    let (secret, host) = rest.split_first_chunk::<SECRET_LEN>()?;
    Some((port, fingerprint, secret, host))
}

/// Whether it has the prefix of a later version, and is too long for a host name.
fn is_of_another_version(text: &str) -> bool {
    let Some((name, rest)) = text.split_at_checked(NAME.len()) else { return false };
    let version = rest.chars().next();
    name.eq_ignore_ascii_case(NAME)
        && version.is_some_and(|version| version.is_ascii_digit() && version != '1')
        && text.len() > LABEL_LEN_MAX
}

/// Whether what follows [`NAME`] is the rest of a string with a part of the secret: one word of that length, which may be mistyped, or that many
/// digits with anything but letters between them.
fn reaches_secret(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(|version: char| version.is_ascii_digit()) else { return false };
    let is_digit = |c: &char| ALPHABET.iter().any(|digit| char::from(*digit) == *c);
    let in_a_word = rest.chars().take_while(char::is_ascii_alphanumeric).count();
    let divided = rest.chars().filter(char::is_ascii_alphanumeric).take_while(is_digit).count();
    in_a_word.max(divided) > DIGITS_BEFORE_SECRET
}

/// Never shows the secret.
impl fmt::Debug for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairing").field("server", &self.server).finish_non_exhaustive()
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encoded(&self.payload()))
    }
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = checksum_of(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// The start of the SHA-256. It is no secret, and need not be compared in constant time.
fn checksum_of(body: &[u8]) -> [u8; CHECKSUM_LEN] {
    let digest = Sha256::digest(body);
    std::array::from_fn(|index| digest[index])
}

/// A payload with its checksum as text.
fn encoded(payload: &[u8]) -> String {
    let mut text = PREFIX.to_owned();
    let (mut held, mut bits) = (0_u32, 0);
    for byte in payload {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(held >> bits) as usize & 31]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(held << (5 - bits)) as usize & 31]));
    }
    text
}

impl FromStr for Pairing {
    type Err = PairingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_of_another_version(text) {
            return Err(PairingError::Version);
        }
        let (head, digits) = text.split_at_checked(PREFIX.len()).ok_or(PairingError::Foreign)?;
        if !head.eq_ignore_ascii_case(PREFIX) {
            return Err(PairingError::Foreign);
        }
        let (mut bytes, mut held, mut bits) = (Vec::with_capacity(digits.len() * 5 / 8), 0_u32, 0);
        for c in digits.chars() {
            let value = ALPHABET.iter().position(|letter| char::from(*letter) == c.to_ascii_lowercase());
            held = (held << 5) | value.ok_or(PairingError::Character(c))? as u32;
            bits += 5;
            if bits >= 8 {
                bits -= 8;
                bytes.push((held >> bits) as u8);
                held &= (1 << bits) - 1;
            }
        }
        // The unused bits of the last digit are zero in a valid string.
        if held & ((1 << bits) - 1) != 0 {
            return Err(PairingError::Damaged);
        }
        Self::from_payload(&bytes)
    }
}

/// A text in which each word that looks like a pairing string or contains one, whole or damaged, is replaced.
pub fn without_strings(text: &str) -> String {
    let is_secret = |word: &str| Pairing::looks_like(word) || Pairing::place_in(word).is_some();
    let mut clean = String::with_capacity(text.len());
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        clean.push_str(if is_secret(word) { REDACTED } else { word });
        clean.push_str(&part[word.len()..]);
    }
    clean
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairing(host: &str) -> Pairing {
        let server = SocketName::new(host, 5210).expect("a host");
        Pairing { server, fingerprint: [7; 32], secret: *b"sixteen bytes ok" }
    }

    /// A string with a correct checksum whose author chose host and port.
    fn crafted(host: &[u8], port: u16) -> String {
        let payload = [&port.to_be_bytes()[..], &[7; FINGERPRINT_LEN], &[9; SECRET_LEN], host].concat();
        encoded(&with_checksum(payload))
    }

    #[test]
    fn crafted_hosts_and_port_zero_are_rejected() {
        assert!(crafted(b"10.0.0.2", 5210).parse::<Pairing>().is_ok());
        let long = "x".repeat(300);
        let hosts = ["/etc/x", "../x", "..", "-h", "--list", "a\u{1b}[2J", "a\nb", "a b", "far:1", "", &long];
        for host in hosts {
            let error = crafted(host.as_bytes(), 5210).parse::<Pairing>().expect_err(host);
            assert_eq!(error, PairingError::Server, "{host:?}");
            assert!(!error.to_string().contains(char::is_control));
        }
        assert_eq!(crafted(b"far", 0).parse::<Pairing>(), Err(PairingError::Server));
        assert_eq!(crafted(b"\xff\xfe", 1).parse::<Pairing>(), Err(PairingError::Server));
    }

    #[test]
    fn pairing_is_decoded_as_it_was_encoded() {
        for host in ["h", "10.0.0.2", "2001:db8::1", "fe80::1%eth0", "far.example.org"] {
            let text = pairing(host).to_string();
            assert!(text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{text}");
            assert!(Pairing::looks_like(&text));
            assert_eq!(text.parse(), Ok(pairing(host)), "{host}");
            assert_eq!(text.to_uppercase().parse(), Ok(pairing(host)));
        }
    }

    #[test]
    fn truncated_and_mistyped_strings_are_rejected() {
        let text = pairing("10.0.0.2").to_string();
        for length in 0..text.len() {
            assert!(text[..length].parse::<Pairing>().is_err(), "{length}");
        }
        for place in 8..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[place] = if wrong[place] == b'7' { b'8' } else { b'7' };
            let wrong = String::from_utf8(wrong).expect("ASCII");
            assert_eq!(wrong.parse::<Pairing>(), Err(PairingError::Damaged), "{place}");
        }
        assert_eq!(format!("{text}!").parse::<Pairing>(), Err(PairingError::Character('!')));
        assert_eq!("10.0.0.2".parse::<Pairing>(), Err(PairingError::Foreign));
    }

    #[test]
    fn messages_contain_no_string() {
        for (text, clean) in [
            ("there is no pairing with netduel1abcdefgh:5210", "there is no pairing with PAIRING:5210"),
            ("\"NETDUEL1ABCDEFGH\" is no host", "\"PAIRING\" is no host"),
            ("x=netduel1abcdefgh", "x=PAIRING"),
            ("netduel1 serves netduel1-eu.example.org", "netduel1 serves netduel1-eu.example.org"),
            ("", ""),
        ] {
            assert_eq!(without_strings(text), clean);
        }
    }

    #[test]
    fn string_among_other_characters_is_found_where_it_begins() {
        let whole = pairing("10.0.0.2").to_string();
        let (first, rest) = whole.split_at(40);
        for (text, place) in [
            (whole.clone(), 0),
            (format!("x{whole}"), 1),
            (format!("\u{201c}{whole}\u{201d}"), 1),
            (format!("k={whole}"), 2),
            (format!("{whole}:5210"), 0),
            (format!("{first}\n{rest}"), 0),
            (format!("> {first}\r\n> {rest}"), 2),
            (format!("x{}", whole.to_uppercase()), 1),
            (format!("x{}", whole.replacen("netduel1", "netduel2", 1)), 1),
            (format!("x{}", whole.replace('7', "o")), 1),
            (format!("netduel1 {whole}"), 9),
        ] {
            assert_eq!(Pairing::place_in(&text), Some(place), "{text:?}");
        }
        let message = without_strings(&format!("there is no pairing with x{whole}:5210"));
        assert_eq!(message, "there is no pairing with PAIRING:5210");
        // The digits before the secret, and the first with a part of it.
        let begun = |digits: usize| format!("x{}", &whole[..PREFIX.len() + digits]);
        assert_eq!(Pairing::place_in(&begun(DIGITS_BEFORE_SECRET)), None);
        assert_eq!(Pairing::place_in(&begun(DIGITS_BEFORE_SECRET + 1)), Some(1));
        for other in [
            "mynetduel1-eu-west-1.2ylj0ljcidyuvguqsmt2gfxfhg.bx.internal.cloudapp.net:5210",
            "text=from netduel1 to netduel2 over the switch in the rack, then over the router, then over both of them",
            "/srv/netduel1/results/2024-05-06/plan.toml",
            "",
        ] {
            assert_eq!(Pairing::place_in(other), None, "{other}");
            assert_eq!(without_strings(other), other);
        }
    }

    #[test]
    fn debug_output_hides_the_secret() {
        assert!(!format!("{:?}", pairing("far")).contains("115"));
    }

    #[test]
    fn later_version_is_distinguished_from_a_host_name() {
        let text = pairing("10.0.0.2").to_string().replacen("netduel1", "netduel2", 1);
        assert!(Pairing::looks_like(&text));
        assert_eq!(text.parse::<Pairing>(), Err(PairingError::Version));
        for name in [
            "netduel1",
            "netduel12",
            "netduel2",
            "netduel1.example.org",
            "netduel",
            "n",
            "netduel1-eu-west-1",
        ] {
            assert!(!Pairing::looks_like(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_pairing_is_decoded_and_other_strings_are_rejected(
            host in "[a-zA-Z0-9_][a-zA-Z0-9._-]{0,246}|[1-9a-f]{1,4}::[1-9a-f]{1,4}(%[a-z0-9]{1,15})?",
            port in 1..=u16::MAX,
            fingerprint: [u8; 32],
            secret: [u8; SECRET_LEN],
            place: prop::sample::Index,
            other in prop::sample::select(ALPHABET.as_slice()),
        ) {
            let server = SocketName::new(&host, port).expect("a host");
            let pairing = Pairing { server, fingerprint, secret };
            let text = pairing.to_string();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
            let place = PREFIX.len() + place.index(text.len() - PREFIX.len());
            prop_assert!(text[..place].parse::<Pairing>().is_err());
            let mut mistyped = text.clone().into_bytes();
            if mistyped[place] != other {
                mistyped[place] = other;
                let mistyped = String::from_utf8(mistyped).expect("ASCII");
                prop_assert_eq!(mistyped.parse::<Pairing>(), Err(PairingError::Damaged));
            }
            prop_assert_eq!(text.parse(), Ok(pairing));
        }

        #[test]
        fn parser_accepts_any_text_without_panic(text in "\\PC{0,120}", tail in "[0-9a-z]{0,120}") {
            for text in [text.clone(), [PREFIX, &tail].concat(), [PREFIX, &text].concat()] {
                prop_assert!(text.parse::<Pairing>().is_err());
            }
        }
    }
}
