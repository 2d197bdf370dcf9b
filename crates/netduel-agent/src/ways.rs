//! By what this host is reached, so that the NIC that leads to it is never given away. Whatever cannot be read is a refusal.
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netduel_control::agent::{FailureKind, WorkError};
use netduel_host::LinkState;

use crate::failure::environment;

/// The port of ssh.
const SSH: u16 = 22;
/// `TCP_ESTABLISHED`, as `/proc/net/tcp` says it.
const ESTABLISHED: &str = "01";

/// By what this host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ways {
    /// Whether the agent is in the network namespace of the host itself, and not in one that stands for a host.
    is_hosts: bool,
    /// The interfaces by which ssh connections come in: the agent's own, and those of anybody.
    ssh: BTreeSet<String>,
    /// Those of default routes, of every table.
    default: BTreeSet<String>,
    /// Those with an address, the loopback left out.
    addressed: BTreeSet<String>,
}

impl Ways {
    /// Reads them.
    pub fn read(links: &[LinkState]) -> Result<Self, WorkError> {
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let is_hosts = match (namespace("1"), namespace("self")) {
            (Some(first), Some(own)) => first == own,
            _ => true,
        };
        let mut ways = Self { is_hosts, ..Self::default() };
        if !is_hosts {
            return Ok(ways);
        }
        let ssh = ssh_addresses()?;
        let default = netduel_host::default_route_links().map_err(environment)?;
        for link in links.iter().filter(|link| link.name != "lo") {
            let addresses = netduel_host::addresses_of(&link.name).map_err(environment)?;
            let is_local =
                |address: &IpAddr| matches!(address, IpAddr::V6(six) if six.is_unicast_link_local());
            if addresses.iter().any(|address| !is_local(address)) {
                ways.addressed.insert(link.name.clone());
            }
            if addresses.iter().any(|address| ssh.contains(address)) {
                ways.ssh.insert(link.name.clone());
            }
            if default.contains(&link.index) {
                ways.default.insert(link.name.clone());
            }
        }
        Ok(ways)
    }

    /// Why an interface, or one that goes with it, must stay the kernel's.
    pub fn refusal(&self, names: &[String]) -> Option<String> {
        if !self.is_hosts {
            return None;
        }
        let of = |names_of: &BTreeSet<String>| names.iter().find(|name| names_of.contains(*name)).cloned();
        if let Some(name) = of(&self.ssh) {
            return Some(format!("an ssh connection comes in by {name}"));
        }
        if let Some(name) = of(&self.default) {
            return Some(format!("a default route leads through {name}"));
        }
        let is_only = !self.addressed.is_empty() && self.addressed.iter().all(|name| names.contains(name));
        is_only.then(|| "no other interface has an address".to_owned())
    }
}

/// The local addresses of ssh connections: what the agent was told, which `sudo` and services are not, and what the kernel lists.
fn ssh_addresses() -> Result<BTreeSet<IpAddr>, WorkError> {
    let told = std::env::var("SSH_CONNECTION").ok();
    let words: Vec<&str> = told.as_deref().map(|words| words.split(' ').collect()).unwrap_or_default();
    let mut found: BTreeSet<IpAddr> = words.get(2).and_then(|word| word.parse().ok()).into_iter().collect();
    let told_port = words.get(3).and_then(|word| word.parse().ok());
    let sockets = sockets_of_sshd();
    for name in ["tcp", "tcp6"] {
        let file = format!("/proc/net/{name}");
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            // A kernel without IPv6.
            Err(error) if name == "tcp6" && error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                let message =
                    format!("failed to learn by which interface this host is reached: {file}: {error}");
                return Err(WorkError { kind: FailureKind::Environment, message });
            }
        };
        let is_ssh =
            |port: u16, socket: u64| port == SSH || Some(port) == told_port || sockets.contains(&socket);
        found.extend(
            established(&text).filter(|(_, port, socket)| is_ssh(*port, *socket)).map(|(own, ..)| own),
        );
    }
    Ok(found)
}

/// The sockets of every sshd, for one that listens elsewhere.
fn sockets_of_sshd() -> BTreeSet<u64> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_sshd = |name: String| name.starts_with("sshd");
    let daemons = processes.filter(|process| fs::read_to_string(process.join("comm")).is_ok_and(is_sshd));
    let open = daemons.flat_map(|process| fs::read_dir(process.join("fd")).into_iter().flatten().flatten());
    open.filter_map(|file| {
        let to = fs::read_link(file.path()).ok()?;
        to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
    .collect()
}

/// Local address, local port and socket of each connection in `/proc/net/tcp` or `tcp6` (proc_net_tcp.rst).
fn established(text: &str) -> impl Iterator<Item = (IpAddr, u16, u64)> {
    text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        let is_established = *fields.get(3)? == ESTABLISHED;
        let socket = fields.get(9)?.parse().ok()?;
        is_established.then_some((address_of(address)?, u16::from_str_radix(port, 16).ok()?, socket))
    })
}

/// Words of 32 bits in the machine's order, each with the network's bytes in it.
fn address_of(digits: &str) -> Option<IpAddr> {
    let words: Option<Vec<u32>> = (0..digits.len())
        .step_by(8)
        .map(|at| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok())
        .collect();
    let bytes: Vec<u8> = words?.into_iter().flat_map(u32::to_ne_bytes).collect();
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways() -> Ways {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Ways {
            is_hosts: true,
            ssh: set(&["eth0"]),
            default: set(&["eth1"]),
            addressed: set(&["eth0", "eth1", "eth2"]),
        }
    }

    fn refusal(ways: &Ways, names: &[&str]) -> Option<String> {
        ways.refusal(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_nic_that_leads_to_the_host_is_never_given_away() {
        let ways = ways();
        assert!(refusal(&ways, &["eth0"]).unwrap().contains("ssh connection"));
        assert!(
            refusal(&ways, &["enP1s1", "eth0"]).unwrap().contains("by eth0"),
            "a function beneath it is the same NIC"
        );
        assert!(refusal(&ways, &["eth1"]).unwrap().contains("default route"));
        assert_eq!(refusal(&ways, &["eth2"]), None);
        let only = Ways {
            ssh: BTreeSet::new(),
            default: BTreeSet::new(),
            addressed: ["eth2".to_owned()].into(),
            ..ways
        };
        assert!(refusal(&only, &["eth2"]).unwrap().contains("no other interface has an address"));
        assert_eq!(refusal(&only, &["eth3"]), None);
        assert_eq!(
            refusal(&Ways { is_hosts: false, ..only }, &["eth2"]),
            None,
            "a namespace is reached from its host"
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn connections_are_read_from_the_kernels_tables() {
        let four = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0\n\
            1: 0501000A:0016 0901000A:C001 01 00000000:00000000 02:00000000 00000000     0        0 12 1 0 100 0 0 10 0\n";
        assert_eq!(established(four).collect::<Vec<_>>(), [("10.0.1.5".parse().unwrap(), 22, 12)]);
        let six = "  sl  local_address\n\
            0: 0000000000000000FFFF00000501000A:08AE 0000000000000000FFFF00000901000A:C001 01 0:0 02:0 0 0 0 13\n\
            1: 000077FD000000000000000001000000:0016 000077FD000000000000000002000000:C001 01 0:0 02:0 0 0 0 14\n";
        let expected: [(IpAddr, u16, u64); 2] =
            [("10.0.1.5".parse().unwrap(), 2222, 13), ("fd77::1".parse().unwrap(), 22, 14)];
        assert_eq!(established(six).collect::<Vec<_>>(), expected);
    }
}
