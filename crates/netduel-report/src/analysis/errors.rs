//! Calls that failed in the trials of an arm, by end, call and error. A trial goes on after most of them, so its values do not show them.
use std::collections::BTreeMap;

use netduel_model::trial::Trial;
use netduel_model::workload::Role;

use super::figures;
use crate::total;

/// A call that failed in one way at one end, over all valid trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCall {
    /// The end.
    pub role: Role,
    /// The system call, or what part of the program noted it.
    pub call: String,
    /// The error.
    pub error: String,
    /// Number of times.
    pub count: u64,
    /// Number of trials in which it failed.
    pub trials: u32,
}

/// Those of these trials, the most frequent first.
pub(super) fn of_trials(trials: &[&Trial]) -> Vec<FailedCall> {
    let mut counts: BTreeMap<(Role, &str, &str), (u64, u32)> = BTreeMap::new();
    for end in trials.iter().flat_map(|trial| figures::ends(trial)) {
        for error in &end.report.errors {
            let known = counts.entry((end.report.role, &error.call, &error.error)).or_default();
            total::add(&mut known.0, error.count);
            known.1 = known.1.saturating_add(1);
        }
    }
    let mut calls: Vec<FailedCall> = counts
        .into_iter()
        .map(|((role, call, error), (count, trials))| FailedCall {
            role,
            call: call.to_owned(),
            error: error.to_owned(),
            count,
            trials,
        })
        .collect();
    // A stable sort: equal ones keep the order of ends and calls.
    calls.sort_by_key(|call| std::cmp::Reverse(call.count));
    calls
}
