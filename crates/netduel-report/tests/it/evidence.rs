//! Evidence in synthetic trials: hosts with a changed identity, known limits, and causes that no lab produces.
use std::collections::BTreeMap;

use netduel_model::observation::{CoreTime, HostIdentity, NicIdentity, Observation};
use netduel_model::plan::spec::Side;
use netduel_model::plan::{Treatment, TreatmentAction};
use netduel_model::run::Run;
use netduel_model::sample::TcpInfo;
use netduel_model::snapshot::Cloud;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_model::workload::Role;
use netduel_report::analysis::{Cause, Limit, expected, limit_of};
use netduel_report::{analyse_run, document, terminal};

use crate::builder::{Recipe, build};

fn bulk(blocks: u32, effect: f64) -> Run {
    build(&Recipe { workloads: vec!["bulk"], blocks, effect, ..Recipe::default() })
}

fn observations(trial: &mut Trial) -> impl Iterator<Item = &mut Observation> {
    [&mut trial.client, &mut trial.server].into_iter().flatten().map(|end| &mut end.observation)
}

fn on(boot: &str, model: &str, queues: u32) -> HostIdentity {
    let nic = NicIdentity {
        driver: "mlx5_core".into(),
        model: Some(model.into()),
        rx_queues: Some(queues),
        tx_queues: Some(queues),
    };
    HostIdentity { boot_id: Some(boot.into()), physical_host: None, cores: 4, nics: vec![nic] }
}

/// The number of pairs of the judged metric, and the placement warnings: host, block, detail.
fn placement(run: &Run) -> (usize, Vec<(String, u32, String)>) {
    let analysis = analyse_run(run);
    let pairs = analysis.workloads[0].judged[0].comparisons[0].pairs.len();
    let warnings = analysis.warnings.iter().filter_map(|warning| match warning {
        Warning::PlacementChanged { host, block, detail } => Some((host.to_string(), *block, detail.clone())),
        _ => None,
    });
    (pairs, warnings.collect())
}

#[test]
fn identity_change_within_a_block_breaks_the_pair() {
    let mut run = bulk(8, 3.0);
    for trial in &mut run.trials {
        let moved = (trial.slot.block, trial.slot.position) >= (4, 1);
        for seen in observations(trial) {
            seen.identity =
                Some(if moved { on("second", "1414:00ba", 4) } else { on("first", "15b3:101a", 4) });
        }
    }
    let (pairs, warnings) = placement(&run);
    assert_eq!(pairs, 7, "the block in which it moved has no pair");
    assert_eq!(warnings.len(), 2, "each host once: {warnings:?}");
    let (_, block, detail) = &warnings[0];
    assert_eq!(*block, 4);
    assert!(
        detail.contains("rebooted") && detail.contains("15b3:101a") && detail.contains("1414:00ba"),
        "{detail}"
    );
    // A treatment that changes the host of one arm is not an identity change.
    for trial in &mut run.trials {
        let queues = if trial.slot.arm.as_str() == "accelerated" { 8 } else { 1 };
        for seen in observations(trial) {
            seen.identity = Some(on("first", "15b3:101a", queues));
        }
    }
    assert_eq!(placement(&run), (8, Vec::new()));
}

#[test]
fn hosts_that_the_run_itself_restarts_stay_paired_and_are_reported() {
    let mut run = bulk(8, 3.0);
    for trial in &mut run.trials {
        // The arm that stops the VMs is first in one block and last in the next.
        let boot =
            format!("boot {}", trial.slot.block / 2 + u32::from(trial.slot.arm.as_str() == "accelerated"));
        for seen in observations(trial) {
            seen.identity = Some(on(&boot, "15b3:101a", 4));
        }
    }
    let (_, by_others) = placement(&run);
    run.header.plan.arms[1].treatments = vec![Treatment {
        action: TreatmentAction::AzurePlacement {
            vm: "vm1".to_owned(),
            group: "near".to_owned(),
            resource_group: None,
        },
        on: Side::Client,
    }];
    let (pairs, warnings) = placement(&run);
    assert_eq!(pairs, 8);
    assert!(!warnings.is_empty());
    assert_eq!(warnings, by_others);
}

#[test]
fn temporarily_unknown_identity_is_not_a_change() {
    let with_hosts = |physical: [Option<&str>; 8]| {
        let mut run = bulk(8, 3.0);
        for trial in &mut run.trials {
            let host = physical[trial.slot.block as usize];
            for seen in observations(trial) {
                let boot_id = host.map(|_| "one".to_owned());
                let physical_host = host.map(str::to_owned);
                seen.identity = Some(HostIdentity { boot_id, physical_host, ..on("", "15b3:101a", 4) });
            }
        }
        placement(&run)
    };
    let (a, b) = (Some("A"), Some("B"));
    assert_eq!(with_hosts([None, a, a, None, None, a, a, None]), (8, Vec::new()));
    let (pairs, warnings) = with_hosts([a, a, None, None, b, b, b, None]);
    let blocks: Vec<u32> = warnings.iter().map(|(_, block, _)| *block).collect();
    assert_eq!((pairs, blocks), (8, vec![4, 4]), "{warnings:?}");
    assert_eq!(warnings[0].2, "it moved from physical host A to B");
}

#[test]
fn known_limit_comes_from_arm_host_size_or_cloud_in_this_order() {
    let mut run = bulk(2, 1.0);
    let whose = |run: &Run| {
        let (plan, arm) = (&run.header.plan, &run.header.plan.arms[0]);
        let found = expected::of(plan, &run.header.hosts, arm, &arm.workloads[0]);
        found.map(|found| (found.bps / 1e6, found.whose, found.doubt))
    };
    assert_eq!(whose(&run), None);
    let sender = run.header.plan.arms[0].pair.client.clone();
    let cloud: Cloud = serde_json::from_value(serde_json::json!({
        "provider": "azure", "evidence": "a test", "size": "Standard_D8s_v3",
    }))
    .unwrap();
    run.header.hosts.get_mut(&sender).unwrap().cloud = Some(cloud);
    let (mbps, size, doubt) = whose(&run).unwrap();
    assert!(
        mbps.to_bits() == 2000_f64.to_bits() && size.contains("dsv3-series of 2024-09-24") && doubt.is_some()
    );
    let text = terminal::report(&document(&run), 120, false);
    assert!(text.contains("Standard_D8s_v3's limit") && text.contains("looks wrong"), "{text}");
    run.header.plan.hosts.get_mut(&sender).unwrap().size = Some("Standard_DS4_v2".into());
    assert_eq!(
        whose(&run).unwrap(),
        (6000.0, "Standard_DS4_v2's limit (dsv2-series of 2024-07-29)".into(), None)
    );
    run.header.plan.hosts.get_mut(&sender).unwrap().expect_mbps = Some(700);
    assert_eq!(whose(&run).unwrap().0.to_bits(), 700_f64.to_bits());
    run.header.plan.arms[0].expect_mbps = Some(800);
    assert_eq!(whose(&run).unwrap().0.to_bits(), 800_f64.to_bits());
}

#[test]
fn arms_at_the_size_limit_explain_equal_throughput() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], effect: 1.0, noise: 0.005, ..Recipe::default() });
    // The recipe moves 5.5 to 6 Gbit/s.
    for host in run.header.plan.hosts.values_mut() {
        host.size = Some("Standard_DS4_v2".into());
    }
    let text = terminal::report(&document(&run), 200, false);
    assert!(text.contains("of payload of 6.00 Gbit/s") && text.contains("Standard_DS4_v2's limit"), "{text}");
    assert!(text.contains("a rate cap"), "{text}");
    assert!(text.contains("Both arms are at a rate cap (Standard_DS4_v2's limit"), "{text}");
}

/// The bottleneck of the first trial after a change. The hosts are different machines with idle CPU time.
fn changed(change: impl FnOnce(&mut Trial)) -> Limit {
    let mut run = bulk(1, 1.0);
    let workload = run.header.plan.arms[0].workloads[0].clone();
    let trial = &mut run.trials[0];
    for seen in observations(trial) {
        seen.driver.clear();
        seen.softnet.clear();
        for core in &mut seen.cores {
            *core = CoreTime { core: core.core, idle_ns: seen.wall_ns, ..CoreTime::default() };
        }
    }
    *tcp(trial) = TcpInfo { busy_us: Some(4_900_000), ..TcpInfo::default() };
    change(trial);
    limit_of(&workload, trial, false, None).unwrap()
}

fn tcp(trial: &mut Trial) -> &mut TcpInfo {
    trial.client.as_mut().unwrap().report.streams[0].tcp.as_mut().unwrap()
}

/// The bottleneck of a trial in which a counter of the client's interface rose by so many thousandths of its packets or bytes.
fn rose(name: &'static str, thousandths: u64, on_carrier: bool) -> (Limit, String) {
    let mut note = String::new();
    let limit = changed(|trial| {
        let seen = &mut trial.client.as_mut().unwrap().observation;
        let ports = seen.interfaces.iter().filter(|interface| !interface.is_master);
        let carrier = ports.max_by_key(|interface| interface.tx_bytes).unwrap();
        let [packets, bytes] = [carrier.rx_packets + carrier.tx_packets, carrier.rx_bytes + carrier.tx_bytes];
        let all = if name.ends_with("bytes") { bytes } else { packets };
        let change = (all * thousandths / 1000).max(1);
        let interface = if on_carrier { carrier.name.clone() } else { "ens9".to_owned() };
        note = format!("{name} of {interface} rose by {change}");
        seen.driver.insert(interface, BTreeMap::from([(name.to_owned(), change.cast_signed())]));
    });
    (limit, note)
}

#[test]
fn provider_counters_identify_a_rate_cap() {
    let limits = [
        "bw_out_allowance_exceeded",
        "pps_allowance_exceeded",
        "tx_hw_drop_ratelimits",
        "tx0_hw_ratelimit_bytes",
    ];
    for name in limits {
        let (limit, note) = rose(name, 2, true);
        assert_eq!(limit.cause, Cause::RateCap, "{name}");
        assert!(limit.evidence[0].contains(&note), "{limit:?}");
    }
    for name in ["linklocal_allowance_exceeded", "tx_packets", "conntrack_allowance_available"] {
        assert_eq!(rose(name, 2, true).0.cause, Cause::Unknown, "{name}");
    }
    let nothing = changed(|_| {});
    assert!(nothing.cause == Cause::Unknown && !nothing.evidence.is_empty(), "{nothing:?}");
}

#[test]
fn small_provider_counts_are_not_the_cause() {
    let (few, note) = rose("bw_out_allowance_exceeded", 0, true);
    assert_eq!(few.cause, Cause::Unknown);
    let last = few.evidence.last().unwrap();
    assert!(last.contains(&note) && last.contains("not the cause"), "{few:?}");
    let (elsewhere, note) = rose("bw_out_allowance_exceeded", 500, false);
    assert_eq!(elsewhere.cause, Cause::Unknown);
    assert!(elsewhere.evidence.iter().all(|words| !words.contains(&note)), "{elsewhere:?}");
}

#[test]
fn loss_with_growing_round_trips_is_congestion() {
    let lossy = |rtt_us: u32| {
        changed(|trial| {
            let (resent, all) = (Some(200), Some(10_000));
            *tcp(trial) = TcpInfo {
                busy_us: Some(4_900_000),
                retransmits: resent,
                segs_out: all,
                snd_mss: Some(1448),
                rtt_us: Some(rtt_us),
                min_rtt_us: Some(1000),
                ..TcpInfo::default()
            };
            // A rate that rises and falls is not a cap.
            let received = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
            for (index, sample) in received.series.iter_mut().enumerate() {
                sample.bytes = sample.bytes / 10 * (6 + index as u64 * 7 % 9);
            }
            // Both interfaces have the same count.
            let sent = trial.client.as_ref().unwrap().observation.interfaces.clone();
            for (interface, other) in
                trial.server.as_mut().unwrap().observation.interfaces.iter_mut().zip(sent)
            {
                (interface.rx_bytes, interface.tx_bytes) = (other.tx_bytes, other.rx_bytes);
            }
        })
    };
    assert_eq!((lossy(1100).cause, lossy(9000).cause), (Cause::Loss, Cause::Congestion));
}

#[test]
fn waiting_threads_are_cpu_contention_only_with_cpu_time_of_other_processes() {
    use netduel_model::sample::ThreadUse;
    let waited = |client_ms: u64, server_ms: u64, [run_percent, own_percent, idle_percent]: [u64; 3]| {
        changed(|trial| {
            for (role, ms) in [(Role::Client, client_ms), (Role::Server, server_ms)] {
                let end = if role == Role::Client { &mut trial.client } else { &mut trial.server };
                let end = end.as_mut().unwrap();
                let wall_ns = end.observation.wall_ns;
                end.report.thread_use = Some(ThreadUse {
                    threads: 1,
                    run_ns: wall_ns / 100 * run_percent,
                    run_delay_ns: wall_ns / 1000 * ms,
                });
                let cores = end.observation.cores.len() as u64;
                end.observation.process.system_ns = 0;
                end.observation.process.user_ns = wall_ns * cores / 100 * own_percent;
                for core in &mut end.observation.cores {
                    core.idle_ns = wall_ns / 100 * idle_percent;
                    core.user_ns = wall_ns - core.idle_ns;
                }
            }
        })
    };
    let starved = waited(800, 0, [10, 0, 0]);
    assert_eq!(starved.cause, Cause::SenderCore);
    assert!(starved.evidence[0].contains("runnable but not scheduled 80 % of the time"), "{starved:?}");
    // A thread that was not pinned waited, and other processes used the CPU: CPU contention.
    let starved = waited(0, 800, [10, 10, 0]);
    assert_eq!(starved.cause, Cause::CpuContention, "{starved:?}");
    assert!(
        starved.evidence[0].starts_with("other processes used 90 % of the CPU time of the "),
        "{starved:?}"
    );
    assert!(
        starved.evidence.iter().any(|words| words.starts_with("the server's thread ran 10 % of the time")),
        "{starved:?}"
    );
    // Without other processes the threads filled the machine, or their core.
    let own = waited(0, 800, [10, 97, 0]);
    assert_eq!(own.cause, Cause::AllCores, "{own:?}");
    assert!(own.evidence[0].contains("not scheduled 80 % of the time (1 thread on 4 cores)"), "{own:?}");
    assert_eq!(waited(0, 800, [10, 60, 40]).cause, Cause::ReceiverCore);
    // Other processes with little beside what the ends used did not make them wait.
    let little = waited(0, 800, [10, 94, 0]);
    assert_eq!(little.cause, Cause::AllCores, "{little:?}");
    let others = "other processes used 6.0 % of the CPU time of the server's host";
    assert_eq!(little.evidence.last().map(String::as_str), Some(others), "{little:?}");
    for (own_percent, cause) in [(82, Cause::AllCores), (78, Cause::CpuContention)] {
        assert_eq!(waited(0, 800, [10, own_percent, 0]).cause, cause, "{own_percent} %");
    }
    assert_eq!(waited(0, 800, [10, 52, 40]).cause, Cause::ReceiverCore);
    // A thread that waits for nothing but a core: the core is its own only where it ran most of the time.
    assert_eq!(waited(0, 370, [50, 10, 0]).cause, Cause::CpuContention);
    assert_eq!(waited(0, 190, [70, 10, 0]).cause, Cause::ReceiverCore);
    assert_ne!(waited(0, 370, [10, 10, 0]).cause, Cause::CpuContention);
}

/// The bottleneck of a closed loop whose threads waited for this share of the time, beside other processes or without them.
fn closed_loop(waited_percent: u64, others: bool) -> Limit {
    use netduel_model::sample::ThreadUse;
    let mut run = build(&Recipe { workloads: vec!["rr"], blocks: 1, ..Recipe::default() });
    let workload = run.header.plan.arms[0].workloads[0].clone();
    let trial = &mut run.trials[0];
    for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
        let part = end.observation.wall_ns / 100;
        end.report.thread_use =
            Some(ThreadUse { threads: 1, run_ns: part * 20, run_delay_ns: part * waited_percent });
        end.report.streams.clear();
        end.observation.process.user_ns = if others { 0 } else { part * 400 };
    }
    limit_of(&workload, trial, false, None).unwrap()
}

#[test]
fn closed_loop_is_latency_bound_only_while_its_threads_get_cores() {
    let bound = closed_loop(19, true);
    assert_eq!(bound.cause, Cause::RoundTrip, "{bound:?}");
    assert_eq!(
        bound.evidence[0],
        "1 outstanding request; threads were runnable but not scheduled 19 % of the time"
    );
    assert_eq!(closed_loop(20, true).cause, Cause::CpuContention);
    assert_ne!(closed_loop(20, false).cause, Cause::RoundTrip);
    assert_ne!(closed_loop(20, false).cause, Cause::CpuContention);
}

#[test]
fn core_of_an_end_of_round_trips_is_that_of_the_client_or_the_server() {
    use netduel_model::sample::ThreadUse;
    let waited = |name: &'static str, [client, server]: [u64; 2]| {
        let mut run = build(&Recipe { workloads: vec![name], blocks: 1, ..Recipe::default() });
        let workload = run.header.plan.arms[0].workloads[0].clone();
        let trial = &mut run.trials[0];
        for (end, percent) in [(&mut trial.client, client), (&mut trial.server, server)] {
            let end = end.as_mut().unwrap();
            let part = end.observation.wall_ns / 100;
            end.report.thread_use =
                Some(ThreadUse { threads: 1, run_ns: part * 10, run_delay_ns: part * percent });
            end.report.streams.iter_mut().for_each(|stream| stream.core = None);
            // Half of each core is idle, and the other half is netduel's.
            end.observation.process.user_ns = part * 50 * end.observation.cores.len() as u64;
            for core in &mut end.observation.cores {
                *core = CoreTime {
                    core: core.core,
                    user_ns: part * 50,
                    idle_ns: part * 50,
                    ..CoreTime::default()
                };
            }
        }
        let limit = limit_of(&workload, trial, false, None).unwrap();
        (limit.cause, limit.cause.words())
    };
    for name in ["rr", "crr"] {
        assert_eq!(waited(name, [80, 0]), (Cause::ClientCore, "the client's core"), "{name}");
        assert_eq!(waited(name, [0, 80]), (Cause::ServerCore, "the server's core"), "{name}");
    }
    assert_eq!(waited("bulk", [80, 0]), (Cause::SenderCore, "the sender's core"));
    assert_eq!(waited("bulk", [0, 80]), (Cause::ReceiverCore, "the receiver's core"));
}

#[test]
fn qdisc_that_delays_most_packets_is_a_cap_beside_other_processes() {
    use netduel_model::sample::ThreadUse;
    let delayed = |share: u64| {
        changed(|trial| {
            let end = trial.client.as_mut().unwrap();
            let wall_ns = end.observation.wall_ns;
            end.report.streams.iter_mut().for_each(|stream| stream.core = None);
            end.report.thread_use =
                Some(ThreadUse { threads: 1, run_ns: wall_ns / 10, run_delay_ns: wall_ns / 2 });
            end.observation.process.user_ns = 0;
            end.observation.process.system_ns = 0;
            end.observation.cores.iter_mut().for_each(|core| core.user_ns = wall_ns);
            for interface in &mut end.observation.interfaces {
                interface.qdisc_overlimits = Some(interface.tx_packets / 100 * share);
                interface.qdisc_dropped = Some(7);
            }
        })
    };
    let capped = delayed(20);
    assert_eq!(capped.cause, Cause::RateCap, "{capped:?}");
    assert!(capped.evidence[0].ends_with("(overlimits) and dropped 7 packets"), "{capped:?}");
    assert_eq!(capped.evidence.len(), 1, "each fact once: {capped:?}");
    assert_eq!(delayed(5).cause, Cause::CpuContention);
}

#[test]
fn causes_with_equal_counts_are_no_single_cause() {
    let mut run = bulk(2, 1.0);
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "synthetic") {
        if trial.slot.block == 1 {
            for interface in &mut trial.client.as_mut().unwrap().observation.interfaces {
                interface.qdisc_overlimits = Some(interface.tx_packets);
            }
        }
    }
    let analysis = analyse_run(&run);
    let limit = analysis.workloads[0].arms[0].limit.as_ref().unwrap();
    assert_eq!((limit.cause, limit.trials, limit.of, limit.others.len()), (None, 1, 2, 2), "{limit:?}");
    let text = terminal::report(&document(&run), 200, false);
    assert!(text.contains("no single cause") && text.contains("1 each of 2"), "{text}");
    assert!(text.contains(&format!("block {}): ", limit.evidence_block + 1)), "{text}");
    let bottleneck = &crate::json::report(&run)["workloads"][0]["arms"][0]["bottleneck"];
    assert_eq!(bottleneck["evidence_block"], limit.evidence_block + 1, "{bottleneck}");
}

#[test]
fn a_core_without_idle_time_is_full_whatever_the_hypervisor_stole() {
    use netduel_model::sample::ThreadUse;
    let stolen = |percent: u64, idle: u64| {
        changed(|trial| {
            let mut stream = trial.client.as_ref().unwrap().report.streams[0].clone();
            stream.core = Some(1);
            let end = trial.server.as_mut().unwrap();
            let wall_ns = end.observation.wall_ns;
            end.report.thread_use =
                Some(ThreadUse { threads: 1, run_ns: wall_ns / 12, run_delay_ns: wall_ns / 4 * 3 });
            end.report.streams = vec![stream];
            let part = wall_ns / 100;
            for core in &mut end.observation.cores {
                *core = CoreTime {
                    core: core.core,
                    user_ns: part * (100 - percent - idle),
                    steal_ns: part * percent,
                    idle_ns: part * idle,
                    ..CoreTime::default()
                };
            }
        })
    };
    let shared = stolen(20, 0);
    assert_eq!(shared.cause, Cause::ReceiverCore, "{shared:?}");
    assert!(shared.evidence[0].contains("pinned to core 1, 80 % busy, 20 % steal time"), "{shared:?}");
    let idle = stolen(20, 20);
    assert_eq!(idle.cause, Cause::CpuContention, "{idle:?}");
}

#[test]
fn small_full_window_is_the_bottleneck_even_with_busy_cores() {
    use netduel_model::sample::ThreadUse;
    let shut = |window: u32, waited: u64| {
        changed(|trial| {
            tcp(trial).rwnd_limited_us = Some(4_850_000);
            let mut received = trial.client.as_ref().unwrap().report.streams[0].clone();
            received.tcp = Some(TcpInfo { rcv_wnd: Some(window), ..TcpInfo::default() });
            received.core = Some(1);
            let server = trial.server.as_mut().unwrap();
            let part = server.observation.wall_ns / 100;
            server.report.streams = vec![received];
            server.report.thread_use =
                Some(ThreadUse { threads: 1, run_ns: part * 10, run_delay_ns: part * waited });
            for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
                let wall_ns = end.observation.wall_ns;
                for core in &mut end.observation.cores {
                    (core.user_ns, core.softirq_ns, core.idle_ns) = (wall_ns / 3, wall_ns / 3 * 2, 0);
                }
            }
        })
    };
    assert_eq!(shut(8830, 0).cause, Cause::ReceiveWindow);
    assert_eq!(shut(8830, 70).cause, Cause::ReceiveWindow, "it waited for data in a fifth of the time");
    assert_ne!(shut(4 << 20, 0).cause, Cause::ReceiveWindow);
    // It never waited for data: the window did not grow because it could not read.
    let starved = shut(414_000, 85);
    assert_eq!(starved.cause, Cause::ReceiverCore, "{starved:?}");
    assert!(starved.evidence[0].contains("runnable but not scheduled 85 % of the time (pinned to core 1"));
}
