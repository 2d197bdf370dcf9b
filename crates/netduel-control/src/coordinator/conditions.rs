//! Whether the hosts of a run still have the settings of its start, after each block and when it is resumed. It reads descriptions only.
mod routes;

use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::snapshot::{Device, HostSnapshot, Interface};
use netduel_model::workload::Role;

/// What is no setting: a list that grows when a module is loaded, and the number of connections that the firewall tracks now.
const NO_SETTINGS: [&str; 2] =
    ["net.ipv4.tcp_available_congestion_control", "net.netfilter.nf_conntrack_count"];

/// Kinds of interfaces whose members have nothing to do with each other: the datapath of Open vSwitch has the ports of all its bridges
/// below it, and a VRF is a routing table. A member that carries the test is named by the plan, or has one of its addresses.
const GROUPS: [&str; 2] = ["openvswitch", "vrf"];

/// How a host differs from its description at the start of the run.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Each with both values; interfaces and routes before settings.
    pub(super) all: Vec<String>,
    /// Whether an interface of the path was added anew, or it or a route differs: what follows it, such as the settings that udev makes, can
    /// still come.
    pub(super) has_movement: bool,
}

/// How a host of the plan differs from its description among those at the start of the run.
pub(super) fn differences(
    plan: &ResolvedPlan,
    host: &HostName,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    now: &HostSnapshot,
) -> Differences {
    let Some(then) = hosts.get(host) else { return Differences::default() };
    let mut all = moved(plan, host, then, now);
    all.extend(routes::changed(plan, host, hosts, now));
    let used = known_to_be_used(plan, host, then);
    let is_new = |old: &Interface| same_device(old, then, now).is_some_and(|new| new.index != old.index);
    let mut of_path = then.interfaces.iter().filter(|interface| used.contains(interface.name.as_str()));
    let has_movement = !all.is_empty() || of_path.any(is_new);
    all.extend(changes(plan, host, then, now));
    Differences { all, has_movement }
}

/// Settings of a host that bear on results and differ from those at the start of the run, each as `MTU of eth0 is 1300 instead of 1500`.
fn changes(plan: &ResolvedPlan, host: &HostName, then: &HostSnapshot, now: &HostSnapshot) -> Vec<String> {
    let mut changes = Vec::new();
    let governor = |host: &HostSnapshot| host.processor.as_ref()?.governor.clone();
    let huge_pages = |host: &HostSnapshot| host.kernel_settings.as_ref()?.transparent_huge_pages.clone();
    let smt = |host: &HostSnapshot| host.kernel_settings.as_ref()?.smt.clone();
    note(&mut changes, "kernel", then.kernel.as_ref(), now.kernel.as_ref());
    note(&mut changes, "build of netduel", then.build.as_ref(), now.build.as_ref());
    note(&mut changes, "CPU model", then.cpu_model.as_ref(), now.cpu_model.as_ref());
    note(&mut changes, "number of cores online", counted(then.cores), counted(now.cores));
    note(&mut changes, "governor of the clock rate", governor(then), governor(now));
    note(&mut changes, "setting of transparent huge pages", huge_pages(then), huge_pages(now));
    note(&mut changes, "SMT", smt(then), smt(now));
    for (name, old) in then.sysctls.iter().filter(|(name, _)| !NO_SETTINGS.contains(&name.as_str())) {
        note(&mut changes, name, Some(old), now.sysctls.get(name));
    }
    let used = used(plan, host, then);
    let moves_no_interrupts = moves_no_interrupts(plan, [then, now]);
    for old in then.interfaces.iter().filter(|interface| used.contains(interface.name.as_str())) {
        if let Some(new) = same_device(old, then, now) {
            of_interface(&mut changes, old, new);
            // A NIC whose virtual function the provider adds has the speed of that function.
            if !plan.has_provider_treatments() {
                let what = format!("speed (Mbit/s) of {}", old.name);
                note(&mut changes, &what, old.line_speed_mbps(), new.line_speed_mbps());
            }
            if moves_no_interrupts {
                of_interrupts(&mut changes, old, new);
            }
        }
    }
    changes
}

/// Interfaces that the plan uses and that are gone, set down, without carrier or below another one, and interfaces that were added below
/// them: each can move the bytes to another path. Empty where interfaces may come and go: none is known to be used, or the provider's
/// treatments add and remove virtual functions, whose path is verified when they do.
fn moved(plan: &ResolvedPlan, host: &HostName, then: &HostSnapshot, now: &HostSnapshot) -> Vec<String> {
    let mut changes = Vec::new();
    if plan.has_provider_treatments() {
        return changes;
    }
    let used = known_to_be_used(plan, host, then);
    let is_used = |interface: &&Interface| used.contains(interface.name.as_str()) && is_way(interface, then);
    for old in then.interfaces.iter().filter(is_used) {
        let name = &old.name;
        let Some(new) = same_device(old, then, now) else {
            changes.push(format!("{name} is gone"));
            continue;
        };
        let state = |is_up: bool| if is_up { "up" } else { "down" };
        note(&mut changes, name, Some(state(old.up)), Some(state(new.up)));
        // An interface that is down has no carrier either.
        if old.up == new.up {
            let word = |is_on: bool| if is_on { "on" } else { "off" };
            let carrier = |interface: &Interface| interface.carrier.map(word);
            note(&mut changes, &format!("carrier of {name}"), carrier(old), carrier(new));
        }
        let master = |interface: &Interface| interface.master.clone().unwrap_or_else(|| "none".to_owned());
        note(&mut changes, &format!("interface above {name}"), Some(master(old)), Some(master(new)));
    }
    for new in now.interfaces.iter().filter(|new| is_way(new, now) && !is_in_group(new, now)) {
        let Some(master) = new.master.as_deref().filter(|master| used.contains(*master)) else { continue };
        let mut known = then.interfaces.iter().filter_map(|old| same_device(old, then, now));
        if !known.any(|known| known.name == new.name) {
            changes.push(format!("{} was added below {master}", new.name));
        }
    }
    changes
}

/// The interface that one of an earlier description is now. A device that was removed and came back can have another name; it has its
/// place on the bus, or its address.
fn same_device<'a>(old: &Interface, then: &HostSnapshot, now: &'a HostSnapshot) -> Option<&'a Interface> {
    let same_name = now.interfaces.iter().find(|new| new.name == old.name);
    if same_name.is_some() {
        return same_name;
    }
    let has_new_name = |new: &&Interface| then.interfaces.iter().all(|known| known.name != new.name);
    let renamed: Vec<&Interface> = now.interfaces.iter().filter(has_new_name).collect();
    let has_its_place = |new: &&&Interface| {
        old.device.bus_address.is_some() && new.device.bus_address == old.device.bus_address
    };
    let has_its_address = |new: &&&Interface| {
        old.mac.is_some() && (&new.mac, &new.kind, &new.driver) == (&old.mac, &old.kind, &old.driver)
    };
    // Ports of a bond share their address: one of them must not stand for all that are gone.
    let is_alike =
        |one: &&Interface| (&one.mac, &one.kind, &one.driver) == (&old.mac, &old.kind, &old.driver);
    let is_only = then.interfaces.iter().filter(is_alike).count() == 1;
    let by_address = || renamed.iter().find(has_its_address).filter(|_| is_only);
    renamed.iter().find(has_its_place).or_else(by_address).copied()
}

/// Whether bytes of the test can go through an interface. The ports of a switch that are software are those of containers and VMs.
fn is_way(interface: &Interface, host: &HostSnapshot) -> bool {
    interface.kind.is_none() || !matches!(kind_above(interface, host), Some("bridge" | "openvswitch"))
}

/// Whether an interface is a member of one whose members have nothing to do with each other.
fn is_in_group(interface: &Interface, host: &HostSnapshot) -> bool {
    kind_above(interface, host).is_some_and(|kind| GROUPS.contains(&kind))
}

/// The kind of the interface above one; `None` without one, and where that is hardware.
fn kind_above<'h>(interface: &Interface, host: &'h HostSnapshot) -> Option<&'h str> {
    let master = interface.master.as_ref()?;
    host.interfaces.iter().find(|above| above.name == *master)?.kind.as_deref()
}

/// A number of cores; 0 is not known.
fn counted(cores: u32) -> Option<u32> {
    Some(cores).filter(|cores| *cores > 0)
}

/// The interfaces that the plan uses on a host. Where none is known, for example of a client in a namespace without a default route, every
/// interface may be one.
fn used<'a>(plan: &'a ResolvedPlan, host: &HostName, then: &'a HostSnapshot) -> BTreeSet<&'a str> {
    let known = known_to_be_used(plan, host, then);
    if known.is_empty() {
        return then.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    }
    known
}

/// The interfaces that the plan uses on a host as far as they are known: those that it names, those with its addresses, and where it names
/// none those of default routes; and what is above and below them, except other members of [`GROUPS`].
fn known_to_be_used<'a>(
    plan: &'a ResolvedPlan,
    host: &HostName,
    then: &'a HostSnapshot,
) -> BTreeSet<&'a str> {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for arm in &plan.arms {
        let uses_in = |role: &Role| {
            let other = plan.counterpart(arm).map(|other| other.pair.host(*role));
            arm.pair.host(*role) == host || other == Some(host)
        };
        for role in [Role::Client, Role::Server].into_iter().filter(uses_in) {
            used.extend(arm.expected(role));
        }
    }
    let addresses = plan.hosts.get(host).map(|host| host.addresses.as_slice()).unwrap_or_default();
    let has_address = |interface: &&Interface| interface.addresses.iter().any(|own| addresses.contains(own));
    used.extend(then.interfaces.iter().filter(has_address).map(|interface| interface.name.as_str()));
    if used.is_empty() {
        used.extend(then.default_routes.iter().map(String::as_str));
    }
    let above: Vec<&str> = then
        .interfaces
        .iter()
        .filter(|interface| used.contains(interface.name.as_str()))
        .filter_map(|interface| interface.master.as_deref())
        .collect();
    used.extend(above);
    let is_below = |interface: &&Interface| {
        interface.master.as_deref().is_some_and(|it| used.contains(it)) && !is_in_group(interface, then)
    };
    let below: Vec<&str> =
        then.interfaces.iter().filter(is_below).map(|interface| interface.name.as_str()).collect();
    used.extend(below);
    used
}

fn of_interface(changes: &mut Vec<String>, old: &Interface, new: &Interface) {
    let name = &old.name;
    note(changes, &format!("MTU of {name}"), old.mtu, new.mtu);
    let features =
        |interface: &Interface| interface.features_on.iter().cloned().collect::<BTreeSet<String>>();
    let (on, still_on) = (features(old), features(new));
    changes
        .extend(on.difference(&still_on).map(|feature| format!("{feature} of {name} is off instead of on")));
    changes
        .extend(still_on.difference(&on).map(|feature| format!("{feature} of {name} is on instead of off")));
    let counts = |interface: &Interface| {
        let (channels, rings) = (interface.device.channels, interface.device.rings);
        BTreeMap::from([
            ("receive queues", interface.rx_queues),
            ("transmit queues", interface.tx_queues),
            ("receive channels", channels.map(|channels| channels.rx.0)),
            ("transmit channels", channels.map(|channels| channels.tx.0)),
            ("combined channels", channels.map(|channels| channels.combined.0)),
            ("descriptors of the receive ring", rings.map(|rings| rings.rx.0)),
            ("descriptors of the transmit ring", rings.map(|rings| rings.tx.0)),
        ])
    };
    let now = counts(new);
    for (what, old) in counts(old) {
        note(changes, &format!("number of {what} of {name}"), old, now.get(what).copied().flatten());
    }
    of_qdiscs(changes, old, new);
    of_coalescing(changes, old, new);
    of_queues(changes, old, new);
}

/// Queueing disciplines: the whole tree where both descriptions have it, else the root.
fn of_qdiscs(changes: &mut Vec<String>, old: &Interface, new: &Interface) {
    let tree = |interface: &Interface| {
        Some(interface.device.qdiscs.join(", ")).filter(|kinds: &String| !kinds.is_empty())
    };
    let (was, is) = match (tree(old), tree(new)) {
        (Some(was), Some(is)) => (Some(was), Some(is)),
        _ => (old.qdisc.clone(), new.qdisc.clone()),
    };
    note(changes, &format!("qdisc of {}", old.name), was, is);
}

/// Interrupt coalescing. Values that the device adapts to the load are no settings.
fn of_coalescing(changes: &mut Vec<String>, old: &Interface, new: &Interface) {
    let parameters = |device: &Device| {
        let all = device.coalescing;
        let rx = all.filter(|all| !all.adaptive_rx);
        let tx = all.filter(|all| !all.adaptive_tx);
        [
            ("adaptive-rx", all.map(|all| u32::from(all.adaptive_rx))),
            ("adaptive-tx", all.map(|all| u32::from(all.adaptive_tx))),
            ("rx-usecs", rx.map(|rx| rx.rx_usecs)),
            ("rx-frames", rx.map(|rx| rx.rx_frames)),
            ("tx-usecs", tx.map(|tx| tx.tx_usecs)),
            ("tx-frames", tx.map(|tx| tx.tx_frames)),
        ]
    };
    for ((parameter, was), (_, is)) in parameters(&old.device).into_iter().zip(parameters(&new.device)) {
        note(changes, &format!("{parameter} of {}", old.name), was, is);
    }
}

/// What spreads packets over queues and cores, of the first queue that differs. Lists of different lengths are those of other numbers of
/// queues, which are noted themselves.
fn of_queues(changes: &mut Vec<String>, old: &Interface, new: &Interface) {
    let lists = |device: &Device| -> [(&'static str, Vec<String>); 4] {
        let receive = &device.receive_steering;
        [
            ("number of RSS entries", device.rss_entries.iter().map(u32::to_string).collect()),
            ("RPS", receive.iter().map(|queue| listed(&queue.cores)).collect()),
            ("RFS", receive.iter().map(|queue| queue.flows.to_string()).collect()),
            ("XPS", device.transmit_steering.iter().map(|cores| listed(cores)).collect()),
        ]
    };
    for ((what, was), (_, is)) in lists(&old.device).into_iter().zip(lists(&new.device)) {
        let first = was.iter().zip(&is).position(|(was, is)| was != is);
        if let Some(queue) = first.filter(|_| was.len() == is.len()) {
            let what = format!("{what} of queue {queue} of {}", old.name);
            note(changes, &what, was.get(queue), is.get(queue));
        }
    }
}

/// The cores of the first interrupt that another one serves now.
fn of_interrupts(changes: &mut Vec<String>, old: &Interface, new: &Interface) {
    let moved = old.device.interrupts.iter().find_map(|was| {
        let mut others = new.device.interrupts.iter();
        let is = others.find(|is| (is.number, &is.name) == (was.number, &was.name))?;
        let is_known = !was.cores.is_empty() && !is.cores.is_empty();
        (is_known && was.cores != is.cores).then_some((was, is))
    });
    if let Some((was, is)) = moved {
        let what = format!("core of interrupt {} of {}", was.number, old.name);
        note(changes, &what, Some(listed(&was.cores)), Some(listed(&is.cores)));
    }
}

/// Whether only another program can have moved interrupts: a device that the run changes may request them anew.
fn moves_no_interrupts(plan: &ResolvedPlan, hosts: [&HostSnapshot; 2]) -> bool {
    let leaves_devices = |arm: &Arm| {
        let mut facts = arm.workloads.iter().map(|workload| workload.traffic.facts());
        arm.treatments.is_empty() && facts.all(|facts| facts.events.is_empty() && facts.packets.is_none())
    };
    hosts.iter().all(|host| host.irqbalance == Some(false)) && plan.arms.iter().all(leaves_devices)
}

/// Cores as `0,2`, and `off` for none.
fn listed(cores: &[u16]) -> String {
    match cores {
        [] => "off".to_owned(),
        cores => cores.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
    }
}

/// Notes a value that differs. One that either description lacks is no difference: the host did not report it.
fn note<T: PartialEq + std::fmt::Display>(
    changes: &mut Vec<String>,
    what: &str,
    old: Option<T>,
    new: Option<T>,
) {
    if let (Some(old), Some(new)) = (old, new)
        && old != new
    {
        changes.push(format!("{what} is {new} instead of {old}"));
    }
}

#[cfg(test)]
mod tests;
