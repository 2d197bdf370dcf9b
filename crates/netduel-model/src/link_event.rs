//! Changes of a host's links while traffic ran, and which of them touch the way that the traffic took.
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::observation::{InterfaceDelta, Presence};
use crate::units::human_nanos;

/// From this share of a host's bytes on, an interface carries the trial; the rest is other talk of the host.
const CARRIES: f64 = 0.01;

/// Something that changed on a link, as the kernel told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// When it was heard, nanoseconds after the first reading of the observation; monotonic.
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
    /// It lost carrier: the far end or the host behind it went.
    CarrierLost,
    /// It came (`RTM_NEWLINK` of an unknown index).
    Added,
    /// It went (`RTM_DELLINK`).
    Removed,
    /// It was put under another interface.
    Enslaved {
        /// The interface above it now.
        to: String,
    },
    /// It was taken from under the interface above it.
    Released,
    /// It was given another name.
    Renamed {
        /// The name before.
        from: String,
    },
    /// The kernel's log says that the data path of a synthetic NIC moved (`hv_netvsc`).
    DataPath {
        /// The message.
        message: String,
    },
    /// Events came faster than they were taken: what changed in between is not known.
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
            LinkChange::Released => format!("{interface} was taken from under its master"),
            LinkChange::Renamed { from } => format!("{from} was renamed to {interface}"),
            LinkChange::DataPath { message } => format!("the kernel logged \"{message}\""),
            LinkChange::EventsLost => {
                "link events were lost: they came faster than they were read".to_owned()
            }
        };
        format!("{} after the start {what}", human_nanos(*at_ns as f64))
    }
}

/// The events that touch the way of the traffic: of an interface that carried it or has to, of what lies above that, and of
/// what lies beneath it (a VF under its synthetic NIC).
pub fn of_the_path<'e>(
    events: &'e [LinkEvent],
    interfaces: &[InterfaceDelta],
    expected: Option<&str>,
) -> Vec<&'e LinkEvent> {
    let near = near_the_path(interfaces, expected);
    let touches = |event: &&LinkEvent| {
        let is_near = |name: &str| near.contains(name);
        match &event.change {
            LinkChange::EventsLost => true,
            LinkChange::Renamed { from } => is_near(from) || is_near(&event.interface),
            LinkChange::Enslaved { to } => is_near(to) || is_near(&event.interface),
            _ => is_near(&event.interface) || event.master.as_deref().is_some_and(is_near),
        }
    };
    events.iter().filter(touches).collect()
}

fn near_the_path<'i>(interfaces: &'i [InterfaceDelta], expected: Option<&'i str>) -> BTreeSet<&'i str> {
    let of_trial = || interfaces.iter().filter(|interface| !interface.is_master);
    let bytes = |interface: &InterfaceDelta| (interface.rx_bytes + interface.tx_bytes) as f64;
    let total: f64 = of_trial().map(bytes).sum();
    // What vanished took its counters along, so it may have carried anything.
    let carries = |interface: &InterfaceDelta| {
        interface.presence == Presence::Removed || bytes(interface) > total * CARRIES
    };
    let mut carriers: BTreeSet<&str> =
        of_trial().filter(|one| carries(one)).map(|one| one.name.as_str()).collect();
    carriers.extend(expected);
    let above: Vec<&str> = interfaces
        .iter()
        .filter(|interface| carriers.contains(interface.name.as_str()))
        .filter_map(|interface| interface.master.as_deref())
        .collect();
    let below = interfaces
        .iter()
        .filter(|interface| interface.master.as_deref().is_some_and(|master| carriers.contains(master)))
        .map(|interface| interface.name.as_str());
    let mut near: BTreeSet<&str> = below.collect();
    near.extend(carriers.iter().copied().chain(above));
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, master: Option<&str>, bytes: u64) -> InterfaceDelta {
        let is_master = name == "eth0";
        let master = master.map(str::to_owned);
        InterfaceDelta { name: name.into(), master, is_master, rx_bytes: bytes, ..InterfaceDelta::default() }
    }

    fn event(interface: &str, master: Option<&str>, change: LinkChange) -> LinkEvent {
        LinkEvent {
            at_ns: 412_000_000,
            interface: interface.into(),
            master: master.map(str::to_owned),
            change,
        }
    }

    #[test]
    fn what_carried_the_bytes_its_master_and_its_vf_count_and_a_strangers_link_does_not() {
        let seen = [
            interface("eth0", None, 0),
            interface("vf0", Some("eth0"), 1_000_000),
            interface("syn0", Some("eth0"), 900),
            interface("docker0", None, 100),
        ];
        let events = [
            event("docker0", None, LinkChange::Down),
            event("vf0", Some("eth0"), LinkChange::CarrierLost),
            event("eth0", None, LinkChange::Down),
            event("syn0", None, LinkChange::Down),
            event("", None, LinkChange::EventsLost),
        ];
        let words: Vec<String> = of_the_path(&events, &seen, Some("vf0")).iter().map(|e| e.words()).collect();
        assert_eq!(
            words,
            [
                "412 ms after the start vf0 lost carrier",
                "412 ms after the start eth0 went down",
                "412 ms after the start link events were lost: they came faster than they were read"
            ]
        );
    }

    #[test]
    fn a_vf_that_comes_under_the_interface_of_the_bytes_is_told_of() {
        let seen = [interface("nic", None, 5000)];
        let enslaved = event("enP1s1", None, LinkChange::Enslaved { to: "nic".into() });
        let said =
            event("nic", None, LinkChange::DataPath { message: "Data path switched to VF: enP1s1".into() });
        assert_eq!(of_the_path(&[enslaved, said], &seen, None).len(), 2);
        let gone = event("enP1s1", Some("nic"), LinkChange::Removed);
        assert_eq!(of_the_path(&[gone], &seen, Some("nic")).len(), 1);
    }
}
