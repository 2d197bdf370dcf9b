//! Failover: arrivals with a known gap, loss, duplicate and delay yield exact values, and invalid records cause no hang or panic.
//! Long because: all figures of a failover are judged over the same records.
use netduel_model::failover::{
    FailoverReport, LabEvents, PathEventKind, PathEventRecord, ProbeArrival, ProbeArrivals,
};
use netduel_model::metric::Metric;
use netduel_model::plan::spec::Side;
use netduel_model::plan::{self, ResolvedPlan};
use netduel_model::run::Run;
use netduel_model::sample::IntervalSample;
use netduel_model::trial::{Trial, Validity};
use netduel_model::warning::Warning;
use netduel_model::workload::Traffic;
use netduel_report::analysis::{Bound, Dip, analyse, bound_of, quantile, value_of};
use netduel_report::{document, markdown, terminal};
use netduel_stats::verdict::Verdict;

use crate::builder::{Recipe, build};

const MS: i64 = 1_000_000;
const PLAN: &str = r#"name = "failover"
question = "What does it cost?"
[lab]
[hosts.a]
launch = "lab"
[hosts.b]
launch = "lab"
[[arms]]
name = "surprise"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
[[arms]]
name = "carrier"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
[[workloads]]
name = "lost"
type = "failover"
duration = "3 s"
events = [{ at = "1 s", do = "remove" }, { at = "2 s", do = "return" }]
"#;

/// Probes every millisecond with 50 us of delay, each 0.5 ms after its due time; those in `lost` never arrive.
pub fn probes(lost: std::ops::Range<u64>) -> Vec<ProbeArrival> {
    (0..3000)
        .filter(|number| !lost.contains(number))
        .map(|number| ProbeArrival {
            number,
            arrived_ns: number.cast_signed() * MS + MS / 2,
            delay_ns: 50_000,
        })
        .collect()
}

/// A trial whose client started 7 s and whose server 7.002 s after the machine; events after 1 s and 2 s.
pub fn trial(arm: &str, up: Vec<ProbeArrival>, down: Vec<ProbeArrival>, rate: impl Fn(u64) -> u64) -> Trial {
    let mut trial = build(&Recipe::default()).trials.swap_remove(0);
    (trial.slot.arm, trial.slot.workload) = (arm.parse().unwrap(), "lost".parse().unwrap());
    (trial.validity, trial.proofs) = (Validity::Valid, Vec::new());
    let series = (0..300)
        .map(|step| IntervalSample {
            end_ns: (step + 1) * 10_000_000,
            length_ns: 10_000_000,
            bytes: rate(step),
            messages: 0,
        })
        .collect();
    let (client_ns, server_ns) = (7_000_000_000, 7_002_000_000);
    let report = |started_ns, arrivals: Vec<ProbeArrival>, series| FailoverReport {
        started_ns,
        probes_sent: 3000,
        arrivals: ProbeArrivals::of(arrivals),
        series,
        events: Vec::new(),
    };
    trial.client.as_mut().unwrap().report.failover = Some(report(client_ns, down, Vec::new()));
    trial.server.as_mut().unwrap().report.failover = Some(report(server_ns, up, series));
    let event = |index, kind, after_ns| PathEventRecord {
        index,
        kind,
        on: Side::Client,
        began_ns: client_ns + after_ns,
        ended_ns: client_ns + after_ns + 20_000_000,
        before: Vec::new(),
        after: Vec::new(),
        error: None,
    };
    let events =
        vec![event(0, PathEventKind::Remove, 1_000_000_000), event(1, PathEventKind::Return, 2_000_000_000)];
    trial.lab_events = Some(LabEvents { start: Vec::new(), events, end: Vec::new() });
    trial
}

pub fn plan() -> ResolvedPlan {
    plan::parse(PLAN, "p").unwrap()
}

/// A run of these trials.
pub fn stored(plan: ResolvedPlan, trials: Vec<Trial>) -> Run {
    let mut run = build(&Recipe::default());
    run.header.plan = plan;
    run.trials = trials;
    run
}

/// A run with outages in both arms, and trials that differ, for the page.
pub fn shown() -> Run {
    let arms = |block: u32| {
        let rate = move |step: u64| {
            if (100..110).contains(&step) { 0 } else { 20_000_000 + u64::from(block) * 900_000 }
        };
        let arms = [
            trial("surprise", probes(1000..1012 + u64::from(block) * 3), probes(0..0), rate),
            trial("carrier", probes(1000..1450), probes(1000..1400), rate),
        ];
        arms.map(|mut trial| {
            trial.slot.block = block;
            trial
        })
    };
    stored(plan(), (0..8).flat_map(arms).collect())
}

fn value(metric: Metric, trial: &Trial) -> Option<f64> {
    value_of(metric, &plan().arms[0].workloads[0], trial, true)
}

#[test]
fn outage_is_the_longest_gap_minus_the_probe_interval() {
    // Numbers 1000 to 1011 are lost: 12 probes, so the gap is 13 ms and the outage 12 ms.
    let trial = trial("surprise", probes(1000..1012), probes(0..0), |_| 1_000_000);
    assert_eq!(value(Metric::Outage, &trial), Some(12e6));
    assert_eq!(value(Metric::LostInOutage, &trial), Some(12.0));
    // The rate does not fall.
    assert_eq!(value(Metric::RecoveryTime, &trial), Some(0.0));
}

#[test]
fn late_sender_is_not_an_outage() {
    let mut late = probes(0..0);
    for arrival in &mut late[1100..] {
        // All later probes are sent, and so arrive, 30 ms late: none is lost.
        arrival.arrived_ns += 30 * MS;
    }
    let quiet = trial("surprise", late.clone(), probes(0..0), |_| 1);
    assert_eq!(value(Metric::Outage, &quiet), Some(0.0));
    for arrival in &mut late[1100..] {
        arrival.delay_ns += 30 * MS;
    }
    let delayed = trial("surprise", late, probes(0..0), |_| 1);
    assert_eq!(value(Metric::Outage, &delayed), Some(30e6));
}

#[test]
fn stalled_sender_is_not_an_outage_even_with_lost_probes() {
    let mut stalled = probes(1100..1103);
    for arrival in &mut stalled[1100..] {
        arrival.arrived_ns += 500 * MS;
    }
    let trial = trial("surprise", stalled, probes(0..0), |_| 1);
    assert_eq!(value(Metric::Outage, &trial), Some(3e6));
}

#[test]
fn permanent_loss_is_an_outage_until_the_end() {
    let trial = trial("surprise", probes(0..0), probes(2100..3000), |_| 1);
    assert_eq!(value(Metric::LostInOutage, &trial), Some(900.0));
    assert_eq!(value(Metric::Outage, &trial), Some(900e6));
}

#[test]
fn permanent_loss_at_the_first_event_is_at_least_the_rest_of_the_trial() {
    // From 1.1 s on nothing arrives, although the path should be back at 2 s.
    let gone = |arm| trial(arm, probes(1100..3000), probes(1100..3000), |_| 1);
    assert_eq!(value(Metric::Outage, &gone("surprise")), Some(1900e6));
    let arms = |block: u32| {
        let arms = [gone("surprise"), trial("carrier", probes(1000..1012), probes(0..0), |_| 1)];
        arms.map(|mut trial| {
            trial.slot.block = block;
            trial
        })
    };
    let trials: Vec<Trial> = (0..12).flat_map(arms).collect();
    let analysis = analyse(&plan(), None, &trials, &[], None);
    let text = terminal::report(&document(&stored(plan(), trials.clone())), 200, false);
    assert!(text.contains(">= 1.90 s, until the end in 12"), "{text}");
    let line = text.lines().find(|line| line.contains("surprise  remove at 1 s")).unwrap();
    assert_eq!(line.matches(">= 1.90 s").count(), 3, "p50, p90 and max: {line}");
    let is_lower_bound = |warning: &Warning| {
        matches!(warning, Warning::LowerBound { metric: Metric::Outage, trials: 12, trials_total: 12, .. })
    };
    assert!(analysis.warnings.iter().any(is_lower_bound), "{:?}", analysis.warnings);
    // The baseline's value is a lower bound of its outage: the arm is still better.
    let metric = analysis.workloads[0].judged.iter().find(|metric| metric.metric == Metric::Outage).unwrap();
    assert!(!metric.arms[0].at_least.is_empty() && metric.arms[1].at_least.is_empty());
}

#[test]
fn gap_that_began_before_an_event_counts_from_the_event() {
    // Nothing from 0.9 s to 1.3 s; the event is at 1 s, on the axis of a server that started 2 ms later.
    let mut held = probes(0..0);
    for arrival in &mut held[900..1300] {
        let until = 1300 * MS;
        arrival.delay_ns += until - arrival.arrived_ns;
        arrival.arrived_ns = until;
    }
    let trial = trial("surprise", held, probes(0..0), |_| 1);
    assert_eq!(value(Metric::Outage, &trial), Some(302e6));
}

#[test]
fn gap_far_from_events_is_assigned_to_none() {
    let trial = trial("surprise", probes(300..350), probes(1700..1750), |_| 1);
    assert_eq!(value(Metric::LostInOutage, &trial), Some(100.0));
    assert_eq!(value(Metric::Outage, &trial), Some(0.0));
}

#[test]
fn recovery_ends_at_the_steady_state_after_the_event() {
    // 1 MB an interval before; nothing from 1.01 to 1.13 s of the server's axis, then 400 kB until the end.
    let rate = |step: u64| match step {
        0..=100 => 1_000_000,
        101..=112 => 0,
        _ => 400_000,
    };
    let trial = trial("surprise", probes(0..0), probes(0..0), rate);
    // The event is at 0.998 s of the server's axis; steady from 1.13 s on.
    assert_eq!(value(Metric::RecoveryTime, &trial), Some(132e6));
}

#[test]
fn path_that_stays_dead_does_not_recover_and_one_that_returns_does() {
    // 1 MB an interval until the event at 0.998 s, then nothing, or what a buffer still held.
    for rest in [0, 5_000] {
        let trial =
            trial("surprise", probes(0..0), probes(0..0), |step| if step <= 100 { 1_000_000 } else { rest });
        let longest = value(Metric::RecoveryTime, &trial).unwrap();
        assert!(longest > 900e6, "{longest}");
    }
    // Nothing before the event, and 1 MB an interval from 1.2 s on.
    let trial = trial("surprise", probes(0..0), probes(0..0), |step| if step < 120 { 0 } else { 1_000_000 });
    assert_eq!(value(Metric::RecoveryTime, &trial), Some(202e6));
}

/// The recovery time of a trial, and what it bounds.
fn recovery(trial: &Trial) -> (Option<f64>, Option<Bound>) {
    let metric = Metric::RecoveryTime;
    (value(metric, trial), bound_of(metric, &plan().arms[0].workloads[0], trial, true))
}

#[test]
fn event_before_the_first_interval_counts_as_one_without_a_recovery() {
    let mut trial = trial("surprise", probes(0..0), probes(0..0), |_| 1_000_000);
    assert_eq!(recovery(&trial), (Some(0.0), None));
    // At 3 ms of the server's axis; the next event is at 1.998 s.
    let events = &mut trial.lab_events.as_mut().unwrap().events;
    (events[0].began_ns, events[0].ended_ns) = (7_005_000_000, 7_005_000_000);
    assert_eq!(recovery(&trial), (Some(1_995e6), Some(Bound::AtLeast)));
}

#[test]
fn event_within_an_earlier_one_that_lasts_longer_has_no_rate_before() {
    // The first event lasts from 1 s to 1.9 s and takes half of the rate. The second ends at 1.22 s, the third begins at 1.6 s.
    let rate = |step: u64| if (120..190).contains(&step) { 500_000 } else { 1_000_000 };
    let mut trial = trial("surprise", probes(0..0), probes(0..0), rate);
    let events = &mut trial.lab_events.as_mut().unwrap().events;
    events.push(PathEventRecord { index: 2, ..events[1].clone() });
    for (event, (began_ms, ended_ms)) in events.iter_mut().zip([(1000, 1900), (1200, 1220), (1600, 1600)]) {
        let at = |time_ms: u64| 7_000_000_000 + time_ms * 1_000_000;
        (event.began_ns, event.ended_ns) = (at(began_ms), at(ended_ms));
    }
    let mut workload = plan().arms[0].workloads[0].clone();
    let Traffic::Failover(failover) = &mut workload.traffic else { panic!("{workload:?}") };
    failover.events.push(failover.events[1].clone());
    let metric = Metric::RecoveryTime;
    let recovery = (value_of(metric, &workload, &trial, true), bound_of(metric, &workload, &trial, true));
    // From the third event, at 1.598 s of the server's axis, to the end.
    assert_eq!(recovery, (Some(1_402e6), Some(Bound::AtLeast)));
}

#[test]
fn batched_reads_of_a_late_thread_are_not_a_stall() {
    // Nothing from 1.01 to 1.09 s; then the thread wakes at 1.12 s and reads three times in a row.
    let mut trial =
        trial(
            "surprise",
            probes(0..0),
            probes(0..0),
            |step| {
                if (101..109).contains(&step) { 0 } else { 1_000_000 }
            },
        );
    let report = trial.server.as_mut().unwrap().report.failover.as_mut().unwrap();
    for (step, (end_ns, length_ns, bytes)) in [
        (109, (1_120_000_000, 30_000_000, 3_000_000)),
        (110, (1_120_001_000, 1_000, 0)),
        (111, (1_120_002_000, 1_000, 0)),
    ] {
        report.series[step] = IntervalSample { end_ns, length_ns, bytes, messages: 0 };
    }
    // From the event at 0.998 s to 1.09 s.
    assert_eq!(value(Metric::RecoveryTime, &trial), Some(92e6));
}

#[test]
fn streams_without_recovery_are_never_faster_or_equal() {
    // The streams of the named arms stop at 1.2 s; those of the others have a gap of 50 ms and continue.
    let verdict = |stopped: &[&str]| {
        let mut trials = Vec::new();
        for block in 0..8_u32 {
            for arm in ["surprise", "carrier"] {
                let is_stopped = stopped.contains(&arm);
                let gap = 101..105 + u64::from(block % 3);
                let mut trial = trial(arm, probes(0..0), probes(0..0), |step| match step {
                    step if gap.contains(&step) => 0,
                    // The steady state equals the rate before; every other interval is empty.
                    step if step > 100 && is_stopped => 2_000_000 * (step % 2),
                    _ => 1_000_000,
                });
                trial.slot.block = block;
                trials.push(trial);
            }
        }
        let mut plan = plan();
        for workload in plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
            workload.metrics = vec![Metric::RecoveryTime];
        }
        let analysis = analyse(&plan, None, &trials, &[], None);
        let bounds: Vec<(String, u32, u32)> = analysis
            .warnings
            .iter()
            .filter_map(|warning| match warning {
                Warning::LowerBound {
                    arm, trials, trials_total: of, metric: Metric::RecoveryTime, ..
                } => Some((arm.to_string(), *trials, *of)),
                _ => None,
            })
            .collect();
        let comparison = &analysis.workloads[0].judged[0].comparisons[0];
        assert_eq!(comparison.pairs.len(), 8, "no trial is left out");
        (comparison.judged.unwrap().verdict, bounds)
    };
    let all = |arm: &str| (arm.to_owned(), 8, 8);
    assert!(matches!(verdict(&[]), (Verdict::NoDifference { .. }, bounds) if bounds.is_empty()));
    assert!(matches!(verdict(&["carrier"]), (Verdict::Higher { .. }, bounds) if bounds == [all("carrier")]));
    assert!(matches!(verdict(&["surprise"]), (Verdict::Lower { .. }, bounds) if bounds == [all("surprise")]));
    let (both, bounds) = verdict(&["surprise", "carrier"]);
    assert!(matches!(both, Verdict::Inconclusive { more: None, .. }), "{both:?}");
    assert_eq!(bounds, [all("surprise"), all("carrier")]);
}

#[test]
fn event_at_both_ends_spans_both_durations() {
    let outage = |lost: std::ops::Range<u64>| {
        let mut trial = trial("surprise", probes(lost), probes(0..0), |_| 1);
        let mut at_client = trial.lab_events.take().unwrap().events.remove(0);
        let mut at_server = at_client.clone();
        (at_client.began_ns, at_client.ended_ns) = (8_200_000_000, 8_201_000_000);
        (at_server.began_ns, at_server.ended_ns) = (8_000_000_000, 8_001_000_000);
        for (end, record) in [(&mut trial.client, at_client), (&mut trial.server, at_server)] {
            end.as_mut().unwrap().report.failover.as_mut().unwrap().events = vec![record];
        }
        value(Metric::Outage, &trial)
    };
    assert_eq!(outage(1000..1012), Some(12e6), "the server's began first");
    assert_eq!(outage(1600..1620), Some(20e6), "the client's was done last");
}

#[test]
fn every_event_and_direction_has_a_row_in_every_format() {
    let plan = plan();
    let mut up = probes(1000..1003);
    // A duplicate and a reordered probe after the removal.
    up.insert(1500, ProbeArrival { number: 1400, arrived_ns: up[1500].arrived_ns, delay_ns: 50_000 });
    let overtaken = up.remove(1200);
    up.insert(1202, ProbeArrival { arrived_ns: up[1202].arrived_ns, ..overtaken });
    let mut trials = Vec::new();
    for block in 0..3 {
        for arm in ["surprise", "carrier"] {
            let mut trial = trial(arm, up.clone(), probes(0..0), |_| 1_000_000);
            trial.slot.block = block;
            trials.push(trial);
        }
    }
    let analysis = analyse(&plan, None, &trials, &[], None);
    let failover = analysis.workloads[0].arms[0].failover.as_ref().unwrap();
    let [removal, given_back] = failover.events.as_slice() else { panic!("{:?}", failover.events) };
    assert_eq!(removal.ways[0].outage_ns, [3e6; 3]);
    assert_eq!((&removal.ways[0].lost[..], &removal.ways[0].duplicated[..]), (&[3.0; 3][..], &[1.0; 3][..]));
    assert_eq!(removal.ways[0].reordered, [1.0; 3]);
    assert_eq!(
        (removal.ways[1].lost.iter().sum::<f64>(), given_back.ways[0].lost.iter().sum::<f64>()),
        (0.0, 0.0)
    );
    assert_eq!(removal.began_s, [1.0; 3]);
    assert_eq!(failover.probes, [(9000, 9), (9000, 0)]);
    assert_eq!(removal.ways[0].delay_ns[0].len(), 3 * 500);
    assert!(
        removal.ways.iter().flat_map(|way| &way.delay_ns).flatten().all(|delay| (*delay - 50e3).abs() < 1.0)
    );
    assert_eq!(failover.lines.len(), 3);
    let run = stored(plan, trials);
    let text = terminal::report(&document(&run), 200, false);
    let line = text.lines().find(|line| line.contains("surprise  remove at 1 s")).unwrap();
    let row: Vec<&str> = line.split_whitespace().collect();
    // Median and maximum of three outages; the 90th percentile of three would be the maximum.
    let expected = ["surprise", "remove", "at", "1", "s", "to", "server", "3", "3.00", "ms", "3.00", "ms"];
    assert_eq!(row[..12], expected, "{text}");
    let titles = text.lines().find(|line| line.contains("outage p50")).unwrap();
    assert!(!titles.contains("p90"), "{titles}");
    let events = &crate::json::report(&run)["workloads"][0]["arms"][0]["failover"]["events"];
    assert_eq!(
        (
            &events[0]["client_to_server"]["outage_ns"]["n"],
            &events[0]["client_to_server"]["lost_by_trial"][0]
        ),
        (&3.into(), &3.0.into())
    );
    let removed = &events[0];
    assert_eq!(removed["began_ns"], serde_json::json!(vec![1_000_000_000; 3]), "{removed}");
    assert_eq!(
        removed["client_to_server"]["outage_by_trial_ns"],
        serde_json::json!(vec![3e6; 3]),
        "{removed}"
    );
    let markdown = markdown::page(&document(&run));
    assert!(markdown.contains("| surprise | remove at 1 s | to server | 3 | 3.00 ms |"), "{markdown}");
}

/// The lowest rates after the events when a stalled reader makes one long interval between these times. The second event is `later_ns` later.
fn lowest_rates(stall_ns: std::ops::Range<u64>, later_ns: u64) -> Vec<Vec<f64>> {
    let mut trial = trial("surprise", probes(0..0), probes(0..0), |_| 1_000_000);
    let event = &mut trial.lab_events.as_mut().unwrap().events[1];
    (event.began_ns, event.ended_ns) = (event.began_ns + later_ns, event.ended_ns + later_ns);
    let series = &mut trial.server.as_mut().unwrap().report.failover.as_mut().unwrap().series;
    series.retain(|sample| sample.end_ns <= stall_ns.start || sample.end_ns > stall_ns.end);
    let place = series.iter().take_while(|sample| sample.end_ns <= stall_ns.start).count();
    let length_ns = stall_ns.end - stall_ns.start;
    series.insert(place, IntervalSample { end_ns: stall_ns.end, length_ns, bytes: 1_000, messages: 0 });
    let analysis = analyse(&plan(), None, &[trial], &[], None);
    let events = &analysis.workloads[0].arms[0].failover.as_ref().unwrap().events;
    let lowest = |dip: &Dip| dip.lowest_bps.map(f64::round);
    events.iter().map(|event| event.ways[0].dips.iter().filter_map(lowest).collect()).collect()
}

#[test]
fn stalled_reader_is_the_lowest_rate_of_every_event_that_its_interval_overlaps() {
    let whole = 1_000_000.0 * 8e9 / 10e6;
    let stalled = |length_ns: f64| f64::round(1_000.0 * 8e9 / length_ns);
    for (stall_ns, later_ns, expected) in [
        // Past the half second after the first event.
        (1_010_000_000..1_700_000_000, 0, [vec![stalled(690e6)], vec![whole]]),
        // Past the second event.
        (1_010_000_000..2_100_000_000, 0, [vec![stalled(1_090e6)], vec![stalled(1_090e6)]]),
        // From the half second after the first event past the second one.
        (1_510_000_000..2_100_000_000, 0, [vec![stalled(590e6)], vec![stalled(590e6)]]),
        // From after the half second to before the second event.
        (1_600_000_000..1_900_000_000, 0, [vec![whole], vec![whole]]),
        // Past the end of the traffic.
        (2_900_000_000..3_050_000_000, 500_000_000, [vec![whole], vec![whole]]),
    ] {
        assert_eq!(lowest_rates(stall_ns.clone(), later_ns), expected, "{stall_ns:?}");
    }
}

#[test]
fn quantiles_are_nearest_ranks() {
    let values: Vec<f64> = (1..=10).map(f64::from).collect();
    assert_eq!(
        [0.0, 0.5, 0.9, 0.91, 1.0].map(|share| quantile(&values, share)),
        [1.0, 5.0, 9.0, 10.0, 10.0].map(Some)
    );
    assert_eq!(quantile(&[], 0.5), None);
}

/// A run file may be from elsewhere.
#[test]
fn event_at_the_smallest_time_is_tolerated() {
    let mut trial = trial("surprise", probes(0..0), probes(0..0), |_| 1_000_000);
    // On the axis of the trial there is no smaller one.
    trial.lab_events.as_mut().unwrap().events[0].began_ns = (1 << 63) + 7_000_000_000;
    let run = stored(plan(), vec![trial]);
    assert!(!terminal::report(&document(&run), 80, false).is_empty());
}

#[test]
fn invalid_columns_are_tolerated() {
    let far = i64::MAX / 2;
    let hostile = vec![
        ProbeArrival { number: u64::MAX / 3, arrived_ns: far, delay_ns: i64::MIN / 2 },
        ProbeArrival { number: 0, arrived_ns: -far, delay_ns: i64::MAX / 2 },
        ProbeArrival { number: u64::MAX / 3, arrived_ns: 0, delay_ns: 0 },
    ];
    let mut trial = trial("surprise", hostile.clone(), hostile, |_| u64::MAX / 400);
    for record in &mut trial.lab_events.as_mut().unwrap().events {
        (record.index, record.began_ns, record.ended_ns) = (u32::MAX, u64::MAX / 2, 0);
    }
    // Two of 3000 probes arrived each way; no event is one of the plan.
    assert_eq!(value(Metric::LostInOutage, &trial), Some(5996.0));
    let text = terminal::report(&document(&stored(plan(), vec![trial])), 100, false);
    assert!(text.contains("What does it cost?") && !text.contains("Event outages"), "{text}");
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    assert!(!words.any(|word| word == "NaN" || word == "inf"), "{text}");
}
