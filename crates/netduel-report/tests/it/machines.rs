//! What reports say of the hosts: speeds of interfaces, facts of a machine that several hosts share.
use netduel_model::metric::Metric;
use netduel_model::observation::CoreTime;
use netduel_model::snapshot::{HugePages, KernelSettings, NumaNode};
use netduel_report::analysis::{contention_of, value_of};
use netduel_report::{document, html, markdown};

use crate::builder::{Recipe, build};
use crate::json;

#[test]
fn software_interface_has_no_line_speed() {
    let page = |kind: Option<&str>| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
        for host in run.header.hosts.values_mut() {
            for interface in &mut host.interfaces {
                (interface.kind, interface.speed_mbps) = (kind.map(str::to_owned), Some(23_456));
            }
        }
        let document = document(&run);
        let facts = json::report(&run)["hosts"][0]["facts"]["interfaces"][0]["speed_bps"].as_u64();
        (html::page(&document) + &markdown::page(&document), facts)
    };
    for kind in [Some("veth"), Some("bridge")] {
        let (page, speed) = page(kind);
        assert!(["23.5 Gbit/s", "23.456 Gbit/s", "23456 Mbit/s"].iter().all(|speed| !page.contains(speed)));
        assert_eq!(speed, None);
    }
    for kind in [None, Some("bond")] {
        let (page, speed) = page(kind);
        assert!(page.contains("23456 Mbit/s"), "{kind:?}");
        assert_eq!(speed, Some(23_456_000_000));
    }
}

#[test]
fn facts_of_a_shared_machine_are_printed_once() {
    let page = |boots: [&str; 2]| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
        for (host, boot) in run.header.hosts.values_mut().zip(boots) {
            host.boot_id = Some(boot.to_owned());
        }
        // The environment has a column for each host.
        let page = markdown::page(&document(&run));
        page.split_once("## Hosts").unwrap().1.to_owned()
    };
    let cpu = "AMD EPYC 7763 64-Core Processor";
    let shared = page(["one", "one"]);
    assert_eq!(shared.matches(cpu).count(), 1, "{shared}");
    assert!(shared.contains("### Machine of a (guest-a) and b (guest-b)\n"), "{shared}");
    let separate = page(["one", "other"]);
    assert_eq!(separate.matches(cpu).count(), 2, "{separate}");
    assert!(!separate.contains("### Machine of"), "{separate}");
}

#[test]
fn environment_has_what_bears_on_the_cost_of_a_packet() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    let vulnerabilities =
        [("spectre_v2", "Mitigation: Retpolines"), ("mmio_stale_data", "Vulnerable: No microcode")];
    for host in run.header.hosts.values_mut() {
        host.kernel_settings = Some(KernelSettings {
            boot_options: vec!["isolcpus=2-3".to_owned(), "nosmt".to_owned()],
            transparent_huge_pages: Some("madvise".to_owned()),
            smt: Some("forceoff".to_owned()),
            vulnerabilities: vulnerabilities.map(|(name, state)| (name.to_owned(), state.to_owned())).into(),
        });
        let none = HugePages { size_kib: 2048, total: 0, free: 0 };
        host.numa_nodes = vec![NumaNode { huge_pages: vec![none], ..NumaNode::default() }];
        host.default_routes = vec!["eth0".to_owned()];
    }
    let page = markdown::page(&document(&run));
    let (_, environment) = page.split_once("## Environment").unwrap();
    for row in [
        "| Interface of the default route | eth0 | eth0 |",
        "| Huge pages | none | none |",
        "| Transparent huge pages | madvise | madvise |",
        "| SMT | forceoff | forceoff |",
        "mitigated: spectre\\_v2; vulnerable: mmio\\_stale\\_data",
        "| Kernel boot parameters that affect results | isolcpus=2-3, nosmt |",
    ] {
        assert!(environment.contains(row), "no {row} in {environment}");
    }
    run.header.hosts.values_mut().for_each(|host| host.numa_nodes[0].huge_pages[0].total = 8);
    let page = markdown::page(&document(&run));
    assert!(page.contains("| node 0: 8 of 2 MiB (0 free) |"), "{page}");
}

#[test]
fn section_of_hosts_has_the_huge_pages_of_each_node() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    let node = |number: u32, core: u16, total: u64| NumaNode {
        number,
        cores: vec![core],
        huge_pages: vec![HugePages { size_kib: 2048, total, free: 4 }],
        ..NumaNode::default()
    };
    for host in run.header.hosts.values_mut() {
        host.numa_nodes = vec![node(0, 0, 512), node(1, 1, 0)];
    }
    let page = markdown::page(&document(&run));
    let (_, hosts) = page.split_once("## Hosts").unwrap();
    let nodes = "node 0: cores 0, 512 huge pages of 2 MiB (4 free); node 1: cores 1";
    assert!(hosts.contains(nodes), "{hosts}");
}

#[test]
fn states_of_smt_are_words() {
    for (state, words) in
        [("notsupported", "not supported"), ("notimplemented", "not implemented"), ("on", "on")]
    {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
        for host in run.header.hosts.values_mut() {
            host.kernel_settings =
                Some(KernelSettings { smt: Some(state.to_owned()), ..KernelSettings::default() });
        }
        let page = markdown::page(&document(&run));
        assert!(page.contains(&format!("| SMT | {words} | {words} |")), "{state}: {page}");
    }
}

#[test]
fn flaw_of_virtual_machines_has_the_state_behind_the_name_of_kvm() {
    for (state, words) in [
        ("KVM: Mitigation: VMX disabled", "mitigated"),
        ("KVM: Mitigation: Split huge pages", "mitigated"),
        ("KVM: Vulnerable", "vulnerable"),
        ("Processor vulnerable", "vulnerable"),
        ("Unknown: No mitigations", "unknown"),
    ] {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
        for host in run.header.hosts.values_mut() {
            let vulnerabilities = [("itlb_multihit".to_owned(), state.to_owned())].into();
            host.kernel_settings = Some(KernelSettings { vulnerabilities, ..KernelSettings::default() });
        }
        let page = markdown::page(&document(&run));
        let flaw = format!("{words}: itlb\\_multihit");
        assert!(page.contains(&format!("| CPU vulnerabilities | {flaw} | {flaw} |")), "{state}: {page}");
    }
}

#[test]
fn congestion_control_of_a_host_is_named_as_a_default() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    for host in run.header.hosts.values_mut() {
        host.sysctls.insert("net.ipv4.tcp_congestion_control".to_owned(), "bbr".to_owned());
    }
    let page = markdown::page(&document(&run));
    assert!(page.contains("- TCP: default congestion control bbr"), "{page}");
}

#[test]
fn intervals_below_a_logarithmic_axis_are_counted_in_words() {
    let page = |effect: f64, with_pause: bool| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, effect, ..Recipe::default() });
        for trial in
            run.trials.iter_mut().filter(|trial| with_pause && trial.slot.arm.as_str() == "synthetic")
        {
            let flow = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
            flow.series[20].bytes = 0;
        }
        html::page(&document(&run))
    };
    let words = "its first bin also holds slower intervals: synthetic 2 of 86 (2 of them 0).";
    let paused = page(40.0, true);
    assert!(
        paused.contains(words),
        "{}",
        paused.split("The axis begins").nth(1).map_or("", |rest| &rest[..200])
    );
    assert!(!page(40.0, false).contains("its first bin"), "no interval lies below the axis");
    assert!(!page(1.0, true).contains("its first bin"), "the axis is linear and has the zeros");
}

#[test]
fn packets_by_core_are_those_of_the_machine_and_absent_with_contention() {
    let shown = |boots: [&str; 2], is_contended: bool| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 4, ..Recipe::default() });
        for (host, boot) in run.header.hosts.values_mut().zip(boots) {
            host.boot_id = Some(boot.to_owned());
        }
        for end in run.trials.iter_mut().flat_map(|trial| [&mut trial.client, &mut trial.server]).flatten() {
            // Each agent used all CPU time of the programs on its machine.
            let process = &mut end.observation.process;
            (process.user_ns, process.system_ns) = (process.user_ns * 2, process.system_ns * 2);
        }
        let ends = run.trials.iter_mut().flat_map(|trial| [&mut trial.client, &mut trial.server]).flatten();
        for core in ends.filter(|_| is_contended).flat_map(|end| &mut end.observation.cores) {
            core.user_ns += core.idle_ns;
            core.idle_ns = 0;
        }
        let report = json::report(&run);
        let arm = &report["workloads"][0]["arms"][0];
        assert!(arm["machines"][0]["cores"][2]["packets"].as_u64() > Some(0), "{}", arm["machines"]);
        assert!(arm["queues"][0].get("cores").is_none(), "an interface has no count by core");
        let page = markdown::page(&document(&run));
        let rows = page.lines().filter(|line| line.ends_with("| 2 (100 %) |")).map(str::to_owned);
        rows.collect::<Vec<_>>()
    };
    assert_eq!(
        shown(["one", "one"], false),
        ["synthetic", "accelerated"]
            .map(|arm| format!("| {arm} | client a and server b, one machine | 2 (100 %) |"))
    );
    assert_eq!(shown(["one", "other"], false).len(), 4, "a row for each machine of each arm");
    assert_eq!(shown(["one", "one"], true), [""; 0], "other processes had packets too");
}

/// The kernel charges softirq time to the process that it interrupts, so the agents have more system time than the cores have.
#[test]
fn user_time_of_other_processes_is_seen_behind_softirq_time_of_the_agents() {
    let shared = |user_ns: u64| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
        let trial = &mut run.trials[0];
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            let observation = &mut end.observation;
            let cores = observation.cores.clone();
            let of = |part: fn(&CoreTime) -> u64| cores.iter().map(part).sum::<u64>();
            observation.process.user_ns = of(|core| core.user_ns);
            observation.process.system_ns =
                of(|core| core.system_ns) + of(|core| core.softirq_ns) + 2 * user_ns;
            observation.cores[0].user_ns += user_ns;
        }
        let total: u64 = trial.client.as_ref().unwrap().observation.core_time_ns();
        let workload = &run.header.plan.arms[0].workloads[0];
        let seen = contention_of(workload, &run.trials[0], false);
        (seen, user_ns as f64 / total as f64)
    };
    let (seen, share) = shared(4_000_000_000);
    assert!((seen.unwrap() - share).abs() < 0.001, "{seen:?} of {share}");
    // So little is a sampling error of the kernel's ticks.
    assert_eq!(shared(40_000_000).0, None);
}

/// The receiver of a fast path works for less than a timer tick at a time: most of its work is in no class.
#[test]
fn unaccounted_time_is_busy_time() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    let page_before = html::page(&document(&run));
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "accelerated") {
        // Both ends are one machine, of which the server has the longer reading.
        let seen = &mut trial.server.as_mut().unwrap().observation;
        let part = seen.wall_ns / 100;
        for core in &mut seen.cores {
            *core = CoreTime { core: core.core, idle_ns: seen.wall_ns, ..CoreTime::default() };
        }
        seen.cores[3] = CoreTime { core: 3, system_ns: 28 * part, idle_ns: 50 * part, ..CoreTime::default() };
    }
    let trial = run.trials.iter().find(|trial| trial.slot.arm.as_str() == "accelerated").unwrap();
    let workload = &run.header.plan.arms[1].workloads[0];
    let server = trial.server.as_ref().unwrap();
    let cost = value_of(Metric::CpuPerGigabyte, workload, trial, true).unwrap();
    let gigabytes = server.report.received.as_ref().unwrap().bytes as f64 / 1e9;
    let busy = cost * gigabytes / (server.observation.wall_ns as f64 / 1e9);
    assert!((busy - 0.5).abs() < 1e-6, "{busy} cores");

    let arm = &json::report(&run)["workloads"][0]["arms"][1];
    let core = &arm["machines"][0]["cores"][3];
    assert!((core["unaccounted_ratio"].as_f64().unwrap() - 0.22).abs() < 1e-6, "{core}");
    let ratios = core.as_object().unwrap().iter().filter(|(key, _)| key.ends_with("_ratio"));
    let sum: f64 = ratios.map(|(_, ratio)| ratio.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{core}");
    let page = html::page(&document(&run));
    for words in ["Unaccounted: busy time", "unaccounted, %"] {
        assert!(page.contains(words), "no {words:?}");
        assert!(!page_before.contains(words), "{words:?} where all time is accounted for");
    }
    let text = markdown::page(&document(&run));
    assert!(text.contains("| busiest core of a trial, busy | % |") && text.contains("| 50.0 |"), "{text}");
}

#[test]
fn congestion_control_of_the_plan_is_named_where_the_hosts_have_another_default() {
    let page = |default: &str| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
        for host in run.header.hosts.values_mut() {
            host.sysctls.insert("net.ipv4.tcp_congestion_control".to_owned(), default.to_owned());
        }
        markdown::page(&document(&run)).replace('\\', "")
    };
    let words =
        "Workloads with a congestion control in the plan (cubic) do not use the default of the hosts.";
    assert!(page("bbr").contains(words), "{}", page("bbr"));
    assert!(!page("cubic").contains(words), "the default is what the plan sets");
}
