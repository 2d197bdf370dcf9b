//! What is killed: plans in a lab, and on hosts in named network namespaces whose settings the plan changes. The state of these hosts.
use std::fmt::{self, Write as _};
use std::path::Path;

use anyhow::Result;

use crate::stage::must;

/// Hosts outside of a lab, with one veth between them.
const HOSTS: [&str; 2] = ["kill-a", "kill-b"];
/// The interface of each.
const INTERFACE: &str = "v";
/// Trials of every plan: blocks times arms.
pub const TRIALS: u64 = 8;

/// A kind of plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    /// Guests of a lab and two of its paths; one arm changes a sysctl in both guests.
    Lab,
    /// Named network namespaces, and an arm with treatments of the kinds MTU, offload, sysctl and command (a token bucket).
    Namespaces,
    /// As above, with AF_XDP at both ends.
    Xdp,
}

/// All kinds.
pub const SCENES: [Scene; 3] = [Scene::Lab, Scene::Namespaces, Scene::Xdp];

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lab => "lab",
            Self::Namespaces => "namespaces",
            Self::Xdp => "xdp",
        })
    }
}

/// Makes the hosts.
pub fn build() -> Result<()> {
    for host in HOSTS {
        must("ip", &["netns", "add", host])?;
    }
    let queues = ["numrxqueues", "2", "numtxqueues", "2"];
    let ends = [
        &["link", "add", INTERFACE, "netns", HOSTS[0], "index", "10"][..],
        &queues,
        &["type", "veth", "peer"],
    ];
    let peer = [&["name", INTERFACE, "netns", HOSTS[1], "index", "11"][..], &queues];
    must("ip", &[ends.concat(), peer.concat()].concat())?;
    for (host, address) in HOSTS.into_iter().zip(["10.79.0.1/24", "10.79.0.2/24"]) {
        must("ip", &["-n", host, "address", "add", address, "dev", INTERFACE])?;
        must("ip", &["-n", host, "link", "set", INTERFACE, "up"])?;
        must("ip", &["-n", host, "link", "set", "lo", "up"])?;
    }
    Ok(())
}

/// Everything outside of processes that a run may change or leave: settings of the hosts (links with their MTU and XDP programs, queueing
/// disciplines, offloads, sysctls, firewall), names of namespaces, links here, sockets of labs and journals of guards.
pub fn state() -> Result<String> {
    let host = "ip -d link show; tc qdisc show; ethtool -k v; sysctl -a --pattern '^net\\.(ipv4|ipv6)\\.' 2>/dev/null; ip route show";
    let mut text = String::new();
    for name in HOSTS {
        text += "host ";
        text += name;
        text.push('\n');
        text += &must("ip", &["netns", "exec", name, "sh", "-c", host])?;
    }
    text += "outside\n";
    text += &must(
        "sh",
        &[
            "-c",
            "ip netns list | sort; ip -o link show; tc qdisc show; grep netduel- /proc/net/unix; ls /run/netduel 2>/dev/null | grep undo-; true",
        ],
    )?;
    Ok(text)
}

/// Lines of one state that the other lacks, for a message.
pub fn difference(before: &str, after: &str) -> String {
    let mut text = String::new();
    for (sign, lines, other) in [("-", before, after), ("+", after, before)] {
        let other: Vec<&str> = other.lines().collect();
        for line in lines.lines().filter(|line| !other.contains(line)) {
            let _ = writeln!(text, "  {sign} {line}");
        }
    }
    text
}

impl Scene {
    /// Writes the plan into a folder.
    pub fn write(self, folder: &Path, seed: u64) -> Result<std::path::PathBuf> {
        let path = folder.join("plan.toml");
        std::fs::write(&path, self.plan(seed))?;
        Ok(path)
    }

    fn plan(self, seed: u64) -> String {
        let hosts = match self {
            Self::Lab => {
                "[lab]\nrules = 10\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n".to_owned()
            }
            Self::Namespaces | Self::Xdp => {
                let host = |name: &str, namespace: &str, address: &str| {
                    format!(
                        "[hosts.{name}]\nlaunch = \"netns\"\nnetns = \"{namespace}\"\naddresses = [\"{address}\"]\n"
                    )
                };
                host("a", HOSTS[0], "10.79.0.1") + &host("b", HOSTS[1], "10.79.0.2")
            }
        };
        let sysctl = "{ sysctl = \"net.ipv4.tcp_slow_start_after_idle\", value = \"0\" }";
        let (plain, treated) = match self {
            Self::Lab => {
                ("{ path = \"synthetic\" }".to_owned(), format!("{{ path = \"accelerated\" }}, {sysctl}"))
            }
            Self::Xdp => (String::new(), sysctl.to_owned()),
            Self::Namespaces => {
                // An agent and its guard can be killed together just before the command runs, or just after it was undone: only an
                // undo that succeeds without the change can then be repeated.
                let bucket = r#"{ on = "client", command = ["tc", "qdisc", "add", "dev", "v", "root", "tbf", "rate", "200mbit", "burst", "32kb", "limit", "64000"], undo = ["sh", "-c", "tc qdisc show dev v | grep -q tbf || exit 0; exec tc qdisc del dev v root"] }"#;
                let mtu = format!("{{ mtu = 1400, interface = \"{INTERFACE}\" }}");
                let offload = format!(
                    "{{ offload = \"tx-tcp-segmentation\", interface = \"{INTERFACE}\", value = \"off\" }}"
                );
                (String::new(), [mtu.as_str(), &offload, sysctl, bucket].join(", "))
            }
        };
        let arm = |name: &str, treatments: &str| {
            format!(
                "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{treatments}]\n"
            )
        };
        let kind = match self {
            Self::Lab | Self::Namespaces => "type = \"tcp-stream\"",
            Self::Xdp => "type = \"pps\"\ngenerator = \"xdp\"\nreceiver = \"xdp\"\npacket_rate = \"5000 /s\"",
        };
        format!(
            "name = \"kill\"\nquestion = \"Is everything restored?\"\n{hosts}{}{}[[workloads]]\nname = \"w\"\n{kind}\n\
             duration = \"200 ms\"\nwarmup = \"0 s\"\ncooldown = \"0 s\"\n[design]\nseed = {seed}\nblocks_min = {blocks}\nblocks_max = {blocks}\n",
            arm("plain", &plain),
            arm("treated", &treated),
            blocks = TRIALS / 2,
        )
    }
}
