//! Quick tests of packets: the flows of one, and the table of several.
use netduel_model::sample::StreamReport;
use netduel_report::quick::{self, SummaryInput};

use crate::packets::swept;

/// The row of a test in which the packets of so many samples arrived.
fn row(samples: usize) -> String {
    let mut trial = swept().trials.swap_remove(0);
    let flow = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
    flow.series.iter_mut().skip(samples).for_each(|sample| (sample.bytes, sample.messages) = (0, 0));
    let plan = swept().header.plan;
    let workload = plan.arm(&trial.slot.arm).and_then(|arm| arm.workload(&trial.slot.workload)).unwrap();
    let input =
        SummaryInput { workload, trial: &trial, shared_machine: false, expected: None, mtus: [None; 2] };
    let table = quick::sweep(&[input], 160);
    table.lines().find(|line| line.contains("68 B")).unwrap().to_owned()
}

#[test]
fn rate_of_a_test_in_which_nothing_arrived_is_a_bound() {
    let all = row(usize::MAX);
    assert!(all.contains("kpps") && !all.contains('<'), "{all}");
    // Packets of the warm-up only.
    let none = row(5);
    assert_eq!((none.matches("< ").count(), none.matches("pps").count()), (1, 1), "{none}");
}

#[test]
fn flows_of_packets_have_one_row_at_each_end() {
    let mut run = swept();
    let mut trial = run.trials.swap_remove(0);
    for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
        end.report.streams = (0..16).map(|index| StreamReport { index, ..StreamReport::default() }).collect();
    }
    let plan = run.header.plan;
    let workload = plan.arm(&trial.slot.arm).and_then(|arm| arm.workload(&trial.slot.workload)).unwrap();
    let input =
        SummaryInput { workload, trial: &trial, shared_machine: false, expected: None, mtus: [None; 2] };
    let text = quick::summary(input, 160);
    let rows = text.lines().filter(|line| line.contains("client sent") || line.contains("server received"));
    let rows: Vec<&str> = rows.map(str::trim_start).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("all 16 "), "{text}");
    assert!(!text.contains("mean rate"), "packets have no bit rate: {text}");
}
