//! The management interfaces of this host: those of ssh connections and default routes. They are never given to another program. What
//! cannot be read is a refusal.
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

use netduel_control::agent::{FailureKind, WorkError};
use netduel_host::LinkState;
use netduel_model::snapshot::LOOPBACK;
use netduel_sys::tcp_table::{self, State};

use crate::failure::environment;

/// The port of ssh.
const SSH: u16 = 22;

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
    let entries = tcp_table::read().map_err(|error| {
        let message = format!("failed to find the management interfaces of this host: {error}");
        WorkError { kind: FailureKind::Environment, message }
    })?;
    let is_ssh = |port: u16, socket: u64| port == SSH || Some(port) == ssh_port || sockets.contains(&socket);
    let connections = entries.iter().filter(|entry| entry.state == State::Established);
    let of_ssh = connections.filter(|entry| is_ssh(entry.local.port(), entry.inode));
    found.extend(of_ssh.map(|entry| entry.local.ip()));
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
}
