//! Values from records with numbers that can be checked by hand.
use netduel_model::attempts;
use netduel_model::metric::Metric;
use netduel_model::observation::{CoreTime, Observation};
use netduel_model::plan::Launch;
use netduel_model::sample::{ConnectionReport, DatagramReport, EndReport, ErrorCount, Flow, IntervalSample};
use netduel_model::trial::{Trial, TrialEnd, Validity};
use netduel_model::units::BitRate;
use netduel_model::warning::Warning;
use netduel_model::workload::{Direction, TcpStream, Traffic, Workload};
use netduel_report::analysis::{analyse, value_of};
use netduel_report::{analyse_run, document, html, markdown};
use netduel_stats::histogram::Histogram;

use crate::builder::{Recipe, build};

pub const SECOND: u64 = 1_000_000_000;

/// A run with one workload, and its first trial with that workload.
pub fn first(name: &'static str) -> (Workload, Trial) {
    let run = build(&Recipe { workloads: vec![name], blocks: 1, ..Recipe::default() });
    (run.header.plan.arms[0].workloads[0].clone(), run.trials[0].clone())
}

/// A flow that moves `bytes` in each of five seconds, and ten times as much in the first.
pub fn flow(bytes: u64) -> Flow {
    let sample = |second: u64| IntervalSample {
        end_ns: (second + 1) * SECOND,
        length_ns: SECOND,
        bytes: if second == 0 { 10 * bytes } else { bytes },
        messages: bytes / 1000,
    };
    Flow {
        bytes: 14 * bytes,
        messages: 5 * bytes / 1000,
        series: (0..5).map(sample).collect(),
        ..Flow::default()
    }
}

fn cores(busy_ns: u64, wall_ns: u64) -> Observation {
    let core = CoreTime {
        user_ns: busy_ns / 2,
        softirq_ns: busy_ns / 2,
        idle_ns: SECOND,
        steal_ns: 7,
        ..CoreTime::default()
    };
    Observation { wall_ns, cores: vec![core], ..Observation::default() }
}

pub fn report(trial: &mut Trial, client: bool) -> &mut EndReport {
    let end = if client { &mut trial.client } else { &mut trial.server };
    &mut end.as_mut().unwrap().report
}

fn set_direction(workload: &mut Workload, wanted: Direction) {
    if let Traffic::TcpStream(TcpStream { direction, .. }) = &mut workload.traffic {
        *direction = wanted;
    }
}

#[test]
fn throughput_is_measured_at_the_receiver_in_the_steady_window() {
    let (mut workload, mut trial) = first("bulk");
    workload.timing.warmup.0 = SECOND;
    workload.timing.cooldown.0 = SECOND / 2;
    report(&mut trial, true).sent = Some(flow(999_000));
    report(&mut trial, false).received = Some(flow(1_000_000));
    let value = value_of(Metric::Throughput, &workload, &trial, true).unwrap();
    assert!((value - 8e6).abs() < 1.0, "{value}");
}

#[test]
fn throughput_of_both_directions_is_summed() {
    let (mut workload, mut trial) = first("bulk");
    workload.timing.warmup.0 = SECOND;
    set_direction(&mut workload, Direction::Both);
    report(&mut trial, false).received = Some(flow(1_000_000));
    report(&mut trial, true).received = Some(flow(500_000));
    let value = value_of(Metric::Throughput, &workload, &trial, true).unwrap();
    assert!((value - 12e6).abs() < 1.0, "{value}");
    report(&mut trial, true).received = None;
    assert_eq!(value_of(Metric::Throughput, &workload, &trial, true), None, "half of a sum is not a figure");
    set_direction(&mut workload, Direction::Down);
    assert_eq!(value_of(Metric::Throughput, &workload, &trial, true), None);
}

#[test]
fn loss_is_counted_exactly_over_the_whole_trial() {
    let (workload, mut trial) = first("udp");
    report(&mut trial, true).sent.as_mut().unwrap().messages = 1_000_000;
    let datagrams = |unique| DatagramReport { unique, duplicates: 5, ..DatagramReport::default() };
    report(&mut trial, false).datagrams = Some(datagrams(999_999));
    assert_eq!(value_of(Metric::Loss, &workload, &trial, true), Some(1e-6));
    report(&mut trial, false).datagrams = Some(datagrams(1_000_001));
    assert_eq!(
        value_of(Metric::Loss, &workload, &trial, true),
        None,
        "more came than went: the record is broken"
    );
    report(&mut trial, true).sent.as_mut().unwrap().messages = 0;
    assert_eq!(value_of(Metric::Loss, &workload, &trial, true), None);
}

#[test]
fn cpu_time_of_a_shared_machine_is_counted_once() {
    let (workload, mut trial) = first("bulk");
    report(&mut trial, false).received = Some(Flow { bytes: 2_000_000_000, ..Flow::default() });
    trial.client.as_mut().unwrap().observation = cores(4 * SECOND, 5 * SECOND);
    trial.server.as_mut().unwrap().observation = cores(6 * SECOND, 6 * SECOND);
    let value = |shared| value_of(Metric::CpuPerGigabyte, &workload, &trial, shared);
    assert_eq!((value(true), value(false)), (Some(3.0), Some(5.0)));
    trial.server.as_mut().unwrap().observation.cores.clear();
    let value = |shared| value_of(Metric::CpuPerGigabyte, &workload, &trial, shared);
    assert_eq!((value(true), value(false)), (Some(2.0), None), "a host that does not tell is not idle");
}

#[test]
fn retransmits_are_absent_if_a_connection_lacks_the_counter() {
    let (workload, mut trial) = first("bulk");
    report(&mut trial, false).received = Some(Flow { bytes: 500_000_000, ..Flow::default() });
    let tcp = |trial: &mut Trial, retransmits| {
        report(trial, true).streams[0].tcp.as_mut().unwrap().retransmits = retransmits;
    };
    tcp(&mut trial, Some(3));
    assert_eq!(value_of(Metric::RetransmitsPerGigabyte, &workload, &trial, true), Some(6.0));
    tcp(&mut trial, None);
    assert_eq!(value_of(Metric::RetransmitsPerGigabyte, &workload, &trial, true), None);
}

#[test]
fn only_the_highest_attempt_of_a_block_counts() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 3, ..Recipe::default() });
    let mut again: Vec<Trial> = run.trials.iter().filter(|trial| trial.slot.block == 1).cloned().collect();
    for trial in &mut again {
        trial.attempt = 1;
    }
    run.trials.retain(|trial| trial.slot.block != 1 || trial.slot.position == 0);
    run.trials.extend(again);
    let analysis = analyse_run(&run);
    assert_eq!((analysis.blocks, analysis.trials_valid), (3, 6));
    assert_eq!(analysis.trials_valid as usize, attempts::counting(&run.trials).count());
}

#[test]
fn slot_with_two_trials_of_an_attempt_counts_once() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 3, ..Recipe::default() });
    let again: Vec<Trial> = run.trials.iter().filter(|trial| trial.slot.block == 1).cloned().collect();
    run.trials.extend(again);
    let analysis = analyse_run(&run);
    let pairs = analysis.workloads[0].judged[0].comparisons[0].pairs.len();
    assert_eq!((pairs, analysis.trials_valid), (3, 6));
    assert_eq!(attempts::counting(&run.trials).count(), 6);
}

#[test]
fn hosts_launched_locally_share_a_machine_without_a_header() {
    let run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    let cost =
        |plan: &_| analyse(plan, None, &run.trials, &[], None).workloads[0].judged[1].arms[0].values[0].1;
    let mut plan = run.header.plan.clone();
    let shared = cost(&plan);
    let elsewhere = Launch::Command { prefix: vec!["ssh".to_owned(), "b".to_owned()] };
    plan.hosts.get_mut(&"b".parse().unwrap()).unwrap().launch = elsewhere;
    assert!(cost(&plan) > 1.9 * shared);
}

#[test]
fn precision_requires_a_narrow_interval_of_every_metric() {
    let calm = Recipe { noise: 0.002, loss: [0.0, 0.0], ..Recipe::default() };
    assert!(analyse_run(&build(&calm)).precise_enough(|_| false));
    assert!(!analyse_run(&build(&Recipe { blocks: 3, ..calm.clone() })).precise_enough(|_| false));
    assert!(!analyse_run(&build(&Recipe { noise: 0.3, ..calm.clone() })).precise_enough(|_| false));
    let mut alone = build(&calm);
    alone.header.plan.arms.truncate(1);
    assert!(!analyse_run(&alone).precise_enough(|_| false), "nothing to compare is nothing to be sure of");
}

/// The kinds of warnings of a run.
pub fn kinds(run: &netduel_model::run::Run) -> Vec<String> {
    let warnings = analyse_run(run).warnings;
    warnings.iter().map(|warning| warning.to_string().split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn warnings_are_derived_from_the_data() {
    let calm = Recipe { workloads: vec!["bulk"], loss: [0.0, 0.0], ..Recipe::default() };
    assert_eq!(kinds(&build(&calm)), ["shared machine"]);

    let mut run = build(&calm);
    let end = run.trials[3].client.as_mut().unwrap();
    end.observation.cores[0].steal_ns = 3 * SECOND;
    end.observation.clock_step_ns = -2_000_000;
    assert_eq!(kinds(&run), ["shared machine", "steal time", "clock step"]);

    let mut run = build(&calm);
    run.header.plan.arms[1].expect_client = None;
    run.header.plan.arms[1].expect_server = None;
    assert_eq!(kinds(&run), ["shared machine", "arm not proven"]);

    let run = build(&Recipe { failed: vec![(0, 0)], wrong_path: vec![(1, 0)], ..calm.clone() });
    assert_eq!(kinds(&run), ["shared machine", "path changed", "trials excluded"]);

    let run = build(&Recipe { workloads: vec!["udp"], loss: [0.02, 0.02], ..calm.clone() });
    assert_eq!(kinds(&run), ["shared machine", "receiver overrun", "receiver overrun"]);
}

#[test]
fn bimodal_warning_asks_for_pinning_only_where_threads_are_not_pinned() {
    let text = |pinned: bool, launch: Option<Launch>| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
        for host in run.header.plan.hosts.values_mut() {
            host.launch = launch.clone().unwrap_or_else(|| host.launch.clone());
        }
        for workload in run.header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
            workload.pin_client = if pinned { vec![1] } else { Vec::new() };
        }
        run.warnings.push(Warning::Bimodal {
            arm: "synthetic".parse().unwrap(),
            workload: "bulk".parse().unwrap(),
            metric: Metric::Throughput,
            low: 2e9,
            high: 6e9,
        });
        netduel_report::words::warnings(&analyse_run(&run)).concat()
    };
    let (pinned, free) = (text(true, Some(Launch::Local)), text(false, None));
    assert!(!pinned.contains("set `pin_client`") && pinned.contains("check interrupt affinity"), "{pinned}");
    assert!(free.contains("set `pin_client` and `pin_server`"), "{free}");
    let in_a_lab = text(true, None);
    assert!(in_a_lab.contains("threads are pinned, so look for other load on this machine"), "{in_a_lab}");
    assert!(!in_a_lab.contains("interrupt affinity"), "virtual interfaces have no interrupts: {in_a_lab}");
}

/// The warnings about counts in a run whose trials were changed by `spoil`.
fn about_counts(workload: &'static str, spoil: impl Fn(&mut Trial)) -> Vec<String> {
    let mut run = build(&Recipe { workloads: vec![workload], loss: [0.0, 0.0], ..Recipe::default() });
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "accelerated") {
        spoil(trial);
    }
    let sentences = analyse_run(&run).warnings.into_iter().map(|warning| warning.to_string());
    sentences.filter(|sentence| sentence.starts_with("counts disagree")).collect()
}

#[test]
fn inconsistent_counts_are_reported_with_an_explanation() {
    let carrier = |end: &mut Option<TrialEnd>, change: fn(&mut u64, &mut u64)| {
        let interface = &mut end.as_mut().unwrap().observation.interfaces[1];
        assert_eq!(interface.name, "vf0");
        change(&mut interface.tx_bytes, &mut interface.rx_bytes);
    };
    for workload in ["bulk", "udp", "rr", "open"] {
        assert_eq!(about_counts(workload, |_| ()), Vec::<String>::new(), "{workload}");
        let extra = about_counts(workload, |trial| carrier(&mut trial.client, |sent, _| *sent += *sent / 4));
        assert_eq!(extra.len(), 1, "{workload}: {extra:?}");
        assert!(extra[0].contains("vf0 of host a sent") && extra[0].contains("in 8 trials"), "{extra:?}");
        assert!(extra[0].contains("other traffic used the interface"), "{extra:?}");
        let late = about_counts(workload, |trial| {
            carrier(&mut trial.server, |_, received| *received -= *received / 3);
        });
        assert!(late.len() == 1 && late[0].contains("packets that bypass it"), "{workload}: {late:?}");
    }
    // A tenth of the bytes at the interface never reached the socket or the program.
    let behind = about_counts("udp", |trial| {
        let report = &mut trial.server.as_mut().unwrap().report;
        let (flow, count) = (report.received.as_mut().unwrap(), report.datagrams.as_mut().unwrap());
        let gone = count.unique / 10;
        count.unique -= gone;
        flow.messages -= gone;
        flow.bytes -= gone * 1448;
    });
    assert!(behind.len() == 1 && behind[0].contains("dropped before the program's socket"), "{behind:?}");
    assert!(behind[0].contains("vf0 of host b received"), "{behind:?}");
}

#[test]
fn counts_are_consistent_with_and_without_segmentation_offload() {
    // 64 KiB in one packet with one header, as a veth counts; the other runs of the builder count frames as on the wire.
    let whole = about_counts("bulk", |trial| {
        for end in [&mut trial.client, &mut trial.server] {
            let interface = &mut end.as_mut().unwrap().observation.interfaces[1];
            for (bytes, packets) in [
                (&mut interface.tx_bytes, &mut interface.tx_packets),
                (&mut interface.rx_bytes, &mut interface.rx_packets),
            ] {
                *bytes -= *packets * 66;
                *packets /= 45;
                *bytes += *packets * 66;
            }
        }
    });
    assert_eq!(whole, Vec::<String>::new());
}

#[test]
fn failed_transactions_cause_a_warning_with_client_counts() {
    let mut run = build(&Recipe { workloads: vec!["crr"], blocks: 2, ..Recipe::default() });
    assert_eq!(kinds(&run), ["shared machine"]);
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "synthetic") {
        let report = &mut trial.client.as_mut().unwrap().report;
        let trips = report.round_trips.as_mut().unwrap();
        let parts = trips.parts.as_mut().unwrap();
        (parts.attempted, parts.failed) = (1000, 4);
        let error =
            |error: &str, count| ErrorCount { call: "connect".to_owned(), error: error.to_owned(), count };
        report.errors = vec![error("no local port was free", 1), error("EADDRNOTAVAIL: no", 3)];
    }
    let warnings = analyse_run(&run).warnings;
    assert_eq!(warnings.len(), 2);
    assert_eq!(
        warnings[1].to_string(),
        "transactions failed: 8 of 2000 transactions in crr of synthetic failed and are in no latency figure: connect: EADDRNOTAVAIL: no \
         (6 times); connect: no local port was free (2 times)"
    );
}

#[test]
fn loaded_latency_metrics_use_their_own_phase() {
    let (workload, mut trial) = first("load");
    let record = |values: &[u64]| {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram.to_record()
    };
    let report = &mut trial.client.as_mut().unwrap().report;
    let trips = report.round_trips.as_mut().unwrap();
    trips.idle = Some(record(&[100, 101, 102]));
    trips.histogram = record(&[500, 600, 700]);
    let load = report.under_load.as_mut().unwrap();
    // The largest 5 % are trimmed: one of twenty, none of five.
    let mut many = [20; 20];
    many[19] = 2_000;
    load.foreign.connect = record(&many.map(|value| value * 1_000_000));
    load.foreign.exchange = record(&[40_000_000; 20]);
    load.in_band = record(&[120_000_000; 20]);
    let value = |metric| value_of(metric, &workload, &trial, true).unwrap();
    let latencies = [Metric::LatencyIdleP50, Metric::LatencyLoadedP50, Metric::LatencyLoadedP99].map(value);
    assert_eq!(latencies.map(|nanoseconds| nanoseconds as u64), [101, 600, 700]);
    let rpm = value(Metric::Responsiveness);
    assert!((rpm - 1250.0).abs() < 1250.0 * 0.001, "{rpm}");
    // Throughput is that of the loaded phase: 2 s idle, 0.5 s of warm-up, 0.2 s of cool-down.
    assert_eq!(workload.steady_window(), 2_500_000_000..4_800_000_000);
    let (_, bulk) = first("bulk");
    let whole = bulk.server.unwrap().report.received.unwrap();
    trial.server.as_mut().unwrap().report.received = Some(whole.clone());
    let steady: u64 = whole
        .series
        .iter()
        .filter(|s| s.end_ns > 2_500_000_000 && s.end_ns <= 4_800_000_000)
        .map(|s| s.bytes)
        .sum();
    let throughput = value_of(Metric::Throughput, &workload, &trial, true).unwrap();
    assert!((throughput - steady as f64 * 8.0 / 2.3).abs() < 1.0, "{throughput}");
}

#[test]
fn missed_rate_causes_a_warning_with_both_rates() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    let set_rate = |run: &mut netduel_model::run::Run, bits_per_second| {
        for arm in &mut run.header.plan.arms {
            if let Traffic::TcpStream(TcpStream { rate, .. }) = &mut arm.workloads[0].traffic {
                *rate = Some(BitRate(bits_per_second));
            }
        }
    };
    let duration_s = run.header.plan.arms[0].workloads[0].timing.duration.0 as f64 / 1e9;
    for trial in &mut run.trials {
        let sent = trial.client.as_mut().unwrap().report.sent.as_mut().unwrap();
        sent.bytes = (1e9 / 8.0 * duration_s) as u64 - 1;
    }
    set_rate(&mut run, 1_000_000_000);
    assert!(!kinds(&run).contains(&"rate missed".to_owned()), "a byte less is rounding");
    set_rate(&mut run, 2_000_000_000);
    let warnings = analyse_run(&run).warnings;
    let missed =
        warnings.iter().find(|warning| warning.to_string().starts_with("rate missed")).unwrap().to_string();
    assert!(missed.contains("1000 Mbit/s instead of the 2.00 Gbit/s"), "{missed}");
    let (workload, trial) = (&run.header.plan.arms[0].workloads[0], &run.trials[0]);
    let words = netduel_report::analysis::missed_rate(workload, trial).unwrap();
    assert_eq!(
        words, "1000 Mbit/s sent in the whole test of the configured 2.00 Gbit/s",
        "not the steady window"
    );
}

#[test]
fn concurrent_tests_on_a_server_cause_a_warning() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    for (trial, others) in run.trials.iter_mut().zip([0, 2, 1]) {
        trial.server.as_mut().unwrap().observation.concurrent_tests = others;
    }
    let warnings = analyse_run(&run).warnings;
    let words: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let found = words
        .iter()
        .find(|words| words.starts_with("concurrent tests"))
        .unwrap_or_else(|| panic!("{words:?}"));
    assert!(found.contains("up to 2 other tests") && found.contains("in 2 trials"), "{found}");
}

#[test]
fn cpu_time_of_other_processes_causes_a_warning() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    for trial in &mut run.trials {
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            end.observation.process.system_ns = 0;
        }
    }
    assert_eq!(kinds(&run), ["shared machine", "CPU contention"]);
}

#[test]
fn stored_warning_is_not_repeated() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], failed: vec![(0, 1)], ..Recipe::default() });
    run.warnings.push(Warning::TrialsExcluded {
        arm: "accelerated".parse().unwrap(),
        trials: 1,
        reason: "seen live".to_owned(),
    });
    assert_eq!(kinds(&run), ["shared machine", "trials excluded"]);
}

#[test]
fn explanation_states_only_counted_facts() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    for trial in &mut run.trials {
        trial.proofs.clear();
        for end in [&mut trial.client, &mut trial.server] {
            let end = end.as_mut().unwrap();
            end.observation = Observation::default();
            end.report.streams.clear();
        }
        trial.validity = Validity::Valid;
    }
    let analysis = analyse_run(&run);
    assert_eq!(analysis.workloads[0].explanation, Vec::<String>::new());
    assert!(analysis.workloads[0].counters.is_empty());
}

#[test]
fn counter_ratios_use_the_estimate_of_the_verdicts() {
    let analysis = analyse_run(&build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() }));
    let workload = &analysis.workloads[0];
    let busy = workload.counters.iter().find(|counter| counter.title == "busy CPU time").unwrap();
    let cpu = workload.judged.iter().find(|metric| metric.metric == Metric::CpuPerGigabyte).unwrap();
    let verdict = cpu.comparisons[0].judged.unwrap().estimate.unwrap();
    let [None, Some(ratio)] = busy.ratios[..] else { panic!("{:?}", busy.ratios) };
    assert!((ratio.centre - verdict.centre).abs() < 1e-9, "{ratio:?} against {verdict:?}");
    // The interval of a counter does not share its confidence with the verdicts, so it is not wider.
    assert!(verdict.low <= ratio.low && ratio.low < ratio.centre, "{ratio:?} against {verdict:?}");
    assert!(ratio.centre < ratio.high && ratio.high <= verdict.high, "{ratio:?} against {verdict:?}");
}

#[test]
fn ratios_of_counters_have_intervals_and_terms_of_the_kernel_a_meaning() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let page = html::page(&document(&run));
    let title = "paired ratio [95 % interval]";
    let (_, ratio) = page.split_once(&format!("data-title=\"{title}\">")).unwrap_or_else(|| panic!("{page}"));
    let (ratio, _) = ratio.split_once('<').unwrap();
    assert!(ratio.contains("x [") && ratio.ends_with("x]"), "{ratio}");
    assert!(page.contains("Softirq: work that the kernel defers"), "{page}");
}

#[test]
fn percentiles_are_printed_only_where_the_samples_resolve_them() {
    // Ten trials with one connection each: a 99th percentile would be the maximum.
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 10, ..Recipe::default() });
    for (index, trial) in run.trials.iter_mut().enumerate() {
        let mut histogram = Histogram::new();
        histogram.record(200_000 + 1_000 * index as u64);
        let report = &mut trial.client.as_mut().unwrap().report;
        report.connections =
            Some(ConnectionReport { connect: histogram.to_record(), elapsed_ns: 1_000_000, concurrency: 1 });
    }
    let page = markdown::page(&document(&run));
    let row = page
        .lines()
        .find(|line| line.starts_with("| connect, from SYN to established | synthetic |"))
        .unwrap();
    let titles = page.lines().find(|line| line.contains("| part | arm | connections | p50, us |")).unwrap();
    let cell = |title: &str| {
        let index = titles.split(" | ").position(|other| other.trim_matches([' ', '|']) == title).unwrap();
        row.split(" | ").nth(index).unwrap().trim_matches([' ', '|'])
    };
    assert_eq!((cell("connections"), cell("p99, us"), cell("p99.9, us")), ("10", "-", "-"), "{row}");
    // Values of one part have one unit, so that rows compare at a glance.
    assert_eq!((cell("p90, us"), cell("max, us")), ("217", "219"), "{row}");
}
