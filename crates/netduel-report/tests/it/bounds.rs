//! Values that a trial does not have, or shares with other processes: they must not flatter an arm.
use netduel_model::metric::Metric;
use netduel_model::plan::Pair;
use netduel_model::run::Run;
use netduel_model::units::PerSecond;
use netduel_model::warning::Warning;
use netduel_model::workload::Traffic;
use netduel_report::analysis::warnings_about;
use netduel_report::document::block::Block;
use netduel_report::quick::SummaryInput;
use netduel_report::{analyse_run, document, html, markdown, terminal};
use netduel_stats::histogram::Histogram;
use serde_json::Value;

use crate::builder::{Recipe, build};
use crate::figures::kinds;
use crate::json;

/// Round trips of some blocks, in which the path of an arm stalled in the first `stalled` blocks.
pub fn with_stalls(blocks: u32, stalled: [u32; 2]) -> Run {
    let recipe = Recipe { workloads: vec!["rr"], effect: 3.0, blocks, ..Recipe::default() };
    let mut run = build(&recipe);
    for trial in &mut run.trials {
        let arm = usize::from(trial.slot.arm.as_str() == "accelerated");
        if trial.slot.block < stalled[arm] {
            let trips = trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap();
            trips.histogram = Histogram::new().to_record();
        }
    }
    run
}

#[test]
fn trials_without_a_round_trip_count_as_bounds() {
    let words = |run: &Run| {
        let analysis = analyse_run(run);
        let workload = &analysis.workloads[0];
        let p50 = &workload.judged[0];
        let [baseline, arm] = [0, 1].map(|index| netduel_report::words::value(p50, &p50.arms[index]));
        let answer = netduel_report::words::answer(workload, &workload.arms[1].arm).unwrap().characters();
        let verdict = netduel_report::words::verdict(p50.metric, &p50.comparisons[0]);
        (baseline, arm, verdict, answer, kinds(run))
    };
    let (baseline, _, verdict, _, warnings) = words(&with_stalls(8, [0, 0]));
    assert!(baseline.ends_with("(n 8)") && verdict.contains("lower ["), "{baseline} {verdict}");
    assert!(!warnings.contains(&"no round trips".to_owned()));
    // The baseline stalled: every trial counts, and the arm is still better, by at least the estimate.
    let (baseline, _, verdict, answer, warnings) = words(&with_stalls(8, [3, 0]));
    assert!(baseline.ends_with("(n 8)") && verdict.contains("lower ["), "{baseline} {verdict}");
    assert!(verdict.starts_with("at least ") && answer.contains("round trip p50"), "{verdict} {answer}");
    assert!(
        answer.contains("; 3 of 8 trials of synthetic had no round trip in the steady window"),
        "{answer}"
    );
    assert!(warnings.contains(&"no round trips".to_owned()));
    // The better arm stalled: its values may be larger, so it is not called better.
    let (_, arm, verdict, ..) = words(&with_stalls(16, [0, 1]));
    assert!(arm.ends_with("(n 16)"), "{arm}");
    assert_eq!(verdict, "inconclusive: some values are only lower bounds");
    let (baseline, ..) = words(&with_stalls(8, [8, 0]));
    assert!(baseline.starts_with(">= 4.30 s [>= 4.30, >= 4.30]"), "{baseline}");
}

#[test]
fn machine_uses_at_most_its_cores() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    let trial = &mut run.trials[0];
    for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
        let seen = &mut end.observation;
        for core in &mut seen.cores {
            (core.user_ns, core.idle_ns, core.steal_ns) = (seen.wall_ns + seen.wall_ns / 50, 0, 0);
        }
    }
    let (workload, trial) = (&run.header.plan.arms[0].workloads[0], &run.trials[0]);
    let input = SummaryInput { workload, trial, shared_machine: true, expected: None, mtus: [None; 2] };
    let text = netduel_report::quick::summary(input, 200);
    let cores = trial.server.as_ref().unwrap().observation.cores.len();
    let (before, _) = text.split_once(&format!(" of {cores} cores of one machine")).expect(&text);
    let used: f64 = before.split_whitespace().last().unwrap().parse().unwrap();
    assert!(used <= cores as f64, "{text}");
}

#[test]
fn outlier_that_is_a_bound_is_no_exact_multiple_of_the_median() {
    let analysis = analyse_run(&with_stalls(8, [1, 0]));
    let sentences = netduel_report::words::warnings(&analysis);
    let start = "outlier block: round trip p50 of synthetic in rr was at least ";
    assert!(sentences.iter().any(|text| text.starts_with(start)), "{sentences:?}");
}

#[test]
fn rate_of_a_trial_without_a_round_trip_is_an_upper_bound() {
    let run = with_stalls(8, [1, 0]);
    let analysis = analyse_run(&run);
    let rate = |metrics: &[netduel_report::analysis::MetricAnalysis]| {
        metrics.iter().find(|one| one.metric == Metric::RoundTripRate).unwrap().arms[0].clone()
    };
    let rate = rate(&analysis.workloads[0].unjudged);
    assert_eq!((rate.values.len(), rate.at_least.len()), (8, 1));
    assert!(rate.values[0].1 < 0.25, "{:?}", rate.values[0]);
}

/// Datagrams of which none arrived on an arm, or on both, although they were sent. Their rate is the only metric.
fn with_silence(silent: [bool; 2]) -> Run {
    let mut run = build(&Recipe { workloads: vec!["udp"], blocks: 16, ..Recipe::default() });
    for arm in &mut run.header.plan.arms {
        arm.workloads[0].metrics = vec![Metric::DatagramRate];
    }
    for trial in &mut run.trials {
        if silent[usize::from(trial.slot.arm.as_str() == "accelerated")] {
            let flow = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
            (flow.bytes, flow.messages) = (0, 0);
            for sample in &mut flow.series {
                (sample.bytes, sample.messages) = (0, 0);
            }
        }
    }
    run
}

#[test]
fn rates_without_data_are_upper_bounds_in_words_and_have_no_precision() {
    let analysis = analyse_run(&with_silence([true, true]));
    let rate = &analysis.workloads[0].judged[0];
    assert!(rate.has_only_bounds(), "{rate:?}");
    let verdict = netduel_report::words::verdict(rate.metric, &rate.comparisons[0]);
    assert_eq!(verdict, "inconclusive: some values are only upper bounds");
    let warnings = netduel_report::words::warnings(&analysis).join("\n");
    assert!(warnings.contains("upper bound: the "), "{warnings}");
    assert!(warnings.contains("16 of 16 trials of synthetic in udp nothing arrived"), "{warnings}");
    assert!(!warnings.contains("after each event"), "{warnings}");
    assert!(!analysis.precise_enough(|_| false));
}

#[test]
fn bounds_are_no_quantiles_of_prometheus() {
    let run = with_silence([true, false]);
    let page = netduel_report::prometheus::page(&run, &analyse_run(&run));
    let has = |part: &str, arm: &str| {
        let start = format!("netduel_datagrams_delivered_per_second{part}{{");
        let arm = format!("arm=\"{arm}\"");
        page.lines().any(|line| line.starts_with(&start) && line.contains(&arm))
    };
    assert!(has("", "accelerated") && has("_sum", "accelerated"), "{page}");
    assert!(!has("", "synthetic") && !has("_sum", "synthetic"), "{page}");
    assert!(has("_count", "synthetic"), "{page}");
    // The verdict holds; its ratio is at least the estimate, which the format cannot say.
    let verdict = page.lines().find(|line| line.starts_with("netduel_verdict{") && line.contains("better"));
    assert!(verdict.unwrap().ends_with(" 1"), "{page}");
    assert!(!page.contains("netduel_effect_ratio"), "{page}");
}

#[test]
fn value_of_a_trial_without_a_round_trip_is_a_bound_in_every_format() {
    let run = with_stalls(8, [1, 0]);
    let csv = netduel_report::csv::trials(&run);
    let [p50, rate] =
        ["latency-p50,ns,4300000000,,at-least", "round-trip-rate,/s,0.23255813953488372,,less-than"];
    for row in [p50, rate] {
        let rows: Vec<&str> = csv.lines().filter(|line| line.contains(row)).collect();
        assert!(rows.len() == 1 && rows[0].contains(",1,"), "{row}: {rows:?}");
    }
    assert_eq!(csv.matches("at-least").count() + csv.matches("less-than").count(), 4, "{csv}");
    let json = json::report(&run);
    let values = &json["workloads"][0]["metrics"][0]["arms"][0];
    assert_eq!((&values["mean"], &values["standard_error"]), (&Value::Null, &Value::Null), "{values}");
    assert_eq!(values["values"][0], serde_json::json!({ "block": 1, "value": 4.3e9, "bound": "at-least" }));
    assert_eq!((&values["values"][1]["bound"], &values["median_bound"]), (&Value::Null, &Value::Null));
    let page = html::page(&document(&run));
    assert!(page.contains("&gt;= 4.30"), "the table of the chart");
    assert!(page.contains("An arrow marks a bound"));
}

#[test]
fn trial_without_a_round_trip_is_named_where_it_is_not_counted() {
    let run = with_stalls(8, [0, 1]);
    let markdown = markdown::page(&document(&run));
    let row = |start: &str| markdown.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert!(row("| accelerated | 7 of 8 |").ends_with(" |"), "{markdown}");
    assert!(row("| synthetic | 8 of 8 |").ends_with(" |"), "{markdown}");
    assert!(
        markdown.contains(
            "- not included: 1 of 8 trials of accelerated, which had no round trip in the steady window\n"
        ),
        "{markdown}"
    );
    let page = html::page(&document(&run));
    for title in ["Latency percentiles", "Latency distribution"] {
        let title = format!("<b>{title} without 1 of 8 trials of accelerated (stalled)</b>");
        assert!(page.contains(&title), "no {title}");
    }
    let causes = &json::report(&run)["workloads"][0]["arms"][1]["bottleneck"];
    assert_eq!((&causes["cause"], &causes["trials"]), (&"round-trip".into(), &7.into()), "{causes}");
    assert_eq!(causes["others"], serde_json::json!([{ "cause": "stalled", "trials": 1 }]));
}

#[test]
fn number_of_blocks_that_decide_nothing_is_not_given() {
    let run =
        build(&Recipe { workloads: vec!["bulk"], blocks: 12, noise: 3.0, effect: 1.0, ..Recipe::default() });
    let verdict = &json::report(&run)["workloads"][0]["metrics"][0]["comparisons"][0]["verdict"];
    assert!(verdict["text"].as_str().unwrap().contains("the spread is too large"), "{verdict}");
    assert_eq!(verdict["more_blocks"], Value::Null);
}

#[test]
fn open_loop_with_late_requests_is_not_limited_by_its_rate() {
    let cause = |late_ns: u64| {
        let mut run = build(&Recipe { workloads: vec!["open"], blocks: 2, ..Recipe::default() });
        let workloads = run.header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads);
        for workload in workloads {
            if let Traffic::UdpRr(settings) = &mut workload.traffic {
                settings.rate = Some(PerSecond(10));
            }
        }
        for trial in &mut run.trials {
            let trips = trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap();
            let mut late = Histogram::new();
            (0..100).for_each(|_| late.record(late_ns));
            trips.pacing_error = Some(late.to_record());
        }
        json::report(&run)["workloads"][0]["arms"][0]["bottleneck"].clone()
    };
    let kept = cause(1_000);
    assert_eq!(kept["cause"], "configured-rate", "{kept}");
    let late = cause(87_000_000);
    assert_eq!(late["cause"], "late-requests", "{late}");
    assert!(late["evidence"][0].as_str().unwrap().starts_with("requests sent 87."), "{late}");
}

/// A run of bulk data in whose first blocks other processes used the cores.
pub fn with_contention(contended: u32) -> Run {
    let recipe = Recipe { workloads: vec!["bulk"], ..Recipe::default() };
    let mut run = build(&recipe);
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.block < contended) {
        for end in [trial.client.as_mut().unwrap(), trial.server.as_mut().unwrap()] {
            for core in &mut end.observation.cores {
                core.user_ns += core.idle_ns / 2;
                core.idle_ns /= 2;
            }
        }
    }
    run
}

#[test]
fn cpu_metrics_have_no_verdict_with_cpu_contention() {
    let words = |contended: u32| {
        let analysis = analyse_run(&with_contention(contended));
        let workload = &analysis.workloads[0];
        let counter = workload.counters.iter().find(|one| one.title == "CPU time, user").unwrap();
        let verdicts: Vec<String> = workload
            .judged
            .iter()
            .map(|metric| netduel_report::words::verdict(metric.metric, &metric.comparisons[0]))
            .collect();
        (verdicts, counter.ratios[1].map(|ratio| ratio.centre))
    };
    let (clear, ratio) = words(2);
    assert!(clear[1].contains("per GB ["), "{clear:?}");
    assert!(ratio.is_some());
    let (contended, ratio) = words(3);
    assert!(contended[0].contains("x (+"), "{contended:?}");
    assert!(contended[1].starts_with("not comparable: other processes used up to "), "{contended:?}");
    assert_eq!(ratio, None, "user time contains that of other processes");
}

#[test]
fn withheld_cpu_verdict_is_in_every_format_and_is_not_inconclusive() {
    let run = with_contention(8);
    let document = document(&run);
    let verdict = "not comparable: other processes used up to ";
    let page = html::page(&document).replace('\u{a0}', " ");
    for (format, text) in [
        ("terminal", terminal::report(&document, 120, false)),
        ("closing lines", terminal::summary(&document, 80, false)),
        ("markdown", markdown::page(&document)),
        ("html", page),
    ] {
        assert!(text.contains(verdict), "{format}: {text}");
        assert!(!text.contains("per GB ["), "{format}: {text}");
    }
    let json = json::report(&run);
    let metrics = json["workloads"][0]["metrics"].as_array().unwrap();
    let cpu = metrics.iter().find(|metric| metric["metric"] == "cpu-per-gigabyte").unwrap();
    let verdict = &cpu["comparisons"][0]["verdict"];
    assert_eq!((&verdict["kind"], &verdict["tone"]), (&"not-comparable".into(), &"open".into()), "{verdict}");
    assert_eq!((&verdict["estimate"], &verdict["more_blocks"]), (&Value::Null, &Value::Null), "{verdict}");
    let answer = json["workloads"][0]["answers"][0]["text"].as_str().unwrap();
    assert!(answer.contains("; not comparable: CPU per GB (other processes used up to "), "{answer}");
    assert!(!answer.contains("inconclusive"), "{answer}");
}

#[test]
fn summary_and_bars_say_what_is_not_comparable() {
    let of = |contended: u32| {
        let document = document(&with_contention(contended));
        let summary = markdown::page(&document).replace('\\', "");
        let summary = summary.split("\n## ").nth(1).unwrap().to_owned();
        (summary, html::page(&document).replace('\u{a0}', " "))
    };
    let clause = "; CPU per GB of bulk is not comparable: other processes used up to ";
    let remark = "<span class=\"remark\">not comparable</span>";
    let (summary, page) = of(8);
    assert!(summary.contains(clause), "{summary}");
    assert!(summary.contains(" of the CPU time of a host; bottleneck: "), "{summary}");
    let sections = document(&with_contention(8)).sections;
    let Block::Paragraph(text) = &sections[0].blocks[1] else { panic!("{:?}", sections[0].blocks) };
    let words = text.characters();
    assert!(words.contains(clause) && !words.contains(". "), "{words}");
    // The bars of both arms, in the summary and in the results of the workload.
    assert_eq!(page.matches(remark).count(), 4);
    assert!(page.contains("&quot;not comparable&quot;: the value contains CPU time of other processes."));
    let (summary, page) = of(0);
    assert!(!summary.contains("not comparable") && !page.contains(remark), "{summary}");
}

#[test]
fn verdicts_that_a_warning_concerns_have_its_mark_in_every_format() {
    // Contention in the first block only: the verdicts stand, with a mark.
    let run = with_contention(1);
    let document = document(&run);
    let markdown = markdown::page(&document).replace('\\', "");
    let row = markdown.lines().find(|line| line.starts_with("| throughput |")).unwrap();
    let mark =
        row.split(" *").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{row}"));
    let warning = format!("*{mark} CPU contention");
    let page = html::page(&document);
    for (format, text, in_verdict) in [
        ("terminal", terminal::report(&document, 160, false), format!("] *{mark}")),
        ("closing lines", terminal::summary(&document, 80, false), format!("] *{mark}")),
        ("markdown", markdown.clone(), format!("*{mark} |")),
        ("html", page, format!(">*{mark}</a>")),
    ] {
        assert!(text.contains(&warning), "{format} without `{warning}`: {text}");
        assert!(text.contains(&in_verdict), "{format} without `{in_verdict}`: {text}");
    }
    let json = json::report(&run);
    let index = json["warnings"].as_array().unwrap().iter().position(|one| one["kind"] == "cpu-contention");
    for metric in json["workloads"][0]["metrics"].as_array().unwrap() {
        let own = metric["comparisons"][0]["warnings"].as_array().unwrap();
        assert!(own.contains(&index.unwrap().into()), "{metric}");
    }
}

#[test]
fn warning_marks_only_the_verdicts_that_it_concerns() {
    let recipe = Recipe { workloads: vec!["bulk", "rr"], ..Recipe::default() };
    let marked = |warning: Warning| {
        let mut run = build(&recipe);
        run.warnings = vec![warning];
        // Steal time in trials of one workload only.
        for trial in run.trials.iter_mut().filter(|trial| trial.slot.workload.as_str() == "rr") {
            for core in &mut trial.client.as_mut().unwrap().observation.cores {
                core.steal_ns = core.total_ns(0) / 20;
            }
        }
        let analysis = analyse_run(&run);
        let rows = analysis
            .workloads
            .iter()
            .flat_map(|workload| workload.judged.iter().map(move |metric| (workload, metric.metric)));
        let arm = "accelerated".parse().unwrap();
        rows.filter(|(workload, metric)| warnings_about(&analysis, workload, *metric, &arm).contains(&0))
            .map(|(workload, metric)| format!("{} {}", workload.name, metric.title()))
            .collect::<Vec<_>>()
    };
    let (arm, baseline) = ("accelerated".parse().unwrap(), "synthetic".parse().unwrap());
    let [bulk, rr] = ["bulk", "rr"].map(|name| name.parse().unwrap());
    let all = ["bulk throughput", "bulk CPU per GB", "rr round trip p50", "rr round trip p99"];
    let metric = Metric::LatencyP99;
    let of_metric = Warning::Autocorrelation { arm, workload: rr, metric, lag1: 0.5 };
    assert_eq!(marked(of_metric), ["rr round trip p99"]);
    let of_workload = Warning::RateCapped { arm: baseline, workload: bulk, rate_bps: 1e9 };
    assert_eq!(marked(of_workload), all[..2]);
    let host = |name: &str| name.parse().unwrap();
    let stolen = |name: &str| Warning::StealTime { host: host(name), share_max: 0.1, trials: 3 };
    assert_eq!(marked(stolen("a")), all[2..]);
    assert!(marked(stolen("other")).is_empty());
    assert!(marked(Warning::ClockStep { host: host("a"), step_ns: 5_000_000 }).is_empty());
}

#[test]
fn translated_path_of_one_arm_marks_its_comparison_and_that_of_both_marks_none() {
    let host = |name: &str| name.parse().unwrap();
    let marked = |is_of_both: bool| {
        let mut run = build(&Recipe { workloads: vec!["rr"], ..Recipe::default() });
        if !is_of_both {
            let arms = &mut run.header.plan.arms;
            arms[1].pair = Pair { client: host("b"), server: host("a") };
        }
        let (local, seen) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        run.warnings = vec![Warning::AddressTranslated { client: host("a"), server: host("b"), local, seen }];
        let analysis = analyse_run(&run);
        let (workload, arm) = (&analysis.workloads[0], "accelerated".parse().unwrap());
        warnings_about(&analysis, workload, Metric::LatencyP50, &arm)
    };
    assert_eq!((marked(true), marked(false)), (vec![], vec![0]));
}
