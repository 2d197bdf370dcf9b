//! Causes specific to packet workloads: rings, generators, and busy-polling ends.
use netduel_model::dpdk::DpdkCounts;
use netduel_model::packet_path::{FRAMES_REJECTED, PacketPath};
use netduel_model::trial::TrialEnd;

use super::Cause;
use super::configured_rate;
use super::evidence::{Evidence, Finding};
use crate::total::Total;
use crate::words::percent;

/// From this share of calls with a full ring on, the sender waited for the ring.
const RING_FULL: f64 = 0.1;
/// A smaller share of lost packets is not the limit.
const LOST_LITTLE: f64 = 0.01;
/// From this share of the time on, a generator in the kernel is saturated.
const GENERATOR_FULL: f64 = 0.5;

impl Evidence<'_> {
    fn path(&self) -> Option<&PacketPath> {
        self.workload.traffic.facts().packets
    }

    /// The counted unit.
    pub(super) fn noun(&self) -> &'static str {
        if self.path().is_some() { "packets" } else { "datagrams" }
    }

    /// A payload rate for people; of packets as packets per second.
    pub(super) fn human_rate(&self, bps: f64) -> String {
        configured_rate::human_rate(&self.workload.traffic, bps)
    }

    /// Whether an end always runs at full load, so that a saturated core is no evidence.
    pub(super) fn always_runs(&self, end: &TrialEnd) -> bool {
        let is_sender = end.report.role == self.sender.report.role;
        self.path().is_some_and(|path| {
            if is_sender { path.engine.is_external() } else { path.receiver.busy_polls() }
        })
    }

    /// Whether loss is large enough to be the limit: at maximum rate a few packets are lost in any case.
    pub(super) fn is_worth(&self, lost: u64) -> bool {
        self.path().is_none() || lost as f64 >= self.sent as f64 * LOST_LITTLE
    }

    /// Packets that a kernel-bypass receiver counted as lost before its program received them.
    pub(super) fn ring_drops(&self) -> u64 {
        self.receiver.report.packets.as_ref().map_or(0, |packets| packets.drops.values().total())
    }

    /// Frames dropped at a full ring of an AF_XDP receiver or full queues of testpmd.
    pub(super) fn ring_full(&self) -> Option<Finding> {
        let drops = &self.receiver.report.packets.as_ref()?.drops;
        let (counter, count) =
            drops.iter().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 0)?;
        let words = format!("{count} packets dropped before the receiver's program ({counter})");
        Some((Cause::ReceiverRing, words))
    }

    /// Frames of the kernel's generator, none of which arrived.
    pub(super) fn rejected_frames(&self) -> Option<Finding> {
        self.path().filter(|path| path.engine.is_dropped_silently())?;
        let arrived = self.receiver.report.received.as_ref().map_or(0, |flow| flow.messages);
        (self.sent > 0 && arrived == 0).then(|| {
            let words =
                format!("the kernel generated {} packets and none arrived: {FRAMES_REJECTED}", self.sent);
            (Cause::FramesRejected, words)
        })
    }

    /// A full ring or queue at the sender.
    pub(super) fn back_pressure(&self) -> Option<Finding> {
        self.path()?;
        if let Some(testpmd) = &self.sender.report.dpdk {
            return offered(&testpmd.counts);
        }
        let handed = self.sender.report.datagrams_sent.as_ref()?;
        let calls = handed.calls.saturating_add(handed.refused);
        let share = handed.refused as f64 / calls.max(1) as f64;
        (share >= RING_FULL).then(|| {
            let words = format!(
                "the ring or queue of the {}'s interface was full {} times, in {} of the calls",
                self.sender.report.role.word(),
                handed.refused,
                percent(share)
            );
            (Cause::BackPressure, words)
        })
    }

    /// A saturated kernel generator, which runs in a system call outside the threads of the trial.
    pub(super) fn generator(&self) -> Option<Finding> {
        self.path().filter(|path| path.engine.is_in_system_calls())?;
        let (user, system) = self.sender.report.process_cpu_ns;
        let ran = user.saturating_add(system) as f64 / self.sender.observation.wall_ns.max(1) as f64;
        (ran >= GENERATOR_FULL)
            .then(|| (Cause::Generator, format!("the kernel's generator used {} of one core", percent(ran))))
    }
}

/// testpmd either offers more than its device accepts, or is saturated itself.
fn offered(counts: &DpdkCounts) -> Option<Finding> {
    let offered = counts.tx_packets.saturating_add(counts.tx_dropped);
    let share = counts.tx_dropped as f64 / offered.max(1) as f64;
    let words =
        format!("the device rejected {} of the {offered} packets that testpmd offered", percent(share));
    match share {
        share if share >= RING_FULL => Some((Cause::BackPressure, words)),
        _ => (offered > 0)
            .then(|| (Cause::Generator, format!("{words}: the device accepted nearly all of them"))),
    }
}
