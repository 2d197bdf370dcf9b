//! Packets of a `pps` workload: both ends beside each other, what became of those that are missing, and which queues and cores
//! did the work.
//!
//! A mean is that of the steady window (warm-up and cool-down are cut); the smallest and the largest are of the sampler's intervals of
//! 100 ms that lie whole within it. Counts are of the whole trial, to the packet.
use std::collections::BTreeMap;

use netduel_model::ids::HostName;
use netduel_model::packet_path::{PacketPath, PacketReport};
use netduel_model::plan::Arm;
use netduel_model::sample::Flow;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::{Role, SAMPLE_INTERVAL_NS, Workload};
use netduel_stats::series::steady_window;
use netduel_stats::summary;

use super::machine::Machine;
use super::queues::QueueUse;
use super::spread::{self, PacketSpread};
use super::{DatagramWay, SeriesPoint, figures, loss_by_counter, series};

/// Ethernet's preamble with its start delimiter (8 bytes) and the least gap between frames (12 bytes), which a wire carries with
/// each frame (IEEE 802.3).
const PREAMBLE_AND_GAP: u32 = 20;
/// A sampler's interval shorter than this share of its length tells of its edges, and not of the rate.
const INTERVAL_WHOLE: f64 = 0.5;

/// Packets of one direction of an arm, all its valid trials together.
#[derive(Debug, Clone)]
pub struct ArmPackets {
    /// How they are made and taken.
    pub path: PacketPath,
    /// Which end sent.
    pub sender: Role,
    /// What the sender sent, packets per second; absent when no trial tells.
    pub sent: Option<PacketRates>,
    /// What the receiver took.
    pub received: Option<PacketRates>,
    /// Smallest and largest mean of a trial, received, packets per second; absent without trials.
    pub received_range: Option<(f64, f64)>,
    /// What the sender sent in all, packets.
    pub sent_count: u64,
    /// What the receiver took in all, each packet once.
    pub received_count: u64,
    /// Interface and packets that the sender's interface counted; absent where it counted none of them (the kernel's generator and
    /// DPDK pass its counters by).
    pub interface_sent: Option<(String, u64)>,
    /// The receiver's.
    pub interface_received: Option<(String, u64)>,
    /// Times that the sender had to wait because the ring or queue of its interface was full: back-pressure, no loss. Absent where
    /// the generator cannot know.
    pub back_pressure: Option<u64>,
    /// Packets that the device of a testpmd did not take because its ring was full: back-pressure, too. Absent for other generators.
    pub not_taken: Option<u64>,
    /// Packets that were lost, by who counted them, those that nobody counted last; absent when more arrived than were sent.
    pub lost: Option<Vec<loss_by_counter::LostPackets>>,
    /// What the received rate is of the sender's wire; absent for an interface without one, or of unknown speed.
    pub line: Option<LineShare>,
    /// The course of what was sent: median and range over trials, pps.
    pub sent_series: Vec<SeriesPoint>,
    /// The course of what was received.
    pub received_series: Vec<SeriesPoint>,
    /// Queues and cores, the sender's first.
    pub spread: Vec<PacketSpread>,
}

/// Rates of an end, packets per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketRates {
    /// Valid trials.
    pub trials: u32,
    /// Median over the trials of the rates of their steady windows.
    pub median: f64,
    /// Intervals that smallest and largest are of.
    pub intervals: u32,
    /// Smallest of the intervals; absent when no interval lies within a window.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// How much of a wire packets took.
#[derive(Debug, Clone, PartialEq)]
pub struct LineShare {
    /// The sender's interface.
    pub interface: String,
    /// Its speed, bit/s.
    pub bps: f64,
    /// Share of it that the received frames took with their preambles and gaps.
    pub share: f64,
}

impl ArmPackets {
    /// Packets that did not arrive, as a share of those sent; absent when none was sent or more arrived.
    pub fn loss(&self) -> Option<f64> {
        let missing = self.sent_count.checked_sub(self.received_count)?;
        (self.sent_count > 0).then(|| missing as f64 / self.sent_count as f64)
    }
}

/// What an arm is looked at with.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub arm: &'a Arm,
    pub hosts: &'a BTreeMap<HostName, HostSnapshot>,
    pub machines: &'a [Machine],
    pub queues: &'a [QueueUse],
    /// Both hosts are one machine.
    pub shared: bool,
}

/// Each direction in which a workload's packets went; empty for other traffic.
pub(super) fn of_arm(
    workload: &Workload,
    trials: &[&Trial],
    ways: &[DatagramWay],
    around: Surroundings<'_>,
) -> Vec<ArmPackets> {
    let Some(path) = workload.traffic.packets() else { return Vec::new() };
    [Role::Client, Role::Server]
        .into_iter()
        .filter(|sender| ways.iter().any(|way| way.sender == *sender))
        .map(|sender| {
            let ways: Vec<&DatagramWay> = ways.iter().filter(|way| way.sender == sender).collect();
            one_way(workload, path, sender, trials, &ways, around)
        })
        .collect()
}

fn one_way(
    workload: &Workload,
    path: &PacketPath,
    sender: Role,
    trials: &[&Trial],
    ways: &[&DatagramWay],
    around: Surroundings<'_>,
) -> ArmPackets {
    let receiver = opposite(sender);
    let flows = workload.traffic.udp().map_or(1, |udp| udp.flows);
    let sent = |trial: &Trial| trial.end(sender).and_then(|end| end.report.sent.clone());
    let received = |trial: &Trial| trial.end(receiver).and_then(|end| end.report.received.clone());
    let sum = |of: fn(&DatagramWay) -> u64| ways.iter().map(|way| of(way)).sum::<u64>();
    let rates_received = rates(workload, trials, received);
    ArmPackets {
        path: path.clone(),
        sender,
        sent: rates(workload, trials, sent),
        received: rates_received,
        received_range: range(workload, trials, received),
        sent_count: sum(|way| way.sent),
        received_count: sum(|way| way.received),
        interface_sent: on_interface(ways, |way| (way.sent, &way.packets_sent)),
        interface_received: on_interface(ways, |way| (way.received, &way.packets_received)),
        back_pressure: ways.iter().map(|way| way.refused).sum::<Option<u64>>(),
        not_taken: trials
            .iter()
            .map(|trial| Some(trial.end(sender)?.report.dpdk.as_ref()?.counts.tx_dropped))
            .sum(),
        lost: loss_by_counter::of_trials(trials, ways, around.shared),
        line: rates_received.and_then(|rates| line(path, sender, trials, rates.median, around)),
        sent_series: course(workload, trials, sent),
        received_series: course(workload, trials, received),
        spread: [sender, receiver]
            .into_iter()
            .filter_map(|role| spread::at_end(role, role == sender, (path, flows), trials, around))
            .collect(),
    }
}

/// The other end.
pub(super) fn opposite(role: Role) -> Role {
    match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

/// Packets that an interface counted; absent where one of the trials has fewer than half of what its end sent or took, for then
/// they passed its counters by.
fn on_interface(
    ways: &[&DatagramWay],
    of: impl Fn(&DatagramWay) -> (u64, &Option<super::Packets>),
) -> Option<(String, u64)> {
    let seen: Vec<_> = ways
        .iter()
        .map(|way| {
            let (own, seen) = of(way);
            seen.as_ref().filter(|seen| seen.packets >= own / 2)
        })
        .collect::<Option<_>>()?;
    Some((seen.first()?.interface.clone(), seen.iter().map(|seen| seen.packets).sum()))
}

fn samples(flow: &Flow) -> Vec<(u64, u64, u64)> {
    flow.series.iter().map(|sample| (sample.end_ns, sample.length_ns, sample.messages)).collect()
}

/// Packets per second of a span of a trial; none is a rate of 0 when the end says that it moved none.
fn rate_between(flow: &Flow, from: u64, to: u64) -> Option<f64> {
    if flow.messages == 0 {
        return Some(0.0);
    }
    let (packets, seconds) = steady_window(&samples(flow), from, to)?;
    (seconds > 0.0).then(|| packets / seconds)
}

fn rates(
    workload: &Workload,
    trials: &[&Trial],
    flow: impl Fn(&Trial) -> Option<Flow>,
) -> Option<PacketRates> {
    let (from, to) = figures::steady_bounds(workload);
    let (mut means, mut intervals) = (Vec::new(), Vec::new());
    for flow in trials.iter().filter_map(|trial| flow(trial)) {
        means.extend(rate_between(&flow, from, to));
        let whole = flow.series.iter().filter(|sample| {
            let start = sample.end_ns.saturating_sub(sample.length_ns);
            let is_whole = sample.length_ns as f64 >= SAMPLE_INTERVAL_NS as f64 * INTERVAL_WHOLE;
            start >= from && sample.end_ns <= to && is_whole
        });
        intervals.extend(whole.map(|sample| sample.messages as f64 * 1e9 / sample.length_ns as f64));
    }
    Some(PacketRates {
        trials: means.len() as u32,
        median: summary::median(&means)?,
        intervals: intervals.len() as u32,
        min: intervals.iter().copied().reduce(f64::min),
        max: intervals.iter().copied().reduce(f64::max),
    })
}

/// The smallest and the largest of the trials' means.
fn range(
    workload: &Workload,
    trials: &[&Trial],
    flow: impl Fn(&Trial) -> Option<Flow>,
) -> Option<(f64, f64)> {
    let (from, to) = figures::steady_bounds(workload);
    let means: Vec<f64> = trials.iter().filter_map(|trial| rate_between(&flow(trial)?, from, to)).collect();
    means.iter().copied().reduce(f64::min).zip(means.iter().copied().reduce(f64::max))
}

fn course(workload: &Workload, trials: &[&Trial], flow: impl Fn(&Trial) -> Option<Flow>) -> Vec<SeriesPoint> {
    series::summarised(workload, trials, |trial, from, to| rate_between(&flow(trial)?, from, to))
}

/// The interface that an end used past the network stack, or else the one that carried the bytes.
pub(super) fn interface_of(end: &TrialEnd) -> Option<&str> {
    match &end.report.packets {
        Some(PacketReport { interface, .. }) => Some(interface),
        None => super::queues::carrier(&end.observation).map(|carrier| carrier.name.as_str()),
    }
}

fn line(
    path: &PacketPath,
    sender: Role,
    trials: &[&Trial],
    received: f64,
    around: Surroundings<'_>,
) -> Option<LineShare> {
    let name = trials.iter().find_map(|trial| interface_of(trial.end(sender)?))?;
    let host = around.hosts.get(around.arm.pair.host(sender))?;
    let interface = host.interfaces.iter().find(|interface| interface.name == name)?;
    // What software calls its speed is no wire's.
    let speed = interface.speed_mbps.filter(|speed| *speed > 0 && interface.kind.is_none())?;
    let bps = f64::from(speed) * 1e6;
    let taken = f64::from(path.frame + PREAMBLE_AND_GAP) * 8.0 * received;
    Some(LineShare { interface: name.to_owned(), bps, share: taken / bps })
}
