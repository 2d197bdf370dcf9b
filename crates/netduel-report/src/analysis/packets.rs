//! Packets of a `pps` workload: rates at both ends, lost packets by counter, and the distribution over queues and cores.
//!
//! Rates are means of the steady window (without warm-up and cool-down). Minimum and maximum are of the intervals between samples that
//! these means consist of, so a median never lies outside of them. Counts cover the whole trial and are exact.
use std::collections::BTreeMap;

use netduel_model::ids::HostName;
use netduel_model::packet_path::{PacketPath, PacketReport};
use netduel_model::plan::{Arm, Pair, ResolvedPlan};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::{Role, Workload};
use netduel_stats::summary;

use super::counted::Counted;
use super::halves::Halves;
use super::machine::{Machine, Machines};
use super::queues::QueueUse;
use super::spread::{self, PacketSpread};
use super::{DatagramDirection, SeriesPoint, loss_by_counter, series};
use crate::total::{Total, total_of_known};

/// Preamble with start delimiter (8 bytes) and minimum inter-frame gap (12 bytes), which each Ethernet frame occupies on the wire
/// (IEEE 802.3).
const PREAMBLE_AND_GAP: u32 = 20;

/// Packets of an arm in one direction, over all valid trials.
#[derive(Debug, Clone)]
pub struct ArmPackets {
    /// The generator and the receiver.
    pub path: PacketPath,
    /// The sending end.
    pub sender: Role,
    /// Sent rates, packets per second; absent when no trial has them.
    pub sent: Option<PacketRates>,
    /// Received rates, packets per second.
    pub received: Option<PacketRates>,
    /// Minimum and maximum over the trials of the received mean, packets per second; absent without trials.
    pub received_range: Option<(f64, f64)>,
    /// Packets sent, total.
    pub sent_count: u64,
    /// Packets received, total, without duplicates.
    pub received_count: u64,
    /// The sender's interface and the packets that it counted; absent when it does not count them (the kernel's generator and
    /// DPDK bypass its counters).
    pub interface_sent: Option<(String, u64)>,
    /// The receiver's interface and the packets that it counted.
    pub interface_received: Option<(String, u64)>,
    /// Number of times that the sender waited for a full ring or queue of its interface: back-pressure, not loss. Absent when the
    /// generator does not report it.
    pub back_pressure: Option<u64>,
    /// Packets that the device of testpmd rejected because its ring was full: back-pressure, not loss. Absent for other
    /// generators.
    pub device_rejected: Option<u64>,
    /// Lost packets by counter, uncounted packets last; absent when more packets arrived than were sent.
    pub lost: Option<Vec<loss_by_counter::LostPackets>>,
    /// The received rate as a fraction of the sender's line rate; absent for virtual interfaces and unknown speeds.
    pub line: Option<LineShare>,
    /// Sent rate over time: median and range over trials, packets per second.
    pub sent_series: Vec<SeriesPoint>,
    /// Received rate over time.
    pub received_series: Vec<SeriesPoint>,
    /// Distribution over queues and cores, the sender first.
    pub spread: Vec<PacketSpread>,
}

/// Rates of an end, packets per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketRates {
    /// Number of valid trials.
    pub trials: u32,
    /// Median over the trials of the mean of the steady window.
    pub median: f64,
    /// Number of intervals that minimum and maximum are taken from.
    pub intervals: u32,
    /// Minimum of the intervals; absent without any.
    pub min: Option<f64>,
    /// Maximum of the intervals.
    pub max: Option<f64>,
}

/// Utilization of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct LineShare {
    /// The sender's interface.
    pub interface: String,
    /// Its speed, bit/s.
    pub bps: f64,
    /// Fraction of it that the received frames occupied, with preambles and gaps.
    pub share: f64,
}

impl ArmPackets {
    /// Lost packets as a fraction of sent packets; absent when none was sent or more arrived.
    pub fn loss(&self) -> Option<f64> {
        let missing = self.sent_count.checked_sub(self.received_count)?;
        (self.sent_count > 0).then(|| missing as f64 / self.sent_count as f64)
    }
}

/// The context of an arm.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub plan: &'a ResolvedPlan,
    pub arm: &'a Arm,
    /// The words for its client and its server.
    pub host_words: &'a [String; 2],
    pub hosts: &'a BTreeMap<HostName, HostSnapshot>,
    pub machines: &'a Machines,
    /// CPU time of its machines.
    pub shares: &'a [Machine],
    pub queues: &'a [QueueUse],
}

/// The packets of an arm by direction; empty for other traffic.
pub(super) fn of_arm(
    workload: &Workload,
    trials: &[&Trial],
    ways: &[DatagramDirection],
    around: Surroundings<'_>,
) -> Vec<ArmPackets> {
    let Some(path) = workload.traffic.facts().packets else { return Vec::new() };
    [Role::Client, Role::Server]
        .into_iter()
        .filter(|sender| ways.iter().any(|way| way.sender == *sender))
        .map(|sender| {
            let ways: Vec<&DatagramDirection> = ways.iter().filter(|way| way.sender == sender).collect();
            one_direction(workload, path, sender, trials, &ways, around)
        })
        .collect()
}

fn one_direction(
    workload: &Workload,
    path: &PacketPath,
    sender: Role,
    trials: &[&Trial],
    ways: &[&DatagramDirection],
    around: Surroundings<'_>,
) -> ArmPackets {
    let receiver = sender.opposite();
    let flows = workload.traffic.facts().flows.map_or(1, |udp| udp.flows);
    let sent: Count = (sender, |role, trial| Counted::sent_by(role, trial));
    let received: Count = (receiver, |role, trial| Counted::received_by(role, trial));
    let sum = |of: fn(&DatagramDirection) -> u64| ways.iter().map(|way| of(way)).total();
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
        back_pressure: total_of_known(ways.iter().map(|way| way.refused)),
        device_rejected: total_of_known(
            trials.iter().map(|trial| Some(trial.end(sender)?.report.dpdk.as_ref()?.counts.tx_dropped)),
        ),
        lost: loss_by_counter::of_trials(trials, ways, around.machines),
        line: rates_received.and_then(|rates| line(path, sender, trials, rates.median, around)),
        sent_series: course(workload, trials, sent),
        received_series: course(workload, trials, received),
        spread: [sender, receiver]
            .into_iter()
            .filter_map(|role| spread::at_end(role, role == sender, (path, flows), trials, around))
            .collect(),
    }
}

/// Packets that an interface counted; absent when a trial has fewer than half of the packets of its end: then the traffic
/// bypassed the counters.
fn on_interface(
    ways: &[&DatagramDirection],
    of: impl Fn(&DatagramDirection) -> (u64, &Option<super::Packets>),
) -> Option<(String, u64)> {
    let seen: Vec<_> = ways
        .iter()
        .map(|way| {
            let (own, seen) = of(way);
            seen.as_ref().filter(|seen| seen.packets >= own / 2)
        })
        .collect::<Option<_>>()?;
    Some((seen.first()?.interface.clone(), seen.iter().map(|seen| seen.packets).total()))
}

/// What an end counted of a direction.
type Count = (Role, fn(Role, &Trial) -> Option<Counted<'_>>);

fn rates(workload: &Workload, trials: &[&Trial], (role, count): Count) -> Option<PacketRates> {
    let (mut means, mut intervals) = (Vec::new(), Vec::new());
    for counted in trials.iter().filter_map(|trial| count(role, trial)) {
        let Some(mean) = mean(counted, workload) else { continue };
        means.push(mean);
        intervals.extend(of_intervals(counted, workload));
    }
    Some(PacketRates {
        trials: means.len() as u32,
        median: summary::median(&means)?,
        intervals: intervals.len() as u32,
        min: intervals.iter().copied().reduce(f64::min),
        max: intervals.iter().copied().reduce(f64::max),
    })
}

/// Packets per second in the steady window; 0 also of a search without a packet.
fn mean(counted: Counted<'_>, workload: &Workload) -> Option<f64> {
    if counted.flow().messages == 0 {
        return Some(0.0);
    }
    counted.in_steady_window(workload, |sample| sample.messages)
}

/// Packets per second of the intervals of the steady window, which its mean consists of.
fn of_intervals(counted: Counted<'_>, workload: &Workload) -> Vec<f64> {
    if counted.flow().messages == 0 {
        return vec![0.0];
    }
    counted.in_steady_intervals(workload, |sample| sample.messages)
}

/// Minimum and maximum over the trials of the mean.
fn range(workload: &Workload, trials: &[&Trial], (role, count): Count) -> Option<(f64, f64)> {
    let means: Vec<f64> = trials.iter().filter_map(|trial| mean(count(role, trial)?, workload)).collect();
    means.iter().copied().reduce(f64::min).zip(means.iter().copied().reduce(f64::max))
}

fn course(workload: &Workload, trials: &[&Trial], (role, count): Count) -> Vec<SeriesPoint> {
    series::summarised(workload, trials, |trial, from, to| {
        let counted = count(role, trial)?;
        if counted.flow().messages == 0 {
            return Some(0.0);
        }
        counted.in_interval(workload, (from, to), |sample| sample.messages)
    })
}

/// The interface that an end used for kernel bypass, or else the one that carried the most bytes.
pub(super) fn interface_of(end: &TrialEnd) -> Option<&str> {
    match &end.report.packets {
        Some(PacketReport { interface, .. }) => Some(interface),
        None => super::queues::carrier(&end.observation).map(|carrier| carrier.name.as_str()),
    }
}

/// Absent where the interface has another speed on the hosts of the other half of a crossover.
fn line(
    path: &PacketPath,
    sender: Role,
    trials: &[&Trial],
    received: f64,
    around: Surroundings<'_>,
) -> Option<LineShare> {
    let name = trials.iter().find_map(|trial| interface_of(trial.end(sender)?))?;
    let speed_mbps = |pair: &Pair| {
        let host = around.hosts.get(pair.host(sender))?;
        host.interfaces.iter().find(|interface| interface.name == name)?.line_speed_mbps()
    };
    let speeds_mbps = Halves::new(around.plan, around.arm, speed_mbps);
    let bps = f64::from((*speeds_mbps.of_all(trials)?)?) * 1e6;
    let taken = f64::from(path.frame.saturating_add(PREAMBLE_AND_GAP)) * 8.0 * received;
    Some(LineShare { interface: name.to_owned(), bps, share: taken / bps })
}
