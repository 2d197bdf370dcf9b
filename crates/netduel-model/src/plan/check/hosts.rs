//! Hosts: how their agents are started and under which addresses they are reached.
use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::bed::money::Money;
use crate::data_ports::DataPorts;
use crate::ids::HostName;
use crate::lab;
use crate::nearest::nearest;
use crate::plan::problem::{Problems, element_path, key_path, one_of};
use crate::plan::resolved::{Host, Launch, SshHost};
use crate::plan::spec::{HostSpec, LaunchKind, PlanSpec};
use crate::plan::value::name_rule;
use crate::resource_name::is_name;
use crate::size;
use crate::socket_name::SocketName;
use crate::word::word;
use crate::workload::{DATA_PORT, SSH};

use super::values::{check_bandwidth_limit, check_command, check_table};

/// The hosts that could be resolved. A host with a problem is left out unless the problem is only one of its addresses.
pub(super) fn resolve(spec: &PlanSpec, problems: &mut Problems<'_>) -> BTreeMap<HostName, Host> {
    let mut hosts = BTreeMap::new();
    let Some(specs) = &spec.hosts else { return hosts };
    if specs.is_empty() {
        problems.add("hosts", "has no host", "write a table for each, for example [hosts.client]");
    }
    for (name, host) in specs {
        let path = key_path("hosts", name);
        let name = match HostName::new(name.as_str()) {
            Ok(name) => name,
            Err(error) => {
                problems.add(&path, "is not the name of a host", name_rule(&error));
                continue;
            }
        };
        let written = host.addresses.as_deref().unwrap_or_default();
        let addresses = check_addresses(written, &key_path(&path, "addresses"), problems);
        check_foreign_keys(host, &path, problems);
        if let Some(launch) = resolve_launch(spec, &name, host, &path, problems) {
            let addresses = match &launch {
                Launch::Lab { guest } => lab::addresses(guest),
                _ => addresses,
            };
            let expect_mbps = check_bandwidth_limit(host.expect_mbps, &path, problems);
            let size = check_size(host, &path, problems);
            let data_ports = host.data_ports;
            for port in data_ports.into_iter().flat_map(DataPorts::ends) {
                check_table(problems, &path, &[DATA_PORT], |_| Some(port.into()));
            }
            let price_per_hour = check_price(host, &path, problems);
            let host = Host { launch, addresses, data_ports, size, expect_mbps, vm: None, price_per_hour };
            hosts.insert(name, host);
        }
    }
    check_currencies(&hosts, problems);
    hosts
}

/// Notes a price that is no amount of money.
fn check_price(host: &HostSpec, path: &str, problems: &mut Problems<'_>) -> Option<Money> {
    let text = host.price_per_hour.as_deref()?;
    let price = text.parse::<Money>().ok();
    if price.is_none() {
        let wrong = format!("{text:?} is no amount of money");
        problems.add(&key_path(path, "price_per_hour"), wrong, Money::allowed());
    }
    price
}

/// Notes prices in another currency than that of the first host: the hosts of an arm have one price together.
fn check_currencies(hosts: &BTreeMap<HostName, Host>, problems: &mut Problems<'_>) {
    let mut prices = hosts.iter().filter_map(|(name, host)| Some((name, host.price_per_hour.as_ref()?)));
    let Some((first, price)) = prices.next() else { return };
    for (name, other) in prices.filter(|(_, other)| other.currency != price.currency) {
        let path = key_path(&key_path("hosts", name.as_str()), "price_per_hour");
        let wrong = format!("is in {}, and that of \"{first}\" in {}", other.currency, price.currency);
        problems.add(&path, wrong, "write all prices in one currency");
    }
}

/// Notes a type of bed in a plan without VMs of a bed: the key would have no effect.
pub(super) fn check_bed_type(spec: &PlanSpec, problems: &mut Problems<'_>) {
    let (Some(kind), Some(hosts)) = (spec.bed_type, &spec.hosts) else { return };
    let is_of_bed = |(name, host): (&String, &HostSpec)| {
        host.bed.is_some() || problems.is_written(&key_path(&key_path("hosts", name), "bed"))
    };
    if !hosts.iter().any(is_of_bed) {
        let wrong = format!("is \"{kind}\", and no host is a VM of a bed");
        problems.add("bed_type", wrong, "write `bed` for the hosts, for example bed = \"vm1\", or remove it");
    }
}

/// The keys of this way of starting an agent only.
fn keys_of(launch: LaunchKind) -> &'static [&'static str] {
    match launch {
        LaunchKind::Local => &[],
        LaunchKind::Lab => &["guest"],
        LaunchKind::Netns => &["netns"],
        LaunchKind::Command => &["command"],
        LaunchKind::Ssh => &["host", "user", "port", "sudo", "folder"],
        LaunchKind::Paired => &["serve"],
    }
}

/// The keys that a VM of a bed does not have, because its bed has the answer.
const KEYS_OF_BED: [&str; 11] = [
    "launch",
    "guest",
    "netns",
    "command",
    "host",
    "user",
    "port",
    "serve",
    "addresses",
    "size",
    "price_per_hour",
];

/// Notes keys of a VM of a bed that the bed answers.
fn check_keys_of_bed(host: &HostSpec, path: &str, problems: &mut Problems<'_>) {
    for key in KEYS_OF_BED.into_iter().filter(|key| host.given().contains(key)) {
        let wrong = "is written for a VM of a bed, and the bed knows it";
        problems.add(&key_path(path, key), wrong, "remove it, or remove `bed`");
    }
}

/// Notes keys that belong to another way of starting the agent.
fn check_foreign_keys(host: &HostSpec, path: &str, problems: &mut Problems<'_>) {
    if host.bed.is_some() {
        return check_keys_of_bed(host, path, problems);
    }
    let Some(launch) = host.launch else { return };
    let others =
        [LaunchKind::Lab, LaunchKind::Netns, LaunchKind::Command, LaunchKind::Ssh, LaunchKind::Paired];
    for other in others.into_iter().filter(|other| *other != launch) {
        for key in keys_of(other).iter().filter(|key| host.given().contains(key)) {
            let wrong =
                format!("is for `launch = \"{}\"`, but this host has \"{}\"", word(&other), word(&launch));
            let allowed = format!("remove it, or set launch = \"{}\"", word(&other));
            problems.add(&key_path(path, key), wrong, allowed);
        }
    }
    if launch == LaunchKind::Paired && host.data_ports.is_some() {
        let wrong = "is written for a paired server, whose data uses the port of `serve`";
        problems.add(&key_path(path, "data_ports"), wrong, "remove it");
    }
    if launch == LaunchKind::Lab && host.addresses.is_some() {
        let wrong = "is written for a host of the lab, which has the lab's own addresses";
        problems.add(&key_path(path, "addresses"), wrong, "remove it");
    }
}

fn resolve_launch(
    spec: &PlanSpec,
    name: &HostName,
    host: &HostSpec,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<Launch> {
    if let Some(vm) = &host.bed {
        return resolve_bed(vm, host, path, problems);
    }
    let Some(launch) = host.launch else {
        if !problems.is_written(&key_path(path, "launch")) && !problems.is_written(&key_path(path, "bed")) {
            let allowed = "write how its agent is started, for example launch = \"ssh\", or the VM of a bed, for example bed = \"vm1\"";
            problems.add(&key_path(path, "launch"), "is missing, and so is `bed`", allowed);
        }
        return None;
    };
    match launch {
        LaunchKind::Local => Some(Launch::Local),
        LaunchKind::Lab => {
            if spec.lab.is_none() && !problems.is_written("lab") {
                let wrong = "is \"lab\", but the plan has no lab";
                problems.add(&key_path(path, "launch"), wrong, "add a table [lab]; it may be empty");
            }
            resolve_guest(name, host, path, problems)
        }
        LaunchKind::Netns => {
            let key = key_path(path, "netns");
            let Some(netns) = &host.netns else {
                if !problems.is_written(&key) {
                    let allowed = "name the network namespace as `ip netns list` shows it";
                    problems.add(&key, "is missing, but `launch = \"netns\"` needs it", allowed);
                }
                return None;
            };
            if !Launch::is_namespace(netns) {
                let allowed = "a file name is allowed, as `ip netns list` shows it";
                problems.add(&key, format!("{netns:?} is not the name of a network namespace"), allowed);
            }
            Some(Launch::Netns { name: netns.clone() })
        }
        LaunchKind::Command => {
            let key = key_path(path, "command");
            let Some(prefix) = &host.command else {
                if !problems.is_written(&key) {
                    let allowed = "write the words to be put before `netduel agent`, for example [\"kubectl\", \"exec\", \"-i\", \"pod-1\", \"--\"]";
                    problems.add(&key, "is missing, but `launch = \"command\"` needs it", allowed);
                }
                return None;
            };
            check_command(problems, &key, prefix);
            Some(Launch::Command { prefix: prefix.clone() })
        }
        LaunchKind::Ssh => resolve_ssh(host, path, problems),
        LaunchKind::Paired => resolve_paired(host, path, problems),
    }
}

fn resolve_bed(vm: &str, host: &HostSpec, path: &str, problems: &mut Problems<'_>) -> Option<Launch> {
    if !is_name(vm) {
        let allowed = "the name of a VM as `netduel azure check` shows it, for example \"vm1\"";
        problems.add(&key_path(path, "bed"), format!("{vm:?} is not the name of a VM"), allowed);
        return None;
    }
    check_folder(host, path, problems);
    Some(Launch::Bed { vm: vm.to_owned(), sudo: host.sudo.unwrap_or(true), folder: host.folder.clone() })
}

fn check_folder(host: &HostSpec, path: &str, problems: &mut Problems<'_>) {
    let Some(folder) = &host.folder else { return };
    if !SshHost::is_folder(folder) {
        let wrong = format!("{folder:?} is no folder of the host");
        problems.add(&key_path(path, "folder"), wrong, SshHost::FOLDERS_ALLOWED);
    }
}

fn resolve_ssh(host: &HostSpec, path: &str, problems: &mut Problems<'_>) -> Option<Launch> {
    let key = key_path(path, "host");
    let allowed = "write it as `ssh` takes it, for example \"user@vm1\"";
    let Some(destination) = &host.host else {
        if !problems.is_written(&key) {
            problems.add(&key, "is missing, but `launch = \"ssh\"` needs it", allowed);
        }
        return None;
    };
    let words = [("host", Some(destination)), ("user", host.user.as_ref())];
    for (name, word) in words.into_iter().filter_map(|(name, word)| Some((name, word?))) {
        if !SshHost::is_plain_word(word) {
            let wrong = format!("{word:?} is an option, or has a character that ssh or a shell interprets");
            problems.add(&key_path(path, name), wrong, allowed);
        }
    }
    check_table(problems, path, SSH, |_| host.port.map(u64::from));
    check_folder(host, path, problems);
    Some(Launch::Ssh(SshHost {
        host: destination.clone(),
        user: host.user.clone(),
        port: host.port,
        sudo: host.sudo.unwrap_or(false),
        folder: host.folder.clone(),
        bed: None,
    }))
}

fn resolve_paired(host: &HostSpec, path: &str, problems: &mut Problems<'_>) -> Option<Launch> {
    let key = key_path(path, "serve");
    let allowed = "name the host and port of the pairing, for example \"10.0.0.5:5210\"";
    let Some(serve) = &host.serve else {
        if !problems.is_written(&key) {
            problems.add(&key, "is missing, but `launch = \"paired\"` needs it", allowed);
        }
        return None;
    };
    let Some(at) = SocketName::parse(serve) else {
        let remedy = SocketName::remedy_for(serve).unwrap_or(allowed);
        problems.add(&key, format!("{serve:?} is not HOST or HOST:PORT"), remedy);
        return None;
    };
    Some(Launch::Paired { address: at.to_string() })
}

fn resolve_guest(
    name: &HostName,
    host: &HostSpec,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<Launch> {
    let guest = host.guest.as_deref().unwrap_or(name.as_str());
    if !lab::GUESTS.contains(&guest) {
        let guests = one_of(lab::GUESTS);
        problems.add(
            &key_path(path, "guest"),
            format!("{guest:?} is not a guest of the lab"),
            format!("set guest to {guests}, or name the host so"),
        );
        return None;
    }
    Some(Launch::Lab { guest: guest.to_owned() })
}

/// Notes a size that the table does not have: nothing could be looked up.
fn check_size(host: &HostSpec, path: &str, problems: &mut Problems<'_>) -> Option<String> {
    let name = host.size.as_deref()?;
    if size::named(name).is_none() {
        let meant = nearest(name, size::table().iter().map(|size| size.name.as_str()));
        let meant = meant.map(|name| format!("did you mean \"{name}\"? ")).unwrap_or_default();
        let wrong = format!("is {name:?}, which is not in the table of sizes");
        problems.add(
            &key_path(path, "size"),
            wrong,
            format!("{meant}write `expect_mbps` with what its provider states"),
        );
    }
    Some(name.to_owned())
}

/// Notes addresses that no traffic may or can be sent to.
pub(super) fn check_addresses(addresses: &[IpAddr], path: &str, problems: &mut Problems<'_>) -> Vec<IpAddr> {
    for (index, address) in addresses.iter().enumerate() {
        let at = element_path(path, index);
        if let IpAddr::V6(v6) = address
            && let Some(v4) = v6.to_ipv4_mapped()
        {
            // A workload over IPv6 would use it.
            let wrong = format!("{address} is an IPv4-mapped IPv6 address, whose traffic is IPv4");
            problems.add(&at, wrong, format!("write \"{v4}\""));
            continue;
        }
        let kind = match address {
            _ if address.is_unspecified() => "is no address of a host",
            _ if address.is_multicast() => "is a multicast address",
            IpAddr::V4(v4) if v4.is_broadcast() => "is the broadcast address",
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                "is link-local, which means nothing without an interface"
            }
            _ if addresses[..index].contains(address) => "is listed twice",
            _ => continue,
        };
        let allowed = "a different unicast address of the host for each entry";
        problems.add(&at, format!("{address} {kind}"), allowed);
    }
    addresses.to_vec()
}
