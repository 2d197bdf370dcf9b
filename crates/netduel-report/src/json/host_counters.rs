//! What the kernel of a host counted around a quick test, in JSON. Names of counters are values here; a stored run has them as keys.
use std::collections::BTreeMap;

use netduel_model::observation::{CoreTime, InterfaceDelta, Observation, Softnet};
use schemars::JsonSchema;
use serde::Serialize;

/// Counters of a host: differences between a reading before the traffic and one after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostCounters {
    /// Time between the readings.
    pub elapsed_ns: u64,
    /// CPU time in programs of the netduel process.
    pub process_user_ns: u64,
    /// CPU time in system calls of the netduel process.
    pub process_system_ns: u64,
    /// Context switches; null where not counted.
    pub context_switches: Option<u64>,
    /// CPU time by core.
    pub cores: Vec<CoreTimes>,
    /// Packet processing by core (`softnet_stat`).
    pub softnet: Vec<SoftnetCount>,
    /// Counters by interface.
    pub interfaces: Vec<InterfaceCount>,
    /// Counters of drivers (`ethtool -S`) that changed.
    pub driver: Vec<DriverCount>,
    /// Interrupts by name, all cores together.
    pub interrupts: Vec<Count>,
    /// Protocol counters that changed, as `Tcp.RetransSegs`.
    pub protocol: Vec<Change>,
}

/// CPU time of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CoreTimes {
    /// Number of the core.
    pub core: u16,
    /// In programs.
    pub user_ns: u64,
    /// In system calls and kernel threads.
    pub system_ns: u64,
    /// In hardware interrupts.
    pub hard_interrupt_ns: u64,
    /// In softirqs.
    pub soft_interrupt_ns: u64,
    /// Withheld by the hypervisor.
    pub stolen_ns: u64,
    /// Neither idle, nor in a class that the kernel counted. 0 up to 20 ms, which can be rounding.
    pub unaccounted_ns: u64,
    /// Idle.
    pub idle_ns: u64,
}

/// Packet processing of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SoftnetCount {
    /// Number of the core.
    pub core: u16,
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Rounds that ended at their limit of packets or time.
    pub time_squeeze: u64,
    /// Packets received through RPS.
    pub received_rps: u64,
}

/// Counters of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterfaceCount {
    /// Interface.
    pub interface: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Received packets that were dropped.
    pub received_dropped: u64,
    /// Packets to be sent that were dropped.
    pub sent_dropped: u64,
    /// Receive errors.
    pub received_errors: u64,
    /// Send errors.
    pub sent_errors: u64,
    /// Packets to be sent that the qdisc dropped; null where not counted.
    pub qdisc_dropped: Option<u64>,
    /// Times that the qdisc delayed packets because of a rate; null where not counted.
    pub qdisc_overlimits: Option<u64>,
    /// Received packets that the ingress qdisc dropped; null without one.
    pub ingress_dropped: Option<u64>,
}

/// A counter of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DriverCount {
    /// Interface.
    pub interface: String,
    /// Name of the counter.
    pub name: String,
    /// Difference.
    pub value: i64,
}

/// A counter that only grows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Count {
    /// Name of the counter.
    pub name: String,
    /// Count during the test.
    pub value: u64,
}

/// A counter that may also decrease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// Name of the counter.
    pub name: String,
    /// Difference.
    pub value: i64,
}

impl Count {
    pub(super) fn all(counters: &BTreeMap<String, u64>) -> Vec<Self> {
        counters.iter().map(|(name, value)| Self { name: name.clone(), value: *value }).collect()
    }
}

impl HostCounters {
    pub(super) fn of(seen: &Observation) -> Self {
        let softnet = |core: &Softnet| SoftnetCount {
            core: core.core,
            processed: core.processed,
            dropped: core.dropped,
            time_squeeze: core.time_squeeze,
            received_rps: core.received_rps,
        };
        let driver = |(interface, counters): (&String, &BTreeMap<String, i64>)| {
            let interface = interface.clone();
            let counters = counters.clone().into_iter();
            counters
                .map(move |(name, value)| DriverCount { interface: interface.clone(), name, value })
                .collect::<Vec<_>>()
        };
        let change = |(name, value): (&String, &i64)| Change { name: name.clone(), value: *value };
        Self {
            elapsed_ns: seen.wall_ns,
            process_user_ns: seen.process.user_ns,
            process_system_ns: seen.process.system_ns,
            context_switches: seen.context_switches,
            cores: seen.cores.iter().map(|core| CoreTimes::of(core, seen.wall_ns)).collect(),
            softnet: seen.softnet.iter().map(softnet).collect(),
            interfaces: seen.interfaces.iter().map(InterfaceCount::of).collect(),
            driver: seen.driver.iter().flat_map(driver).collect(),
            interrupts: Count::all(&seen.interrupts),
            protocol: seen.protocol.iter().map(change).collect(),
        }
    }
}

impl CoreTimes {
    fn of(core: &CoreTime, wall_ns: u64) -> Self {
        Self {
            unaccounted_ns: core.unaccounted_ns(wall_ns),
            core: core.core,
            user_ns: core.user_ns,
            system_ns: core.system_ns,
            hard_interrupt_ns: core.irq_ns,
            soft_interrupt_ns: core.softirq_ns,
            stolen_ns: core.steal_ns,
            idle_ns: core.idle_ns,
        }
    }
}

impl InterfaceCount {
    fn of(seen: &InterfaceDelta) -> Self {
        Self {
            interface: seen.name.clone(),
            received_bytes: seen.rx_bytes,
            sent_bytes: seen.tx_bytes,
            received_packets: seen.rx_packets,
            sent_packets: seen.tx_packets,
            received_dropped: seen.rx_dropped,
            sent_dropped: seen.tx_dropped,
            received_errors: seen.rx_errors,
            sent_errors: seen.tx_errors,
            qdisc_dropped: seen.qdisc_dropped,
            qdisc_overlimits: seen.qdisc_overlimits,
            ingress_dropped: seen.ingress_dropped,
        }
    }
}
