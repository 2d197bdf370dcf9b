//! The traffic of a whole quick test beside that of its steady window, from records with numbers that can be checked by hand.
use netduel_model::sample::IntervalSample;
use netduel_model::units::Nanos;
use netduel_report::quick::{self, SummaryInput};

use crate::builder::{Recipe, build};
use crate::json;

#[test]
fn traffic_outside_the_steady_window_that_is_not_as_in_it_causes_a_warning() {
    const MILLISECOND: u64 = 1_000_000;
    let run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    let mut workload = run.header.plan.arms[0].workloads[0].clone();
    workload.timing.duration = Nanos::from_millis(2_000);
    (workload.timing.warmup, workload.timing.cooldown) = (Nanos::from_millis(200), Nanos::from_millis(100));
    let warned = |bytes: u64, last_ms: u64| {
        let mut trial = run.trials[0].clone();
        trial.client.as_mut().unwrap().report.sent.as_mut().unwrap().last_ns = Some(last_ms * MILLISECOND);
        let received = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
        received.bytes = bytes;
        (received.first_ns, received.last_ns) = (Some(0), Some(last_ms * MILLISECOND));
        // 15.7 Gbit/s in the planned time.
        received.series = (1..=20)
            .map(|step| IntervalSample {
                end_ns: step * 100 * MILLISECOND,
                length_ns: 100 * MILLISECOND,
                bytes: 196_250_000,
                messages: 0,
            })
            .collect();
        let input = SummaryInput {
            workload: &workload,
            trial: &trial,
            shared_machine: false,
            expected: None,
            mtus: [None; 2],
        };
        let shown = quick::summary(input, 250);
        let words = shown.lines().find_map(|line| line.trim().strip_prefix("warning"));
        let words = words.map(|words| words.trim().to_owned());
        let document = json::quick_test(&run, input);
        let texts = document["tests"][0]["warnings"].to_string();
        assert_eq!(words.as_ref().is_some_and(|words| texts.contains(words)), words.is_some(), "{texts}");
        words
    };
    assert_eq!(
        warned(3_684_000_000, 3_970).as_deref(),
        Some(
            "7.42 Gbit/s in the whole test (3.97 s instead of 2.00 s), 15.7 Gbit/s in the steady window: the traffic stalled outside the \
             steady window, or ended late"
        )
    );
    let reason =
        |bytes, last_ms| warned(bytes, last_ms).map(|words| words.rsplit(": ").next().unwrap().to_owned());
    assert_eq!(reason(4_710_000_000, 2_400).as_deref(), Some("the traffic ended late"));
    assert_eq!(
        reason(3_000_000_000, 2_000).as_deref(),
        Some("the traffic stalled or was slower outside the steady window")
    );
    assert_eq!(
        reason(5_000_000_000, 2_000).as_deref(),
        Some("the traffic was slower in the steady window than outside it")
    );
    assert_eq!(reason(3_925_000_000, 2_100), None, "both are within a tenth");
}
