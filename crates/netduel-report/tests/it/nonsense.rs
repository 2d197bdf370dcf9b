//! No output contains a non-number (NaN, infinity), whatever the records contain.
use netduel_model::run::Run;
use netduel_model::sample::HistogramRecord;
use netduel_report::{analyse_run, csv, document, html, markdown, terminal};
use proptest::prelude::*;

use crate::builder::{Recipe, build};
use crate::json;

/// Every output of a run, the page without its scripts.
fn outputs(run: &Run) -> Vec<(&'static str, String)> {
    let page = html::page(&document(run));
    let (before, data) = page.split_once("type=\"application/json\">").unwrap();
    let (_, body) = before.split_once("</style>").unwrap();
    vec![
        ("terminal", terminal::report(&document(run), 100, false)),
        ("markdown", markdown::page(&document(run))),
        ("json", json::report(run).to_string()),
        ("csv", csv::trials(run)),
        ("page", body.to_owned()),
        ("chart data", data.split_once("</script>").unwrap().0.to_owned()),
    ]
}

fn assert_sense(run: &Run) {
    for (format, text) in outputs(run) {
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            assert!(
                !["nan", "inf", "infx", "nanx", "undefined", "infinity"]
                    .contains(&word.to_lowercase().as_str()),
                "{format} says `{word}`"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_output_contains_nan_or_infinity(
        blocks in 0_u32..12,
        effect in prop_oneof![Just(1.0), 0.01_f64..50.0],
        noise in prop_oneof![Just(0.0), 0.0_f64..1.2],
        loss in prop_oneof![Just([0.0, 0.0]), Just([1.0, 0.0]), Just([1.0, 1.0]), [0.0_f64..0.9, 0.0_f64..0.9]],
        failed in proptest::collection::vec((0_u32..12, 0_usize..2), 0..6),
        wrong_path in proptest::collection::vec((0_u32..12, 0_usize..2), 0..3),
        workload in prop_oneof![Just("bulk"), Just("udp"), Just("rr"), Just("open")],
        seed in any::<u64>(),
    ) {
        let recipe = Recipe { blocks, effect, noise, loss, failed, wrong_path, workloads: vec![workload], seed, ..Recipe::default() };
        assert_sense(&build(&recipe));
    }
}

#[test]
fn empty_records_give_no_figures() {
    let mut run = build(&Recipe::default());
    for trial in &mut run.trials {
        trial.proofs.clear();
        for end in [&mut trial.client, &mut trial.server] {
            let end = end.as_mut().unwrap();
            end.observation = netduel_model::observation::Observation::default();
            for flow in [&mut end.report.sent, &mut end.report.received].into_iter().flatten() {
                *flow = netduel_model::sample::Flow::default();
            }
            end.report.datagrams =
                end.report.datagrams.take().map(|_| netduel_model::sample::DatagramReport::default());
            if let Some(round_trips) = &mut end.report.round_trips {
                round_trips.histogram = HistogramRecord::default();
                round_trips.series.clear();
                round_trips.responses = 0;
            }
        }
    }
    assert_sense(&run);
    let analysis = analyse_run(&run);
    assert!(
        analysis
            .workloads
            .iter()
            .flat_map(|workload| &workload.judged)
            .flat_map(|metric| &metric.arms)
            .all(|arm| arm.values.is_empty())
    );
}

#[test]
fn single_arm_without_trials_is_printed() {
    let mut run = build(&Recipe::default());
    run.header.plan.arms.truncate(1);
    assert_sense(&run);
    run.trials.clear();
    assert_sense(&run);
    run.header.plan.workloads.clear();
    assert_sense(&run);
}
