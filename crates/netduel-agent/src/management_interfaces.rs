//! The management interfaces of this host: those of ssh connections and default routes. They are never given to another program. What
//! cannot be read is a refusal.
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netduel_control::agent::{FailureKind, WorkError};
use netduel_host::LinkState;
use netduel_model::snapshot::LOOPBACK;

use crate::failure::environment;

/// The port of ssh.
const SSH: u16 = 22;
/// `TCP_ESTABLISHED` in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

/// The interfaces by which this host is managed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagementInterfaces {
    /// Whether the agent is in the network namespace of the host itself.
    is_hosts: bool,
    /// The interfaces of established ssh connections.
    ssh: BTreeSet<String>,
    /// Those of default routes, of every table.
    default: BTreeSet<String>,
    /// Those with an address, the loopback left out.
    addressed: BTreeSet<String>,
}

impl ManagementInterfaces {
    /// Reads them.
    pub fn read(links: &[LinkState]) -> Result<Self, WorkError> {
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let is_hosts = match (namespace("1"), namespace("self")) {
            (Some(first), Some(own)) => first == own,
            _ => true,
        };
        let mut found = Self { is_hosts, ..Self::default() };
        if !is_hosts {
            return Ok(found);
        }
        let ssh = ssh_addresses()?;
        let default = netduel_host::default_route_links().map_err(environment)?;
        for link in links.iter().filter(|link| link.name != LOOPBACK) {
            let addresses = netduel_host::addresses_of(&link.name).map_err(environment)?;
            let is_local =
                |address: &IpAddr| matches!(address, IpAddr::V6(six) if six.is_unicast_link_local());
            if addresses.iter().any(|address| !is_local(address)) {
                found.addressed.insert(link.name.clone());
            }
            if addresses.iter().any(|address| ssh.contains(address)) {
                found.ssh.insert(link.name.clone());
            }
            if default.contains(&link.index) {
                found.default.insert(link.name.clone());
            }
        }
        Ok(found)
    }

    /// Why one of these interfaces must stay with the kernel.
    pub fn refusal(&self, names: &[String]) -> Option<String> {
        if !self.is_hosts {
            return None;
        }
        let of = |names_of: &BTreeSet<String>| names.iter().find(|name| names_of.contains(*name)).cloned();
        if let Some(name) = of(&self.ssh) {
            return Some(format!("{name} carries an ssh connection"));
        }
        if let Some(name) = of(&self.default) {
            return Some(format!("{name} has a default route"));
        }
        let is_only = !self.addressed.is_empty() && self.addressed.iter().all(|name| names.contains(name));
        is_only.then(|| "no other interface has an address".to_owned())
    }
}

/// The local addresses of ssh connections: from `SSH_CONNECTION`, which `sudo` and services do not have, and from the kernel's tables.
fn ssh_addresses() -> Result<BTreeSet<IpAddr>, WorkError> {
    let variable = std::env::var("SSH_CONNECTION").ok();
    let words: Vec<&str> = variable.as_deref().map(|words| words.split(' ').collect()).unwrap_or_default();
    let mut found: BTreeSet<IpAddr> = words.get(2).and_then(|word| word.parse().ok()).into_iter().collect();
    let ssh_port = words.get(3).and_then(|word| word.parse().ok());
    let sockets = sockets_of_sshd();
    for name in ["tcp", "tcp6"] {
        let file = format!("/proc/net/{name}");
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            // A kernel without IPv6.
            Err(error) if name == "tcp6" && error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                let message =
                    format!("failed to find the management interfaces of this host: read {file}: {error}");
                return Err(WorkError { kind: FailureKind::Environment, message });
            }
        };
        let is_ssh =
            |port: u16, socket: u64| port == SSH || Some(port) == ssh_port || sockets.contains(&socket);
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

    fn management() -> ManagementInterfaces {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ManagementInterfaces {
            is_hosts: true,
            ssh: set(&["eth0"]),
            default: set(&["eth1"]),
            addressed: set(&["eth0", "eth1", "eth2"]),
        }
    }

    fn refusal(management: &ManagementInterfaces, names: &[&str]) -> Option<String> {
        management.refusal(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn management_interface_is_refused() {
        let management = management();
        assert!(refusal(&management, &["eth0"]).unwrap().contains("ssh connection"));
        assert!(
            refusal(&management, &["enP1s1", "eth0"]).unwrap().contains("eth0 carries"),
            "a function beneath it is the same NIC"
        );
        assert!(refusal(&management, &["eth1"]).unwrap().contains("default route"));
        assert_eq!(refusal(&management, &["eth2"]), None);
        let only = ManagementInterfaces {
            ssh: BTreeSet::new(),
            default: BTreeSet::new(),
            addressed: ["eth2".to_owned()].into(),
            ..management
        };
        assert!(refusal(&only, &["eth2"]).unwrap().contains("no other interface has an address"));
        assert_eq!(refusal(&only, &["eth3"]), None);
        assert_eq!(
            refusal(&ManagementInterfaces { is_hosts: false, ..only }, &["eth2"]),
            None,
            "a namespace is reached from its host"
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn established_connections_are_read_from_proc() {
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
