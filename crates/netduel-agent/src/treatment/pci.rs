//! A PCI function taken from the bus and found again by a scan, as when a host removes a VF and restores it.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use netduel_host::LinkState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::{RETURN_DEADLINE, ethtool_socket, refuse_routes, wait_for_carrier};
use super::device_settings::DeviceSettings;
use super::error::TreatmentError;
use super::interface_name::name_again;
use super::steering::all;
use super::vf::{beneath, has_other_way};

/// An interface that has to be there again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Returning {
    /// Its name at the time. The one that returns may have another, and gets this one.
    name: String,
    /// By this it is known again.
    mac: String,
    /// The interface above it.
    master: u32,
    up: bool,
    carrier: bool,
    /// The device takes them along: a driver starts it anew with its defaults.
    #[serde(default)]
    settings: DeviceSettings,
}

/// A PCI function that is on the bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct PciOriginal {
    sys: PathBuf,
    slot: String,
    expected: Vec<Returning>,
}

impl Original for PciOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        restore(&self.sys, &self.slot, &self.expected)
    }

    fn what(&self) -> String {
        format!("the removal of PCI function {}", self.slot)
    }

    fn by_hand(&self) -> String {
        let names: Vec<&str> = self.expected.iter().map(|returning| returning.name.as_str()).collect();
        format!(
            "`echo 1 > /sys/bus/pci/rescan`, then the setting of {} that the reason names",
            names.join(", ")
        )
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct PciChange {
    device: PathBuf,
    slot: String,
    indices: Vec<u32>,
}

/// Reads what is there and checks whether the change can be made and undone. `sys` is `/sys`.
pub(super) fn prepare(sys: &Path, interface: &str) -> Result<(PciOriginal, PciChange), TreatmentError> {
    let links = netduel_host::link_states()?;
    let vf = beneath(interface, &links)?;
    let slot = slot(sys, vf)?;
    let device = sys.join("bus/pci/devices").join(&slot);
    // One function may have several interfaces, as that of MANA has all of a machine: all go with it.
    let mut of_function = vec![vf];
    for link in links.iter().filter(|link| link.index != vf.index) {
        if self::slot(sys, link).is_ok_and(|other| other == slot) {
            of_function.push(link);
        }
    }
    let expected = of_function.iter().map(|link| returning(link, &links)).collect::<Result<Vec<_>, _>>()?;
    writable(sys, &device, &slot, interface)?;
    let indices = of_function.iter().map(|link| link.index).collect();
    let undo = PciOriginal { sys: sys.to_owned(), slot: slot.clone(), expected };
    Ok((undo, PciChange { device, slot, indices }))
}

/// Whether the function can be taken and found again.
fn writable(sys: &Path, device: &Path, slot: &str, interface: &str) -> Result<(), TreatmentError> {
    let remove = device.join("remove");
    // `pci_dev_hp_attrs_are_visible` in Linux.
    if device.exists() && !remove.exists() {
        return Err(TreatmentError::unsupported(
            interface,
            format!("take PCI function {slot} from the bus"),
            format!(
                "its physical function is on this host, and Linux does not remove a single virtual function there (there is no {}); use a \
                 `command` that unbinds its driver (`echo {slot} > {}`) or sets `sriov_numvfs` of the physical function",
                remove.display(),
                device.join("driver/unbind").display()
            ),
        ));
    }
    for file in [remove, sys.join("bus/pci/rescan")] {
        fs::OpenOptions::new().write(true).open(&file).map_err(|cause| refused(slot, &file, cause))?;
    }
    Ok(())
}

fn refused(slot: &str, file: &Path, cause: io::Error) -> TreatmentError {
    TreatmentError::Refused {
        doing: format!("write {} to take PCI function {slot} from the bus", file.display()),
        cause,
    }
}

/// The place on the bus, as the driver reports it or as `/sys` links to it.
fn slot(sys: &Path, link: &LinkState) -> Result<String, TreatmentError> {
    let is_slot = |name: &str| {
        !name.is_empty() && !name.contains('/') && sys.join("bus/pci/devices").join(name).exists()
    };
    let slot = ethtool_socket()?.driver(&link.name).map(|driver| driver.bus).unwrap_or_default();
    if is_slot(&slot) {
        return Ok(slot);
    }
    let linked = fs::canonicalize(sys.join("class/net").join(&link.name).join("device")).ok();
    let linked = linked.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    linked.filter(|name| is_slot(name)).ok_or_else(|| {
        let doing = format!("find the PCI function of {}", link.name);
        TreatmentError::unsupported(&link.name, doing, "it is not a function of a PCI bus".to_owned())
    })
}

/// What has to be so again; refused for an interface that nothing is above of, and for addresses and routes that would be lost.
fn returning(link: &LinkState, links: &[LinkState]) -> Result<Returning, TreatmentError> {
    let master = link.master.filter(|_| has_other_way(link, links));
    let (Some(master), Some(mac)) = (master, link.mac.clone()) else {
        return Err(TreatmentError::OnlyWay { interface: link.name.clone() });
    };
    let addresses = netduel_host::addresses_of(&link.name)?;
    let given: Vec<String> = addresses
        .iter()
        .filter(|address| !matches!(address, std::net::IpAddr::V6(six) if six.is_unicast_link_local()))
        .map(ToString::to_string)
        .collect();
    if !given.is_empty() {
        let (interface, addresses) = (link.name.clone(), given.join(", "));
        return Err(TreatmentError::DownDropsAddresses { interface, addresses });
    }
    refuse_routes(&link.name, link.index)?;
    Ok(Returning {
        name: link.name.clone(),
        mac,
        master,
        up: link.up,
        carrier: link.carrier == Some(true),
        settings: DeviceSettings::read(&link.name)?,
    })
}

impl Change for PciChange {
    /// Waits until the interfaces are gone.
    fn make(&self) -> Result<(), TreatmentError> {
        let Self { device, slot, indices } = self;
        let file = device.join("remove");
        write_one(&file).map_err(|cause| refused(slot, &file, cause))?;
        let gone = |links: &[LinkState]| !links.iter().any(|link| indices.contains(&link.index));
        if netduel_host::wait_for_links(RETURN_DEADLINE, gone)? {
            return self.read_back();
        }
        Err(self.is_there())
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        if self.device.exists() { Err(self.is_there()) } else { Ok(()) }
    }
}

impl PciChange {
    fn is_there(&self) -> TreatmentError {
        let doing = format!("take PCI function {} from the bus", self.slot);
        TreatmentError::NotTaken { doing, answered: "it on the bus".to_owned() }
    }
}

/// The kernel takes the number in one write, and works before it answers.
fn write_one(file: &Path) -> io::Result<()> {
    use std::io::Write as _;
    fs::OpenOptions::new().write(true).open(file)?.write_all(b"1")
}

/// Scans the bus, and waits until every interface is back as it was.
fn restore(sys: &Path, slot: &str, expected: &[Returning]) -> Result<(), TreatmentError> {
    let doing = || format!("find PCI function {slot} again");
    if !sys.join("bus/pci/devices").join(slot).exists() {
        let rescan = sys.join("bus/pci/rescan");
        write_one(&rescan).map_err(|cause| TreatmentError::Refused { doing: doing(), cause })?;
    }
    let mut missing = String::new();
    let back = |links: &[LinkState]| {
        missing =
            expected.iter().filter_map(|returning| lacks(returning, links)).collect::<Vec<_>>().join(", ");
        missing.is_empty()
    };
    if !netduel_host::wait_for_links(RETURN_DEADLINE, back)? {
        return Err(TreatmentError::NotTaken { doing: doing(), answered: missing });
    }
    let names = renamed(expected, &netduel_host::link_states()?);
    let named = all(names.into_iter().map(|(index, name)| name_again(index, name).map(drop)));
    // A device that keeps another name has its settings all the same.
    named.and(restore_settings(expected, &netduel_host::link_states()?))
}

/// Gives each device that is back its earlier settings. Drivers restart it for some of them.
fn restore_settings(expected: &[Returning], links: &[LinkState]) -> Result<(), TreatmentError> {
    let back = || expected.iter().filter_map(|returning| Some((returning, returned(returning, links)?)));
    let set = all(back().map(|(returning, link)| returning.settings.restore(&link.name)));
    let with_carrier = back().filter(|(returning, _)| returning.carrier);
    set.and(wait_for_carrier(&with_carrier.map(|(_, link)| link.index).collect::<Vec<_>>()))
}

/// The indices of those that are back under another name, and the names that they had. A name that another interface has now is left to it.
fn renamed<'a>(expected: &'a [Returning], links: &[LinkState]) -> Vec<(u32, &'a str)> {
    let is_free = |name: &str| links.iter().all(|link| link.name != name);
    let other_name = |returning: &&'a Returning| is_free(&returning.name);
    expected
        .iter()
        .filter(other_name)
        .filter_map(|returning| Some((returned(returning, links)?.index, returning.name.as_str())))
        .collect()
}

/// The link that an interface is now.
fn returned<'a>(returning: &Returning, links: &'a [LinkState]) -> Option<&'a LinkState> {
    let Returning { mac, master, .. } = returning;
    // The interface above it has the same address, and so do the standby beside it, and VLANs and macvlans on it.
    let is_same = |link: &&LinkState| {
        link.mac.as_ref() == Some(mac) && link.index != *master && !link.is_standby(links)
    };
    let same = || links.iter().filter(is_same);
    same().find(|link| link.master == Some(*master)).or_else(|| same().next())
}

/// What an interface lacks of what it was.
fn lacks(returning: &Returning, links: &[LinkState]) -> Option<String> {
    let Returning { name, mac, master, up, carrier, settings: _ } = returning;
    let Some(back) = returned(returning, links) else { return Some(format!("no {name} ({mac})")) };
    let now = &back.name;
    if back.master != Some(*master) {
        let above = links.iter().find(|link| link.index == *master);
        let above = above.map_or_else(|| "its interface above".to_owned(), |link| link.name.clone());
        return Some(format!("{now} not below {above} (`ip link set {now} master {above}`)"));
    }
    if *up && !back.up {
        return Some(format!("{now} down (`ip link set {now} up`)"));
    }
    (*carrier && back.carrier != Some(true)).then(|| format!("{now} without carrier"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_back_when_all_of_it_is() {
        let returning = Returning {
            name: "vf".to_owned(),
            mac: "02:00:00:00:00:01".to_owned(),
            master: 2,
            up: true,
            carrier: true,
            settings: DeviceSettings::default(),
        };
        let master = LinkState {
            index: 2,
            name: "eth0".to_owned(),
            mac: Some(returning.mac.clone()),
            ..LinkState::default()
        };
        let back = LinkState {
            index: 9,
            name: "enP1".to_owned(),
            mac: Some(returning.mac.clone()),
            master: Some(2),
            up: true,
            carrier: Some(true),
            ..LinkState::default()
        };
        let with = |vf: LinkState| lacks(&returning, &[master.clone(), vf]);
        assert_eq!(with(back.clone()), None);
        let vlan = LinkState { index: 5, name: "eth0.7".to_owned(), master: None, ..back.clone() };
        assert_eq!(lacks(&returning, &[master.clone(), vlan, back.clone()]), None);
        assert_eq!(lacks(&returning, std::slice::from_ref(&master)).unwrap(), "no vf (02:00:00:00:00:01)");
        assert!(with(LinkState { master: None, ..back.clone() }).unwrap().starts_with("enP1 not below eth0"));
        assert!(with(LinkState { up: false, ..back.clone() }).unwrap().starts_with("enP1 down"));
        assert_eq!(with(LinkState { carrier: Some(false), ..back }).unwrap(), "enP1 without carrier");
    }

    #[test]
    fn the_standby_beside_a_function_is_not_the_function_that_returns() {
        let mac = "52:54:00:00:00:01";
        let link = |index, name: &str, device: &str, up| LinkState {
            index,
            name: name.to_owned(),
            mac: Some(mac.to_owned()),
            master: (index > 2).then_some(2),
            device: Some(device.to_owned()),
            up,
            carrier: Some(up),
            ..LinkState::default()
        };
        let vf = Returning {
            name: "vf0".to_owned(),
            mac: mac.to_owned(),
            master: 2,
            up: true,
            carrier: true,
            settings: DeviceSettings::default(),
        };
        let mut links = vec![link(2, "fo0", "virtio0", true), link(3, "fo0nsby", "virtio0", true)];
        assert_eq!(lacks(&vf, &links).unwrap(), format!("no vf0 ({mac})"));
        links.push(link(7, "eth0", "0000:00:04.0", false));
        assert!(lacks(&vf, &links).unwrap().starts_with("eth0 down"));
        links[2] = link(7, "eth0", "0000:00:04.0", true);
        assert_eq!(lacks(&vf, &links), None);
        // It has another name now, and gets the one that it had, unless another interface has that.
        assert_eq!(renamed(std::slice::from_ref(&vf), &links), [(7, "vf0")]);
        links.push(LinkState { index: 8, name: "vf0".to_owned(), ..LinkState::default() });
        assert_eq!(renamed(&[vf], &links), []);
    }

    #[test]
    fn function_that_the_kernel_does_not_remove_alone_is_refused_with_the_way_that_works() {
        let sys = tempfile::tempdir().unwrap();
        let slot = "0000:02:10.0";
        let device = sys.path().join("bus/pci/devices").join(slot);
        fs::create_dir_all(&device).unwrap();
        let refused = writable(sys.path(), &device, slot, "vf0").unwrap_err().to_string();
        assert!(refused.contains("sriov_numvfs") && refused.contains("driver/unbind"), "{refused}");
        fs::write(device.join("remove"), "").unwrap();
        fs::write(sys.path().join("bus/pci/rescan"), "").unwrap();
        assert!(writable(sys.path(), &device, slot, "vf0").is_ok());
    }
}
