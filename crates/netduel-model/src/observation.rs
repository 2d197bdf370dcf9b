//! What the observer of one host saw around a trial: differences of the kernel's counters, raw.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link_event::LinkEvent;

/// Differences between "directly before the traffic" and "directly after it" on one host.
/// A counter that the host does not have is absent; a counter that did not change is left out of the maps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Time between the two readings, nanoseconds, monotonic.
    pub wall_ns: u64,
    /// How far the wall clock moved against the monotonic clock, nanoseconds: a clock step or slew.
    pub clock_step_ns: i64,
    /// CPU time by core and class (`/proc/stat`).
    pub cores: Vec<CoreTime>,
    /// The agent's process (`getrusage`).
    pub process: ProcessUsage,
    /// Interrupts by name, all cores together (`/proc/interrupts`).
    pub interrupts: BTreeMap<String, u64>,
    /// Interrupts by core, all names together.
    pub interrupts_by_core: Vec<u64>,
    /// Context switches of the host (`ctxt` in `/proc/stat`).
    pub context_switches: Option<u64>,
    /// Per-core receive processing (`/proc/net/softnet_stat`).
    pub softnet: Vec<Softnet>,
    /// Interface counters (`IFLA_STATS64`).
    pub interfaces: Vec<InterfaceDelta>,
    /// Driver counters by interface (`ethtool -S`).
    pub driver: BTreeMap<String, BTreeMap<String, i64>>,
    /// Protocol counters (`/proc/net/snmp`, `/proc/net/snmp6`, `/proc/net/netstat`), as `Tcp.RetransSegs`.
    pub protocol: BTreeMap<String, i64>,
    /// The largest number of tests of other clients that ran on a standing server at the same time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub concurrent_tests: u32,
    /// The cores that this end chose for its threads; absent when the plan names the cores or leaves placement to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Link events between the two readings, in order; absent when they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_events: Option<Vec<LinkEvent>>,
    /// On what the host ran; absent in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<HostIdentity>,
    /// What the agent's connection to its coordinator carried between the two readings; absent in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlTraffic>,
    /// CPU time that the agent used for the two readings, nanoseconds.
    pub observer_cpu_ns: u64,
}

/// Data of the agent's standard input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ControlTraffic {
    /// Bytes, received and sent.
    pub bytes: u64,
    /// Pieces in which they came or went: reads and writes.
    pub messages: u64,
}

/// Cores that an end chose for its threads, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Thread `i` runs on core `i mod len`; empty when none could be chosen, and the kernel placed them.
    pub cores: Vec<u16>,
    /// Why they were chosen, for example `queues of eth0 on node 0`.
    pub reason: String,
}

/// What must stay the same for two trials of a host to be comparable: a virtual machine that is stopped and started may
/// find itself on another machine, with another NIC. Cheap to read, so it is read with every trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostIdentity {
    /// `/proc/sys/kernel/random/boot_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The physical machine, when the hypervisor reports it (Hyper-V's key-value pool).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_host: Option<String>,
    /// Cores online.
    pub cores: u32,
    /// The hardware interfaces of the network stack, or all of them where there is no hardware. Without names, which
    /// change, in a fixed order.
    pub nics: Vec<NicIdentity>,
}

/// What a network interface is, whatever it is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct NicIdentity {
    /// Driver (`ethtool -i`).
    pub driver: String,
    /// Vendor and device on the PCI bus, as `15b3:101a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Receive queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_queues: Option<u32>,
    /// Transmit queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_queues: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// CPU time of one core, nanoseconds, as `/proc/stat` classes it (guest time is in user).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CoreTime {
    /// Core number.
    pub core: u16,
    /// User, with nice.
    pub user_ns: u64,
    /// System.
    pub system_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Softirqs: most of the network's receive work.
    pub softirq_ns: u64,
    /// Time in which the hypervisor ran other guests.
    pub steal_ns: u64,
    /// Idle, with waiting for IO.
    pub idle_ns: u64,
}

impl CoreTime {
    /// The classes together can be this much shorter than the time between two readings by rounding, nanoseconds: `/proc/stat` counts
    /// each in hundredths of a second.
    const ROUNDING_NS: u64 = 20_000_000;

    /// Unaccounted time between readings `wall_ns` apart, nanoseconds: neither idle, nor in a class that the kernel counted; 0 within the
    /// rounding. A core that works for less than a timer tick at a time has some (docs/design/0005-observation-and-treatments.md).
    pub fn unaccounted_ns(&self, wall_ns: u64) -> u64 {
        let missing = wall_ns.saturating_sub(self.classes_ns());
        if missing > Self::ROUNDING_NS { missing } else { 0 }
    }

    /// Time in which this core worked for this host between readings `wall_ns` apart: everything but idle and steal.
    pub fn busy_ns(&self, wall_ns: u64) -> u64 {
        self.total_ns(wall_ns).saturating_sub(self.steal_ns).saturating_sub(self.idle_ns)
    }

    /// Its total time between readings `wall_ns` apart, nanoseconds.
    pub fn total_ns(&self, wall_ns: u64) -> u64 {
        self.classes_ns().saturating_add(self.unaccounted_ns(wall_ns))
    }

    fn classes_ns(&self) -> u64 {
        // Records come from agents and run files, whose numbers may be any.
        let classes = [self.system_ns, self.irq_ns, self.softirq_ns, self.steal_ns, self.idle_ns];
        classes.into_iter().fold(self.user_ns, u64::saturating_add)
    }
}

impl Observation {
    /// Busy time of all cores, nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.cores.iter().map(|core| core.busy_ns(self.wall_ns)).fold(0, u64::saturating_add)
    }

    /// Total time of all cores, nanoseconds.
    pub fn core_time_ns(&self) -> u64 {
        self.cores.iter().map(|core| core.total_ns(self.wall_ns)).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn core(user_ns: u64, steal_ns: u64, idle_ns: u64) -> CoreTime {
        CoreTime { user_ns, steal_ns, idle_ns, ..CoreTime::default() }
    }

    #[test]
    fn work_that_no_tick_saw_is_busy_time() {
        // The receiver of a stream: its thread alone ran for 0.37 s, and the ticks saw 0.28 s.
        let receiver = core(SECOND / 100 * 28, 0, SECOND / 100 * 50);
        assert_eq!(receiver.unaccounted_ns(SECOND), SECOND / 100 * 22);
        assert_eq!(receiver.busy_ns(SECOND), SECOND / 2);
        assert_eq!(receiver.total_ns(SECOND), SECOND);
        let stolen = core(SECOND / 10, SECOND / 10, SECOND / 10);
        assert_eq!(stolen.busy_ns(SECOND), SECOND / 10 * 8);
        let seen = Observation { wall_ns: SECOND, cores: vec![receiver, stolen], ..Observation::default() };
        assert_eq!((seen.busy_ns(), seen.core_time_ns()), (SECOND / 10 * 13, 2 * SECOND));
    }

    #[test]
    fn rounding_is_no_work() {
        let idle = core(0, 0, SECOND - CoreTime::ROUNDING_NS);
        assert_eq!((idle.unaccounted_ns(SECOND), idle.busy_ns(SECOND)), (0, 0));
        let long = core(SECOND, 0, SECOND / 100);
        assert_eq!((long.busy_ns(SECOND), long.total_ns(SECOND)), (SECOND, SECOND / 100 * 101));
        let any = core(u64::MAX, u64::MAX, u64::MAX);
        assert_eq!((any.unaccounted_ns(u64::MAX), any.total_ns(u64::MAX)), (0, u64::MAX));
    }
}

/// A process's use of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUsage {
    /// User time, nanoseconds.
    pub user_ns: u64,
    /// System time, nanoseconds.
    pub system_ns: u64,
    /// Voluntary context switches: the process waited.
    pub voluntary_switches: u64,
    /// Involuntary context switches: its time slice ended.
    pub involuntary_switches: u64,
}

/// One core's line of `/proc/net/softnet_stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Softnet {
    /// Core number.
    pub core: u16,
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Times the budget or time of a round ran out.
    pub time_squeeze: u64,
    /// Packets received through RPS.
    pub received_rps: u64,
}

/// One interface's counters over a trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceDelta {
    /// Name, for example `eth0`.
    pub name: String,
    /// Interface index; a changed index under the same name is another device.
    pub index: u32,
    /// Whether other interfaces lie under this one (bridge, bond, synthetic NIC over a VF): its bytes are counted there.
    pub is_master: bool,
    /// The interface above this one, when it is a port or slave.
    pub master: Option<String>,
    /// Whether the device was added or removed between the two readings.
    pub presence: Presence,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped on receive.
    pub rx_dropped: u64,
    /// Packets dropped on send.
    pub tx_dropped: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Send errors.
    pub tx_errors: u64,
    /// Packets to be sent that the qdisc of the interface dropped (`TCA_STATS2`); absent when it was replaced
    /// meanwhile or the kernel did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc_dropped: Option<u64>,
    /// Times that the qdisc delayed packets because of a rate (`overlimits`); absent in the same cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc_overlimits: Option<u64>,
    /// The bus of the device behind it (`IFLA_PARENT_DEV_BUS_NAME`, Linux 5.14 and later), for example `pci` or `vmbus`;
    /// absent for software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Received packets that its `ingress` or `clsact` qdisc dropped; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_dropped: Option<u64>,
}

/// Whether a device was there at both readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// At both.
    #[default]
    Unchanged,
    /// Only after: counters are those since it was added.
    Added,
    /// Only before: its counters are lost and recorded as 0.
    Removed,
}
