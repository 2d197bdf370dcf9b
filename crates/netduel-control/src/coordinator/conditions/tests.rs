//! Hosts whose settings, interfaces or routes differ from those at the start.
mod moved_interfaces;
mod rerouted;

use netduel_model::plan::spec::Side;
use netduel_model::plan::{Treatment, TreatmentAction, parse};
use netduel_model::snapshot::{
    Channels, Coalescing, Device, Interface, KernelSettings, Processor, QueueInterrupt, ReceiveSteering,
    Rings, SYSCTLS_OF_STATE,
};

use super::comparison::Found;
use super::*;

fn plan() -> ResolvedPlan {
    let host = |name: &str, last: u8| {
        format!("[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"x\"]\naddresses = [\"10.0.0.{last}\"]\n")
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
    let sysctls =
        [("net.ipv4.tcp_sack", "1"), (SYSCTLS_OF_STATE[0], "reno cubic"), (SYSCTLS_OF_STATE[1], "8")];
    HostSnapshot {
        kernel: Some("6.8".to_owned()),
        build: Some("a1".to_owned()),
        cores: 4,
        processor: Some(Processor { governor: Some("performance".to_owned()), ..Processor::default() }),
        kernel_settings: Some(kernel_settings("madvise", "on")),
        interfaces: vec![eth0, vf, interface("docker0")],
        sysctls: sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        irqbalance: Some(false),
        routes_listed: Some(true),
        ..HostSnapshot::default()
    }
}

fn kernel_settings(huge_pages: &str, smt: &str) -> KernelSettings {
    let text = |text: &str| Some(text.to_owned());
    KernelSettings { transparent_huge_pages: text(huge_pages), smt: text(smt), ..KernelSettings::default() }
}

/// The host a of the plan.
fn host_a() -> HostName {
    HostName::new("a").unwrap()
}

/// What a rule finds on a host that alone was described at the start.
fn compared<T>(
    plan: &ResolvedPlan,
    host: &HostName,
    then: &HostSnapshot,
    now: &HostSnapshot,
    of: impl FnOnce(&Comparison<'_>) -> T,
) -> T {
    let hosts = BTreeMap::from([(host.clone(), then.clone())]);
    of(&Comparison::of(plan, host, &hosts, now).unwrap())
}

fn changes(plan: &ResolvedPlan, host: &HostName, then: &HostSnapshot, now: &HostSnapshot) -> Vec<String> {
    let found = compared(plan, host, then, now, settings::changed);
    assert!(found.possible.is_empty(), "{found:?}");
    found.certain
}

/// A plan with a treatment of `eth0` on its client.
fn treated(action: TreatmentAction) -> ResolvedPlan {
    let mut plan = plan();
    plan.arms[0].treatments.push(Treatment { action, on: Side::Client });
    plan
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
            "MTU of vf is 1400 instead of 1500",
        ]
    );
}

#[test]
fn moved_interrupt_is_stated_and_ends_no_run() {
    let mut now = snapshot();
    now.interfaces[0].device.interrupts[0].cores = vec![3];
    let found = compared(&plan(), &host_a(), &snapshot(), &now, settings::changed);
    let possible = vec!["core of interrupt 45 of eth0 is 3 instead of 1".to_owned()];
    assert_eq!(found, Found { certain: Vec::new(), possible });
}

#[test]
fn what_the_plan_does_not_use_may_change() {
    let none = changed(|now| {
        now.interfaces[2].mtu = Some(9000);
        now.sysctls.insert(SYSCTLS_OF_STATE[0].to_owned(), "reno cubic bbr".to_owned());
        now.sysctls.insert(SYSCTLS_OF_STATE[1].to_owned(), "12".to_owned());
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
    let treated = treated(TreatmentAction::Mtu { interface: "eth0".to_owned(), mtu: 1400 });
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
    });
    assert!(none.is_empty(), "{none:?}");
}

/// A change of a description.
type Change = fn(&mut HostSnapshot);

#[test]
fn other_build_kernel_or_cpu_model_is_permanent_and_other_settings_are_not() {
    let host = host_a();
    let mut then = snapshot();
    then.cpu_model = Some("one".to_owned());
    let changes: [(Change, bool); 5] = [
        (|now| now.kernel = Some("6.9".to_owned()), true),
        (|now| now.build = Some("b2".to_owned()), true),
        (|now| now.cpu_model = Some("other".to_owned()), true),
        (|now| now.interfaces[0].mtu = Some(1300), false),
        (|now| now.kernel = None, false),
    ];
    for (index, (change, is_permanent)) in changes.into_iter().enumerate() {
        let mut now = then.clone();
        change(&mut now);
        let hosts = BTreeMap::from([(host.clone(), then.clone())]);
        let found = differences(&plan(), &host, &hosts, &now, &Translated::new());
        assert_eq!(found.is_permanent, is_permanent, "{index}: {found:?}");
    }
}
