//! Which warnings concern which comparisons.
//!
//! A warning concerns a comparison when it names the workload, the metric, or one of the two arms, or a host of one of them. Warnings
//! that change no value concern none.
use netduel_model::ids::ArmName;
use netduel_model::metric::{Metric, Quantity};
use netduel_model::warning::Warning;

use super::result::{Analysis, WorkloadAnalysis};

/// Positions in [`Analysis::warnings`] of the warnings that concern a metric of an arm, compared with the baseline.
pub fn warnings_about(
    analysis: &Analysis,
    workload: &WorkloadAnalysis,
    metric: Metric,
    arm: &ArmName,
) -> Vec<usize> {
    let all = analysis.warnings.iter().enumerate();
    let about = all.filter(|(_, warning)| concerns(analysis, warning, workload, metric, arm));
    about.map(|(index, _)| index).collect()
}

fn concerns(
    analysis: &Analysis,
    warning: &Warning,
    workload: &WorkloadAnalysis,
    metric: Metric,
    arm: &ArmName,
) -> bool {
    let compared: Vec<&ArmName> =
        workload.arms.first().map(|first| &first.arm).into_iter().chain([arm]).collect();
    let subject = warning.subject();
    let names_it = subject.workload.is_none_or(|name| *name == workload.name)
        && subject.metric.is_none_or(|named| named == metric)
        && subject.arm.is_none_or(|name| compared.contains(&name));
    // A warning without an arm concerns those that use its host.
    let has_host = |name: &&ArmName| {
        let arm = analysis.plan.arm(name);
        arm.is_some_and(|arm| analysis.plan.hosts_of(arm).any(|host| subject.hosts.contains(&host)))
    };
    let is_of_arms = subject.arm.is_some() || compared.iter().any(has_host);
    names_it && is_of_arms && changes_values(analysis, warning, workload, metric, &compared)
}

/// Whether it may have changed values of a metric of these arms.
fn changes_values(
    analysis: &Analysis,
    warning: &Warning,
    workload: &WorkloadAnalysis,
    metric: Metric,
    compared: &[&ArmName],
) -> bool {
    match warning {
        // The two arms share the machine alike, no figure uses the wall clock, and the rest are about other figures or other runs.
        Warning::SharedMachine { .. }
        | Warning::ClockStep { .. }
        | Warning::SettingsRestored { .. }
        | Warning::TimestampsIncomplete { .. } => false,
        // A translator on both paths delays both alike, and so does that of a pair which both have in a crossover.
        Warning::AddressTranslated { client, server, .. } => {
            let is_translated = |name: &ArmName| {
                let plan = &analysis.plan;
                let mut pairs = plan.arm(name).into_iter().flat_map(|arm| plan.pairs_of(arm));
                pairs.any(|pair| pair.client == *client && pair.server == *server)
            };
            compared.iter().filter(|name| is_translated(name)).count() == 1
        }
        Warning::NoRoundTrips { .. } => metric.is_of_round_trips(),
        // Rates and costs contain the effect of these requests, and the idle latency is that before the load.
        Warning::RequestsLost { .. } => metric.is_of_round_trips() && metric.quantity() == Quantity::Latency,
        // These name the host for the whole run; their trials are known by workload and arm.
        Warning::CpuContention { .. } => {
            workload.arms.iter().any(|arm| compared.contains(&&arm.arm) && !arm.contended.is_empty())
        }
        Warning::StealTime { .. } => {
            workload.arms.iter().any(|arm| compared.contains(&&arm.arm) && !arm.stolen.is_empty())
        }
        _ => true,
    }
}
