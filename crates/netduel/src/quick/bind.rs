//! The option -B of quick tests: checks the address or interface of this host before anything connects.
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netduel_sys::error_name;
use netduel_sys::local_bind::{self, DISCARD_PORT, LocalBind};

use super::args::CommonArgs;
use crate::exit::{Failure, Kind};

/// Rejects addresses and interfaces that this host lacks, and an address that contradicts -4, -6 or its own form.
pub fn check(common: &CommonArgs) -> Result<(), Failure> {
    let Some(bind) = &common.bind else { return Ok(()) };
    let refused = |text: String| Err(Failure::message(Kind::Usage, text));
    if let Some(address) = bind.address {
        if let IpAddr::V6(v6) = address
            && let Some(v4) = v6.to_ipv4_mapped()
        {
            let meant = LocalBind { address: Some(v4.into()), ..bind.clone() };
            return refused(format!(
                "-B {bind} is an IPv4-mapped IPv6 address, whose traffic is IPv4; write -B {meant}"
            ));
        }
        let (version, other) = if address.is_ipv4() { ("IPv4", "6") } else { ("IPv6", "4") };
        if common.ipv6 && address.is_ipv4() || common.ipv4 && address.is_ipv6() {
            return refused(format!(
                "-B {bind} is an {version} address, and -{other} excludes {version}; leave out -{other}, or bind an IPv{other} address"
            ));
        }
        if address.is_multicast() || address.is_unspecified() || is_broadcast(address) {
            return refused(format!(
                "-B {bind} is not the address of a host; bind one that `ip address` shows"
            ));
        }
    }
    let any: IpAddr = if common.ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let Err(error) = bind.try_udp(any) else { return Ok(()) };
    let reason = match error.raw_os_error().and_then(error_name::of) {
        Some("ENODEV") => {
            format!("this host has no interface of that name; it has {}", interfaces().join(", "))
        }
        Some("EADDRNOTAVAIL") => {
            format!("no interface of this host has that address; they have {}", addresses(bind).join(", "))
        }
        Some("EPERM") => format!(
            "{error}; binding to an interface needs Linux 5.7 or CAP_NET_RAW; bind the address of the interface instead"
        ),
        Some("EINVAL") => format!("{error}; a link-local address needs its interface: ADDRESS%INTERFACE"),
        _ => error.to_string(),
    };
    refused(format!("failed to bind to {bind} (-B): {reason}"))
}

/// Whether it is a broadcast address of this host. The kernel binds a socket to one, and refuses to connect to one with EACCES
/// (udp(7), connect(2)).
fn is_broadcast(address: IpAddr) -> bool {
    let socket = local_bind::udp(&LocalBind::ANY, Ipv4Addr::UNSPECIFIED.into());
    let connected = socket.and_then(|socket| socket.connect((address, DISCARD_PORT)));
    address.is_ipv4() && connected.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Names of the interfaces of this host; empty when they cannot be listed.
fn interfaces() -> Vec<String> {
    let snapshot = netduel_host::snapshot();
    snapshot.map(|host| host.interfaces.into_iter().map(|found| found.name).collect()).unwrap_or_default()
}

/// Addresses of this host of the same IP version.
fn addresses(bind: &LocalBind) -> Vec<String> {
    let is_ipv4 = bind.address.is_none_or(|address| address.is_ipv4());
    let snapshot = netduel_host::snapshot();
    let all = snapshot.map(|host| host.interfaces).unwrap_or_default().into_iter();
    all.flat_map(|found| found.addresses)
        .filter(|address| address.is_ipv4() == is_ipv4)
        .map(|address| address.to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        common: CommonArgs,
    }

    fn refusal(words: &str) -> Option<String> {
        let options = Options::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        check(&options.common).err().map(|failure| failure.to_string())
    }

    #[test]
    fn address_or_interface_of_this_host_is_accepted() {
        for words in ["x far -B 127.0.0.2", "x far -B lo", "x far -B 127.0.0.1%lo -4", "x far -6 -B lo"] {
            assert_eq!(refusal(words), None, "{words}");
        }
    }

    #[test]
    fn rejection_names_the_cause_and_the_alternatives_of_this_host() {
        for (words, cause) in [
            ("x far -B 192.0.2.1", "they have 127.0.0.1"),
            ("x far -B absent9", "no interface of that name; it has "),
            ("x far -6 -B 127.0.0.2", "leave out -6, or bind an IPv6 address"),
            ("x far -4 -B ::1", "leave out -4, or bind an IPv4 address"),
            ("x far -B ::ffff:127.0.0.1", "whose traffic is IPv4; write -B 127.0.0.1"),
            ("x far -6 -B ::ffff:127.0.0.1%lo", "whose traffic is IPv4; write -B 127.0.0.1%lo"),
            ("x far -B 224.0.0.1", "not the address of a host"),
            ("x far -B 0.0.0.0", "not the address of a host"),
            ("x far -B 127.255.255.255", "not the address of a host"),
            ("x far -B 255.255.255.255", "not the address of a host"),
        ] {
            let text = refusal(words).unwrap_or_else(|| panic!("{words} is accepted"));
            assert!(text.contains(cause), "{words}: {text}");
        }
        assert!(Options::try_parse_from(["x", "far", "-B", "10.0.0.1:80"]).is_err());
    }
}
