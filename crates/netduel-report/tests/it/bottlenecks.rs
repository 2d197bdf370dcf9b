//! Bottlenecks of arms: which trial their evidence is from, and what they advise.
use netduel_model::trial::Trial;
use netduel_report::analysis::value_of;
use netduel_report::{analyse_run, document, markdown};

use crate::builder::{Recipe, build};

#[test]
fn evidence_of_two_of_three_trials_is_that_of_the_lower_one_and_names_how_many_it_is_of() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 3, effect: 1.0, ..Recipe::default() });
    let is_capped = |trial: &Trial| trial.slot.arm.as_str() == "synthetic" && trial.slot.block < 2;
    for trial in run.trials.iter_mut().filter(|trial| is_capped(trial)) {
        for interface in &mut trial.client.as_mut().unwrap().observation.interfaces {
            interface.qdisc_overlimits = Some(interface.tx_packets);
        }
    }
    let workload = run.header.plan.arms[0].workloads[0].clone();
    let value = |trial: &Trial| value_of(workload.metrics[0], &workload, trial, false).unwrap();
    let capped = run.trials.iter().filter(|trial| is_capped(trial));
    let lower = capped.min_by(|one, other| value(one).total_cmp(&value(other))).unwrap().slot.block;
    let analysis = analyse_run(&run);
    let limit = analysis.workloads[0].arms[0].limit.as_ref().unwrap();
    assert_eq!((limit.trials, limit.of, limit.evidence_block), (2, 3, lower), "{limit:?}");
    let page = markdown::page(&document(&run)).replace('\\', "");
    let words = format!("median of the 2 trials with this cause (block {}): ", lower + 1);
    assert!(page.contains(&words), "{page}");
}
