//! Metrics without a value in valid trials, and why. Trials that are excluded have warnings.
use netduel_model::metric::Metric;

use super::text::listed;
use crate::analysis::{Analysis, ArmValues, MetricAnalysis, WorkloadAnalysis};

/// Each metric with a verdict that lacks all values of an arm with valid trials, or those whose result was the worst, as a fragment:
/// `throughput of bulk on a and b: ...`, `rate without loss of udp in 6 of 12 valid trials of a: ...`.
pub fn without_value(analysis: &Analysis) -> Vec<String> {
    let of_workload = |workload: &WorkloadAnalysis| {
        let all = workload.judged.iter().flat_map(|metric| of_metric(workload, metric));
        all.collect::<Vec<_>>()
    };
    analysis.workloads.iter().flat_map(of_workload).collect()
}

fn of_metric(workload: &WorkloadAnalysis, metric: &MetricAnalysis) -> Vec<String> {
    let with_trials = metric.arms.iter().filter_map(|values| {
        let arm = workload.arms.iter().find(|arm| arm.arm == values.arm && arm.trials > 0)?;
        Some((values, arm.trials))
    });
    let (lacking, others): (Vec<_>, Vec<_>) = with_trials.partition(|(values, _)| values.values.is_empty());
    let all: Vec<&str> = lacking.iter().map(|(values, _)| values.arm.as_str()).collect();
    let in_some = |(values, trials): &(&ArmValues, u32)| {
        let without = values.without.len();
        (without > 0).then(|| format!("{without} of {trials} valid trials of {}", values.arm))
    };
    let some: Vec<String> = others.iter().filter_map(in_some).collect();
    let some: Vec<&str> = some.iter().map(String::as_str).collect();
    let are_worst = lacking.iter().all(|(values, _)| !values.without.is_empty());
    let fragment = |place: &str, names: &[&str], reason: &str| {
        let what = format!("{} of {} {place} {}", metric.title(), workload.name, listed(names));
        (!names.is_empty()).then(|| format!("{what}: {reason}"))
    };
    let of_all = fragment("on", &all, reason(metric.metric, are_worst));
    of_all.into_iter().chain(fragment("in", &some, reason_of_worst(metric.metric))).collect()
}

/// Why an arm has no value at all. `are_worst`: the results of all trials were the worst.
fn reason(metric: Metric, are_worst: bool) -> &'static str {
    match metric {
        Metric::Throughput | Metric::DatagramRate => {
            "no data arrived in the steady window of the valid trials; raise the rate or `duration`"
        }
        Metric::NoDropRate | Metric::PartialDropRate => {
            "the searches of the valid trials found no rate that meets the goal"
        }
        _ if are_worst => reason_of_worst(metric),
        _ => "the valid trials do not have the counts that it needs",
    }
}

/// Why valid trials have no value whose result was the worst, as `is_worst` of the analysis has it.
pub(crate) fn reason_of_worst(metric: Metric) -> &'static str {
    match metric {
        Metric::NoDropRate | Metric::PartialDropRate => "the search found no rate that meets the goal",
        Metric::LatencyIdleP50 => "no request before the load had a response",
        Metric::Responsiveness => "too few responses of a kind came",
        Metric::RoundTripRate
        | Metric::LatencyP50
        | Metric::LatencyP99
        | Metric::LatencyP999
        | Metric::LatencyLoadedP50
        | Metric::LatencyLoadedP99
        | Metric::CpuPerRoundTrip => "no response came",
        Metric::RetransmitsPerGigabyte => "nothing arrived in a direction",
        // One datagram of a flow alone has neither a rate nor a jitter. The last four have a value whenever something was sent.
        Metric::Throughput
        | Metric::DatagramRate
        | Metric::PacketRate
        | Metric::Jitter
        | Metric::CpuPerGigabyte
        | Metric::CpuPerDatagram
        | Metric::Loss
        | Metric::Outage
        | Metric::LostInOutage
        | Metric::RecoveryTime => "nothing arrived in a direction, or no more datagrams than flows",
    }
}
