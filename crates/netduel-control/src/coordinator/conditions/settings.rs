//! Settings of a host that bear on results.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::snapshot::{Device, HostSnapshot, Interface, SYSCTLS_OF_STATE};

use super::comparison::{Comparison, Found, note};

/// Settings of a host that differ from those at the start of the run, each as `MTU of eth0 is 1300 instead of 1500`. Where none of its
/// interfaces is known to be used, every interface may be one.
pub(super) fn changed(comparison: &Comparison<'_>) -> Found {
    let (plan, then, now, used) = (comparison.plan, comparison.then, comparison.now, &comparison.used);
    let mut found = Found { certain: of_host(then, now), possible: Vec::new() };
    let moves_no_interrupts = moves_no_interrupts(plan, [then, now]);
    for old in then.interfaces.iter().filter(|old| used.all.is_empty() || used.contains(old)) {
        let Some(new) = comparison.same_device(old) else { continue };
        let mut changes = Vec::new();
        of_interface(&mut changes, old, new);
        // A NIC whose virtual function the provider adds has the speed of that function.
        if !plan.has_provider_treatments() {
            let what = format!("speed (Mbit/s) of {}", old.name);
            note(&mut changes, &what, old.line_speed_mbps(), new.line_speed_mbps());
        }
        found.extend(used.is_beside(old, then), changes);
        if moves_no_interrupts {
            // The kernel itself may move one between the cores that it was given: no setting need have changed.
            let mut moved = Vec::new();
            of_interrupts(&mut moved, old, new);
            found.extend(true, moved);
        }
    }
    found
}

/// Whether a host has another build, kernel or CPU model: these do not come back while it is looked at.
pub(super) fn are_permanent(comparison: &Comparison<'_>) -> bool {
    let mut changes = Vec::new();
    of_system(&mut changes, comparison.then, comparison.now);
    !changes.is_empty()
}

fn of_system(changes: &mut Vec<String>, then: &HostSnapshot, now: &HostSnapshot) {
    note(changes, "kernel", then.kernel.as_ref(), now.kernel.as_ref());
    note(changes, "build of netduel", then.build.as_ref(), now.build.as_ref());
    note(changes, "CPU model", then.cpu_model.as_ref(), now.cpu_model.as_ref());
}

fn of_host(then: &HostSnapshot, now: &HostSnapshot) -> Vec<String> {
    let mut changes = Vec::new();
    let governor = |host: &HostSnapshot| host.processor.as_ref()?.governor.clone();
    let huge_pages = |host: &HostSnapshot| host.kernel_settings.as_ref()?.transparent_huge_pages.clone();
    let smt = |host: &HostSnapshot| host.kernel_settings.as_ref()?.smt.clone();
    of_system(&mut changes, then, now);
    note(&mut changes, "number of cores online", counted(then.cores), counted(now.cores));
    note(&mut changes, "governor of the clock rate", governor(then), governor(now));
    note(&mut changes, "setting of transparent huge pages", huge_pages(then), huge_pages(now));
    note(&mut changes, "SMT", smt(then), smt(now));
    for (name, old) in then.sysctls.iter().filter(|(name, _)| !SYSCTLS_OF_STATE.contains(&name.as_str())) {
        note(&mut changes, name, Some(old), now.sysctls.get(name));
    }
    changes
}

/// A number of cores; 0 is not known.
fn counted(cores: u32) -> Option<u32> {
    Some(cores).filter(|cores| *cores > 0)
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
