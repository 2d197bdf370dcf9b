//! Workloads as they are run: resolved, checked, with every default written out. Each type has a file, which owns its settings and its
//! [`Facts`]; the table in this file is the only place that lists the types.
mod by_hand;
mod facts;
mod failover;
pub(crate) mod given;
mod icmp_rr;
mod loaded_latency;
mod particular;
mod pps;
mod round_trip;
pub(crate) mod setting;
mod tcp_crr;
mod tcp_rr;
mod tcp_stream;
pub(crate) mod terms;
mod timing;
mod udp_rr;
mod udp_stream;
pub(crate) mod work_unit;

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failover::PathEvent;
use crate::ids::WorkloadName;
use crate::metric::Metric;
use crate::plan::problem::Problems;
use given::{Given, Places};
use particular::Particular;
use setting::CORES;

pub use by_hand::{ByHand, Part, Ping, QuickTest};
pub use facts::{Demand, Descriptors, End, Facts, PacedRate, Requests, Sockets, TcpFacts, Threads, Wire};
pub use failover::Failover;
pub use loaded_latency::LoadedLatency;
pub use pps::Pps;
pub(crate) use pps::search_duration;
pub use round_trip::RoundTrip;
pub use setting::{
    BANDWIDTH_LIMIT, CORE, DATA_PORT, DESCRIPTORS, DESIGN, DURATION, DURATION_DEFAULT, LAB, OutOfRange,
    Range as SettingRange, SEARCH_GOAL, SSH, Setting, THREADS_MOST, TREATMENT, Unit,
};

pub use tcp_crr::Transaction;
pub use tcp_stream::{StreamTuning, TcpStream};
pub use terms::{Direction, Family, ProbeProtocol, Role, StreamThreads, TcpEngine, UdpOffload, Wait};
pub use timing::{SAMPLE_INTERVAL_NS, Timing};
pub use udp_stream::{FlowTuning, UdpStream};
pub use work_unit::WorkUnit;

/// What traffic runs in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Its name in the plan.
    pub name: WorkloadName,
    /// What is sent, and how.
    pub traffic: Traffic,
    /// How long, and what is cut at both ends.
    pub timing: Timing,
    /// IPv4 or IPv6.
    pub family: Family,
    /// Cores for the client's threads; empty leaves placement to the kernel. Thread `i` gets core `i mod len`.
    pub pin_client: Vec<u16>,
    /// Cores for the server's threads; as `pin_client`.
    pub pin_server: Vec<u16>,
    /// Ends that choose cores themselves when they prepare; their lists are empty.
    #[serde(default, skip_serializing_if = "PinAuto::is_none")]
    pub pin_auto: PinAuto,
    /// DSCP of the data packets of both ends; absent leaves it to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// The metrics that the verdict is about.
    pub metrics: Vec<Metric>,
}

/// Which ends choose the cores of their threads by what they know of the interface that carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PinAuto {
    /// The client.
    #[serde(default)]
    pub client: bool,
    /// The server.
    #[serde(default)]
    pub server: bool,
}

impl PinAuto {
    /// Whether neither does.
    pub fn is_none(&self) -> bool {
        !self.client && !self.server
    }
    /// Whether the end of the given role does.
    pub fn of(self, role: Role) -> bool {
        match role {
            Role::Client => self.client,
            Role::Server => self.server,
        }
    }
}

/// Makes the types, their words and the one dispatch from the table of workloads. The module of a type has `SETTINGS`, `resolve`,
/// `check`, `number`, `facts`, `words` and `by_hand`; its settings are [`Particular`].
macro_rules! workloads {
    ($($(#[doc = $doc:literal])+ $variant:ident($settings:ty) = $word:literal in $module:ident;)+) => {
        /// The traffic of a workload.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type")]
        pub enum Traffic {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant($settings),)+
        }

        /// The type of a workload.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum WorkloadType {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl WorkloadType {
            /// All types, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// As it is written in a plan, for example `tcp-stream`.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Its settings in a plan, with their ranges.
            pub const fn settings(self) -> &'static [Setting] {
                match self {
                    $(Self::$variant => $module::SETTINGS,)+
                }
            }
        }

        impl Traffic {
            /// Its type.
            pub const fn kind(&self) -> WorkloadType {
                match self {
                    $(Self::$variant(_) => WorkloadType::$variant,)+
                }
            }

            /// What the rest of the program needs to know of it.
            pub fn facts(&self) -> Facts<'_> {
                match self {
                    $(Self::$variant(settings) => $module::facts(settings),)+
                }
            }

            /// The settings of a type with every default.
            pub(crate) fn resolve(kind: WorkloadType, given: &Given<'_>) -> Self {
                match kind {
                    $(WorkloadType::$variant => Self::$variant($module::resolve(given)),)+
                }
            }

            /// Notes what does not go together in the settings, as an arm runs them.
            pub(crate) fn check(&self, given: &Given<'_>, places: &Places<'_>, problems: &mut Problems<'_>) {
                match self {
                    $(Self::$variant(settings) => $module::check(settings, given, places, problems),)+
                }
            }

            /// Its settings for people, in fragments: `1 stream`, `client to server`.
            pub fn words(&self) -> Vec<String> {
                match self {
                    $(Self::$variant(settings) => $module::words(settings),)+
                }
            }

            /// What repeats it by hand, with this timing.
            pub fn by_hand(&self, timing: &Timing) -> ByHand {
                match self {
                    $(Self::$variant(settings) => $module::by_hand(settings, timing),)+
                }
            }

            fn particular(&self) -> &dyn Particular {
                match self {
                    $(Self::$variant(settings) => settings,)+
                }
            }

            fn particular_mut(&mut self) -> &mut dyn Particular {
                match self {
                    $(Self::$variant(settings) => settings,)+
                }
            }

            /// A quantity of its settings by the key in a plan, in the unit of its range.
            fn number(&self, key: &str, timing: &Timing) -> Option<u64> {
                match self {
                    $(Self::$variant(settings) => $module::number(settings, key, timing),)+
                }
            }
        }
    };
}

workloads! {
    /// Bulk data over TCP.
    TcpStream(TcpStream) = "tcp-stream" in tcp_stream;
    /// Datagrams, counted one by one at both ends.
    UdpStream(UdpStream) = "udp-stream" in udp_stream;
    /// Round trips over a TCP connection.
    TcpRr(RoundTrip) = "tcp-rr" in tcp_rr;
    /// Round trips as UDP datagrams.
    UdpRr(RoundTrip) = "udp-rr" in udp_rr;
    /// Round trips as ICMP echo requests, which the kernel of the server's host answers.
    IcmpRr(RoundTrip) = "icmp-rr" in icmp_rr;
    /// Transactions over TCP, each on a connection of its own: connect, request, response, close.
    TcpCrr(Transaction) = "tcp-crr" in tcp_crr;
    /// Round trips of small probes, first on an idle path and then while TCP streams run.
    LoadedLatency(LoadedLatency) = "loaded-latency" in loaded_latency;
    /// Probes in both directions and TCP streams while the path is removed and restored.
    Failover(Failover) = "failover" in failover;
    /// Packets of one size: how many a second, with which queues and cores.
    Pps(Pps) = "pps" in pps;
}

impl Workload {
    /// The first setting that is out of its range. Agents and standing servers refuse such a workload, as a plan does. They take a
    /// shorter duration: the trials of a search have one.
    pub fn out_of_range(&self) -> Option<OutOfRange> {
        self.out_of_type()
            .or_else(|| self.out_of_duration())
            .or_else(|| self.out_of_goals())
            .or_else(|| self.out_of_cores())
            .or_else(|| self.traffic.particular().misfit(self.family))
    }

    fn out_of_duration(&self) -> Option<OutOfRange> {
        let range = SettingRange { least: 0, ..DURATION.range? };
        let value = self.timing.duration.0;
        (!range.contains(value)).then_some(OutOfRange {
            key: DURATION.key,
            value,
            range,
            beside: String::new(),
        })
    }

    fn out_of_goals(&self) -> Option<OutOfRange> {
        let facts = self.traffic.facts();
        facts.search()?.goals.iter().find_map(|goal| OutOfRange::first(SEARCH_GOAL, |key| goal.number(key)))
    }

    fn out_of_cores(&self) -> Option<OutOfRange> {
        let lists =
            [(setting::PIN_CLIENT.key, &self.pin_client), (setting::PIN_SERVER.key, &self.pin_server)];
        lists.into_iter().find_map(|(key, cores)| {
            let value = cores.iter().map(|core| u64::from(*core)).find(|core| !CORES.contains(*core))?;
            Some(OutOfRange { key, value, range: CORES, beside: String::new() })
        })
    }

    fn out_of_type(&self) -> Option<OutOfRange> {
        self.traffic.kind().settings().iter().find_map(|setting| {
            let (range, beside) = self.range_of(setting)?;
            let value = match setting.key {
                "dscp" => self.dscp?.into(),
                key => self.traffic.number(key, &self.timing)?,
            };
            (!range.contains(value)).then_some(OutOfRange { key: setting.key, value, range, beside })
        })
    }

    /// The quantities among its settings, each with its value in the unit of its range, in the order of the settings. A quantity
    /// that the plan leaves out is left out here.
    pub fn quantities(&self) -> Vec<(&'static str, u64, Unit)> {
        let settings = self.traffic.kind().settings().iter();
        let quantity = |setting: &'static Setting| {
            let value = match setting.key {
                "dscp" => self.dscp?.into(),
                key => self.traffic.number(key, &self.timing)?,
            };
            Some((setting.key, value, setting.range?.unit))
        };
        settings.filter_map(quantity).collect()
    }

    /// The range of a setting of this workload: that of its type, or a part of it beside another setting, which is named.
    fn range_of(&self, setting: &Setting) -> Option<(SettingRange, String)> {
        let range = setting.range?;
        let narrowed = self.traffic.particular().narrowed(setting.key, range, self.family);
        Some(narrowed.unwrap_or_else(|| (range, String::new())))
    }

    /// The steady window, nanoseconds after the start: of the loaded part where there is an idle one before it.
    pub fn steady_window(&self) -> Range<u64> {
        self.traffic.facts().steady_window(&self.timing)
    }
}

impl Traffic {
    /// Makes one step of its search of it: packets at this rate, or as fast as it can. Nothing for workloads without a search.
    pub fn set_step(&mut self, packets_per_s: Option<u64>) {
        self.particular_mut().set_step(packets_per_s);
    }

    /// The interfaces that its packets go over, where they bypass the network stack. Nothing for other workloads.
    pub(crate) fn set_interfaces(&mut self, client: Option<&String>, server: Option<&String>) {
        self.particular_mut().set_interfaces(client, server);
    }

    /// The events of a failover, whose interfaces are known later than the plan. Nothing for other workloads.
    pub(crate) fn events_mut(&mut self) -> &mut [PathEvent] {
        self.particular_mut().events_mut()
    }
}
