//! Open loops: rates of requests, missed schedules, and what a test concludes from them.
use netduel_model::metric::Metric;
use netduel_model::sample::IntervalSample;
use netduel_model::units::{Nanos, PerSecond};
use netduel_model::workload::{Timing, Traffic, Workload};
use netduel_report::analysis::{Cause, limit_of, missed_rate, value_of};
use netduel_report::{document, markdown};
use netduel_stats::histogram::Histogram;

use crate::builder::{Recipe, build};
use crate::figures;

const SECOND: u64 = 1_000_000_000;

#[test]
fn late_open_loop_causes_a_warning() {
    let on_time = build(&Recipe { workloads: vec!["open"], blocks: 2, ..Recipe::default() });
    let punctual =
        |run: &netduel_model::run::Run| !figures::kinds(run).contains(&"schedule missed".to_owned());
    assert!(punctual(&on_time));
    let mut late = on_time.clone();
    for trial in &mut late.trials {
        let report = trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap();
        report.pacing_error = Some(report.histogram.clone());
    }
    for arm in &mut late.header.plan.arms {
        if let Traffic::UdpRr(round_trip) = &mut arm.workloads[0].traffic {
            round_trip.rate = Some(PerSecond(1_000_000));
        }
    }
    assert!(!punctual(&late));
}

#[test]
fn open_loop_counts_completed_requests_and_names_the_configured_rate_only_on_schedule() {
    let (mut workload, on_time) = figures::first("open");
    let steady_s = 4;
    workload.timing.warmup.0 = workload.timing.duration.0 - workload.timing.cooldown.0 - steady_s * SECOND;
    let series = |messages: u64| -> Vec<IntervalSample> {
        let sample = |second: u64| IntervalSample {
            end_ns: (second + 1) * SECOND,
            length_ns: SECOND,
            bytes: messages * 64,
            messages,
        };
        (0..5).map(sample).collect()
    };
    let configured = workload.traffic.facts().request_rate().unwrap().0;
    let answered = |percent: u64, late_ns: u64| {
        let mut trial = on_time.clone();
        let client = &mut trial.client.as_mut().unwrap().report;
        client.received.as_mut().unwrap().series = series(configured * percent / 100);
        let round_trips = client.round_trips.as_mut().unwrap();
        round_trips.histogram.count = configured * steady_s;
        let mut late = Histogram::new();
        (0..1000).for_each(|_| late.record(late_ns));
        round_trips.pacing_error = Some(late.to_record());
        let rate = value_of(Metric::RoundTripRate, &workload, &trial, false).unwrap();
        (rate.round() as u64 * 100 / configured, limit_of(&workload, &trial, false, None).unwrap().cause)
    };
    assert_eq!(answered(100, 1_000), (100, Cause::ConfiguredRate));
    // The histogram holds every request of the window, whenever it was answered.
    let (rate, cause) = answered(30, 1_000);
    assert!(rate == 30 && cause != Cause::ConfiguredRate, "{rate} {cause:?}");
    let (rate, cause) = answered(100, 300_000_000);
    assert!(rate == 100 && cause != Cause::ConfiguredRate, "{rate} {cause:?}");
}

#[test]
fn slow_open_loop_misses_its_rate_only_without_responses_that_were_due() {
    let (mut workload, mut trial) = figures::first("open");
    let Traffic::UdpRr(round_trip) = &mut workload.traffic else { panic!("{:?}", workload.traffic) };
    round_trip.rate = Some(PerSecond(1));
    // Due 0, 1, 2 and 3 s after the start; the last three are within the 3.4 s that count.
    let ms = Nanos::from_millis;
    workload.timing = Timing { duration: ms(4_000), warmup: ms(400), cooldown: ms(200) };
    let client = &mut trial.client.as_mut().unwrap().report;
    client.received.as_mut().unwrap().series.clear();
    client.round_trips.as_mut().unwrap().responses = 4;
    let mut answered = |count: u64, workload: &Workload| {
        trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap().histogram.count = count;
        (missed_rate(workload, &trial), value_of(Metric::LatencyP50, workload, &trial, false).is_some())
    };
    assert_eq!(answered(3, &workload).0, None);
    assert_eq!(answered(2, &workload).0.as_deref(), Some("0.588 /s answered of the configured 1.00 /s"));
    // A window without a response stands for the round trips that were due in it, and for nothing where none was.
    assert!(answered(0, &workload).1);
    workload.timing.warmup = ms(3_100);
    assert_eq!(answered(0, &workload), (None, false));
}

#[test]
fn percentiles_of_trials_with_too_few_round_trips_have_a_note() {
    let page = |round_trips: u64| {
        let mut run = build(&Recipe { workloads: vec!["open"], blocks: 3, ..Recipe::default() });
        for trial in &mut run.trials {
            let mut histogram = Histogram::new();
            (1..=round_trips).for_each(|index| histogram.record(index * 1_000));
            let report = trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap();
            report.histogram = histogram.to_record();
        }
        markdown::page(&document(&run)).replace('\\', "")
    };
    let (few, many) = (page(275), page(10_000));
    let of_a_trial = "round trip p99.9: close to the maximum in trials with fewer than 1000 round trips; the smallest trial has 275";
    let of_all = "no value (-): fewer round trips than the percentile needs (p99.9: 1000, p99.99: 10000)";
    assert!(few.contains(of_a_trial) && few.contains(of_all), "{few}");
    assert!(!few.contains("round trip p99: close"), "{few}");
    assert!(!many.contains("close to the maximum") && !many.contains("no value (-)"), "{many}");
}
