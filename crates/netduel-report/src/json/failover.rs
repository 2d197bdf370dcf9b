//! What the events of a failover cost, in JSON: every repeat, and the quantiles of outages.
use serde_json::{Value, json};

use crate::analysis::{ArmFailover, Dip, EventFigures, Phase, WayFigures, quantile};

/// An arm of a failover.
pub(super) fn arm(arm: &ArmFailover) -> Value {
    let probes = |(sent, lost): (u64, u64)| json!({ "sent": sent, "lost": lost });
    json!({
        "events": arm.events.iter().map(event).collect::<Vec<_>>(),
        "probes": { "up": probes(arm.probes[0]), "down": probes(arm.probes[1]) },
        "clock_error_ns": arm.clock_error_ns,
    })
}

fn event(figures: &EventFigures) -> Value {
    json!({
        "kind": figures.event.kind,
        "at_ns": figures.event.at,
        "on": figures.event.on,
        "interface": figures.event.interface,
        "began_s": figures.began_s,
        "kernel_ns": figures.took_ns,
        "up": way(&figures.ways[0]),
        "down": way(&figures.ways[1]),
    })
}

fn way(way: &WayFigures) -> Value {
    let quantiles = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        json!({
            "n": sorted.len(), "p50": quantile(&sorted, 0.5), "p90": quantile(&sorted, 0.9), "p99": quantile(&sorted, 0.99),
            "max": sorted.last(),
        })
    };
    let delay = |phase: Phase| quantiles(&way.delay_ns[phase as usize]);
    json!({
        "outage_ns": quantiles(&way.outage_ns),
        "outage_ns_by_trial": way.outage_ns,
        "outages_not_over": way.never_over,
        "without_an_event_ns_by_trial": way.without_ns,
        "lost_by_trial": way.lost,
        "duplicated_by_trial": way.duplicated,
        "reordered_by_trial": way.reordered,
        "one_way_delay_ns": {
            "before": delay(Phase::Before), "during": delay(Phase::During), "after": delay(Phase::After),
        },
        "streams_by_trial": way.dips.iter().map(dip).collect::<Vec<_>>(),
    })
}

fn dip(dip: &Dip) -> Value {
    json!({
        "before_bps": dip.before_bps, "lowest_bps": dip.lowest_bps, "settled_bps": dip.settled_bps,
        "recovery_ns": dip.recovery_ns,
    })
}
