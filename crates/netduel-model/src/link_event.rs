//! Changes of a host's links while traffic ran.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::human_nanos;

/// A change of a link, as the kernel reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// When it was received, nanoseconds after the first reading of the observation; monotonic.
    pub at_ns: u64,
    /// The interface; for [`LinkChange::EventsLost`] empty.
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
    /// Events arrived faster than they were read; changes in between are unknown.
    EventsLost,
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
            LinkChange::EventsLost => {
                "link events were lost: they came faster than they were read".to_owned()
            }
        };
        format!("{} after the start {what}", human_nanos(*at_ns as f64))
    }
}
