//! The analysis as one JSON document for programs. Units stand in the names; a figure that does not exist is null or absent.
//!
//! The format has a version. Fields are only ever added within one; whatever else changes raises it.
mod failover;
mod packets;
mod search;

use netduel_model::metric::{Metric, Scale};
use netduel_model::run::Run;
use netduel_model::stamps;
use netduel_stats::histogram::Histogram;
use netduel_stats::paired::Estimate;
use netduel_stats::summary;
use netduel_stats::verdict::{Judged, Verdict};
use serde_json::{Value, json};

use crate::analysis::{
    Analysis, ArmAnalysis, ArmValues, Comparison, Composition, Counter, DatagramWay, MetricAnalysis, Packets,
    Part, SeriesPoint, Stamps, WorkloadAnalysis, added_by_load,
};
use crate::inspect;
use crate::words;

/// Version of the document.
/// - 1: the first.
/// - 2: values have quartiles; rates of packets are medians of trials, not means; `explanation` holds what no counter of the table
///   says alone; answers and verdicts have other words.
pub const FORMAT_VERSION: u32 = 2;

/// The document.
pub fn document(run: &Run, analysis: &Analysis) -> Value {
    let header = &run.header;
    json!({
        "format": "netduel-report",
        "format_version": FORMAT_VERSION,
        "run": {
            "id": header.id,
            "program": header.program,
            "command": header.command,
            "started_unix_ms": header.started_unix_ms,
            "seed": header.seed,
            "end": analysis.end,
            "annotations": header.annotations,
        },
        "question": analysis.plan.question,
        "baseline": analysis.plan.baseline().map(|arm| &arm.name),
        "blocks": analysis.blocks,
        "trials_valid": analysis.trials_valid,
        "trials_left_out": analysis.trials_left_out,
        "workloads": analysis.workloads.iter().map(workload).collect::<Vec<_>>(),
        "path": words::proofs(analysis),
        "warnings": analysis.warnings.iter().map(|one| warning(analysis, one)).collect::<Vec<_>>(),
        "hosts": header.hosts,
        "inspection": {
            "hosts": analysis.inspection.hosts.iter().map(|host| {
                let mut value = inspect::host_document(host);
                // The facts stand in `hosts`.
                if let Value::Object(fields) = &mut value { fields.remove("facts"); }
                value
            }).collect::<Vec<_>>(),
            "pairs": analysis.inspection.pairs.iter().map(inspect::pair_document).collect::<Vec<_>>(),
        },
        "plan": header.plan,
        "counted": words::rules(&analysis.plan).into_iter().map(|(name, rule)| json!({ "name": name, "rule": rule }))
            .collect::<Vec<_>>(),
    })
}

fn warning(analysis: &Analysis, warning: &netduel_model::warning::Warning) -> Value {
    let mut value = serde_json::to_value(warning).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("text".to_owned(), Value::String(words::warning_text(analysis, warning)));
    }
    value
}

fn workload(workload: &WorkloadAnalysis) -> Value {
    json!({
        "name": workload.name,
        "answers": workload.arms.iter().skip(1).filter_map(|arm| words::answer(workload, &arm.arm))
            .map(|answer| answer.characters()).collect::<Vec<_>>(),
        "metrics": workload.judged.iter().map(|judged| metric(judged, true)).chain(
            workload.unjudged.iter().map(|unjudged| metric(unjudged, false))).collect::<Vec<_>>(),
        "arms": workload.arms.iter().map(arm).collect::<Vec<_>>(),
        "counters": workload.counters.iter().map(counter).collect::<Vec<_>>(),
        "explanation": workload.explanation,
    })
}

fn metric(analysis: &MetricAnalysis, judged: bool) -> Value {
    let metric = analysis.metric;
    json!({
        "metric": metric.key(),
        "title": analysis.title(),
        "unit": metric.unit(),
        "judged": judged,
        "arms": analysis.arms.iter().map(values).collect::<Vec<_>>(),
        "comparisons": analysis.comparisons.iter().map(|one| comparison(metric, one)).collect::<Vec<_>>(),
    })
}

fn values(arm: &ArmValues) -> Value {
    let numbers = arm.numbers();
    let mean = summary::mean(&numbers);
    let quartiles = [0.25, 0.75].map(|share| summary::quantile(&numbers, share));
    json!({
        "arm": arm.arm,
        "n": numbers.len(),
        "mean": mean.map(|mean| mean.mean),
        "standard_error": mean.and_then(|mean| mean.standard_error),
        "median": summary::median(&numbers),
        "quartiles": quartiles,
        "values": arm.values.iter().map(|(block, value)| json!({ "block": block, "value": value }))
            .collect::<Vec<_>>(),
    })
}

fn comparison(metric: Metric, comparison: &Comparison) -> Value {
    let judged = comparison.judged.as_ref();
    json!({
        "arm": comparison.arm,
        "pairs": comparison.pairs.len(),
        "scale": match metric.scale() {
            Scale::Ratio => "ratio",
            Scale::Difference => "difference",
        },
        "margin": comparison.margin,
        "verdict": judged.map(|judged| verdict(metric, judged)),
    })
}

fn verdict(metric: Metric, judged: &Judged) -> Value {
    let (kind, more_blocks) = match judged.verdict {
        Verdict::Higher { .. } => ("higher", None),
        Verdict::Lower { .. } => ("lower", None),
        Verdict::NoDifference { .. } => ("no-difference", None),
        Verdict::NotEnough { more, .. } => ("not-enough", more),
    };
    json!({
        "kind": kind,
        "tone": words::tone(metric, Some(judged)).word(),
        "text": words::verdict(metric, Some(judged)),
        "more_blocks": more_blocks,
        "adjusted_p": judged.adjusted_p,
        "estimate": judged.estimate.as_ref().map(estimate),
    })
}

/// An interval that has no end yet has null there: JSON knows no infinity.
fn estimate(estimate: &Estimate) -> Value {
    let end = |value: f64| value.is_finite().then_some(value);
    json!({
        "n": estimate.n,
        "centre": end(estimate.centre),
        "low": end(estimate.low).filter(|_| estimate.high.is_finite()),
        "high": end(estimate.high),
        "confidence": estimate.confidence,
        "p_value": estimate.p_value,
    })
}

fn arm(arm: &ArmAnalysis) -> Value {
    json!({
        "arm": arm.arm,
        "trials": arm.trials,
        "settings": words::workload(&arm.workload),
        "latency": arm.latency.as_ref().map(latency),
        "stamps": arm.stamps.as_ref().map(stamped),
        "parts": arm.parts.iter().map(part).collect::<Vec<_>>(),
        "added_by_load": added_by_load(&arm.parts, 50.0).map(|p50_ns| json!({
            "p50_ns": p50_ns, "p99_ns": added_by_load(&arm.parts, 99.0),
        })),
        "probes": arm.probes_lost.map(|(lost, all)| json!({ "sent": all, "without_response": lost })),
        "series_unit": if arm.workload.traffic.facts().bulk.is_none() { "ns" } else { "bit/s" },
        "series": arm.series.iter().map(point).collect::<Vec<_>>(),
        "latency_series_ns": arm.latency_series.iter().map(point).collect::<Vec<_>>(),
        "machines": arm.machines.iter().map(|machine| json!({
            "machine": machine.title,
            "cores": machine.cores.iter().map(|core| json!({
                "core": core.core, "user": core.user, "system": core.system, "hard_interrupt": core.irq,
                "soft_interrupt": core.softirq, "stolen": core.steal, "idle": core.idle,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "paths": arm.paths.iter().map(|path| json!({
            "role": path.role, "host": path.host, "expected": path.expected, "share_min": path.share_min,
            "proven": path.proven, "trials": path.trials,
            "interfaces": path.bytes.iter().map(|(name, bytes)| json!({ "interface": name, "bytes": bytes }))
                .collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "queues": arm.queues,
        "limit": arm.limit,
        "expected": arm.expected,
        "placements": arm.placements.iter().map(|placed| json!({
            "role": placed.role, "cores": placed.placement.cores, "reason": placed.placement.reason,
            "trials": placed.trials,
        })).collect::<Vec<_>>(),
        "datagrams": arm.datagrams.iter().map(datagrams).collect::<Vec<_>>(),
        "packets": arm.packets.iter().map(packets::arm).collect::<Vec<_>>(),
        "failover": arm.failover.as_ref().map(failover::arm),
        "search": arm.search.as_ref().map(search::arm),
    })
}

/// One direction of one trial of a `udp-stream`.
fn datagrams(way: &DatagramWay) -> Value {
    let packets = |packets: &Option<Packets>| {
        packets.as_ref().map(|seen| {
            json!({
                "interface": seen.interface, "packets": seen.packets, "bytes": seen.bytes,
                "bytes_per_packet": seen.bytes_per_packet(),
            })
        })
    };
    let [sender_errors, receiver_errors] = &way.errors;
    json!({
        "block": way.block,
        "direction": words::direction(way.sender),
        "sent": way.sent,
        "received": way.received,
        "duplicates": way.duplicates,
        "reordered": way.reordered,
        "lost": way.lost.map(|lost| json!({
            "all": lost.all, "at_receiver_socket": lost.at_socket, "at_interface": lost.at_interface,
            "elsewhere": lost.elsewhere(),
        })),
        "packets_sent": packets(&way.packets_sent),
        "packets_received": packets(&way.packets_received),
        "datagrams_per_packet": way.datagrams_per_packet,
        "burst": way.burst,
        "refused": way.refused,
        "pacing": way.pacing.as_ref().map(|pacing| json!({
            "asked_bps": pacing.asked_bps, "sent_bps": pacing.sent_bps,
            "late_ns": pacing.late.as_ref().map(|late| json!({
                "count": late.count(), "p50": late.percentile(50.0), "p99": late.percentile(99.0),
                "p99_9": late.percentile(99.9), "max": late.max(),
            })),
        })),
        "sender_errors": sender_errors,
        "receiver_errors": receiver_errors,
        "flows": way.flows.iter().map(|flow| json!({
            "from": flow.from, "to": flow.to, "sent_bytes": flow.sent_bytes, "received_bytes": flow.received_bytes,
            "incoming_core": flow.incoming_core,
        })).collect::<Vec<_>>(),
    })
}

fn latency(histogram: &Histogram) -> Value {
    json!({
        "count": histogram.count(),
        "min_ns": histogram.min(),
        "max_ns": histogram.max(),
        "mean_ns": histogram.mean(),
        "percentiles": histogram.cdf_tail().iter()
            .map(|(percentile, value)| json!({ "percentile": percentile, "value_ns": value })).collect::<Vec<_>>(),
    })
}

fn point(point: &SeriesPoint) -> Value {
    json!({
        "time_s": point.time_s, "median": point.median, "min": point.min, "max": point.max, "trials": point.trials,
    })
}

fn part(part: &Part) -> Value {
    json!({ "part": part.key, "title": part.title, "latency": latency(&part.histogram) })
}

/// What time stamps say.
pub(crate) fn stamped(stamps: &Stamps) -> Value {
    let parts = |parts: &[(stamps::Part, Histogram)]| -> Vec<Value> {
        parts.iter().map(|(part, of)| json!({ "part": part, "histogram": latency(of) })).collect()
    };
    let composition = |composition: &Composition| {
        json!({
            "mean_ns": composition.whole_ns,
            "count": composition.count,
            "parts": composition.parts.iter().map(|(part, mean)| json!({ "part": part, "mean_ns": mean })).collect::<Vec<_>>(),
        })
    };
    json!({
        "stamped": stamps.stamped,
        "complete": stamps.complete,
        "missing": stamps.missing,
        "does_not_add_up": stamps.inconsistent,
        "clock_steps": stamps.clock_steps,
        "middle_half": stamps.typical.as_ref().map(composition),
        "slowest_hundredth": stamps.slow.as_ref().map(composition),
        "parts": parts(&stamps.parts),
        "server_parts": parts(&stamps.server_parts),
        "cost": stamps.cost.map(|cost| json!({
            "median_ns": cost.median_ns, "min_ns": cost.min_ns, "max_ns": cost.max_ns, "trials": cost.trials,
        })),
        "hardware": stamps.hardware.as_ref().map(latency),
        "server_hardware": stamps.server_hardware.as_ref().map(latency),
        "one_way": stamps.one_way.as_ref().map(|one_way| json!({
            "error_ns": one_way.error_ns,
            "clocks": one_way.clocks,
            "below_zero": one_way.negative,
            "up": latency(&one_way.up),
            "down": latency(&one_way.down),
        })),
    })
}

fn counter(counter: &Counter) -> Value {
    json!({
        "counter": counter.title,
        "unit": counter.unit,
        "arms": counter.arms.iter().map(|(arm, spread)| json!({
            "arm": arm,
            "trials": spread.map(|spread| spread.trials),
            "median": spread.map(|spread| spread.median),
            "min": spread.map(|spread| spread.min),
            "max": spread.map(|spread| spread.max),
        })).collect::<Vec<_>>(),
    })
}
