//! Changes of a host's links while traffic ran.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::human_nanos;

/// A change of a link, as the kernel reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// When it was received, nanoseconds after the first reading of the observation; monotonic.
    pub at_ns: u64,
    /// The interface; for `events-lost` empty.
    pub interface: String,
    /// The interface above it, before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// What changed.
    pub change: LinkChange,
}

/// What changed on a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LinkChange {
    /// It was set up (`IFF_UP`).
    Up,
    /// It was set down.
    Down,
    /// It has carrier again.
    CarrierGained,
    /// It lost carrier.
    CarrierLost,
    /// It was added (`RTM_NEWLINK` of an unknown index).
    Added,
    /// It was removed (`RTM_DELLINK`).
    Removed,
    /// It was put under another interface.
    Enslaved {
        /// The interface above it now.
        to: String,
    },
    /// It was detached from the interface above it.
    Released,
    /// It was renamed.
    Renamed {
        /// The name before.
        from: String,
    },
    /// The kernel's log says that the data path of a synthetic NIC moved (`hv_netvsc`).
    DataPath {
        /// The message.
        message: String,
    },
    /// Its MTU was changed.
    Mtu {
        /// Bytes before.
        from: u32,
        /// Bytes now.
        to: u32,
    },
    /// Features of the device were switched on or off (`ethtool -K`).
    Offloads {
        /// Kernel names of those that are active now.
        on: Vec<String>,
        /// Kernel names of those that are no longer active.
        off: Vec<String>,
    },
    /// Another setting of the device was written (ethtool(8)), perhaps with the value that it had.
    Setting {
        /// Which one.
        setting: DeviceSetting,
    },
    /// Events arrived faster than they were read; changes in between are unknown.
    EventsLost,
}

/// A setting of a network device about which the kernel notifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSetting {
    /// Numbers of queues (`ethtool -L`).
    Channels,
    /// Interrupt coalescing (`ethtool -C`).
    Coalescing,
    /// Forward error correction (`ethtool --set-fec`).
    ForwardErrorCorrection,
    /// Speed, duplex and autonegotiation (`ethtool -s`).
    LinkModes,
    /// Flow control by pause frames (`ethtool -A`).
    PauseFrames,
    /// Flags of the driver (`ethtool --set-priv-flags`).
    PrivateFlags,
    /// Sizes of the descriptor rings (`ethtool -G`).
    Rings,
}

impl DeviceSetting {
    /// Its name within a sentence.
    fn words(self) -> &'static str {
        match self {
            Self::Channels => "the number of queues",
            Self::Coalescing => "interrupt coalescing",
            Self::ForwardErrorCorrection => "forward error correction",
            Self::LinkModes => "speed or autonegotiation",
            Self::PauseFrames => "flow control",
            Self::PrivateFlags => "flags of the driver",
            Self::Rings => "the ring size",
        }
    }
}

impl LinkEvent {
    /// What happened and when, for example `412 ms after the start vf0 went down`.
    pub fn words(&self) -> String {
        let Self { at_ns, interface, .. } = self;
        let what = match &self.change {
            LinkChange::Up => format!("{interface} went up"),
            LinkChange::Down => format!("{interface} went down"),
            LinkChange::CarrierGained => format!("{interface} gained carrier"),
            LinkChange::CarrierLost => format!("{interface} lost carrier"),
            LinkChange::Added => format!("{interface} was added"),
            LinkChange::Removed => format!("{interface} was removed"),
            LinkChange::Enslaved { to } => format!("{interface} was put under {to}"),
            LinkChange::Released => format!("{interface} was detached from its master"),
            LinkChange::Renamed { from } => format!("{from} was renamed to {interface}"),
            LinkChange::DataPath { message } => format!("the kernel logged \"{message}\""),
            LinkChange::Mtu { from, to } => format!("the MTU of {interface} changed from {from} B to {to} B"),
            LinkChange::Offloads { on, off } => {
                let switched = |names: &[String], state: &str| {
                    (!names.is_empty())
                        .then(|| format!("{} of {interface} went {state}", names.join(" and ")))
                };
                [switched(on, "on"), switched(off, "off")]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", ")
            }
            LinkChange::Setting { setting } => format!("{} of {interface} was set", setting.words()),
            LinkChange::EventsLost => {
                "link events were lost: they came faster than they were read".to_owned()
            }
        };
        format!("{} after the start {what}", human_nanos(*at_ns as f64))
    }
}
