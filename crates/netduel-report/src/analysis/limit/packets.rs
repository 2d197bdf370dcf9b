//! Causes of packets alone: rings, generators, and ends that are busy whatever they do.
use netduel_model::dpdk::DpdkCounts;
use netduel_model::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use netduel_model::trial::TrialEnd;

use super::asked;
use super::evidence::{Evidence, Finding, name_of};
use super::{Cause, percent};

/// A sender that found its ring full in this share of its calls, or more, had time to wait for it.
const RING_FULL: f64 = 0.1;
/// Fewer lost packets than this share of those sent are no limit of what arrives.
const LOST_LITTLE: f64 = 0.01;
/// A generator in the kernel that ran for this share of the time had no time left for more.
const GENERATOR_FULL: f64 = 0.5;

impl Evidence<'_> {
    fn path(&self) -> Option<&PacketPath> {
        self.workload.traffic.packets()
    }

    /// What is counted.
    pub(super) fn noun(&self) -> &'static str {
        if self.path().is_some() { "packets" } else { "datagrams" }
    }

    /// A payload rate for people; of packets as packets per second.
    pub(super) fn human_rate(&self, bps: f64) -> String {
        asked::human_rate(&self.workload.traffic, bps)
    }

    /// Whether an end runs all the time whatever there is to do, so that a full core alone says nothing of it: an AF_XDP receiver and
    /// testpmd ask their rings again and again, and the kernel's generator has a finding of its own.
    pub(super) fn always_runs(&self, end: &TrialEnd) -> bool {
        let is_sender = end.report.role == self.sender.report.role;
        self.path().is_some_and(|path| {
            if is_sender {
                matches!(path.engine, PacketEngine::Kernel | PacketEngine::Dpdk)
            } else {
                matches!(path.receiver, PacketReceiver::Xdp | PacketReceiver::Dpdk)
            }
        })
    }

    /// Whether so many lost ones say what the limit is: of packets as fast as they can a few are lost whatever it is.
    pub(super) fn is_worth(&self, lost: u64) -> bool {
        self.path().is_none() || lost as f64 >= self.sent as f64 * LOST_LITTLE
    }

    /// Packets that a receiver past the network stack counted as lost before its program had them.
    pub(super) fn ring_drops(&self) -> u64 {
        self.receiver.report.packets.as_ref().map_or(0, |packets| packets.drops.values().sum())
    }

    /// Frames that found the ring of an AF_XDP receiver, or the queues of a testpmd, full.
    pub(super) fn ring_full(&self) -> Option<Finding> {
        let drops = &self.receiver.report.packets.as_ref()?.drops;
        let (counter, count) =
            drops.iter().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 0)?;
        let words = format!("{count} packets dropped before the receiver's program ({counter})");
        Some((Cause::ReceiverRing, words))
    }

    /// Frames of the kernel's generator of which the other end saw none.
    pub(super) fn not_taken(&self) -> Option<Finding> {
        self.path().filter(|path| path.engine == PacketEngine::Kernel)?;
        let arrived = self.receiver.report.received.as_ref().map_or(0, |flow| flow.messages);
        (self.sent > 0 && arrived == 0).then(|| {
            let words = format!(
                "the kernel made {} packets and none arrived: the driver of the sender's interface takes no frames from an XDP \
                 program; a veth takes them only while its other end has a program or GRO",
                self.sent
            );
            (Cause::NotTaken, words)
        })
    }

    /// A ring or queue that was full when the sender came with more.
    pub(super) fn back_pressure(&self) -> Option<Finding> {
        self.path()?;
        if let Some(testpmd) = &self.sender.report.dpdk {
            return offered(&testpmd.counts);
        }
        let handed = self.sender.report.datagrams_sent.as_ref()?;
        let share = handed.refused as f64 / (handed.calls + handed.refused).max(1) as f64;
        (share >= RING_FULL).then(|| {
            let words = format!(
                "the {} found the ring or queue of its interface full {} times, in {} of its calls",
                name_of(self.sender.report.role),
                handed.refused,
                percent(share)
            );
            (Cause::BackPressure, words)
        })
    }

    /// The kernel's generator, which runs in the call of a thread that is not among those of the trial.
    pub(super) fn generator(&self) -> Option<Finding> {
        self.path().filter(|path| path.engine == PacketEngine::Kernel)?;
        let (user, system) = self.sender.report.process_cpu_ns;
        let ran = (user + system) as f64 / self.sender.observation.wall_ns.max(1) as f64;
        (ran >= GENERATOR_FULL).then(|| {
            (
                Cause::Generator,
                format!("the kernel made packets for {} of the time of one core", percent(ran)),
            )
        })
    }
}

/// testpmd always offers more than its device takes, or makes all that it can.
fn offered(counts: &DpdkCounts) -> Option<Finding> {
    let offered = counts.sent + counts.refused;
    let share = counts.refused as f64 / offered.max(1) as f64;
    let words =
        format!("the device refused {} of the {offered} packets that testpmd offered", percent(share));
    match share {
        share if share >= RING_FULL => Some((Cause::BackPressure, words)),
        _ => (offered > 0).then(|| (Cause::Generator, format!("{words}: it took all that was made"))),
    }
}
