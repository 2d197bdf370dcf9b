//! A virtual function's link set down, so that traffic takes the path of the interface above it; or the active port of a bond, so that
//! traffic takes another port.
use netduel_host::LinkState;
use netduel_model::lab;
use netduel_model::snapshot::{FAILOVER_DRIVER, SYNTHETIC_DRIVERS};
use netduel_sys::link;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bond;
use super::change::{Change, Original};
use super::device::{RETURN_DEADLINE, ethtool_socket, lost_addresses, refuse_routes};
use super::error::TreatmentError;
use super::recorded_interface::RecordedInterface;

/// Whether a link is up, and whether it has carrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct LinkOriginal {
    interface: RecordedInterface,
    up: bool,
    carrier: bool,
    /// The bond whose packets it carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bond: Option<String>,
}

impl Original for LinkOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        self.interface.restore(|interface, index| {
            restore(interface, index, self.up, self.carrier)?;
            self.bond.as_ref().map_or(Ok(()), |bond| bond::activate(bond, interface))
        })
    }

    fn what(&self) -> String {
        format!("the change of the link of {}", self.interface)
    }

    fn by_hand(&self) -> String {
        let Self { interface, up, bond, .. } = self;
        let link = format!("`ip link set dev {interface} {}`", word(*up));
        match bond {
            None => link,
            Some(bond) => {
                format!("{link}, then `echo {interface} > /sys/class/net/{bond}/bonding/active_slave`")
            }
        }
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct VfChange {
    interface: String,
    /// The bond whose packets it carries.
    bond: Option<String>,
}

/// Reads what is there and checks whether the change can be made and undone.
pub(super) fn prepare(interface: &str) -> Result<(LinkOriginal, VfChange), TreatmentError> {
    let links = netduel_host::link_states()?;
    let alternatives = Alternatives { is_device: &is_device, active_port: &bond::active_port };
    let vf = chosen(interface, &links, &alternatives)?;
    refuse_failover(vf, &links)?;
    let addresses = lost_addresses(&netduel_host::addresses_of(&vf.name)?);
    if !addresses.is_empty() {
        let (interface, addresses) = (vf.name.clone(), addresses.join(", "));
        return Err(TreatmentError::DownDropsAddresses { interface, addresses });
    }
    refuse_routes(&vf.name, vf.index)?;
    let undo = LinkOriginal {
        interface: RecordedInterface::of(vf),
        up: vf.up,
        carrier: vf.carrier == Some(true),
        bond: bond_carried_by(vf, &links),
    };
    let change = VfChange { interface: vf.name.clone(), bond: undo.bond.clone() };
    Ok((undo, change))
}

/// The bond whose active port this is.
fn bond_carried_by(port: &LinkState, links: &[LinkState]) -> Option<String> {
    let above = links.iter().find(|link| Some(link.index) == port.master)?;
    (bond::active_port(above).as_ref() == Some(&port.name)).then(|| above.name.clone())
}

/// What shows that traffic has an alternative path when a link is gone.
struct Alternatives<'a> {
    /// Whether a device is behind an interface above the link.
    is_device: &'a dyn Fn(&LinkState) -> bool,
    /// The port with the packets of a bond that gives them to another port; absent for other interfaces.
    active_port: &'a dyn Fn(&LinkState) -> Option<String>,
}

/// The alternatives of a device that is removed from the bus: a bond does not take a port back by itself when that returns.
const OF_DEVICES: Alternatives<'static> = Alternatives { is_device: &is_device, active_port: &|_| None };

/// The virtual function that is meant: the interface itself when another is above it, or the one beneath it.
pub(super) fn beneath<'a>(interface: &str, links: &'a [LinkState]) -> Result<&'a LinkState, TreatmentError> {
    chosen(interface, links, &OF_DEVICES)
}

fn chosen<'a>(
    interface: &str,
    links: &'a [LinkState],
    alternatives: &Alternatives<'_>,
) -> Result<&'a LinkState, TreatmentError> {
    let named = links
        .iter()
        .find(|link| link.name == interface)
        .ok_or_else(|| TreatmentError::no_interface(interface))?;
    if is_spare(named, links, alternatives) {
        return Ok(named);
    }
    let active = (alternatives.active_port)(named);
    let is_meant = |link: &&LinkState| active.as_ref().is_none_or(|port| *port == link.name);
    let below: Vec<&LinkState> = links
        .iter()
        .filter(|link| link.master == Some(named.index) && is_spare(link, links, alternatives))
        .filter(is_meant)
        .collect();
    match below[..] {
        [vf] => Ok(vf),
        [] => Err(TreatmentError::OnlyWay { interface: interface.to_owned() }),
        _ => {
            let names = below.iter().map(|link| link.name.clone()).collect();
            Err(TreatmentError::Several { interface: interface.to_owned(), names })
        }
    }
}

/// While a virtual function is registered, `net_failover` drops what its standby receives (`net_failover_handle_frame` in Linux), whether
/// the link of the function is up or not.
fn refuse_failover(vf: &LinkState, links: &[LinkState]) -> Result<(), TreatmentError> {
    let has_standby =
        links.iter().any(|link| vf.master.is_some() && link.master == vf.master && link.is_standby(links));
    let master = links.iter().find(|link| Some(link.index) == vf.master);
    match master.filter(|master| has_standby || driver(master).as_deref() == Some(FAILOVER_DRIVER)) {
        None => Ok(()),
        Some(master) => {
            let (interface, master) = (vf.name.clone(), master.name.clone());
            Err(TreatmentError::FailoverDrops { interface, master })
        }
    }
}

/// Whether traffic has another way without this link: the interface above it is a device itself, or it is one of the lab's
/// pair and the other one is up. The only NIC of a host may well be a port of a bridge or of a bond.
pub(super) fn has_other_way(link: &LinkState, links: &[LinkState]) -> bool {
    is_spare(link, links, &OF_DEVICES)
}

fn is_spare(link: &LinkState, links: &[LinkState], alternatives: &Alternatives<'_>) -> bool {
    let Some(master) = link.master else { return false };
    // The standby is no virtual function, and its device is that of the interface above it.
    if link.is_standby(links) {
        return false;
    }
    let above = links.iter().find(|above| above.index == master);
    if above.is_some_and(alternatives.is_device) {
        return true;
    }
    let beside = |other: &&LinkState| other.master == Some(master) && other.index != link.index;
    if above.is_some_and(|above| (alternatives.active_port)(above).is_some()) {
        return links.iter().filter(beside).any(|other| other.up && other.carrier == Some(true));
    }
    let is_of_pair = |link: &LinkState| lab::PAIR.contains(&link.name.as_str());
    is_of_pair(link) && links.iter().filter(beside).any(|other| is_of_pair(other) && other.up)
}

/// Whether a device is behind the interface, which bridges and bonds have none of.
fn is_device(link: &LinkState) -> bool {
    link.bus.is_some() || driver(link).is_some_and(|driver| SYNTHETIC_DRIVERS.contains(&driver.as_str()))
}

/// The name of the driver, when it answers.
fn driver(link: &LinkState) -> Option<String> {
    Some(ethtool_socket().ok()?.driver(&link.name).ok()?.driver)
}

impl Change for VfChange {
    fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, false)?;
        let bond = self.bond.as_deref();
        bond.map_or(Ok(()), |bond| bond::wait_for_other(bond, &self.interface))
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        read_back(&self.interface, false)
    }
}

fn word(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

fn doing(interface: &str, up: bool) -> String {
    format!("set {interface} {}", word(up))
}

fn set(interface: &str, up: bool) -> Result<(), TreatmentError> {
    let refused = |cause| TreatmentError::about_interface(interface, doing(interface, up), cause);
    // A change that was refused for lack of a right needs none to be undone.
    if link::is_up(interface).map_err(refused)? == up {
        return Ok(());
    }
    link::set_up(interface, up).map_err(refused)?;
    read_back(interface, up)
}

fn read_back(interface: &str, up: bool) -> Result<(), TreatmentError> {
    let refused = |cause| TreatmentError::about_interface(interface, doing(interface, up), cause);
    let now = link::is_up(interface).map_err(refused)?;
    if now == up {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(interface, up), answered: format!("it {}", word(now)) })
}

/// Sets the link as it was, and waits for its carrier when it had one: the next trial is to find it as this one did.
fn restore(interface: &str, index: u32, up: bool, carrier: bool) -> Result<(), TreatmentError> {
    set(interface, up)?;
    if !up || !carrier {
        return Ok(());
    }
    let ready = |links: &[LinkState]| {
        // A device that goes meanwhile is not waited for.
        links.iter().find(|link| link.index == index).is_none_or(|link| link.up && link.carrier == Some(true))
    };
    if netduel_host::wait_for_links(RETURN_DEADLINE, ready)? {
        return Ok(());
    }
    let answered = format!("it up, but without carrier for {} s", RETURN_DEADLINE.as_secs());
    Err(TreatmentError::NotTaken { doing: doing(interface, up), answered })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, master: Option<u32>) -> LinkState {
        LinkState { index, name: name.to_owned(), master, ..LinkState::default() }
    }

    /// `eth0` is a device, as hv_netvsc is, and `hot1` carries the packets of `bond0`.
    fn of<'a>(interface: &str, links: &'a [LinkState]) -> Result<&'a str, String> {
        let alternatives = Alternatives {
            is_device: &|link| link.name == "eth0",
            active_port: &|link| (link.name == "bond0").then(|| "hot1".to_owned()),
        };
        chosen(interface, links, &alternatives)
            .map(|link| link.name.as_str())
            .map_err(|refused| refused.to_string())
    }

    #[test]
    fn the_function_is_the_interface_itself_or_the_one_beneath() {
        let links = [link(2, "eth0", None), link(3, "enP1", Some(2)), link(4, "eth1", None)];
        assert_eq!(of("eth0", &links).unwrap(), "enP1");
        assert_eq!(of("enP1", &links).unwrap(), "enP1");
        let alone = of("eth1", &links).unwrap_err();
        assert!(alone.contains("eth1") && alone.contains("only connection"), "{alone}");
        // A bridge above the synthetic interface changes nothing for the function beneath that.
        let bridged = [link(2, "eth0", Some(5)), link(3, "enP1", Some(2)), link(5, "br0", None)];
        assert_eq!(of("eth0", &bridged).unwrap(), "enP1");
        assert!(of("br0", &bridged).unwrap_err().contains("only connection"));
    }

    #[test]
    fn a_port_of_a_bridge_or_bond_may_be_the_only_nic() {
        let one = [link(2, "br0", None), link(3, "eno1", Some(2))];
        let guest = LinkState { up: true, ..link(4, "vnet0", Some(2)) };
        let two = [one[0].clone(), one[1].clone(), guest];
        for (links, named) in [(&one[..], "br0"), (&one[..], "eno1"), (&two[..], "br0"), (&two[..], "eno1")] {
            let refused = of(named, links).unwrap_err();
            assert!(refused.contains("only connection"), "{refused}");
        }
    }

    #[test]
    fn of_the_lab_s_pair_one_may_go_while_the_other_is_up() {
        let pair = |up: bool| {
            let other = LinkState { up, ..link(4, lab::SYNTHETIC_INTERFACE, Some(2)) };
            [link(2, "br0", None), link(3, lab::ACCELERATED_INTERFACE, Some(2)), other]
        };
        assert_eq!(of("vf0", &pair(true)).unwrap(), "vf0");
        assert!(of("vf0", &pair(false)).unwrap_err().contains("only connection"));
    }

    #[test]
    fn active_port_of_a_bond_may_go_while_another_has_carrier() {
        let with_carrier = |carrier: bool| {
            let other = LinkState { up: true, carrier: Some(carrier), ..link(4, "hot0", Some(2)) };
            [link(2, "bond0", None), link(3, "hot1", Some(2)), other]
        };
        assert_eq!(of("bond0", &with_carrier(true)).unwrap(), "hot1");
        assert_eq!(of("hot1", &with_carrier(true)).unwrap(), "hot1");
        for named in ["bond0", "hot1"] {
            assert!(of(named, &with_carrier(false)).unwrap_err().contains("only connection"), "{named}");
        }
        // A port that was taken from the bus would not return to its bond.
        let links = with_carrier(true);
        assert!(!has_other_way(&links[1], &links));
    }

    #[test]
    fn undo_by_hand_names_the_bond_of_an_active_port() {
        let original = |bond: Option<&str>| LinkOriginal {
            interface: RecordedInterface::named("hot1", 3),
            up: true,
            carrier: true,
            bond: bond.map(str::to_owned),
        };
        assert_eq!(original(None).by_hand(), "`ip link set dev hot1 up`");
        let by_hand = original(Some("bond0")).by_hand();
        let step = "`ip link set dev hot1 up`, then `echo hot1 > /sys/class/net/bond0/bonding/active_slave`";
        assert_eq!(by_hand, step);
    }

    /// A virtual function and the standby under `net_failover`, as Linux 6.12 reports them.
    fn failover() -> [LinkState; 3] {
        let device = |name: &str| Some(name.to_owned());
        [
            LinkState { device: device("virtio0"), bus: Some("virtio".into()), ..link(2, "eth0", None) },
            LinkState {
                device: device("virtio0"),
                bus: Some("virtio".into()),
                port: Some("sby".into()),
                ..link(3, "eth0nsby", Some(2))
            },
            LinkState { device: device("0000:00:04.0"), bus: Some("pci".into()), ..link(4, "vf0", Some(2)) },
        ]
    }

    #[test]
    fn the_standby_of_net_failover_is_no_function() {
        let links = failover();
        assert_eq!(of("eth0", &links).unwrap(), "vf0");
        assert!(of("eth0nsby", &links).unwrap_err().contains("only connection"));
        // An older kernel reports no devices.
        let older = links.map(|link| LinkState { device: None, ..link });
        assert_eq!(of("eth0", &older).unwrap(), "vf0");
    }

    #[test]
    fn a_function_under_net_failover_is_not_set_down() {
        let links = failover();
        let refused = refuse_failover(&links[2], &links).unwrap_err().to_string();
        assert!(refused.contains("vf0") && refused.contains("pci = \"removed\""), "{refused}");
        // hv_netvsc takes the packets of its own path at any time.
        let hyper_v = [link(2, "eth0", None), link(3, "enP1", Some(2))];
        assert!(refuse_failover(&hyper_v[1], &hyper_v).is_ok());
    }

    #[test]
    fn of_several_none_is_chosen() {
        let links = [link(2, "eth0", None), link(3, "va", Some(2)), link(4, "vb", Some(2))];
        let several = of("eth0", &links).unwrap_err();
        assert!(several.contains("va, vb"), "{several}");
    }
}
