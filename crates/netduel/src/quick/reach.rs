//! Finds the server of a quick test: its pairing, its addresses, and the first address that answers.
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use netduel_model::socket_name::SocketName;
use netduel_sys::local_bind::LocalBind;
use netduel_sys::tcp;

use super::args::CommonArgs;
use super::string_input::{self, STDIN};
use super::{known, tls};
use crate::console::tell;
use crate::exit::{Failure, Kind, chain};
use crate::redaction;
use netduel_model::pairing::Pairing;

/// Time limit of an address.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the handshake that proves a new pairing.
const PROOF_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of addresses tried: a name with more is not one host.
const ADDRESSES_TRIED: usize = 8;
/// Placeholder for the server's address during validation.
pub const ANY_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Placeholder for IPv6.
pub const ANY_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// The placeholder of the server's address during validation.
pub fn placeholder(common: &CommonArgs) -> IpAddr {
    let is_bound_to_ipv6 =
        common.bind.as_ref().and_then(|bind| bind.address).is_some_and(|address| address.is_ipv6());
    if common.ipv6 || is_bound_to_ipv6 { ANY_IPV6 } else { ANY_IPV4 }
}

/// A server that answered.
#[derive(Debug)]
pub struct Server {
    /// The name of its pairing.
    pub at: String,
    /// The address that answered.
    pub address: IpAddr,
    port: u16,
}

impl Server {
    /// Label: the name, and the address if it differs.
    pub fn words(&self) -> String {
        let address = SocketAddr::new(self.address, self.port).to_string();
        if self.at == address { address } else { format!("{} ({address})", self.at) }
    }
}

/// Finds the server of the arguments: that of a new pairing, which is stored when the server has proven that it is valid, or one that was
/// paired before.
pub fn server(common: &CommonArgs) -> Result<Server, Failure> {
    let (name, new) = named_server(common)?;
    let address = reachable(&name, common)?;
    if let Some(pairing) = new {
        prove(&pairing, address, common)?;
        known::keep(&name, &pairing)?;
        if common.pairing_file.is_none() && !common.quiet.quiet {
            tell(&format!("the pairing is stored; HOST is {name} from now on"));
        }
    }
    Ok(Server { at: name.to_string(), address: address.ip(), port: address.port() })
}

/// Completes a handshake, in which both sides prove that they know the secret, and ends the connection. When that fails, the stored pairing
/// stays as it is.
fn prove(pairing: &Pairing, address: SocketAddr, common: &CommonArgs) -> Result<(), Failure> {
    let bind = common.bind.as_ref().unwrap_or(&LocalBind::ANY);
    let connected = tls::connect(pairing, &[address], PROOF_LIMIT, bind);
    connected.map(drop).map_err(|error| {
        let text = format!("{}; the pairing was not stored", chain(&error));
        Failure::caused(Kind::Host, text, error)
    })
}

/// The name of the server of the arguments, and its pairing unless that is stored.
fn named_server(common: &CommonArgs) -> Result<(SocketName, Option<Pairing>), Failure> {
    let with_new = |name: SocketName, pairing: Pairing| {
        learn(&name);
        check_version(&name, common)?;
        // A stored pairing that cannot be read is replaced.
        let is_stored = known::find(&name).is_ok_and(|stored| stored.as_ref() == Some(&pairing));
        Ok((name, (!is_stored).then_some(pairing)))
    };
    if let Some(path) = &common.pairing_file {
        let host = SocketName::parse(&common.host).ok_or_else(|| not_a_host(&common.host))?;
        let pairing = if path == Path::new(STDIN) { string_input::read_stdin()? } else { known::read(path)? };
        let port = common.port.or_else(|| (!names_port(&common.host)).then(|| pairing.server.port()));
        let name = on_port(&host, port).ok_or_else(|| not_a_host(&common.host))?;
        return with_new(name, pairing);
    }
    if common.host == STDIN {
        let pairing = string_input::read_stdin()?;
        let name = on_port(&pairing.server, common.port).ok_or_else(|| not_a_host(&common.host))?;
        return with_new(name, pairing);
    }
    let name = named(&common.host, common.port).ok_or_else(|| not_a_host(&common.host))?;
    learn(&name);
    check_version(&name, common)?;
    if known::find(&name)?.is_none() {
        // The same host under another port is what was meant.
        let on_other_ports: Vec<String> = known::list()
            .unwrap_or_default()
            .iter()
            .filter(|other| other.host() == name.host())
            .map(ToString::to_string)
            .collect();
        let failure = Failure::message(Kind::NotPaired, format!("there is no pairing with {name}"));
        return Err(if on_other_ports.is_empty() {
            failure.remedy(known::PAIR)
        } else {
            failure.remedy(format!("paired on another port: {}; name it", on_other_ports.join(", ")))
        });
    }
    Ok((name, None))
}

/// With `--redact` no message shows the name from here on.
fn learn(name: &SocketName) {
    redaction::host(&name.to_string());
}

/// Whether the text of a host has a port: after a name, an IPv4 address, or the brackets of an IPv6 address.
fn names_port(host: &str) -> bool {
    let after_host = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    after_host.matches(':').count() == 1
}

fn named(host: &str, port: Option<u16>) -> Option<SocketName> {
    on_port(&SocketName::parse(host)?, port)
}

/// The same host with the port of the command line, if there is one.
fn on_port(name: &SocketName, port: Option<u16>) -> Option<SocketName> {
    port.map_or(Some(name.clone()), |port| SocketName::new(name.host(), port))
}

fn not_a_host(text: &str) -> Failure {
    known::names_no_server(text, "is neither HOST, HOST:PORT nor a pairing string of `netduel serve`")
}

/// The version that -4, -6 or -B leaves, whether it is IPv4, and how to allow the other one; `None` when both are allowed.
fn only_version(common: &CommonArgs) -> Option<(bool, String)> {
    let bound = common.bind.as_ref().and_then(|bind| Some((bind, bind.address?)));
    let (is_ipv4, option) = match bound {
        Some((bind, address)) => (address.is_ipv4(), Some(bind)),
        None if common.ipv4 || common.ipv6 => (common.ipv4, None),
        None => return None,
    };
    let (version, other) = if is_ipv4 { (4, 6) } else { (6, 4) };
    let remedy = match option {
        Some(bind) => format!("-B {bind} is IPv{version}: bind an IPv{other} address"),
        None => format!("leave out -{version}"),
    };
    Some((is_ipv4, remedy))
}

/// Rejects a server that is named by an address of the version that -4, -6 or -B excludes, or by an IPv4 address that looks like one of IPv6.
fn check_version(name: &SocketName, common: &CommonArgs) -> Result<(), Failure> {
    // An IPv6 address may have a zone.
    let address = name.host().split('%').next().unwrap_or_default().parse::<IpAddr>();
    if let Ok(IpAddr::V6(v6)) = address
        && let Some(v4) = v6.to_ipv4_mapped()
    {
        let text = format!("HOST {v6} is an IPv4-mapped IPv6 address, whose traffic is IPv4");
        return Err(Failure::message(Kind::Usage, text).remedy(format!("write {v4}")));
    }
    match (address, only_version(common)) {
        (Ok(address), Some((is_ipv4, remedy))) if address.is_ipv4() != is_ipv4 => {
            let version = if address.is_ipv4() { 4 } else { 6 };
            let text = format!("{} is an IPv{version} address; {remedy}", name.host());
            Err(Failure::message(Kind::Usage, text))
        }
        _ => Ok(()),
    }
}

/// The first address of the server at `name` that answers, in the order of the resolver (RFC 6724).
fn reachable(name: &SocketName, common: &CommonArgs) -> Result<SocketAddr, Failure> {
    let resolved = (name.host(), name.port()).to_socket_addrs().map_err(|error| {
        let text = format!(
            "failed to find the address of {}: {error}; check the name, or give an address",
            name.host()
        );
        Failure::caused(Kind::Host, text, error)
    })?;
    // A resolver can give an IPv4 address as one of IPv6, whose traffic is IPv4.
    let resolved = resolved.map(|address| match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), address.port()),
        IpAddr::V6(_) => address,
    });
    let bind = common.bind.clone().unwrap_or(LocalBind::ANY);
    let version = only_version(common);
    let is_allowed =
        |address: &SocketAddr| version.as_ref().is_none_or(|(is_ipv4, _)| address.is_ipv4() == *is_ipv4);
    let addresses: Vec<SocketAddr> = resolved.filter(is_allowed).take(ADDRESSES_TRIED).collect();
    let mut tried = Vec::new();
    let mut has_route = false;
    for address in &addresses {
        match tcp::connect(*address, None, None, CONNECT_LIMIT, &bind) {
            Ok(_) => return Ok(*address),
            Err(error) => {
                // EINVAL: an address that is valid only within this host, such as 127.0.0.1.
                has_route |= !matches!(
                    error.kind(),
                    ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::InvalidInput
                );
                tried.push(format!("{address}: {error}"));
            }
        }
    }
    let message = if addresses.is_empty() {
        let (version, remedy) = match version {
            Some((true, remedy)) => ("IPv4 ", remedy),
            Some((false, remedy)) => ("IPv6 ", remedy),
            None => ("", "check the name, or give an address".to_owned()),
        };
        format!("{} has no {version}address; {remedy}", name.host())
    } else {
        let from = common.bind.as_ref().map(|bind| format!(" from {bind}")).unwrap_or_default();
        let remedy = no_answer(name, &bind, has_route);
        format!("failed to connect to {name}{from} ({}): {remedy}", tried.join(", "))
    };
    Err(Failure::message(Kind::Host, message))
}

/// The remedy when no address of a server answers. With -B the own address or interface comes first.
fn no_answer(name: &SocketName, bind: &LocalBind, has_route: bool) -> String {
    let is_running = format!(
        "is `netduel serve` running there, and does a firewall let TCP and UDP port {} through?",
        name.port()
    );
    match (bind == &LocalBind::ANY, has_route) {
        (true, true) => is_running,
        (true, false) => "this host has no route to it; see `ip route get`".to_owned(),
        (false, true) => format!(
            "does {bind} (-B) lead to it (`ip route get`)? bind another address or interface, or leave out -B; {is_running}"
        ),
        (false, false) => {
            format!("{bind} (-B) has no route to it; bind another address or interface, or leave out -B")
        }
    }
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

    #[test]
    fn address_of_an_excluded_version_is_an_invalid_command_line() {
        for (words, remedy) in [
            ("x -6 10.1.1.1", Some("leave out -6")),
            ("x -4 ::1", Some("leave out -4")),
            ("x -4 fe80::1%lo", Some("leave out -4")),
            ("x -B ::1 10.1.1.1", Some("-B ::1 is IPv6: bind an IPv4 address")),
            ("x -B 127.0.0.2 ::1", Some("-B 127.0.0.2 is IPv4: bind an IPv6 address")),
            ("x -4 10.1.1.1", None),
            ("x -B lo ::1", None),
            ("x -6 far", None),
        ] {
            let options = Options::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{error}"));
            let name = SocketName::parse(&options.common.host).expect("a host");
            let refused = check_version(&name, &options.common).err();
            let found = refused.map(|failure| (failure.kind, failure.to_string()));
            match (remedy, found) {
                (None, None) => {}
                (Some(remedy), Some((Kind::Usage, text))) if text.contains(remedy) => {}
                (_, found) => panic!("{words}: {found:?}"),
            }
        }
    }

    #[test]
    fn ipv4_mapped_address_is_an_invalid_command_line() {
        for words in ["x ::ffff:10.1.1.1", "x -6 [::ffff:10.1.1.1]:5210", "x -B ::1 ::ffff:a01:101"] {
            let options = Options::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{error}"));
            let name = SocketName::parse(&options.common.host).expect("a host");
            let failure = check_version(&name, &options.common).expect_err("its traffic is IPv4");
            let is_explained = failure.to_string().ends_with("whose traffic is IPv4; write 10.1.1.1");
            assert!(is_explained && failure.kind == Kind::Usage, "{words}: {failure}");
        }
    }

    #[test]
    fn host_names_a_port_or_leaves_it_to_its_pairing() {
        for (host, has_port) in [
            ("far", false),
            ("far:5210", true),
            ("::1", false),
            ("fe80::1%eth0", false),
            ("[::1]", false),
            ("[::1]:5210", true),
        ] {
            assert_eq!(names_port(host), has_port, "{host}");
        }
    }

    #[test]
    fn remedy_names_the_bound_address_first() {
        let name = SocketName::parse("far").expect("a name");
        let bind: LocalBind = "127.0.0.1".parse().expect("an address");
        assert!(no_answer(&name, &bind, false).starts_with("127.0.0.1 (-B) has no route"));
        assert!(no_answer(&name, &bind, true).starts_with("does 127.0.0.1 (-B) lead to it"));
        assert!(no_answer(&name, &LocalBind::ANY, true).starts_with("is `netduel serve` running"));
        assert!(no_answer(&name, &LocalBind::ANY, false).starts_with("this host has no route"));
    }
}
