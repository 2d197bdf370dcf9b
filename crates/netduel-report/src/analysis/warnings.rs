//! Warnings derived from the data of a run.
use std::collections::BTreeMap;

use netduel_model::attempts::Unfinished;
use netduel_model::ids::{HostName, WorkloadName};
use netduel_model::metric::Scale;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::run::RunHeader;
use netduel_model::sample::ZeroCopyReport;
use netduel_model::trial::{Trial, Validity};
use netduel_model::warning::{STEAL_SHARE_MAX, Warning};
use netduel_model::workload::{Role, Transaction};
use netduel_stats::{doubt, summary};

use crate::findings::{Severity, of_bed};

use super::contention::{busy_hosts, stolen_share};
use super::machine::{Machine, Machines};
use super::verdicts::crossed_values;
use super::{
    ArmAnalysis, MetricAnalysis, WorkloadAnalysis, connections, counts, datagrams, figures, modes, schedule,
    series,
};
use crate::total::{self, Total};

/// A wall clock that deviated further from the monotonic clock was stepped, not slewed.
const CLOCK_STEP_MAX_NS: u64 = 1_000_000;

/// A larger share of timestamped round trips without a split causes a warning.
const STAMPS_LOST_MAX: f64 = 0.05;

/// All warnings derived from the data.
pub(super) fn derive(
    plan: &ResolvedPlan,
    counting: &[&Trial],
    workloads: &[WorkloadAnalysis],
    machines: &Machines,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for arm in &plan.arms {
        let of_arm: Vec<&Trial> =
            counting.iter().copied().filter(|trial| trial.slot.arm == arm.name).collect();
        warnings.extend(excluded(arm, &of_arm));
        if !arm.is_proven() {
            warnings.push(Warning::ArmNotProven { arm: arm.name.clone() });
        }
    }
    for workload in workloads {
        for metric in &workload.judged {
            warnings.extend(of_metric(workload, metric, plan.crossover_at()));
        }
        for arm in &workload.arms {
            if !arm.stalled.is_empty() {
                warnings.push(Warning::NoRoundTrips {
                    arm: arm.arm.clone(),
                    workload: workload.name.clone(),
                    trials: arm.stalled.len() as u32,
                    trials_total: arm.trials,
                });
            }
            let trials: Vec<&Trial> = counting
                .iter()
                .copied()
                .filter(|trial| {
                    trial.is_valid() && trial.slot.arm == arm.arm && trial.slot.workload == workload.name
                })
                .collect();
            warnings.extend(of_traffic(workload, arm, &trials));
            if let Some(planned) = plan.arm(&arm.arm) {
                warnings.extend(counts::disagreements(plan, planned, &arm.workload, &trials));
                warnings.extend(connections::differing(plan, planned, &arm.workload, &trials));
            }
        }
    }
    warnings.extend(of_hosts(plan, counting, machines));
    warnings.extend(other_tests(plan, counting));
    warnings
}

/// The stored warnings. A change that could not be undone is reported by each agent that tries: its warnings become one with their number.
pub(super) fn of_the_run(stored: &[Warning]) -> Vec<Warning> {
    let mut merged: Vec<Warning> = Vec::new();
    let mut places: BTreeMap<(&HostName, &str), usize> = BTreeMap::new();
    for warning in stored {
        if let Warning::UndoFailed { host, detail, reports } = warning {
            let place = *places.entry((host, detail.as_str())).or_insert(merged.len());
            if let Some(Warning::UndoFailed { reports: known, .. }) = merged.get_mut(place) {
                *known = known.saturating_add(*reports);
                continue;
            }
        }
        merged.push(warning.clone());
    }
    merged
}

/// A block that is left out.
pub(super) fn of_the_block(Unfinished { block, trials }: Unfinished) -> Warning {
    Warning::BlockIncomplete { block, trials }
}

/// What guests of a bed contradict although an arm depends on it: the run went on all the same. One warning for each host.
pub(super) fn of_the_bed(header: &RunHeader) -> Vec<Warning> {
    let mut by_host: BTreeMap<HostName, Vec<String>> = BTreeMap::new();
    let found = header.bed.iter().flat_map(|bed| of_bed(bed, &header.plan, &header.hosts));
    for found in found.filter(|found| found.is_of_arm && found.finding.severity == Severity::Problem) {
        by_host.entry(found.host).or_default().push(found.finding.what);
    }
    by_host.into_iter().map(|(host, what)| Warning::BedDisagrees { host, detail: what.join(", ") }).collect()
}

/// Kind and subject of a warning as text: equal for two that differ in their figures only.
pub(super) fn subject(warning: &Warning) -> String {
    let value = serde_json::to_value(warning).unwrap_or_default();
    let fields = ["kind", "arm", "workload", "metric", "block", "host", "client", "server"]
        .map(|field| value.get(field).cloned());
    serde_json::to_string(&fields).unwrap_or_default()
}

fn excluded(arm: &Arm, trials: &[&Trial]) -> Vec<Warning> {
    let reasons = |wrong_path: bool| -> Vec<&String> {
        trials
            .iter()
            .filter_map(|trial| match &trial.validity {
                Validity::WrongPath { reason } if wrong_path => Some(reason),
                Validity::PathUnproven { reason } | Validity::Failed { reason } if !wrong_path => {
                    Some(reason)
                }
                _ => None,
            })
            .collect()
    };
    let mut warnings = Vec::new();
    let wrong = reasons(true);
    if let Some(first) = wrong.first() {
        warnings.push(Warning::PathChanged {
            arm: arm.name.clone(),
            trials: wrong.len() as u32,
            detail: (*first).clone(),
        });
    }
    let failed = reasons(false);
    if let Some(first) = failed.first() {
        warnings.push(Warning::TrialsExcluded {
            arm: arm.name.clone(),
            trials: failed.len() as u32,
            reason: (*first).clone(),
        });
    }
    warnings
}

/// `half`: the first block of the second half of a crossover, in which the values are those of other hosts.
fn of_metric(workload: &WorkloadAnalysis, analysis: &MetricAnalysis, half: Option<u32>) -> Vec<Warning> {
    let (metric, name) = (analysis.metric, &workload.name);
    let mut warnings = Vec::new();
    for arm in &analysis.arms {
        let by_block = crossed_values(&arm.values, half, metric.scale());
        let values: Vec<f64> = by_block.iter().map(|(_, value)| *value).collect();
        // A trial without a round trip has a warning of its own, not one by metric.
        if !arm.at_least.is_empty() && !metric.is_of_round_trips() {
            warnings.push(Warning::LowerBound {
                arm: arm.arm.clone(),
                workload: name.clone(),
                metric,
                trials: arm.at_least.len() as u32,
                trials_total: arm.values.len() as u32,
            });
        }
        if let Some(drift) = doubt::drift(&values).filter(|drift| drift.change.is_finite()) {
            warnings.push(Warning::Drift {
                arm: arm.arm.clone(),
                workload: name.clone(),
                metric,
                change: drift.change,
            });
        }
        if let Some(modes) = modes::of_arm(workload, analysis, arm, half) {
            warnings.push(Warning::Bimodal {
                arm: arm.arm.clone(),
                workload: name.clone(),
                metric,
                low: modes.low,
                high: modes.high,
            });
        }
        for outlier in doubt::outliers(&values) {
            let Some((block, _)) = by_block.get(outlier.index) else { continue };
            // The ratio to a median of zero is infinite; the chart by block shows such an outlier.
            if !outlier.ratio_to_median.is_finite() {
                continue;
            }
            warnings.push(Warning::OutlierBlock {
                arm: arm.arm.clone(),
                workload: name.clone(),
                metric,
                block: *block,
                ratio_to_median: outlier.ratio_to_median,
            });
        }
    }
    warnings.extend(of_comparisons(name, analysis));
    warnings
}

/// Successive pairs that depend on each other.
fn of_comparisons(name: &WorkloadName, analysis: &MetricAnalysis) -> Vec<Warning> {
    let metric = analysis.metric;
    let mut warnings = Vec::new();
    for comparison in &analysis.comparisons {
        let differences: Vec<f64> = comparison
            .pairs
            .iter()
            .map(|(_, baseline, arm)| match metric.scale() {
                Scale::Ratio => (arm / baseline).ln(),
                Scale::Difference => arm - baseline,
            })
            .filter(|difference| difference.is_finite())
            .collect();
        if let Some(lag1) = doubt::autocorrelation(&differences) {
            warnings.push(Warning::Autocorrelation {
                arm: comparison.arm.clone(),
                workload: name.clone(),
                metric,
                lag1,
            });
        }
    }
    warnings
}

/// Zero-copy counts of both ends, sum over all trials.
fn zero_copy(trials: &[&Trial]) -> ZeroCopyReport {
    let mut all = ZeroCopyReport::default();
    let ends = trials.iter().flat_map(|trial| [&trial.client, &trial.server]).flatten();
    for report in ends.filter_map(|end| end.report.zero_copy) {
        all.add(report);
    }
    all
}

fn of_traffic(workload: &WorkloadAnalysis, arm: &ArmAnalysis, trials: &[&Trial]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let lost = || arm.datagrams.iter().filter_map(|way| way.lost);
    let drops: u64 = lost().map(|lost| lost.at_socket).total();
    if drops > 0 {
        warnings.push(Warning::ReceiverOverrun {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            datagrams: drops,
            lost: Some(lost().map(|lost| lost.all).total()),
        });
    }
    if let Some(datagrams_per_packet) = datagrams::not_packets(&arm.datagrams) {
        warnings.push(Warning::DatagramsNotPackets {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            datagrams_per_packet,
        });
    }
    let zero_copy = zero_copy(trials);
    // Packet capture causes occasional copies, which are not a property of the path.
    if zero_copy.copied > 0 && zero_copy.copied.saturating_mul(100) >= zero_copy.completions {
        warnings.push(Warning::ZeroCopyFellBack {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            copied: zero_copy.copied,
            sends: zero_copy.completions,
        });
    }
    warnings.extend(failed_transactions(workload, arm, trials));
    warnings.extend(requests_lost(workload, arm));
    if let Some(pacing_error_p99_ns) = schedule::lateness(&arm.workload, trials) {
        warnings.push(Warning::ScheduleMissed {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            pacing_error_p99_ns,
        });
    }
    if let Some((requested_bps, sent_bps)) = schedule::rate_missed(&arm.workload, trials) {
        warnings.push(Warning::RateMissed {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            requested_bps,
            sent_bps,
        });
    }
    warnings.extend(without_napi(workload, arm, trials));
    warnings.extend(stamps(workload, arm));
    warnings.extend(rate_shape(workload, arm, trials));
    warnings
}

/// Failed transactions and their errors, as counted by the clients.
fn failed_transactions(workload: &WorkloadAnalysis, arm: &ArmAnalysis, trials: &[&Trial]) -> Option<Warning> {
    let mut causes: BTreeMap<String, u64> = BTreeMap::new();
    let (mut failed, mut attempted) = (0, 0);
    for trial in trials {
        let of_trips = || figures::round_trips(trial)?.parts.as_ref();
        let under_load = || Some(&trial.client.as_ref()?.report.under_load.as_ref()?.foreign);
        let Some(parts) = of_trips().or_else(under_load) else { continue };
        total::add(&mut failed, parts.failed);
        total::add(&mut attempted, parts.attempted);
        for error in trial.client.iter().flat_map(|end| &end.report.errors) {
            total::add(causes.entry(format!("{}: {}", error.call, error.error)).or_default(), error.count);
        }
    }
    let mut causes: Vec<(String, u64)> = causes.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let cause =
        causes.into_iter().map(|(cause, count)| format!("{cause} ({count} times)")).collect::<Vec<_>>();
    let cause =
        if cause.is_empty() { vec![format!("given up after {}", Transaction::TIMEOUT)] } else { cause };
    (failed > 0).then(|| Warning::TransactionsFailed {
        arm: arm.arm.clone(),
        workload: workload.name.clone(),
        failed,
        attempted,
        cause: cause.join("; "),
    })
}

/// Requests without a response in time, when they are so many that a difference of their share is relevant.
fn requests_lost(workload: &WorkloadAnalysis, arm: &ArmAnalysis) -> Option<Warning> {
    let count = arm.requests.filter(|count| count.is_relevant())?;
    Some(Warning::RequestsLost {
        arm: arm.arm.clone(),
        workload: workload.name.clone(),
        lost: count.lost,
        requests: count.sent,
    })
}

/// Trials with busy-polling enabled whose packets came from a device without NAPI busy-polling.
fn without_napi(workload: &WorkloadAnalysis, arm: &ArmAnalysis, trials: &[&Trial]) -> Option<Warning> {
    let not_polled = |trial: &&&Trial| {
        figures::ends(trial).flat_map(|end| &end.report.streams).any(|stream| stream.napi_id == Some(0))
    };
    let trials = trials.iter().filter(not_polled).count() as u32;
    (trials > 0).then(|| Warning::NoNapiInstance {
        arm: arm.arm.clone(),
        workload: workload.name.clone(),
        trials,
    })
}

/// Timestamps on one side of a comparison only, and missing timestamps.
fn stamps(workload: &WorkloadAnalysis, arm: &ArmAnalysis) -> Vec<Warning> {
    let is_stamped = |arm: &ArmAnalysis| arm.workload.traffic.facts().is_stamped;
    let mut warnings = Vec::new();
    if workload.arms.first().is_some_and(|baseline| is_stamped(baseline) != is_stamped(arm)) {
        warnings.push(Warning::TimestampsDiffer { arm: arm.arm.clone(), workload: workload.name.clone() });
    }
    if let Some(stamps) = arm.stamps.as_ref().filter(|stamps| stamps.stamped > 0) {
        let share = 1.0 - stamps.complete as f64 / stamps.stamped as f64;
        // The server's last transmit timestamp is always missing, which is a large share of few round trips.
        let lost = stamps.stamped.saturating_sub(stamps.complete);
        if share > STAMPS_LOST_MAX && lost > u64::from(arm.trials) {
            warnings.push(Warning::TimestampsIncomplete {
                arm: arm.arm.clone(),
                workload: workload.name.clone(),
                share,
                inconsistent: stamps.inconsistent,
            });
        }
    }
    warnings
}

/// A flat or falling rate within trials without a configured rate and with spare CPU time.
fn rate_shape(workload: &WorkloadAnalysis, arm: &ArmAnalysis, trials: &[&Trial]) -> Option<Warning> {
    // In a failover the rate changes with the path.
    let free = arm.workload.traffic.facts().is_unpaced();
    let is_idle = !arm.machines.is_empty() && !arm.machines.iter().any(Machine::has_full_core);
    if !free || trials.is_empty() || !is_idle {
        return None;
    }
    let rates_by_trial: Vec<Vec<f64>> =
        trials.iter().map(|trial| series::steady(&arm.workload, trial)).collect();
    let bursts: Vec<doubt::Burst> = rates_by_trial.iter().filter_map(|course| doubt::burst(course)).collect();
    if bursts.len() * 2 > trials.len() {
        return Some(Warning::TokenBucketBurst {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            before_bps: summary::median(&bursts.iter().map(|burst| burst.before).collect::<Vec<_>>())?,
            after_bps: summary::median(&bursts.iter().map(|burst| burst.after).collect::<Vec<_>>())?,
        });
    }
    let plateaus: Vec<f64> = rates_by_trial.iter().filter_map(|course| doubt::plateau(course)).collect();
    if plateaus.len() * 2 > trials.len() {
        return Some(Warning::RateCapped {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            rate_bps: summary::median(&plateaus)?,
        });
    }
    None
}

fn of_hosts(plan: &ResolvedPlan, counting: &[&Trial], machines: &Machines) -> Vec<Warning> {
    let mut stolen: BTreeMap<HostName, (f64, u32)> = BTreeMap::new();
    let mut busy: BTreeMap<HostName, (f64, u32)> = BTreeMap::new();
    let mut steps: BTreeMap<HostName, i64> = BTreeMap::new();
    for trial in counting {
        let Some(arm) = plan.arm(&trial.slot.arm) else { continue };
        let pair = plan.pair_in(arm, trial.slot.block);
        let is_shared = machines.shared(trial);
        let workload = arm.workload(&trial.slot.workload);
        let contended = workload.map(|workload| busy_hosts(workload, trial, is_shared)).unwrap_or_default();
        for role in [Role::Client, Role::Server] {
            // A shared machine counts as one host; otherwise each warning would appear twice.
            if role == Role::Server && trial.client.is_some() && is_shared {
                continue;
            }
            let Some(end) = trial.end(role) else { continue };
            let host = pair.host(role);
            let share = stolen_share(end);
            if let Some(share) = share.filter(|share| *share > STEAL_SHARE_MAX) {
                let known = stolen.entry(host.clone()).or_default();
                *known = (known.0.max(share), known.1 + 1);
            }
            if let Some((_, share)) = contended.iter().copied().find(|(of, _)| *of == role) {
                let known = busy.entry(host.clone()).or_default();
                *known = (known.0.max(share), known.1 + 1);
            }
            let step = end.observation.clock_step_ns;
            if step.unsigned_abs() > CLOCK_STEP_MAX_NS {
                let known = steps.entry(host.clone()).or_default();
                if step.unsigned_abs() > known.unsigned_abs() {
                    *known = step;
                }
            }
        }
    }
    let stolen =
        stolen.into_iter().map(|(host, (share_max, trials))| Warning::StealTime { host, share_max, trials });
    let steps = steps.into_iter().map(|(host, step_ns)| Warning::ClockStep { host, step_ns });
    let busy = busy.into_iter().map(|(host, (share_max, trials))| Warning::CpuContention {
        host,
        share_max,
        trials,
    });
    stolen.chain(busy).chain(steps).collect()
}

/// Concurrent tests of a standing server during trials.
fn other_tests(plan: &ResolvedPlan, counting: &[&Trial]) -> Vec<Warning> {
    let mut beside: BTreeMap<HostName, (u32, u32)> = BTreeMap::new();
    for trial in counting {
        let Some(arm) = plan.arm(&trial.slot.arm) else { continue };
        for role in [Role::Client, Role::Server] {
            let others = trial.end(role).map_or(0, |end| end.observation.concurrent_tests);
            if others > 0 {
                let host = plan.pair_in(arm, trial.slot.block).host(role);
                let known = beside.entry(host.clone()).or_default();
                *known = (known.0.max(others), known.1 + 1);
            }
        }
    }
    let warning = |(host, (others_max, trials))| Warning::ConcurrentTests { host, others_max, trials };
    beside.into_iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_that_could_not_be_undone_is_one_warning_with_its_number_of_reports() {
        let failed = |host: &str, detail: &str| Warning::UndoFailed {
            host: HostName::new(host).unwrap(),
            detail: detail.to_owned(),
            reports: 1,
        };
        let stored = [failed("a", "MTU"), failed("b", "MTU"), failed("a", "offload"), failed("a", "MTU")];
        let merged = of_the_run(&stored);
        assert!(merged[0].to_string().contains("on host a (reported 2 times): MTU"), "{}", merged[0]);
        assert_eq!(merged[1..], stored[1..3]);
    }
}
