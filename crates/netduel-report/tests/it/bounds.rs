//! Values that a trial does not have, or shares with other processes: they must not flatter an arm.
use netduel_model::metric::Metric;
use netduel_report::analyse_run;
use netduel_stats::histogram::Histogram;

use crate::builder::{Recipe, build};
use crate::figures::kinds;

/// Round trips of some blocks, in which the path of an arm stalled in the first `stalled` blocks.
fn with_stalls(blocks: u32, stalled: [u32; 2]) -> netduel_model::run::Run {
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
    let words = |run: &netduel_model::run::Run| {
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
    // The baseline stalled: every trial counts, and the arm is still better.
    let (baseline, _, verdict, answer, warnings) = words(&with_stalls(8, [3, 0]));
    assert!(baseline.ends_with("(n 8)") && verdict.contains("lower ["), "{baseline} {verdict}");
    assert!(
        answer.contains("; 3 of 8 trials of synthetic without a round trip in the steady window"),
        "{answer}"
    );
    assert!(warnings.contains(&"no round trips".to_owned()));
    // The better arm stalled: its values may be larger, so it is not called better.
    let (_, arm, verdict, ..) = words(&with_stalls(16, [0, 1]));
    assert!(arm.ends_with("(n 16)"), "{arm}");
    assert_eq!(verdict, "inconclusive: some values are only lower bounds");
    let (baseline, ..) = words(&with_stalls(8, [8, 0]));
    assert!(baseline.starts_with("at least 4.30 s"), "{baseline}");
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

#[test]
fn cpu_metrics_have_no_verdict_with_cpu_contention() {
    let words = |contended: u32| {
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
        let analysis = analyse_run(&run);
        let workload = &analysis.workloads[0];
        let counter = workload.counters.iter().find(|one| one.title == "CPU time, user").unwrap();
        let verdicts: Vec<String> = workload
            .judged
            .iter()
            .map(|metric| netduel_report::words::verdict(metric.metric, &metric.comparisons[0]))
            .collect();
        (verdicts, counter.ratios[1])
    };
    let (clear, ratio) = words(2);
    assert!(clear[1].contains("per GB ["), "{clear:?}");
    assert!(ratio.is_some());
    let (contended, ratio) = words(3);
    assert!(contended[0].contains("x (+"), "{contended:?}");
    assert!(contended[1].starts_with("not comparable: other processes used up to "), "{contended:?}");
    assert_eq!(ratio, None, "user time contains that of other processes");
}
