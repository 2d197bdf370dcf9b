//! Paired ratios of counters beside the medians of the arms.
use netduel_report::{analyse_run, document, markdown};

use crate::builder::{Recipe, build};

/// The ratio of user time per gigabyte in a run of trials with this user time, for each block the baseline's and the arm's, ms.
fn user_time_ratio(times: [(f64, f64); 8]) -> (Option<f64>, String) {
    let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let baseline = run.header.plan.arms[0].name.clone();
    for trial in &mut run.trials {
        let (of_baseline, of_arm) = times[trial.slot.block as usize];
        let gigabytes = trial.server.as_ref().unwrap().report.received.as_ref().unwrap().bytes as f64 / 1e9;
        let time = gigabytes * if trial.slot.arm == baseline { of_baseline } else { of_arm };
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            for (index, core) in end.observation.cores.iter_mut().enumerate() {
                core.user_ns = if index == 0 { (time * 1e6) as u64 } else { 0 };
            }
        }
    }
    let analysis = analyse_run(&run);
    let counters = &analysis.workloads[0].counters;
    let user = counters.iter().find(|counter| counter.title == "CPU time, user").unwrap();
    let page = markdown::page(&document(&run));
    let row = page.lines().find(|line| line.starts_with("| CPU time, user |")).unwrap().to_owned();
    (user.ratios[1].map(|ratio| ratio.centre), row)
}

#[test]
fn ratio_of_counters_does_not_contradict_the_medians_beside_it() {
    // The accounting of CPU time has steps, so a short trial may have none. Pairs with a 0 have no ratio, and the other pairs
    // alone say the opposite of the medians.
    let steps =
        [(0.0, 4.0), (0.0, 4.0), (0.0, 4.0), (3.0, 4.0), (3.0, 0.0), (9.0, 4.0), (9.0, 4.0), (9.0, 4.0)];
    let (ratio, row) = user_time_ratio(steps);
    assert_eq!(ratio, None, "{row}");
    assert!(row.ends_with("| 0.0030 | 0.0040 | - |"), "{row}");
    // Without a 0: blocks differ more than the arms do.
    let blocks =
        [(10.0, 4.1), (11.0, 4.2), (12.0, 4.3), (3.9, 1.0), (3.8, 1.0), (3.0, 4.4), (2.0, 4.5), (1.0, 4.6)];
    let (ratio, row) = user_time_ratio(blocks);
    assert_eq!(ratio, None, "{row}");
    assert!(row.ends_with("| 0.0038 | 0.0042 | - |"), "{row}");
    // A ratio that agrees with the medians stays, also where the sizes differ.
    let (ratio, row) = user_time_ratio(blocks.map(|(baseline, arm)| (baseline, arm / 2.0)));
    assert!(ratio.is_some_and(|ratio| ratio < 0.5), "{row}");
}
