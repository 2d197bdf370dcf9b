//! The two hosts: network namespaces with one veth between them, addresses, and routes that set the same congestion control for
//! every tool. They are unnamed, so they end with their processes.
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use netduel_sys::ethtool::Ethtool;
use netduel_sys::namespace::{self, Kind};

use crate::outcome::Interface;

/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
/// The client's address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// The interface at both ends.
pub const VETH: &str = "veth0";
/// MTU of the veth, bytes: the Ethernet default.
pub const MTU: u32 = 1500;
/// Congestion control of both routes. The machine's default may pace, or retransmit needlessly on a veth.
pub const CONGESTION: &str = "cubic";
/// The offload whose absence turns one write of many datagrams into as many packets.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// Offloads that are recorded.
const OFFLOADS: [&str; 7] = [
    "tx-checksum-ip-generic",
    "tx-tcp-segmentation",
    UDP_SEGMENTATION,
    "tx-generic-segmentation",
    "rx-gro",
    "rx-udp-gro-forwarding",
    "rx-gro-list",
];

/// The two hosts.
#[derive(Debug)]
pub struct Hosts {
    client: OwnedFd,
    server: OwnedFd,
}

impl Hosts {
    /// Creates the hosts. The calling process must be in a network namespace of its own, which becomes the client's.
    pub fn build() -> Result<Self> {
        let client = own_network()?;
        let server = in_thread(|| {
            namespace::unshare(&[Kind::Net]).context("failed to make the server's network namespace")?;
            own_network()
        })?;
        let hosts = Self { client, server };
        // The two ends get different indices: see netduel-lab, `NewLink::index`.
        let path = format!("/proc/{}/fd/{}", std::process::id(), hosts.server.as_raw_fd());
        let mtu = MTU.to_string();
        ip(&[
            "link", "add", VETH, "index", "10", "mtu", &mtu, "type", "veth", "peer", "name", VETH, "index",
            "11", "mtu", &mtu, "netns", &path,
        ])?;
        for (is_server, address) in [(false, CLIENT), (true, SERVER)] {
            hosts.inside(is_server, || {
                let (own, subnet) = (address.to_string(), format!("{address}/24"));
                ip(&["address", "add", &subnet, "dev", VETH, "noprefixroute"])?;
                ip(&["link", "set", VETH, "up"])?;
                ip(&["link", "set", "lo", "up"])?;
                ip(&["route", "add", "10.78.0.0/24", "dev", VETH, "src", &own, "congctl", CONGESTION])
            })?;
        }
        Ok(hosts)
    }

    /// Runs `work` in a thread inside a host's network namespace.
    pub fn inside<T: Send>(&self, is_server: bool, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let network = if is_server { &self.server } else { &self.client };
        in_thread(|| {
            namespace::enter(Kind::Net, network.as_fd()).context("failed to enter a network namespace")?;
            work()
        })
    }

    /// The current counters of both interfaces.
    pub fn counters(&self) -> Result<Interface> {
        let table = |is_server| {
            self.inside(is_server, || {
                std::fs::read_to_string("/proc/thread-self/net/dev")
                    .context("failed to read the counters of an interface")
            })
        };
        let (client, server) = (counted(&table(false)?)?, counted(&table(true)?)?);
        Ok(Interface {
            packets_out: client.sent.1,
            bytes_out: client.sent.0,
            dropped_out: Some(client.dropped),
            packets_in: server.received.1,
            bytes_in: server.received.0,
        })
    }

    /// Switches segmentation of datagrams by the sender's interface; without it the kernel segments before the interface.
    pub fn set_udp_segmentation(&self, on: bool) -> Result<()> {
        let wanted = [(UDP_SEGMENTATION.to_owned(), on)];
        let states = self.inside(false, || {
            let mut ethtool = Ethtool::open().context("failed to open an ethtool socket")?;
            ethtool
                .request_features(VETH, &wanted)
                .with_context(|| format!("failed to set {UDP_SEGMENTATION} of {VETH}"))?;
            offloads(&mut ethtool)
        })?;
        ensure!(
            states.contains(&(UDP_SEGMENTATION.to_owned(), on)),
            "{VETH} did not set {UDP_SEGMENTATION} {}",
            if on { "on" } else { "off" }
        );
        Ok(())
    }

    /// Undoes what a tool may leave at both interfaces: promiscuous mode, and an XDP program.
    pub fn restore_interfaces(&self) -> Result<()> {
        for is_server in [false, true] {
            self.inside(is_server, || {
                ip(&["link", "set", VETH, "promisc", "off"])?;
                ip(&["link", "set", VETH, "xdp", "off"])
            })?;
        }
        Ok(())
    }

    /// Offloads of the sender's interface.
    pub fn offloads(&self) -> Result<Vec<(String, bool)>> {
        self.inside(false, || offloads(&mut Ethtool::open().context("failed to open an ethtool socket")?))
    }
}

impl Interface {
    /// The difference of two readings.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            packets_out: self.packets_out - before.packets_out,
            bytes_out: self.bytes_out - before.bytes_out,
            dropped_out: self.dropped_out.zip(before.dropped_out).map(|(after, before)| after - before),
            packets_in: self.packets_in - before.packets_in,
            bytes_in: self.bytes_in - before.bytes_in,
        }
    }
}

fn offloads(ethtool: &mut Ethtool) -> Result<Vec<(String, bool)>> {
    let features =
        ethtool.features(VETH).with_context(|| format!("failed to read the offloads of {VETH}"))?;
    let of_interest = features.into_iter().filter(|feature| OFFLOADS.contains(&feature.name.as_str()));
    Ok(of_interest.map(|feature| (feature.name, feature.active)).collect())
}

/// The network namespace of the calling thread.
fn own_network() -> Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net").context("failed to open the network namespace")?.into())
}

/// Runs `work` in a thread of its own, because a network namespace belongs to a thread.
pub fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs ip(8).
fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .context("failed to start `ip` (Debian package iproute2; `cargo xtask setup` installs it)")?;
    if !output.status.success() {
        bail!("`ip {}` failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Bytes and packets.
struct Counted {
    received: (u64, u64),
    sent: (u64, u64),
    /// Packets that were not sent.
    dropped: u64,
}

/// Parses `/proc/net/dev` (proc_pid_net(5)): eight receive counters, then eight transmit counters.
fn counted(table: &str) -> Result<Counted> {
    let line = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(VETH)?.strip_prefix(':'))
        .with_context(|| format!("{VETH} is not in the table of interfaces"))?;
    let numbers: Vec<u64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .context("a counter of an interface is not a number")?;
    ensure!(numbers.len() == 16, "the table of interfaces has {} columns, not 16", numbers.len());
    Ok(Counted { received: (numbers[0], numbers[1]), sent: (numbers[8], numbers[9]), dropped: numbers[11] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_column_and_name() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes    packets\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                     veth0: 100 2 0 0 0 0 0 0 300 4 0 5 0 0 0 0\n";
        let counted = counted(table).unwrap();
        assert_eq!((counted.received, counted.sent, counted.dropped), ((100, 2), (300, 4), 5));
        assert!(super::counted("veth01: 1\n").is_err());
        assert!(super::counted("veth0: 1 2\n").is_err());
    }
}
