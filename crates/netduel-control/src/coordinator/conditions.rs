//! Whether the hosts of a run still have the settings of its start, after each block and when it is resumed. It reads descriptions only.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::snapshot::{Device, HostSnapshot, Interface};
use netduel_model::workload::Role;

/// What is no setting: a list that grows when a module is loaded, and the number of connections that the firewall tracks now.
const NO_SETTINGS: [&str; 2] =
    ["net.ipv4.tcp_available_congestion_control", "net.netfilter.nf_conntrack_count"];

/// Settings of a host that bear on results and differ from those at the start of the run, each as `MTU of eth0 is 1300 instead of 1500`.
pub(super) fn changes(
    plan: &ResolvedPlan,
    host: &HostName,
    then: &HostSnapshot,
    now: &HostSnapshot,
) -> Vec<String> {
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
        // One that is gone fails the proof of the path, or the trial.
        if let Some(new) = now.interfaces.iter().find(|interface| interface.name == old.name) {
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

/// A number of cores; 0 is not known.
fn counted(cores: u32) -> Option<u32> {
    Some(cores).filter(|cores| *cores > 0)
}

/// The interfaces that the plan uses on a host: those that it names, those with its addresses, and where it names none those of default
/// routes; and what is above and below them. Where none of these is known, for example a client in a namespace without a default route,
/// every interface may be one.
fn used<'a>(plan: &'a ResolvedPlan, host: &HostName, then: &'a HostSnapshot) -> BTreeSet<&'a str> {
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
    if used.is_empty() {
        return then.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    }
    let above: Vec<&str> = then
        .interfaces
        .iter()
        .filter(|interface| used.contains(interface.name.as_str()))
        .filter_map(|interface| interface.master.as_deref())
        .collect();
    used.extend(above);
    let is_below = |interface: &&Interface| interface.master.as_deref().is_some_and(|it| used.contains(it));
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
mod tests {
    use netduel_model::plan::spec::Side;
    use netduel_model::plan::{Treatment, TreatmentAction, parse};
    use netduel_model::snapshot::{
        Channels, Coalescing, KernelSettings, Processor, QueueInterrupt, ReceiveSteering, Rings,
    };

    use super::*;

    fn plan() -> ResolvedPlan {
        let host = |name: &str, last: u8| {
            format!(
                "[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"x\"]\naddresses = [\"10.0.0.{last}\"]\n"
            )
        };
        let text = format!(
            "name = \"p\"\nquestion = \"?\"\n{}{}[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n\
             [[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n[design]\naa = true\n",
            host("a", 1),
            host("b", 2)
        );
        parse(&text, "p").unwrap()
    }

    fn interface(name: &str) -> Interface {
        Interface { name: name.to_owned(), mtu: Some(1500), ..Interface::default() }
    }

    /// `eth0` with the address of the plan, its virtual function below it, and `docker0`, which the plan does not use.
    fn snapshot() -> HostSnapshot {
        let device = Device {
            channels: Some(Channels { combined: (4, 8), ..Channels::default() }),
            rings: Some(Rings { rx: (512, 4096), tx: (512, 4096) }),
            coalescing: Some(Coalescing { rx_usecs: 8, adaptive_tx: true, ..Coalescing::default() }),
            rss_entries: vec![32, 32],
            receive_steering: vec![ReceiveSteering::default(); 2],
            transmit_steering: vec![vec![0], vec![1]],
            interrupts: vec![QueueInterrupt { number: 45, cores: vec![1], ..QueueInterrupt::default() }],
            qdiscs: vec!["mq".to_owned(), "fq".to_owned()],
            ..Device::default()
        };
        let eth0 = Interface {
            speed_mbps: Some(10_000),
            qdisc: Some("mq".to_owned()),
            addresses: vec!["10.0.0.1".parse().unwrap()],
            features_on: vec!["tx-tcp-segmentation".to_owned()],
            device,
            ..interface("eth0")
        };
        let vf = Interface { master: Some("eth0".to_owned()), ..interface("vf") };
        let sysctls = [("net.ipv4.tcp_sack", "1"), (NO_SETTINGS[0], "reno cubic"), (NO_SETTINGS[1], "8")];
        HostSnapshot {
            kernel: Some("6.8".to_owned()),
            build: Some("a1".to_owned()),
            cores: 4,
            processor: Some(Processor { governor: Some("performance".to_owned()), ..Processor::default() }),
            kernel_settings: Some(kernel_settings("madvise", "on")),
            interfaces: vec![eth0, vf, interface("docker0")],
            sysctls: sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            irqbalance: Some(false),
            ..HostSnapshot::default()
        }
    }

    fn kernel_settings(huge_pages: &str, smt: &str) -> KernelSettings {
        let text = |text: &str| Some(text.to_owned());
        KernelSettings {
            transparent_huge_pages: text(huge_pages),
            smt: text(smt),
            ..KernelSettings::default()
        }
    }

    fn changed(change: impl FnOnce(&mut HostSnapshot)) -> Vec<String> {
        let mut now = snapshot();
        change(&mut now);
        changes(&plan(), &HostName::new("a").unwrap(), &snapshot(), &now)
    }

    #[test]
    fn settings_that_bear_on_results_are_named_with_both_values() {
        assert!(changed(|_| ()).is_empty());
        let all = changed(|now| {
            now.kernel = Some("6.9".to_owned());
            now.build = Some("b2".to_owned());
            now.cores = 2;
            let governor = Some("powersave".to_owned());
            now.processor = Some(Processor { governor, ..Processor::default() });
            now.kernel_settings = Some(kernel_settings("always", "off"));
            now.sysctls.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
            now.interfaces[0].mtu = Some(1300);
            now.interfaces[0].features_on = vec!["rx-gro".to_owned()];
            now.interfaces[0].device.channels = Some(Channels { combined: (2, 8), ..Channels::default() });
            now.interfaces[0].device.rings = Some(Rings { rx: (1024, 4096), tx: (512, 4096) });
            now.interfaces[0].speed_mbps = Some(1_000);
            let device = &mut now.interfaces[0].device;
            device.qdiscs = vec!["tbf".to_owned()];
            device.coalescing =
                Some(Coalescing { rx_usecs: 64, tx_usecs: 9, adaptive_tx: true, ..Coalescing::default() });
            device.rss_entries = vec![64, 0];
            device.receive_steering[1] = ReceiveSteering { cores: vec![0, 2], flows: 4096 };
            device.transmit_steering[1].clear();
            device.interrupts[0].cores = vec![3];
            now.interfaces[1].mtu = Some(1400);
        });
        assert_eq!(
            all,
            [
                "kernel is 6.9 instead of 6.8",
                "build of netduel is b2 instead of a1",
                "number of cores online is 2 instead of 4",
                "governor of the clock rate is powersave instead of performance",
                "setting of transparent huge pages is always instead of madvise",
                "SMT is off instead of on",
                "net.ipv4.tcp_sack is 0 instead of 1",
                "MTU of eth0 is 1300 instead of 1500",
                "tx-tcp-segmentation of eth0 is off instead of on",
                "rx-gro of eth0 is on instead of off",
                "number of combined channels of eth0 is 2 instead of 4",
                "number of descriptors of the receive ring of eth0 is 1024 instead of 512",
                "qdisc of eth0 is tbf instead of mq, fq",
                "rx-usecs of eth0 is 64 instead of 8",
                "number of RSS entries of queue 0 of eth0 is 64 instead of 32",
                "RPS of queue 1 of eth0 is 0,2 instead of off",
                "RFS of queue 1 of eth0 is 4096 instead of 0",
                "XPS of queue 1 of eth0 is off instead of 1",
                "speed (Mbit/s) of eth0 is 1000 instead of 10000",
                "core of interrupt 45 of eth0 is 3 instead of 1",
                "MTU of vf is 1400 instead of 1500",
            ]
        );
    }

    #[test]
    fn what_the_plan_does_not_use_may_change() {
        let none = changed(|now| {
            now.interfaces[2].mtu = Some(9000);
            now.sysctls.insert(NO_SETTINGS[0].to_owned(), "reno cubic bbr".to_owned());
            now.sysctls.insert(NO_SETTINGS[1].to_owned(), "12".to_owned());
            now.interfaces[0].addresses.clear();
            now.hostname = Some("other".to_owned());
        });
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn values_that_another_part_of_the_system_adapts_are_no_settings() {
        let none = changed(|now| {
            now.irqbalance = Some(true);
            let device = &mut now.interfaces[0].device;
            device.interrupts[0].cores = vec![3];
            device.coalescing.as_mut().unwrap().tx_usecs = 64;
            // The kernel did not list the tree; its root is the same.
            device.qdiscs.clear();
        });
        assert!(none.is_empty(), "{none:?}");
        let mut treated = plan();
        let action = TreatmentAction::Mtu { interface: "eth0".to_owned(), mtu: 1400 };
        treated.arms[0].treatments.push(Treatment { action, on: Side::Client });
        let mut now = snapshot();
        now.interfaces[0].device.interrupts[0].cores = vec![3];
        let none = changes(&treated, &HostName::new("a").unwrap(), &snapshot(), &now);
        assert!(none.is_empty(), "its device may have requested the interrupt anew: {none:?}");
    }

    #[test]
    fn every_interface_counts_where_none_is_known_to_be_used() {
        let then = HostSnapshot { interfaces: vec![interface("va")], ..HostSnapshot::default() };
        let mut now = then.clone();
        now.interfaces[0].mtu = Some(1300);
        // The plan has no address of a host that it does not name.
        let all = changes(&plan(), &HostName::new("c").unwrap(), &then, &now);
        assert_eq!(all, ["MTU of va is 1300 instead of 1500"]);
    }

    #[test]
    fn what_a_host_did_not_report_is_no_change() {
        let none = changed(|now| {
            now.sysctls.clear();
            (now.kernel, now.build, now.processor, now.cores) = (None, None, None, 0);
            now.interfaces[0].mtu = None;
            now.interfaces[0].device.channels = None;
            now.interfaces.remove(1);
        });
        assert!(none.is_empty(), "{none:?}");
    }
}
