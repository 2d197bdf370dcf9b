//! Finds names in texts: what looks like an address, an identifier or a home folder, and every name that is known.
//!
//! A text may be as long as a run file allows. What ends a word is looked for once per word, not once per place in it ([`Words`]), and what
//! has a longest form is looked for no farther than that.
use std::net::IpAddr;

use super::pseudonyms::{Kind, NAME_LEN_MIN, Pseudonyms, SOUGHT_LEN_MAX};
use crate::ids::is_run_stamp;
use crate::lab::DEFAULT_NAME;
use crate::pairing::without_strings;

/// Folders whose entries have names of users.
const HOMES: [&str; 4] = ["/home/", "/Users/", "/var/mail/", "/var/spool/cron/"];
/// Parts of paths of cloud resources that a name follows (Azure Resource Manager).
const RESOURCES: [&str; 6] = [
    "/resourceGroups/",
    "/virtualMachines/",
    "/networkInterfaces/",
    "/galleries/",
    "/availabilitySets/",
    "/proximityPlacementGroups/",
];
/// Keys of a plan whose values are names; of `resource-group` the last word.
const NAME_KEYS: [&str; 9] = ["author", "bed", "group", "host", "nic", "organization", "serve", "user", "vm"];
/// Longest value of these keys that is looked up as a whole, characters: a name that is not sought in texts, with a port.
const VALUE_LEN_MAX: usize = NAME_LEN_MIN - 1 + ":65535".len();
/// Hexadecimal digits of an Ethernet address, and of an InfiniBand address.
const MAC_DIGITS: [usize; 2] = [40, 12];
/// Longest IP address: an IPv6 address that ends with an IPv4 address. A bound keeps a text of nothing but colons from taking cubic time.
const ADDRESS_LEN_MAX: usize = 45;
/// Longest text that names a host, bytes: a DNS name with its kind, user and port. A longer one is words.
const HOST_LEN_MAX: usize = 320;
/// Groups of the digits of a UUID (RFC 9562).
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
/// Length of a UUID with its hyphens.
const UUID_LEN: usize = 36;
/// Longest part of a text that decides about an Ethernet or InfiniBand address: the 20 octets of the longest, each with a separator, and the
/// two digits of one more.
const MAC_LEN_MAX: usize = 62;
/// Length of an Ethernet address as switches write it.
const DOTTED_MAC_LEN: usize = 14;

/// A part of a text that names something.
#[derive(Debug, PartialEq, Eq)]
enum Found<'t> {
    Id(&'t str),
    Mac(&'t str),
    Address(&'t str, IpAddr),
    /// A folder, and the name of its entry.
    Below(&'t str, Kind, &'t str),
    /// USER@HOST.
    Login(&'t str, &'t str),
    /// A host below a known domain.
    Host(&'t str),
    Known(&'t str),
    /// An Ethernet address without separators.
    Digits(&'t str),
}

/// The text with pseudonyms in place of names. What looks like an address is one, unless the text is a version.
pub fn replaced(text: &str, pseudonyms: &mut Pseudonyms, is_version: bool) -> String {
    let text = without_strings(text);
    let mut result = String::with_capacity(text.len());
    let mut words = Words::new(&text);
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let Some(found) = find(&mut words, at, pseudonyms, is_version) else {
            result.push(next);
            at += next.len_utf8();
            continue;
        };
        at += push(&mut result, &found, pseudonyms);
    }
    result
}

/// The text with pseudonyms in place of values in TOML that name a person, a host or a resource, where they are known. A name that is too
/// short to be replaced wherever it is a word is replaced there.
pub fn with_values_replaced(text: &str, pseudonym: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('=') {
        result.push_str(before);
        result.push('=');
        rest = after;
        if NAME_KEYS.contains(&key_at_end(before))
            && let Some((start, value, behind)) = short_string(after)
            && let Some(pseudonym) = pseudonym(value)
        {
            result.push_str(start);
            result.push_str(&pseudonym);
            rest = behind;
        }
    }
    result.push_str(rest);
    result
}

/// The text with another start of the names of runs that begin so. The start is not empty.
pub fn with_run_names_replaced(text: &str, start: &str, shown: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(start) {
        result.push_str(before);
        let is_name = is_run_stamp(behind) && !result.ends_with(is_joined);
        result.push_str(if is_name { shown } else { start });
        rest = behind;
    }
    result.push_str(rest);
    result
}

/// The last word of a text, without the quotes of a key.
fn key_at_end(text: &str) -> &str {
    let key = text.trim_end_matches([' ', '\t', '"', '\'']);
    key.rsplit(|c| !is_word(c)).next().unwrap_or_default()
}

/// A short string of TOML at the start of a text: what is before it with the quotation mark, its content, and the rest.
fn short_string(text: &str) -> Option<(&str, &str, &str)> {
    let string = text.trim_start_matches([' ', '\t']);
    let mark = string.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let content = string.strip_prefix(mark)?;
    let (end, _) = content.char_indices().take(VALUE_LEN_MAX + 1).find(|(_, c)| *c == mark)?;
    let (start, _) = text.split_at_checked(text.len() - content.len())?;
    let (content, behind) = content.split_at_checked(end)?;
    Some((start, content, behind))
}

/// Appends the pseudonym, and returns the length of what it replaces.
fn push(result: &mut String, found: &Found<'_>, pseudonyms: &mut Pseudonyms) -> usize {
    match *found {
        Found::Id(id) => {
            result.push_str(&pseudonyms.id(id));
            id.len()
        }
        Found::Mac(mac) => {
            let pseudonym = pseudonyms.mac(&digits_of(mac));
            let mut digits = pseudonym.chars();
            // Separators stay where they are.
            result.extend(
                mac.chars().map(|c| if c.is_ascii_hexdigit() { digits.next().unwrap_or('0') } else { c }),
            );
            mac.len()
        }
        Found::Address(address, value) => {
            result.push_str(&pseudonyms.address(value).to_string());
            address.len()
        }
        Found::Below(folder, kind, name) => {
            result.push_str(folder);
            result.push_str(&pseudonyms.name(kind, name));
            folder.len() + name.len()
        }
        Found::Login(user, host) => {
            result.push_str(&pseudonyms.name(Kind::User, user));
            result.push('@');
            result.push_str(&host_name(host, pseudonyms));
            user.len() + 1 + host.len()
        }
        Found::Host(host) => {
            result.push_str(&pseudonyms.name(Kind::Host, host));
            host.len()
        }
        Found::Known(name) => {
            result.push_str(pseudonyms.known(name).unwrap_or_default());
            name.len()
        }
        Found::Digits(digits) => {
            result.push_str(&pseudonyms.known_mac(digits).unwrap_or_default());
            digits.len()
        }
    }
}

/// The pseudonym of what names a host: a name or an address, with or without a user before it and a port behind it.
pub fn host_name(text: &str, pseudonyms: &mut Pseudonyms) -> String {
    if text.len() > HOST_LEN_MAX {
        return replaced(text, pseudonyms, false);
    }
    let kinds = ["ssh", "lab", "netns", "command"];
    if let Some((kind, name)) = text.split_once(':').filter(|(kind, _)| kinds.contains(kind)) {
        return match name.split_once('/').filter(|_| kind == "lab") {
            Some((lab, guest)) => {
                let lab = lab_name(lab, pseudonyms);
                format!("{kind}:{lab}/{}", host_name(guest, pseudonyms))
            }
            None => format!("{kind}:{}", host_name(name, pseudonyms)),
        };
    }
    if let Some((user, host)) = text.split_once('@') {
        let host = host_name(host, pseudonyms);
        return format!("{}@{host}", pseudonyms.name(Kind::User, user));
    }
    let (inside, brackets) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, rest)) => (inside, Some(rest)),
        None => (text, None),
    };
    if let Ok(address) = inside.parse::<IpAddr>() {
        let address = pseudonyms.address(address);
        return brackets.map_or_else(|| address.to_string(), |rest| format!("[{address}]{rest}"));
    }
    if let Some((host, port)) = text.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()) {
        return format!("{}:{port}", host_name(host, pseudonyms));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match text.find(|c| !is_name(c)) {
        None => pseudonyms.name(Kind::Host, text),
        // Words about a host.
        Some(_) => replaced(text, pseudonyms, false),
    }
}

/// The pseudonym of a lab. The name of one that is given no other says nothing, and is a word of messages.
fn lab_name(name: &str, pseudonyms: &mut Pseudonyms) -> String {
    if name == DEFAULT_NAME { name.to_owned() } else { host_name(name, pseudonyms) }
}

/// Learns the names in a text that its form shows: home folders and USER@HOST. Notes its addresses.
pub fn learn(text: &str, pseudonyms: &mut Pseudonyms) {
    let mut words = Words::new(text);
    let mut host_at = None;
    for at in text.char_indices().map(|(at, _)| at) {
        match below(text, at).or_else(|| is_start(text, at).then(|| words.login(at)).flatten()) {
            Some(Found::Below(_, kind, name)) => {
                pseudonyms.name(kind, name);
            }
            Some(Found::Login(user, host)) => {
                // A longer one is not sought elsewhere, and its parts take the square of its length to keep.
                if user.len() <= SOUGHT_LEN_MAX {
                    pseudonyms.name(Kind::User, user);
                }
                // Each part of the user comes with the same host.
                if host_at.replace(at + user.len()) != Some(at + user.len()) {
                    host_name(host, pseudonyms);
                }
            }
            _ => {}
        }
    }
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at) && !is_within(text, *at)) {
        match mac_at(text, at).or_else(|| address(text, at)) {
            Some(Found::Mac(mac)) => {
                pseudonyms.mac(&digits_of(mac));
            }
            Some(Found::Address(_, address)) => pseudonyms.note_address(address),
            _ => {}
        }
    }
}

fn digits_of(mac: &str) -> String {
    mac.chars().filter(char::is_ascii_hexdigit).collect()
}

fn find<'t>(
    words: &mut Words<'t>,
    at: usize,
    pseudonyms: &Pseudonyms,
    is_version: bool,
) -> Option<Found<'t>> {
    let text = words.text;
    if let Some(found) = digits(text, at, pseudonyms).or_else(|| below(text, at)) {
        return Some(found);
    }
    // Names of arms, interfaces, queues and backups join a name or an address to words: `eth0_10.1.2.3_4`. Not every script has spaces.
    if is_within(text, at) {
        return None;
    }
    let pattern = || uuid(text, at).or_else(|| mac_at(text, at)).or_else(|| address(text, at));
    let pattern = if is_version { None } else { pattern() };
    if !is_start(text, at) {
        return pattern.or_else(|| known(text, at, pseudonyms));
    }
    pattern
        .or_else(|| words.login(at))
        .or_else(|| words.host_below(at, pseudonyms))
        .or_else(|| known(text, at, pseudonyms))
}

/// Whether a name or address may have begun before this place.
fn is_within(text: &str, at: usize) -> bool {
    text[..at].ends_with(is_joined)
}

/// Whether a character is a part of the name or address beside it.
fn is_joined(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a word begins here.
fn is_start(text: &str, at: usize) -> bool {
    !text[..at].chars().next_back().is_some_and(is_word)
}

/// Whether no name or address goes on here.
fn is_end(text: &str, at: usize) -> bool {
    !text[at..].starts_with(is_joined)
}

/// The length of the characters from here that are of a kind.
fn run(text: &str, is_of: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_of(c)).unwrap_or(text.len())
}

/// The ASCII characters from here that are of a kind, so many at most.
fn run_within(text: &str, len_max: usize, is_of: impl Fn(u8) -> bool) -> &str {
    &text[..text.bytes().take(len_max).take_while(|byte| byte.is_ascii() && is_of(*byte)).count()]
}

fn uuid(text: &str, at: usize) -> Option<Found<'_>> {
    let rest = &text[at..];
    let digits = &rest[..run(rest, |c| c.is_ascii_hexdigit())];
    // As in /etc/machine-id.
    if digits.len() == UUID_GROUPS.iter().sum::<usize>() && is_end(text, at + digits.len()) {
        return Some(Found::Id(digits));
    }
    let candidate = run_within(rest, UUID_LEN, |byte| byte.is_ascii_hexdigit() || byte == b'-');
    let lengths: Vec<usize> = candidate.split('-').map(str::len).collect();
    (lengths == UUID_GROUPS && is_end(text, at + candidate.len())).then_some(Found::Id(candidate))
}

fn mac_at(text: &str, at: usize) -> Option<Found<'_>> {
    let rest = &text[at..];
    if let Some(mac) = dotted_mac(rest) {
        return is_end(text, at + mac.len()).then_some(Found::Mac(mac));
    }
    let separator = rest.as_bytes().get(2).copied().filter(|byte| matches!(byte, b':' | b'-'))?;
    let candidate = run_within(rest, MAC_LEN_MAX, |byte| byte.is_ascii_hexdigit() || byte == separator);
    let octets: Vec<&str> = candidate.split(char::from(separator)).collect();
    let count = octets.iter().take_while(|octet| octet.len() == 2).count();
    let is_whole = count == octets.len() || octets.get(count).is_some_and(|rest| rest.is_empty());
    (is_whole && MAC_DIGITS.contains(&(count * 2)) && is_end(text, at + count * 3 - 1))
        .then(|| Found::Mac(&candidate[..count * 3 - 1]))
}

/// An Ethernet address as switches write it: `0015.5d3a.1b2c`. Dots may follow.
fn dotted_mac(text: &str) -> Option<&str> {
    let candidate = run_within(text, DOTTED_MAC_LEN, |byte| byte.is_ascii_hexdigit() || byte == b'.');
    let lengths: Vec<usize> = candidate.split('.').map(str::len).collect();
    if lengths != [4, 4, 4] {
        return None;
    }
    let behind = text[candidate.len()..].trim_start_matches('.');
    (!behind.starts_with(|c: char| c.is_ascii_hexdigit())).then_some(candidate)
}

fn address(text: &str, at: usize) -> Option<Found<'_>> {
    let rest = &text[at..];
    // The rest of a longer version: `1.2.3.4.5`.
    if text[..at].strip_suffix('.').is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit())) {
        return None;
    }
    let characters = rest.bytes().take(ADDRESS_LEN_MAX);
    let length = characters.take_while(|c| c.is_ascii_hexdigit() || matches!(c, b':' | b'.')).count();
    // The longest part that is an address: a port or the end of a sentence may follow.
    let mut ends = (2..=length).rev().filter(|end| {
        let next = rest[*end..].chars().next();
        let goes_on =
            |c: char| is_joined(c) || (c == '.' && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit()));
        !next.is_some_and(goes_on)
    });
    ends.find_map(|end| rest[..end].parse().ok().map(|address| Found::Address(&rest[..end], address)))
}

/// A name below a folder of homes or resources. `/home/` may stand within a word, as in `--out=/home/`.
fn below(text: &str, at: usize) -> Option<Found<'_>> {
    let rest = &text[at..];
    if let Some(name) = rest.strip_prefix('~').filter(|_| is_start(text, at)) {
        let name = &name[..run(name, |c| is_word(c) || matches!(c, '.' | '-'))];
        let is_user = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_folder = rest[1 + name.len()..].starts_with('/');
        return (is_user && is_folder).then_some(Found::Below("~", Kind::User, name));
    }
    if !rest.starts_with('/') {
        return None;
    }
    let homes = HOMES.iter().map(|folder| (*folder, Kind::User));
    let folders = homes.chain(RESOURCES.iter().map(|folder| (*folder, Kind::Resource)));
    for (folder, kind) in folders {
        let Some(start) = rest.get(..folder.len()) else { continue };
        if start.eq_ignore_ascii_case(folder) {
            let name = &rest[folder.len()..];
            let name = &name[..run(name, |c| is_word(c) || matches!(c, '.' | '-'))];
            return (!name.is_empty()).then_some(Found::Below(start, kind, name));
        }
    }
    None
}

/// A text that is searched from its start to its end. What was found about the end of a word holds for every later place in this word: a
/// text of megabytes may be one word of many parts (`a.a.a`), each of which is a place where a name may begin.
struct Words<'t> {
    text: &'t str,
    /// The end of the characters of a user's name.
    user_end: usize,
    /// The host behind an `@` that stands there.
    login_host: Option<&'t str>,
    /// The end of the characters of a DNS name, and that without the dots at its end.
    host_ends: (usize, usize),
    /// Length of the known domain that it ends with.
    domain_len: Option<usize>,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, user_end: 0, login_host: None, host_ends: (0, 0), domain_len: None }
    }

    /// USER@HOST.
    fn login(&mut self, at: usize) -> Option<Found<'t>> {
        if at >= self.user_end {
            self.user_end = at + run(&self.text[at..], is_of_login);
            self.login_host = host_of_login(&self.text[self.user_end..]);
        }
        let user = &self.text[at..self.user_end];
        self.login_host.filter(|_| !user.is_empty()).map(|host| Found::Login(user, host))
    }

    /// A host below a known domain.
    fn host_below(&mut self, at: usize, pseudonyms: &Pseudonyms) -> Option<Found<'t>> {
        if at >= self.host_ends.0 {
            let rest = &self.text[at..];
            let name = &rest[..run(rest, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))];
            let host = name.trim_end_matches('.');
            self.host_ends = (at + name.len(), at + host.len());
            self.domain_len = pseudonyms.domain_len(host);
        }
        // A place may be among the dots at the end.
        let host = self.text.get(at..self.host_ends.1)?;
        self.domain_len.is_some_and(|domain| host.len() > domain).then_some(Found::Host(host))
    }
}

fn is_of_login(c: char) -> bool {
    is_word(c) || matches!(c, '.' | '-')
}

/// The host of a text that begins with `@HOST`. Other things have an `@` as well: `mlx5_comp3@pci:0000:03:00.0`, `veth0@if7`.
fn host_of_login(text: &str) -> Option<&str> {
    let host = text.strip_prefix('@')?;
    if let Some(address) = ipv6_host(host) {
        return Some(address);
    }
    let host = host[..run(host, is_of_login)].trim_end_matches('.');
    let is_interface = host.strip_prefix("if").is_some_and(|index| index.bytes().all(|b| b.is_ascii_digit()));
    (host.starts_with(char::is_alphanumeric) && host != "pci" && !is_interface).then_some(host)
}

/// The IPv6 address that a text begins with, with its brackets if it has some. Its first part would be taken for a name; that of an IPv4
/// address is one, because a name may begin like an address: `10.1.2.3.example.org`.
fn ipv6_host(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[');
    let Some(Found::Address(found, IpAddr::V6(_))) = address(inside.unwrap_or(text), 0) else { return None };
    match inside {
        Some(_) => text.get(..found.len() + 2).filter(|host| host.ends_with(']')),
        None => Some(found),
    }
}

/// The longest known name that is a word, or words, from here on.
fn known<'t>(text: &'t str, at: usize, pseudonyms: &Pseudonyms) -> Option<Found<'t>> {
    let rest = &text[at..];
    let length = pseudonyms.longest_secret(rest, |length| is_end(rest, length))?;
    Some(Found::Known(&rest[..length]))
}

/// A known Ethernet address without separators, as in the interface name `enx020000000001`.
fn digits<'t>(text: &'t str, at: usize, pseudonyms: &Pseudonyms) -> Option<Found<'t>> {
    let digits = text.as_bytes().get(at..at + MAC_DIGITS[1])?;
    let digits = std::str::from_utf8(digits).ok().filter(|_| text.is_char_boundary(at))?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) || pseudonyms.known_mac(digits).is_none() {
        return None;
    }
    Some(Found::Digits(&text[at..at + digits.len()]))
}
