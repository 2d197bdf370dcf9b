//! Metrics without a value on an arm whose trials are valid, and why. Trials that are excluded have warnings.
use netduel_model::metric::Metric;

use super::text::listed;
use crate::analysis::{Analysis, MetricAnalysis, WorkloadAnalysis};

/// Each metric with a verdict that lacks values of an arm with valid trials, as a fragment: `throughput of bulk on a and b: ...`.
pub fn without_value(analysis: &Analysis) -> Vec<String> {
    let of_workload = |workload: &WorkloadAnalysis| {
        workload.judged.iter().filter_map(|metric| of_metric(workload, metric)).collect::<Vec<_>>()
    };
    analysis.workloads.iter().flat_map(of_workload).collect()
}

fn of_metric(workload: &WorkloadAnalysis, metric: &MetricAnalysis) -> Option<String> {
    let has_trials = |name: &str| workload.arms.iter().any(|arm| arm.arm.as_str() == name && arm.trials > 0);
    let lacking = metric.arms.iter().filter(|arm| arm.values.is_empty()).map(|arm| arm.arm.as_str());
    let lacking: Vec<&str> = lacking.filter(|name| has_trials(name)).collect();
    let reason = match metric.metric {
        Metric::Throughput | Metric::DatagramRate => {
            "no data arrived in the steady window of the valid trials; raise the rate or `duration`"
        }
        Metric::NoDropRate | Metric::PartialDropRate => {
            "the searches of the valid trials found no rate that meets the goal"
        }
        _ => "the valid trials do not have the counts that it needs",
    };
    (!lacking.is_empty())
        .then(|| format!("{} of {} on {}: {reason}", metric.title(), workload.name, listed(&lacking)))
}
