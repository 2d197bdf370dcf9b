//! Arms: who talks to whom, what is changed for it, and what it is compared with.
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::bed::network::BedNetwork;
use crate::ids::{ArmName, HostName, NAME_LEN_MAX};
use crate::lab;
use crate::nearest::nearest;
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::resolved::{Arm, COPY_SUFFIX, Host, Lab, Launch, Pair, Treatment};
use crate::plan::spec::{ArmSpec, PlanSpec, Side, WorkloadType};
use crate::workload::{Family, Role, Workload};

use super::values::{check_bandwidth_limit, check_interface};
use super::{events, guests, hosts, provider, settings, treatments, workloads};

/// The arms, baseline first. `None` when one of them lacks what it cannot be run without.
pub(super) fn resolve(
    spec: &PlanSpec,
    lab: Option<&Lab>,
    hosts: &BTreeMap<HostName, Host>,
    problems: &mut Problems<'_>,
) -> Option<Vec<Arm>> {
    let specs = spec.arms.as_ref()?;
    let is_aa = spec.design.as_ref().and_then(|design| design.aa).unwrap_or(false);
    check_number(specs, is_aa, problems);
    check_names(specs, problems);
    let baseline = check_baseline(specs, problems);
    let arms: Vec<Option<Arm>> = specs
        .iter()
        .enumerate()
        .map(|(index, arm)| resolve_arm(spec, arm, &element_path("arms", index), hosts, problems))
        .collect();
    let mut arms: Vec<Arm> = arms.into_iter().collect::<Option<_>>()?;
    if arms.is_empty() {
        return None;
    }
    // What the lab has is compared with a plan that means what it says.
    if let Some(lab) = lab.filter(|_| problems.len() == 0) {
        guests::check(spec, (lab, hosts), &arms, problems);
    }
    arms[..=baseline].rotate_right(1);
    if is_aa {
        arms.truncate(1);
        let copy = copied(&arms[0], &element_path("arms", baseline), problems)?;
        arms.push(copy);
    }
    Some(arms)
}

/// The same arm under another name.
fn copied(arm: &Arm, path: &str, problems: &mut Problems<'_>) -> Option<Arm> {
    let Ok(name) = ArmName::new(format!("{}{COPY_SUFFIX}", arm.name)) else {
        let wrong = format!("is too long for an A/A run, which names its copy \"{}{COPY_SUFFIX}\"", arm.name);
        let allowed = format!("{} letters at most", NAME_LEN_MAX - COPY_SUFFIX.len());
        problems.add(&key_path(path, "name"), wrong, allowed);
        return None;
    };
    Some(Arm { name, ..arm.clone() })
}

fn check_number(specs: &[ArmSpec], is_aa: bool, problems: &mut Problems<'_>) {
    let least = if is_aa { 1 } else { 2 };
    if specs.len() < least {
        let wrong = match specs.len() {
            0 => "has no arm",
            _ => "has one arm, and nothing to compare it with",
        };
        let allowed = if is_aa {
            "an A/A run needs one table [[arms]]"
        } else {
            "write at least two tables [[arms]], or set aa = true in [design] to run one against itself"
        };
        problems.add("arms", wrong, allowed);
    }
}

fn check_names(specs: &[ArmSpec], problems: &mut Problems<'_>) {
    let mut names = BTreeSet::new();
    for (index, arm) in specs.iter().enumerate() {
        let Some(name) = &arm.name else { continue };
        if !names.insert(name) {
            let path = key_path(&element_path("arms", index), "name");
            let wrong = format!("is \"{name}\", which another arm is named already");
            problems.add(&path, wrong, "give each arm a name of its own");
        }
    }
}

/// The index of the baseline; notes every one after the first.
fn check_baseline(specs: &[ArmSpec], problems: &mut Problems<'_>) -> usize {
    let mut marked =
        specs.iter().enumerate().filter(|(_, arm)| arm.baseline == Some(true)).map(|(index, _)| index);
    let baseline = marked.next();
    for another in marked {
        let path = key_path(&element_path("arms", another), "baseline");
        let first = baseline.and_then(|index| specs.get(index)?.name.as_ref());
        let wrong = first.map_or_else(
            || "is true, and so is that of an arm before it".to_owned(),
            |first| format!("is true, and so is that of the arm \"{first}\""),
        );
        problems.add(&path, wrong, "one arm is the baseline");
    }
    baseline.unwrap_or_default()
}

fn resolve_arm(
    spec: &PlanSpec,
    arm: &ArmSpec,
    path: &str,
    hosts: &BTreeMap<HostName, Host>,
    problems: &mut Problems<'_>,
) -> Option<Arm> {
    let [client_name, server_name] = [arm.client.as_ref(), arm.server.as_ref()];
    let client = find_host(spec, (client_name, server_name), hosts, &key_path(path, "client"), problems);
    let server = find_host(spec, (server_name, client_name), hosts, &key_path(path, "server"), problems);
    check_pair(arm, client, server, path, problems);
    let of_arm = treatments::HostsOfArm {
        in_lab: client.zip(server).map(|(client, server)| is_guest(client) && is_guest(server)),
        on_bed: [client, server].into_iter().flatten().any(|host| host.launch.is_of_bed()),
    };
    let specs = arm.treatments.as_deref().unwrap_or_default();
    let treatments = treatments::resolve(specs, &key_path(path, "treatments"), of_arm, problems);
    check_resource_groups(&treatments, [(Role::Client, client), (Role::Server, server)], path, problems);
    check_changeable(&treatments, [(Side::Client, client), (Side::Server, server)], path, problems);
    let (expect_client, expect_server) = resolve_expectation(arm, &treatments, path, problems);
    let server_addresses = server_addresses(arm, server, path, problems);
    let specs = workloads::written(spec);
    if let Some(set) = &arm.set {
        let path = key_path(path, "set");
        let kinds: Vec<WorkloadType> = specs.iter().filter_map(|(_, workload)| workload.kind).collect();
        settings::check_override(set, &kinds, &path, problems);
        for kind in kinds {
            settings::check_ranges(set, kind, &path, problems);
        }
    }
    let resolved: Vec<Option<Workload>> = specs
        .iter()
        .map(|(index, workload)| {
            let written_path = element_path("workloads", *index);
            let mut resolved = workloads::resolve((workload, &written_path), (arm, path), problems)?;
            resolved.traffic.set_interfaces(expect_client.as_ref(), expect_server.as_ref());
            Some(resolved)
        })
        .collect();
    let ends = events::Ends { client, server, treatments: &treatments };
    for ((index, written), workload) in specs.iter().zip(&resolved) {
        let Some(workload) = workload else { continue };
        check_family(arm, path, [client, server], workload, problems);
        check_data_ports(arm, server, workload, problems);
        let written_path = element_path("workloads", *index);
        let events_path = workloads::place_of("events", (written, &written_path), (arm, path));
        events::check(workload.traffic.facts().events, ends, &events_path, problems);
    }
    Some(Arm {
        name: arm.name.clone()?,
        pair: Pair { client: arm.client.clone()?, server: arm.server.clone()? },
        expect_path: arm.expect_path.or_else(|| provider::path(&treatments)),
        treatments,
        expect_client,
        expect_server,
        network: network(arm, client, server, path, problems),
        server_addresses,
        expect_mbps: check_bandwidth_limit(arm.expect_mbps, path, problems),
        // A plan with problems is not run: what is kept of it need not grow with the number of its trials.
        workloads: resolved.into_iter().filter(|_| problems.len() == 0).collect::<Option<_>>()?,
    })
}

/// Notes treatments of the provider without a resource group at hosts that are no VMs of a bed, which would have one.
fn check_resource_groups(
    treatments: &[Treatment],
    ends: [(Role, Option<&Host>); 2],
    path: &str,
    problems: &mut Problems<'_>,
) {
    for (index, treatment) in treatments.iter().enumerate() {
        if !treatment.action.is_of_provider() || treatment.action.resource_group().is_some() {
            continue;
        }
        let is_elsewhere = |(role, host): &(Role, Option<&Host>)| {
            treatment.on.includes(*role)
                && host.is_some_and(|host| !host.launch.is_of_bed() && host.vm.is_none())
        };
        if ends.iter().any(is_elsewhere) {
            let path = element_path(&key_path(path, "treatments"), index);
            let allowed =
                "name the resource group of the NIC or VM; only hosts with `bed` have one by themselves";
            problems.add(&key_path(&path, "resource-group"), "is missing", allowed);
        }
    }
}

/// Notes changes to a host that makes none: a standing server is not this user's to change.
fn check_changeable(
    treatments: &[Treatment],
    ends: [(Side, Option<&Host>); 2],
    path: &str,
    problems: &mut Problems<'_>,
) {
    for (index, treatment) in treatments.iter().enumerate() {
        for (side, host) in ends {
            if let Some(Host { launch: Launch::Paired { address }, .. }) = host
                && (treatment.on == side || treatment.on == Side::Both)
            {
                let (here, other) =
                    if side == Side::Client { ("client", "server") } else { ("server", "client") };
                problems.add(
                    &element_path(&key_path(path, "treatments"), index),
                    format!("changes the {here}, the `netduel serve` at {address}, which makes no changes"),
                    format!("set on = \"{other}\", or start an agent there with launch = \"command\""),
                );
            }
        }
    }
}

fn is_guest(host: &Host) -> bool {
    matches!(host.launch, Launch::Lab { .. })
}

/// The host of that name; notes one that the plan does not have. A host that has a problem of its own is not unknown. `other`: the host at
/// the other end, which is not meant.
fn find_host<'h>(
    spec: &PlanSpec,
    (name, other): (Option<&HostName>, Option<&HostName>),
    hosts: &'h BTreeMap<HostName, Host>,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<&'h Host> {
    let name = name?;
    let written = spec.hosts.as_ref()?;
    if !written.contains_key(name.as_str()) {
        let names = written.keys().map(String::as_str);
        let is_possible = |known: &&str| other.is_none_or(|other| other.as_str() != *known);
        let meant = nearest(name.as_str(), names.clone().filter(is_possible));
        let meant = meant.map(|host| format!("did you mean \"{host}\"? "));
        let known = names.collect::<Vec<_>>().join(", ");
        let allowed = format!("{}hosts of this plan: {known}", meant.unwrap_or_default());
        problems.add(path, format!("\"{name}\" is not a host of this plan"), allowed);
    }
    hosts.get(name)
}

/// Notes a pair whose ends are one and the same.
fn check_pair(
    arm: &ArmSpec,
    client: Option<&Host>,
    server: Option<&Host>,
    path: &str,
    problems: &mut Problems<'_>,
) {
    let (Some(client_name), Some(server_name)) = (&arm.client, &arm.server) else { return };
    let allowed = "traffic between a host and itself never leaves it: name two hosts";
    let path = key_path(path, "server");
    if client_name == server_name {
        problems.add(&path, format!("is \"{server_name}\", which is the client too"), allowed);
        return;
    }
    let (Some(client), Some(server)) = (client, server) else { return };
    let shared = match (&client.launch, &server.launch) {
        (Launch::Lab { guest }, Launch::Lab { guest: other }) if guest == other => {
            format!("guest {guest} of the lab")
        }
        (Launch::Netns { name }, Launch::Netns { name: other }) if name == other => {
            format!("network namespace {name}")
        }
        (Launch::Ssh(ssh), Launch::Ssh(other)) if ssh == other => format!("{} by ssh", ssh.host),
        (Launch::Bed { vm, .. }, Launch::Bed { vm: other, .. }) if vm == other => format!("{vm} of the bed"),
        _ => return,
    };
    problems.add(
        &path,
        format!("is \"{server_name}\", which like client \"{client_name}\" is {shared}"),
        allowed,
    );
}

/// The network of the bed that an arm uses; `None` without a bed. Notes one of an arm whose hosts are not both of a bed.
fn network(
    arm: &ArmSpec,
    client: Option<&Host>,
    server: Option<&Host>,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<BedNetwork> {
    let is_of_bed = |host: &Host| host.launch.is_of_bed();
    let (client, server) = (client?, server?);
    if is_of_bed(client) && is_of_bed(server) {
        return Some(arm.network.unwrap_or(BedNetwork::Test));
    }
    if let Some(network) = arm.network {
        let wrong = format!("is \"{network}\", a network of a bed, but a host of this arm has no `bed`");
        problems.add(&key_path(path, "network"), wrong, "remove it, or give both hosts `bed`");
    } else if is_of_bed(client) || is_of_bed(server) {
        let wrong = "is a VM of a bed, and the other host is not: no network of the bed has both";
        let key = if is_of_bed(server) { "server" } else { "client" };
        problems.add(&key_path(path, key), wrong, "give both hosts `bed`");
    }
    None
}

/// The addresses of the server that only this arm uses. Notes those of a server whose addresses are not the plan's to choose.
fn server_addresses(
    arm: &ArmSpec,
    server: Option<&Host>,
    path: &str,
    problems: &mut Problems<'_>,
) -> Vec<IpAddr> {
    let Some(written) = &arm.server_addresses else { return Vec::new() };
    let path = key_path(path, "server_addresses");
    match server.map(|host| &host.launch) {
        Some(Launch::Lab { .. }) => {
            problems.add(
                &path,
                "is written for a guest of the lab, which has the lab's own addresses",
                "remove it",
            );
        }
        Some(Launch::Bed { .. }) => problems.add(
            &path,
            "is written for a VM of a bed, whose network has the addresses",
            "remove it, and name the network of the arm with `network`",
        ),
        _ => {}
    }
    hosts::check_addresses(written, &path, problems)
}

/// The interfaces that must carry the bytes: those of the path, or those that the plan names. Where a treatment takes the
/// virtual function away, only the plan's author knows what carries them then.
fn resolve_expectation(
    arm: &ArmSpec,
    treatments: &[Treatment],
    path: &str,
    problems: &mut Problems<'_>,
) -> (Option<String>, Option<String>) {
    let carried =
        treatments::lab_path(treatments).map(lab::interface).filter(|_| !treatments::moves(treatments));
    let expected = arm.expect_interface.clone().unwrap_or_default();
    let path = key_path(path, "expect_interface");
    let mut resolve = |key: &str, named: Option<String>| {
        let Some(name) = named else { return carried.map(str::to_owned) };
        let path = key_path(&path, key);
        check_interface(problems, &path, &name);
        if let Some(carried) = carried.filter(|carried| *carried != name) {
            let wrong = format!("is \"{name}\", but the path of this arm runs over \"{carried}\"");
            problems.add(&path, wrong, "leave it out: a `path` treatment sets it");
        }
        Some(name)
    };
    (resolve("client", expected.client), resolve("server", expected.server))
}

/// Notes a range of ports that is smaller than a trial needs.
fn check_data_ports(arm: &ArmSpec, server: Option<&Host>, workload: &Workload, problems: &mut Problems<'_>) {
    let (Some(name), Some(ports)) = (&arm.server, server.and_then(|host| host.data_ports)) else { return };
    let needed = workload.traffic.facts().sockets.port_needs().count();
    if needed > ports.count() {
        let path = key_path(&key_path("hosts", name.as_str()), "data_ports");
        let wrong = format!(
            "is \"{ports}\", but the workload \"{}\" needs {needed} ports: one for each UDP flow",
            workload.name
        );
        problems.add(&path, wrong, format!("write a range of at least {needed} ports, or use fewer flows"));
    }
}

/// Notes hosts that cannot take part for want of an address. A client needs none, but when it names addresses and none is
/// of the right version, one of the two is a mistake.
fn check_family(
    arm: &ArmSpec,
    path: &str,
    [client, server]: [Option<&Host>; 2],
    workload: &Workload,
    problems: &mut Problems<'_>,
) {
    let ends = [(Role::Client, arm.client.as_ref(), client), (Role::Server, arm.server.as_ref(), server)];
    for (role, name, host) in ends {
        let (Some(name), Some(host)) = (name, host) else { continue };
        if host.launch.is_of_bed() {
            // The bed has the addresses; they are judged when it is known.
            continue;
        }
        let of_arm = arm.server_addresses.as_ref().filter(|own| role == Role::Server && !own.is_empty());
        let has = of_arm.unwrap_or(&host.addresses).iter().any(|address| match workload.family {
            Family::Ipv4 => address.is_ipv4(),
            Family::Ipv6 => address.is_ipv6(),
        });
        if has || (role == Role::Client && host.addresses.is_empty()) {
            continue;
        }
        let path = if of_arm.is_some() {
            key_path(path, "server_addresses")
        } else {
            key_path(&key_path("hosts", name.as_str()), "addresses")
        };
        // The arm is not named: a host that ten arms use is reported once.
        if of_arm.is_none() && !problems.is_written(&path) {
            let family = workload.family;
            let wrong = format!("is missing, but the host is the {role} of a workload over {family}");
            let example = match family {
                Family::Ipv4 => "192.0.2.7",
                Family::Ipv6 => "2001:db8::7",
            };
            let allowed = format!("write its address for the data, for example addresses = [\"{example}\"]");
            problems.add(&path, wrong, allowed);
            continue;
        }
        let wrong = format!("has no {0} address, but is the {role} of a workload over {0}", workload.family);
        problems.add(&path, wrong, "add one, or set `family` to a version that both hosts have");
    }
}
