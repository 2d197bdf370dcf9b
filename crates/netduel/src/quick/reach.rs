//! Finds the server of a quick test: its pairing, its addresses, and the first address that answers.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use netduel_model::socket_name::SocketName;

use super::args::CommonArgs;
use super::known;
use super::pairing::Pairing;
use crate::exit::{Failure, Kind};

/// How long an address may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Addresses that are tried at most: a name with more is not one host.
const ADDRESSES_TRIED: usize = 8;
/// Stands for the server's address while values are checked.
pub const ANY_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The same for IPv6.
pub const ANY_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A server that answers.
#[derive(Debug)]
pub struct Server {
    /// Under what its pairing is kept.
    pub at: String,
    /// The address that answered.
    pub address: IpAddr,
    port: u16,
}

impl Server {
    /// For people: the name, and the address where it is another.
    pub fn words(&self) -> String {
        let address = SocketAddr::new(self.address, self.port).to_string();
        if self.at == address { address } else { format!("{} ({address})", self.at) }
    }
}

/// Finds the server that the words name: a pairing string, which is kept from then on, or a server that was paired before.
pub fn server(common: &CommonArgs) -> Result<Server, Failure> {
    let name = paired(common)?;
    let address = reachable(&name, common)?;
    Ok(Server { at: name.to_string(), address: address.ip(), port: address.port() })
}

/// The name under which the pairing of the words is kept by now.
fn paired(common: &CommonArgs) -> Result<SocketName, Failure> {
    if let Some(path) = &common.pairing_file {
        let pairing = known::read(path)?;
        let name = named(&common.host, common.port).ok_or_else(|| not_a_host(&common.host))?;
        known::keep(&name, &pairing)?;
        return Ok(name);
    }
    if Pairing::looks_like(&common.host) {
        let pairing: Pairing = common.host.parse().map_err(|error| Failure::message(Kind::Usage, error))?;
        let name = SocketName { host: pairing.host.clone(), port: common.port.unwrap_or(pairing.port) };
        known::keep(&name, &pairing)?;
        return Ok(name);
    }
    let name = named(&common.host, common.port).ok_or_else(|| not_a_host(&common.host))?;
    if known::find(&name)?.is_none() {
        return Err(Failure::message(
            Kind::NotPaired,
            format!(
                "there is no pairing with {name}: run `netduel serve` there, and use the pairing string that it prints in place of \
                 the host once; it is stored, and the host's name is enough from then on"
            ),
        ));
    }
    Ok(name)
}

fn named(host: &str, port: Option<u16>) -> Option<SocketName> {
    let name = SocketName::parse(host)?;
    Some(SocketName { port: port.unwrap_or(name.port), ..name })
}

fn not_a_host(text: &str) -> Failure {
    Failure::message(
        Kind::Usage,
        format!("{text:?} is neither HOST, HOST:PORT nor a pairing string of `netduel serve`"),
    )
}

/// The address of the server at `name` that answers first, in the order of the resolver (RFC 6724).
fn reachable(name: &SocketName, common: &CommonArgs) -> Result<SocketAddr, Failure> {
    let resolved = (name.host.as_str(), name.port).to_socket_addrs().map_err(|error| {
        Failure::message(
            Kind::Host,
            format!(
                "failed to find the address of {}: {error}; check the name, or give an address",
                name.host
            ),
        )
    })?;
    let family =
        |address: &SocketAddr| !(common.ipv4 && address.is_ipv6() || common.ipv6 && address.is_ipv4());
    let addresses: Vec<SocketAddr> = resolved.filter(family).take(ADDRESSES_TRIED).collect();
    let mut tried = Vec::new();
    for address in &addresses {
        match TcpStream::connect_timeout(address, CONNECT_LIMIT) {
            Ok(_) => return Ok(*address),
            Err(error) => tried.push(format!("{address}: {error}")),
        }
    }
    let message = if addresses.is_empty() {
        let family = if common.ipv4 { "IPv4" } else { "IPv6" };
        format!("{} has no {family} address; leave out -{}", name.host, if common.ipv4 { 4 } else { 6 })
    } else {
        format!(
            "failed to connect to {name} ({}): is `netduel serve` running there, and does a firewall let TCP and UDP port {} \
             through?",
            tried.join(", "),
            name.port
        )
    };
    Err(Failure::message(Kind::Host, message))
}
