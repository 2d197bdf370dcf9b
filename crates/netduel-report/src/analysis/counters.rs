//! Counters per unit of work, by arm.
//!
//! The unit of work is a gigabyte received for TCP streams, a datagram received for UDP streams, and a round trip otherwise.
use netduel_model::ids::ArmName;
use netduel_model::observation::{CoreTime, Observation};
use netduel_model::plan::Arm;
use netduel_model::trial::Trial;
use netduel_model::workload::{Traffic, WorkUnit, Workload};
use netduel_stats::paired::Estimate;
use netduel_stats::summary;
use schemars::JsonSchema;
use serde::Serialize;

use super::{datagrams, figures, machine};
use crate::total::{Total, total_of_known};
use crate::words::significant;

/// Median and range over the trials of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Number of trials with the counter.
    pub trials: u32,
    /// Median.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

/// The kinds of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterKind {
    /// CPU time without idle and steal.
    Busy,
    /// CPU time in programs.
    User,
    /// CPU time in system calls and kernel threads.
    System,
    /// CPU time in hardware interrupts.
    HardInterrupt,
    /// CPU time in softirqs.
    SoftInterrupt,
    /// Interrupts taken.
    Interrupts,
    /// Context switches.
    ContextSwitches,
    /// `time_squeeze`: receive rounds that ran out of budget or time.
    TimeSqueeze,
    /// Retransmitted segments.
    Retransmits,
    /// Of these, spurious ones, which the peer reports by DSACK.
    Spurious,
    /// Share of the time with data in flight in which the peer's window was the limit.
    WindowLimited,
    /// Share of that time in which the send buffer was the limit.
    SendBufferLimited,
    /// Share of the datagrams sent that the receiver's socket dropped.
    SocketDrops,
    /// Share of the datagrams received that were reordered.
    Reordered,
}

/// One counter over all arms.
#[derive(Debug, Clone)]
pub struct Counter {
    /// The kind.
    pub kind: CounterKind,
    /// The label in reports.
    pub title: &'static str,
    /// Unit of the values; `fraction` for a share.
    pub unit: &'static str,
    /// The spread of each arm, baseline first; absent when no trial has the counter.
    pub arms: Vec<(ArmName, Option<Spread>)>,
    /// Block and value of each trial, in the order of the arms.
    pub by_block: Vec<Vec<(u32, f64)>>,
    /// Ratio of each arm to the baseline in the order of the arms, with the estimator of the verdicts: pairs within blocks. Its
    /// interval is for this counter alone. Absent for the baseline, where a value is 0, and where it contradicts the medians.
    pub ratios: Vec<Option<Estimate>>,
}

impl CounterKind {
    const ALL: [Self; 14] = [
        Self::Busy,
        Self::User,
        Self::System,
        Self::HardInterrupt,
        Self::SoftInterrupt,
        Self::Interrupts,
        Self::ContextSwitches,
        Self::TimeSqueeze,
        Self::Retransmits,
        Self::Spurious,
        Self::WindowLimited,
        Self::SendBufferLimited,
        Self::SocketDrops,
        Self::Reordered,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Busy => "busy CPU time",
            Self::User => "CPU time, user",
            Self::System => "CPU time, system",
            Self::HardInterrupt => "CPU time, interrupts",
            Self::SoftInterrupt => "CPU time, softirq",
            Self::Interrupts => "interrupts",
            Self::ContextSwitches => "context switches",
            Self::TimeSqueeze => "time_squeeze",
            Self::Retransmits => "retransmitted segments",
            Self::Spurious => "spurious retransmits (DSACK)",
            Self::WindowLimited => "receive-window limited",
            Self::SendBufferLimited => "send-buffer limited",
            Self::SocketDrops => "dropped at the receiver's socket",
            Self::Reordered => "reordered",
        }
    }

    /// Whether it is CPU time.
    pub(super) fn is_cpu(self) -> bool {
        matches!(self, Self::Busy | Self::User | Self::System | Self::HardInterrupt | Self::SoftInterrupt)
    }

    /// Whether it counts the work of all processes of a host.
    pub(super) fn is_of_host(self) -> bool {
        self.is_cpu() || matches!(self, Self::Interrupts | Self::ContextSwitches | Self::TimeSqueeze)
    }

    fn is_share(self) -> bool {
        matches!(self, Self::WindowLimited | Self::SendBufferLimited | Self::SocketDrops | Self::Reordered)
    }

    fn unit(self, traffic: &Traffic) -> &'static str {
        let unit = traffic.facts().unit;
        match self {
            kind if kind.is_share() => "fraction",
            kind if kind.is_cpu() => unit.cpu(),
            _ => unit.events(),
        }
    }
}

impl Counter {
    /// A formatted value with its unit.
    pub fn human(&self, value: f64) -> String {
        format!("{} {}", self.number(value), self.number_unit())
    }

    /// A formatted value without its unit, for a table with a column of units.
    pub fn number(&self, value: f64) -> String {
        significant(if self.unit == "fraction" { value * 100.0 } else { value })
    }

    /// The unit of [`Self::number`].
    pub fn number_unit(&self) -> &'static str {
        if self.unit == "fraction" { "%" } else { self.unit }
    }

    /// The spread of one arm.
    pub fn of(&self, arm: &ArmName) -> Option<&Spread> {
        self.arms.iter().find(|(name, _)| name == arm).and_then(|(_, spread)| spread.as_ref())
    }
}

/// The counters that at least one trial has and that are not 0 everywhere.
pub(super) fn of_workload(
    arms: &[(&Arm, &Workload, Vec<&Trial>)],
    machines: &machine::Machines,
) -> Vec<Counter> {
    let Some((_, first, _)) = arms.first() else { return Vec::new() };
    CounterKind::ALL
        .into_iter()
        .map(|kind| {
            let value = |workload: &Workload, trial: &Trial| {
                Some((trial.slot.block, of_trial(kind, workload, trial, machines.shared(trial))?))
            };
            let by_block: Vec<Vec<(u32, f64)>> = arms
                .iter()
                .map(|(_, workload, trials)| {
                    trials.iter().filter_map(|trial| value(workload, trial)).collect()
                })
                .collect();
            let of_arm = |values: &Vec<(u32, f64)>| {
                spread(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
            };
            Counter {
                kind,
                title: kind.title(),
                unit: kind.unit(&first.traffic),
                arms: arms
                    .iter()
                    .map(|(arm, ..)| arm.name.clone())
                    .zip(by_block.iter().map(of_arm))
                    .collect(),
                ratios: vec![None; by_block.len()],
                by_block,
            }
        })
        .filter(|counter| {
            counter.arms.iter().any(|(_, spread)| spread.is_some_and(|spread| spread.max > 0.0))
        })
        .collect()
}

fn spread(values: &[f64]) -> Option<Spread> {
    Some(Spread {
        trials: values.len() as u32,
        median: summary::median(values)?,
        min: values.iter().copied().reduce(f64::min)?,
        max: values.iter().copied().reduce(f64::max)?,
    })
}

fn of_trial(kind: CounterKind, workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<f64> {
    let by_gigabyte = workload.traffic.facts().unit == WorkUnit::Byte;
    let work =
        if by_gigabyte { figures::gigabytes(trial)? } else { figures::messages(&workload.traffic, trial)? };
    let time = |of: &dyn Fn(&Observation) -> u64| {
        let scale = if by_gigabyte { 1e9 } else { 1e3 };
        Some(seen(trial, shared_machine, |seen| Some(of(seen)))? / scale / work)
    };
    let cpu =
        |class: fn(&CoreTime) -> u64| time(&|seen| seen.cores.iter().map(class).fold(0, u64::saturating_add));
    // Events are counted per gigabyte, or per thousand messages so that rare ones still have digits.
    let per_work = |events: f64| {
        if by_gigabyte { events / work } else { events * 1e3 / work }
    };
    let value = match kind {
        CounterKind::Busy => time(&Observation::busy_ns)?,
        CounterKind::User => cpu(|core| core.user_ns)?,
        CounterKind::System => cpu(|core| core.system_ns)?,
        CounterKind::HardInterrupt => cpu(|core| core.irq_ns)?,
        CounterKind::SoftInterrupt => cpu(|core| core.softirq_ns)?,
        CounterKind::Interrupts => per_work(seen(trial, shared_machine, |seen| {
            (!seen.interrupts.is_empty())
                .then(|| seen.interrupts.values().copied().fold(0, u64::saturating_add))
        })?),
        CounterKind::ContextSwitches => per_work(seen(trial, shared_machine, |seen| seen.context_switches)?),
        CounterKind::TimeSqueeze => per_work(seen(trial, shared_machine, |seen| {
            (!seen.softnet.is_empty())
                .then(|| seen.softnet.iter().map(|core| core.time_squeeze).fold(0, u64::saturating_add))
        })?),
        CounterKind::Retransmits => per_work(figures::sum_tcp(trial, |tcp| tcp.retransmits.map(u64::from))?),
        CounterKind::Spurious => per_work(figures::sum_tcp(trial, |tcp| tcp.dsack_dups.map(u64::from))?),
        CounterKind::WindowLimited => of_busy(trial, |tcp| tcp.rwnd_limited_us)?,
        CounterKind::SendBufferLimited => of_busy(trial, |tcp| tcp.sndbuf_limited_us)?,
        CounterKind::SocketDrops => {
            let ways = datagrams::of_trial(workload, trial, shared_machine);
            let sent: u64 = ways.iter().map(|way| way.sent).fold(0, u64::saturating_add);
            let drops = total_of_known(ways.iter().map(|way| way.lost.map(|lost| lost.at_socket)));
            drops? as f64 / sent as f64
        }
        CounterKind::Reordered => {
            let reports = figures::datagrams(trial);
            let unique: u64 = reports.iter().map(|(_, report)| report.unique).fold(0, u64::saturating_add);
            reports.iter().map(|(_, report)| report.reordered).total() as f64 / unique as f64
        }
    };
    value.is_finite().then_some(value)
}

/// A sum over the machines of a trial, each counted once; absent when one lacks the counter.
fn seen(trial: &Trial, shared_machine: bool, counter: impl Fn(&Observation) -> Option<u64>) -> Option<f64> {
    machine::observations(trial, shared_machine)?
        .into_iter()
        .map(counter)
        .try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))
        .map(|sum| sum as f64)
}

/// A share of the time with data in flight at the senders.
fn of_busy(trial: &Trial, field: impl Fn(&netduel_model::sample::TcpInfo) -> Option<u64>) -> Option<f64> {
    let busy = figures::sum_tcp(trial, |tcp| tcp.busy_us)?;
    Some(figures::sum_tcp(trial, field)? / busy)
}
