//! What a reader must see of a doubtful or special run: outliers below the median, an A/A run, a flat rate, transactions, a dropped arm.
use netduel_model::metric::Metric;
use netduel_model::run::{QUICK_TEST, Run, RunEnd};
use netduel_model::sample::{StreamReport, TcpInfo};
use netduel_model::units::BitRate;
use netduel_model::warning::Warning;
use netduel_model::workload::{Traffic, UdpStream};
use netduel_report::analysis::MetricAnalysis;
use netduel_report::{analyse_run, document, html, markdown, terminal, words};
use netduel_stats::histogram::Histogram;

use crate::builder::{Recipe, build};
use crate::figures::kinds;
use crate::warned::texts;
use crate::{crossover, json};

const SECOND: u64 = 1_000_000_000;

#[test]
fn value_far_below_the_median_causes_a_warning() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], effect: 1.0, noise: 0.01, ..Recipe::default() });
    let trial = run
        .trials
        .iter_mut()
        .find(|trial| trial.slot.block == 5 && trial.slot.arm.as_str() == "synthetic")
        .unwrap();
    // A trial with a 25th of the throughput.
    let flow = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
    flow.series.iter_mut().for_each(|sample| sample.bytes /= 25);
    let analysis = analyse_run(&run);
    let of_throughput = analysis.warnings.iter().find_map(|warning| match warning {
        Warning::OutlierBlock { arm, metric: Metric::Throughput, block, ratio_to_median, .. } => {
            Some((arm.as_str().to_owned(), *block, *ratio_to_median))
        }
        _ => None,
    });
    let (arm, block, ratio) = of_throughput.unwrap();
    assert_eq!((arm.as_str(), block), ("synthetic", 5));
    assert!((ratio - 0.04).abs() < 0.002, "{ratio}");
    let text = words::warnings(&analysis).into_iter().find(|text| text.starts_with("outlier block")).unwrap();
    assert!(
        text.contains("1/25 of the median of the other blocks in block 6")
            || text.contains("in block 6 (0.04x)"),
        "{text}"
    );
}

#[test]
fn two_levels_of_one_arm_cause_a_warning_and_those_of_both_arms_do_not() {
    // Every third trial of these arms has half of the throughput.
    let warned = |slow: &[&str]| -> Vec<String> {
        let mut run = build(&Recipe {
            workloads: vec!["bulk"],
            effect: 1.0,
            noise: 0.01,
            blocks: 9,
            ..Recipe::default()
        });
        for trial in run.trials.iter_mut().filter(|trial| trial.slot.block % 3 == 0) {
            if slow.contains(&trial.slot.arm.as_str()) {
                let flow = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
                flow.series.iter_mut().for_each(|sample| sample.bytes /= 2);
            }
        }
        let of_throughput = |warning: Warning| match warning {
            Warning::Bimodal { arm, metric: Metric::Throughput, .. } => Some(arm.to_string()),
            _ => None,
        };
        analyse_run(&run).warnings.into_iter().filter_map(of_throughput).collect()
    };
    assert_eq!(warned(&["synthetic"]), ["synthetic"]);
    assert_eq!(warned(&["accelerated"]), ["accelerated"]);
    // The random order spreads a state of the machines over the arms.
    assert_eq!(warned(&["synthetic", "accelerated"]), Vec::<String>::new());
}

#[test]
fn levels_that_another_arm_has_relative_to_its_own_are_a_state_of_the_machines() {
    // Round trips of these arms take half as long again in a third of the blocks; the arms differ by a factor of three.
    let warned = |slow: &[&str]| -> Vec<(String, Metric)> {
        let mut run = build(&Recipe { workloads: vec!["rr"], noise: 0.01, blocks: 9, ..Recipe::default() });
        for trial in run.trials.iter_mut().filter(|trial| trial.slot.block % 3 == 0) {
            if slow.contains(&trial.slot.arm.as_str()) {
                let round_trips = trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap();
                let mut slower = Histogram::new();
                for (value, count) in Histogram::from_record(&round_trips.histogram).unwrap().pairs() {
                    (0..count).for_each(|_| slower.record(value + value / 2));
                }
                round_trips.histogram = slower.to_record();
            }
        }
        let levels = |warning: Warning| match warning {
            Warning::Bimodal { arm, metric, .. } => Some((arm.to_string(), metric)),
            _ => None,
        };
        analyse_run(&run).warnings.into_iter().filter_map(levels).collect()
    };
    let both = |arm: &str| [Metric::LatencyP50, Metric::LatencyP99].map(|metric| (arm.to_owned(), metric));
    assert_eq!(warned(&["synthetic"]), both("synthetic"));
    assert_eq!(warned(&["accelerated"]), both("accelerated"));
    assert!(warned(&["synthetic", "accelerated"]).is_empty());
}

#[test]
fn run_of_identical_arms_asks_whether_they_are_equal() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, effect: 1.0, ..Recipe::default() });
    run.header.plan.design.aa = true;
    let question = "A/A run of arm synthetic: are two identical arms equal?";
    let document = document(&run);
    for (format, text) in [
        ("terminal", terminal::report(&document, 120, false)),
        ("markdown", markdown::page(&document).replace("# ", "")),
        ("html", html::page(&document).split("<h1>").nth(1).unwrap().to_owned()),
        ("json", json::report(&run)["question"].as_str().unwrap().to_owned()),
    ] {
        assert!(text.starts_with(question), "{format}: {}", &text[..80]);
    }
}

#[test]
fn stored_quick_test_has_no_words_of_comparisons() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    run.header.plan.arms.truncate(1);
    run.trials.retain(|trial| trial.slot.arm.as_str() == "synthetic");
    (run.header.plan.design.blocks_min, run.header.plan.design.blocks_max) = (1, 1);
    run.end = Some(RunEnd::BlockLimitReached);
    let document = document(&run);
    let page = html::page(&document);
    let shown = page
        .split("<main>")
        .nth(1)
        .unwrap()
        .split("id=\"workload-1\"")
        .next()
        .unwrap()
        .replace("id=\"verdicts\"", "")
        .replace("href=\"#verdicts\"", "");
    for (format, text) in [
        ("terminal", terminal::report(&document, 120, false)),
        ("closing lines", terminal::summary(&document, 80, false)),
        ("markdown", markdown::page(&document).split("## Method").next().unwrap().to_owned()),
        ("html", shown),
    ] {
        for absent in ["Stopped:", "Verdict", "verdict", "quartiles", "(n 1)", "1 block"] {
            assert!(!text.contains(absent), "{format} contains `{absent}`");
        }
        assert!(text.contains("1 trial."), "{format}: {text}");
        assert!(text.contains(" Gbit/s") && text.contains(" s/GB"), "{format}: {text}");
    }
}

#[test]
fn warnings_of_a_quick_test_say_whose_keys_they_name() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    run.warnings.push(Warning::ArmNotProven { arm: "synthetic".parse().unwrap() });
    let has_note = |run: &Run| {
        let text = terminal::report(&document(run), 200, false);
        assert!(text.contains("set `expect_interface`"), "{text}");
        text.contains("Settings in a warning are keys of a plan. A quick test has options for most of them")
    };
    assert!(!has_note(&run));
    run.header.plan_text = "# netduel tcp far\n".to_owned();
    assert!(has_note(&run));
}

#[test]
fn stored_quick_test_is_reproduced_by_its_command_and_as_a_plan() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    run.header.command = vec!["netduel".to_owned(), "tcp".to_owned(), "far".to_owned()];
    run.header.plan_text = format!("{QUICK_TEST}\n# netduel tcp far\n\nname = \"quick-tcp-stream\"\n");
    let page = markdown::page(&document(&run));
    assert!(page.contains("name = \"quick-tcp-stream\"") && !page.contains("save the plan below"), "{page}");
    assert!(page.contains("add a second arm and remove"), "{page}");
    // Earlier versions stored the command alone.
    run.header.plan_text = format!("{QUICK_TEST}\n# netduel tcp far\n");
    let page = markdown::page(&document(&run));
    assert!(page.contains("netduel tcp far") && !page.contains("add a second arm"), "{page}");
    // Another person may have written the run file.
    run.header.command = ["sh", "-c", "reboot"].map(str::to_owned).to_vec();
    let page = markdown::page(&document(&run));
    assert!(page.contains("    netduel -c reboot\n") && !page.contains("sh -c"), "{page}");
}

#[test]
fn flat_rate_is_a_cap_only_with_spare_cpu_and_no_configured_rate() {
    let mut run = build(&Recipe { workloads: vec!["udp"], loss: [0.0, 0.0], ..Recipe::default() });
    for trial in &mut run.trials {
        for sample in &mut trial.server.as_mut().unwrap().report.received.as_mut().unwrap().series {
            sample.bytes = 25_000_000;
        }
        for end in [&mut trial.client, &mut trial.server] {
            for core in &mut end.as_mut().unwrap().observation.cores {
                core.idle_ns += 5 * SECOND;
            }
        }
    }
    assert_eq!(kinds(&run), ["shared machine", "rate capped", "rate capped"]);
    let mut withheld = run.clone();
    for trial in &mut withheld.trials {
        for end in [&mut trial.client, &mut trial.server] {
            end.as_mut().unwrap().observation.cores[0].steal_ns += 500 * SECOND;
        }
    }
    assert_eq!(kinds(&withheld), ["shared machine", "steal time"], "a core without idle time is full");
    for arm in &mut run.header.plan.arms {
        if let Traffic::UdpStream(UdpStream { rate, .. }) = &mut arm.workloads[0].traffic {
            *rate = Some(BitRate(2_000_000_000));
        }
    }
    assert_eq!(kinds(&run), ["shared machine"], "a configured rate is not a cap");
}

#[test]
fn requests_on_connections_of_their_own_are_called_transactions() {
    let title = |workload: &'static str| {
        let analysis =
            analyse_run(&build(&Recipe { workloads: vec![workload], blocks: 2, ..Recipe::default() }));
        let metrics = analysis.workloads[0].judged.iter().chain(&analysis.workloads[0].unjudged);
        metrics.filter(|metric| metric.metric.unit() == "/s").map(MetricAnalysis::title).collect::<Vec<_>>()
    };
    assert_eq!(title("crr"), ["transactions"]);
    assert_eq!(title("open"), ["round trips"]);
}

#[test]
fn verdicts_are_possible_without_the_data_of_a_dropped_arm_only() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    assert!(analyse_run(&run).verdict_possible(|_| false));
    let mut third = run.header.plan.arms[1].clone();
    third.name = "third".parse().unwrap();
    run.header.plan.arms.push(third);
    let without_third = analyse_run(&run);
    assert!(!without_third.verdict_possible(|_| false));
    assert!(without_third.verdict_possible(|arm| arm.as_str() == "third"));
    assert!(!without_third.verdict_possible(|_| true), "no comparison remains");
}

#[test]
fn run_that_ends_at_its_limit_says_whether_its_precision_was_reached() {
    let ended = |noise: f64, blocks_max: u32, end: RunEnd| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], noise, ..Recipe::default() });
        run.header.plan.design.blocks_max = blocks_max;
        run.end = Some(end);
        terminal::report(&document(&run), 400, false)
    };
    let page = |noise: f64, blocks_max: u32| ended(noise, blocks_max, RunEnd::BlockLimitReached);
    let missed = "Stopped: block limit reached. The precision of 5 % of the ratio was not reached for throughput of bulk";
    assert!(page(0.3, 10).contains(missed), "{}", page(0.3, 10));
    let hint = ": intervals are wider, and the verdicts hold. More blocks (`blocks_max`) narrow them.\n";
    assert!(page(0.3, 10).contains(hint), "{}", page(0.3, 10));
    let out_of_time = ended(0.3, 10, RunEnd::BudgetReached);
    assert!(out_of_time.contains(" More time (`budget`) narrows them.\n"), "{out_of_time}");
    assert!(!page(0.001, 10).contains("was not reached"));
    // A plan with a fixed number of blocks asks for no precision.
    assert!(!page(0.3, 8).contains("was not reached"));
    assert!(page(0.3, 1).contains(" Complete.") && !page(0.3, 1).contains("maximum number"));
}

/// Records a connection on which the client sent in each trial, with an MSS of 1448 bytes, and changes it by block and arm.
fn with_connections(run: &mut Run, change: impl Fn(u32, &str, &mut TcpInfo)) {
    for trial in &mut run.trials {
        let mut tcp = TcpInfo {
            congestion: Some("cubic".to_owned()),
            snd_mss: Some(1448),
            pmtu: Some(1500),
            ..TcpInfo::default()
        };
        change(trial.slot.block, trial.slot.arm.as_str(), &mut tcp);
        let stream = StreamReport { sent_bytes: 1, tcp: Some(tcp), ..StreamReport::default() };
        trial.client.as_mut().unwrap().report.streams = vec![stream];
    }
}

/// The warnings about connections of a run of this workload.
fn connections_differed(
    workload: &'static str,
    change: impl Fn(u32, &str, &mut TcpInfo),
) -> (Run, Vec<String>) {
    let mut run = build(&Recipe { workloads: vec![workload], ..Recipe::default() });
    with_connections(&mut run, change);
    let mut found = words::warnings(&analyse_run(&run));
    found.retain(|text| text.starts_with("connections differed"));
    (run, found)
}

#[test]
fn trials_of_an_arm_with_another_congestion_control_or_mss_cause_a_warning_with_their_blocks() {
    let (run, found) = connections_differed("bulk", |block, arm, tcp| {
        if arm == "synthetic" && block >= 3 {
            (tcp.congestion, tcp.snd_mss) = (Some("reno".to_owned()), Some(288));
        }
    });
    let [warning] = &found[..] else { panic!("{found:?}") };
    let expected = "connections differed: host a sent bulk of synthetic with congestion control cubic in blocks 1 to 3, reno in \
                    blocks 4 to 8, and MSS 1448 bytes in blocks 1 to 3, 288 bytes in blocks 4 to 8; ";
    assert!(warning.starts_with(expected), "{warning}");
    for (format, text) in texts(&run) {
        assert!(text.contains("reno in blocks 4 to 8"), "{format}: {text}");
    }
    let json = json::report(&run);
    let of_connections = |warning: &&serde_json::Value| warning["kind"] == "connections-differed";
    let warning = json["warnings"].as_array().unwrap().iter().find(of_connections).unwrap();
    assert_eq!((&warning["arm"], &warning["host"]), (&"synthetic".into(), &"a".into()));
    // The verdict rests on trials of two configurations.
    assert_ne!(warning["mark"], serde_json::Value::Null);
}

#[test]
fn connections_that_differ_by_arm_or_host_or_in_what_bears_on_no_result_cause_no_warning() {
    let reno = |tcp: &mut TcpInfo| tcp.congestion = Some("reno".to_owned());
    let (_, of_arms) = connections_differed("bulk", |_, arm, tcp| {
        if arm == "synthetic" {
            reno(tcp);
        }
    });
    assert!(of_arms.is_empty(), "{of_arms:?}");
    // A request of 64 bytes is one segment with either. The congestion control counts all the same.
    let (_, of_small_requests) = connections_differed("rr", |block, _, tcp| {
        tcp.snd_mss = Some(if block < 3 { 1448 } else { 1348 });
    });
    assert!(of_small_requests.is_empty(), "{of_small_requests:?}");
    let (_, of_requests) = connections_differed("rr", |block, _, tcp| {
        tcp.snd_mss = Some(if block < 3 { 1448 } else { 48 });
        if block == 7 {
            reno(tcp);
        }
    });
    assert!(
        of_requests.len() == 2
            && of_requests[0]
                .contains("control cubic in blocks 1 to 7, reno in block 8, and MSS 64 bytes or more in"),
        "{of_requests:?}"
    );
    // Half of the window of the peer, by loopback.
    let (_, of_windows) = connections_differed("bulk", |block, _, tcp| {
        tcp.snd_mss = Some(if block % 2 == 0 { 32_768 } else { 65_483 });
    });
    assert!(of_windows.is_empty(), "{of_windows:?}");
    // The hosts c and d, which the arms exchange, have another default.
    let mut run = crossover::run(1.0, crossover::BLOCKS, true);
    with_connections(&mut run, |block, arm, tcp| {
        if (arm == "accelerated") != (block >= crossover::BLOCKS / 2) {
            reno(tcp);
        }
    });
    assert!(!kinds(&run).iter().any(|kind| kind == "connections differed"), "{:?}", kinds(&run));
}
