//! Which link events of a trial concern the interfaces that carried its traffic.
use std::collections::BTreeSet;

use crate::link_event::{LinkChange, LinkEvent};
use crate::observation::{InterfaceDelta, Observation, Presence};
use crate::own_traffic::background_bytes;

/// An interface with at least this share of a host's bytes carries the trial, unless they can be background traffic. The rest is other
/// traffic of the host.
const CARRIER_SHARE_MIN: f64 = 0.01;

impl Observation {
    /// The events of interfaces that carried the traffic or that must carry it (`expected`), of the interfaces above these, and of
    /// those below (a VF under its synthetic NIC). Empty when link events were not recorded.
    pub fn link_events_on_path(&self, expected: Option<&str>) -> Vec<&LinkEvent> {
        let near = near_path(&self.interfaces, expected);
        let is_near = |name: &str| near.contains(name);
        let concerns = |event: &&LinkEvent| match &event.change {
            LinkChange::EventsLost => true,
            LinkChange::Renamed { from } => is_near(from) || is_near(&event.interface),
            LinkChange::Enslaved { to } => is_near(to) || is_near(&event.interface),
            _ => is_near(&event.interface) || event.master.as_deref().is_some_and(is_near),
        };
        self.link_events.iter().flatten().filter(concerns).collect()
    }
}

fn near_path<'i>(interfaces: &'i [InterfaceDelta], expected: Option<&'i str>) -> BTreeSet<&'i str> {
    let of_trial = || interfaces.iter().filter(|interface| !interface.is_master);
    let bytes = |interface: &InterfaceDelta| interface.rx_bytes.saturating_add(interface.tx_bytes);
    let total = of_trial().map(bytes).fold(0, u64::saturating_add);
    let others_max = (total as f64 * CARRIER_SHARE_MIN).max(background_bytes(total) as f64);
    // A removed interface lost its counters, so it may have carried any number of bytes.
    let carries = |interface: &InterfaceDelta| {
        interface.presence == Presence::Removed || bytes(interface) as f64 > others_max
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
    use schemars::SchemaGenerator;

    use super::*;
    use crate::link_event::DeviceSetting;

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

    fn observed(events: &[LinkEvent], interfaces: &[InterfaceDelta]) -> Observation {
        Observation {
            link_events: Some(events.to_vec()),
            interfaces: interfaces.to_vec(),
            ..Observation::default()
        }
    }

    #[test]
    fn carriers_with_their_masters_and_vfs_count_and_other_links_do_not() {
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
        let words: Vec<String> = observed(&events, &seen)
            .link_events_on_path(Some("vf0"))
            .iter()
            .map(|event| event.words())
            .collect();
        assert_eq!(
            words,
            [
                "412 ms after the start vf0 lost carrier",
                "412 ms after the start eth0 went down",
                "412 ms after the start link events were lost: they came faster than they were read"
            ]
        );
    }

    /// A change of every kind, and one of every device setting: they are of the schema, so that a new one is among them.
    fn every_change() -> Vec<LinkChange> {
        let schema = SchemaGenerator::default().into_root_schema_for::<LinkChange>().to_value();
        let read = |change| serde_json::from_value(change).expect("it is of the schema");
        netduel_formats::examples(&schema, &|_, _| None).into_iter().map(read).collect()
    }

    #[test]
    fn every_kind_of_change_counts_on_the_path_and_not_beside_it() {
        let seen = [
            interface("eth0", None, 0),
            interface("vf0", Some("eth0"), 1_000_000),
            interface("docker0", None, 100),
        ];
        let changes = every_change();
        let rings = LinkChange::Setting { setting: DeviceSetting::Rings };
        assert!(changes.contains(&rings) && changes.contains(&LinkChange::EventsLost), "{changes:?}");
        for change in changes {
            let is_of_all = change == LinkChange::EventsLost;
            for (name, counts) in [("vf0", true), ("eth0", true), ("docker0", is_of_all)] {
                let events = [event(name, None, change.clone())];
                let counted = observed(&events, &seen).link_events_on_path(Some("vf0")).len();
                assert_eq!(counted, usize::from(counts), "{name}: {change:?}");
            }
        }
    }

    #[test]
    fn vf_that_is_added_below_a_carrier_counts() {
        let seen = [interface("nic", None, 5000)];
        let enslaved = event("enP1s1", None, LinkChange::Enslaved { to: "nic".into() });
        let logged =
            event("nic", None, LinkChange::DataPath { message: "Data path switched to VF: enP1s1".into() });
        assert_eq!(observed(&[enslaved, logged], &seen).link_events_on_path(None).len(), 2);
        let gone = event("enP1s1", Some("nic"), LinkChange::Removed);
        assert_eq!(observed(&[gone], &seen).link_events_on_path(Some("nic")).len(), 1);
    }

    #[test]
    fn background_traffic_of_a_trial_with_few_bytes_does_not_make_a_carrier() {
        // 100 round trips on pf0; ARP on vf0, whose link goes because its physical function was restarted.
        let lost = [event("vf0", None, LinkChange::CarrierLost)];
        let seen = |bytes: u64| [interface("pf0", None, 30_000), interface("vf0", None, bytes)];
        assert!(observed(&lost, &seen(1_200)).link_events_on_path(None).is_empty());
        assert_eq!(observed(&lost, &seen(4_200)).link_events_on_path(None).len(), 1);
        assert_eq!(observed(&lost, &seen(1_200)).link_events_on_path(Some("vf0")).len(), 1);
    }
}
