//! Why a quick test of datagrams has no jitter.
use netduel_model::metric::Metric;

use super::summary::SummaryInput;
use crate::analysis::{self, value_of};

/// The most datagrams of a send call, where a call had several: they have one send time, so the estimate would be that of their spacing.
pub(super) fn burst(input: SummaryInput<'_>) -> Option<u32> {
    let ways = analysis::datagrams_of(input.workload, input.trial, input.shared_machine);
    ways.iter().filter_map(|way| way.burst).max().filter(|burst| *burst > 1)
}

/// The reason; absent for a test that has a jitter, and for one that measures none.
pub(super) fn reason(input: SummaryInput<'_>) -> Option<String> {
    let SummaryInput { workload, trial, shared_machine, .. } = input;
    let facts = workload.traffic.facts();
    // Packets carry no send time.
    if facts.is_of_packets() || !facts.possible_metrics.contains(&Metric::Jitter) {
        return None;
    }
    if let Some(burst) = burst(input) {
        return Some(format!(
            "not available, because a send call had up to {burst} datagrams, which have one send time"
        ));
    }
    value_of(Metric::Jitter, workload, trial, shared_machine)
        .is_none()
        .then(|| "not available, because fewer than two datagrams of a flow arrived".to_owned())
}
