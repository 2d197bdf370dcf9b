//! The interface that the record of a change means: the same device, also after it was removed and returned with another index, and no other
//! device that has its index or its name now.
use std::fmt;

use netduel_host::LinkState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::index_of;
use super::error::TreatmentError;

/// An interface when a setting of it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct RecordedInterface {
    name: String,
    /// Constant for the lifetime of the interface. A device that is removed and returns has another one.
    index: u32,
    /// Its link-layer address; absent for the loopback and tunnels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    /// The bus of the device behind it, as `pci`; absent without a device, and before Linux 5.14.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bus: Option<String>,
    /// The device behind it, as `0000:00:04.0`; absent like the bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

/// What became of an interface.
#[derive(Debug, PartialEq, Eq)]
enum Found<'a> {
    /// It is this one.
    Here(&'a LinkState),
    /// Its device is not there. A device that returns may have the settings of a later record.
    Absent,
    /// It had no device and is deleted, its settings with it.
    Deleted,
    /// It may be one of these.
    Uncertain(Vec<&'a str>),
}

impl RecordedInterface {
    /// Reads by what an interface is known again.
    pub(super) fn read(interface: &str) -> Result<Self, TreatmentError> {
        // An interface may have several names, of which the list of links has one.
        let index = index_of(interface)?;
        let links = netduel_host::link_states()?;
        let found = links.iter().find(|link| link.index == index);
        found.map(Self::of).ok_or_else(|| TreatmentError::no_interface(interface))
    }

    /// That of a link.
    pub(super) fn of(link: &LinkState) -> Self {
        Self {
            name: link.name.clone(),
            index: link.index,
            mac: link.mac.clone(),
            bus: link.bus.clone(),
            device: link.device.clone(),
        }
    }

    /// Its name at the time.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its index at the time.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Restores a setting of it, by its present name and index. An interface without a device that was deleted has nothing to restore.
    ///
    /// # Errors
    /// Those of `restore`; when its device is not there, or another interface cannot be distinguished from it.
    pub(super) fn restore(
        &self,
        restore: impl FnOnce(&str, u32) -> Result<(), TreatmentError>,
    ) -> Result<(), TreatmentError> {
        let links = netduel_host::link_states()?;
        match self.find(&links) {
            Found::Here(link) => restore(&link.name, link.index),
            Found::Deleted => Ok(()),
            Found::Absent => Err(TreatmentError::DeviceAbsent { interface: self.words() }),
            Found::Uncertain(names) => {
                Err(TreatmentError::DeviceUncertain { interface: self.words(), names: names.join(", ") })
            }
        }
    }

    fn find<'a>(&self, links: &'a [LinkState]) -> Found<'a> {
        if let Some(link) = links.iter().find(|link| link.index == self.index && self.has_device_of(link)) {
            // Its name and its address can be set. Without a device both may be those of an interface that was created with this index.
            if link.device.is_some() || link.name == self.name || self.has_address_of(link) {
                return Found::Here(link);
            }
            // Beside one of its name and address, this one is another that got the index.
            let is_returned =
                |one: &LinkState| self.bus == one.bus && one.name == self.name && self.has_address_of(one);
            if !links.iter().any(is_returned) {
                return Found::Uncertain(vec![link.name.as_str()]);
            }
        }
        let returned = links.iter().filter(|link| self.bus == link.bus && self.has_address_of(link));
        let returned: Vec<&LinkState> = match self.bus {
            // The ports of a bond have one address, and a function may return at another place of its bus.
            Some(_) => returned.filter(|link| self.has_device_of(link) || link.name == self.name).collect(),
            // An interface has the address of that beneath it.
            None => returned.filter(|link| link.name == self.name).collect(),
        };
        // A device may have several interfaces.
        let named: Vec<&LinkState> = returned.iter().copied().filter(|link| link.name == self.name).collect();
        match (&returned[..], &named[..]) {
            (&[link], _) | (_, &[link]) => Found::Here(link),
            ([], _) => self.absent(links),
            _ => Found::Uncertain(returned.iter().map(|link| link.name.as_str()).collect()),
        }
    }

    /// What became of an interface that is none of these.
    fn absent<'a>(&self, links: &'a [LinkState]) -> Found<'a> {
        if self.bus.is_none() {
            return Found::Deleted;
        }
        // Another NIC in the place of this one, or this one with a new address, as virtual functions have it that get a random one; another port
        // of its bond, or this one at another place.
        let is_similar =
            |link: &&LinkState| self.has_device_of(link) || self.bus == link.bus && self.has_address_of(link);
        let names: Vec<&str> = links.iter().filter(is_similar).map(|link| link.name.as_str()).collect();
        if names.is_empty() { Found::Absent } else { Found::Uncertain(names) }
    }

    fn has_device_of(&self, link: &LinkState) -> bool {
        self.bus == link.bus && self.device == link.device
    }

    fn has_address_of(&self, link: &LinkState) -> bool {
        self.mac.is_some() && self.mac == link.mac
    }

    /// Its name, with what it is known by.
    fn words(&self) -> String {
        let parts = [self.bus.as_deref(), self.device.as_deref(), self.mac.as_deref()];
        let known: Vec<&str> = parts.into_iter().flatten().collect();
        format!("{} ({})", self.name, known.join(" "))
    }

    /// One without a device, for tests.
    #[cfg(test)]
    pub(super) fn named(name: &str, index: u32) -> Self {
        Self { name: name.to_owned(), index, mac: None, bus: None, device: None }
    }
}

/// Its name at the time.
impl fmt::Display for RecordedInterface {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: &str = "02:00:00:00:00:01";
    const OTHER_MAC: &str = "02:00:00:00:00:02";
    const SLOT: &str = "0001:00:02.0";

    /// A link; its device is on the bus of the word before the space.
    fn link(index: u32, name: &str, mac: &str, device: &str) -> LinkState {
        let (bus, device) = device.split_once(' ').unzip();
        LinkState {
            index,
            name: name.to_owned(),
            mac: Some(mac.to_owned()),
            bus: bus.map(str::to_owned),
            device: device.map(str::to_owned),
            ..LinkState::default()
        }
    }

    /// A virtual function below a synthetic interface of the same address, as on Hyper-V, when it was changed.
    fn function() -> (RecordedInterface, LinkState) {
        let synthetic = link(2, "eth0", MAC, "vmbus 6045bdc0");
        (RecordedInterface::of(&link(5, "enP1", MAC, &format!("pci {SLOT}"))), synthetic)
    }

    /// The index of what is found; the names when it is uncertain.
    fn found(recorded: &RecordedInterface, links: &[LinkState]) -> Result<u32, String> {
        match recorded.find(links) {
            Found::Here(link) => Ok(link.index),
            Found::Uncertain(names) => Err(names.join(" ")),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn device_that_returned_with_another_index_is_found_again() {
        let (function, synthetic) = function();
        for back in [
            link(9, "enP1", MAC, &format!("pci {SLOT}")),
            // Before it is renamed, and at another place of the bus.
            link(9, "eth1", MAC, &format!("pci {SLOT}")),
            link(9, "enP1", MAC, "pci 0002:00:02.0"),
        ] {
            assert_eq!(found(&function, &[synthetic.clone(), back.clone()]), Ok(9), "{back:?}");
        }
        // Its driver has several interfaces for it.
        let of_function = |index, name| link(index, name, MAC, &format!("pci {SLOT}"));
        let several = [of_function(8, "other"), of_function(9, "enP1"), synthetic.clone()];
        assert_eq!(found(&function, &several), Ok(9));
        assert_eq!(found(&function, &[of_function(8, "a"), of_function(9, "b")]), Err("a b".to_owned()));
    }

    #[test]
    fn interface_that_was_renamed_or_has_another_address_keeps_its_index() {
        let (function, _) = function();
        let device = format!("pci {SLOT}");
        assert_eq!(found(&function, &[link(5, "new", OTHER_MAC, &device)]), Ok(5));
        let veth = RecordedInterface::of(&link(5, "va", MAC, ""));
        for same in [link(5, "new", MAC, ""), link(5, "va", OTHER_MAC, "")] {
            assert_eq!(found(&veth, &[same]), Ok(5));
        }
        assert_eq!(found(&veth, &[link(5, "new", OTHER_MAC, "")]), Err("new".to_owned()));
    }

    #[test]
    fn device_with_the_old_index_or_the_old_name_is_another_one() {
        let (function, synthetic) = function();
        let absent = || Err("Absent".to_owned());
        for other in [
            link(5, "eth7", OTHER_MAC, "pci 0003:00:02.0"),
            link(9, "enP1", OTHER_MAC, "pci 0003:00:02.0"),
            link(5, "enP1", OTHER_MAC, ""),
            // A VLAN on it has its address.
            link(9, "enP1", MAC, ""),
        ] {
            assert_eq!(found(&function, &[synthetic.clone(), other.clone()]), absent(), "{other:?}");
        }
        // What is in its place now may be another NIC, or itself with a random address. What has its address may be a port of the same bond,
        // or itself at another place.
        for similar in
            [link(9, "eth7", OTHER_MAC, &format!("pci {SLOT}")), link(9, "eth7", MAC, "pci 0003:00:02.0")]
        {
            assert_eq!(found(&function, &[synthetic.clone(), similar]), Err("eth7".to_owned()));
        }
    }

    #[test]
    fn interface_without_a_device_is_deleted_unless_it_was_made_again_as_it_was() {
        let veth = RecordedInterface::of(&link(5, "va", MAC, ""));
        assert_eq!(found(&veth, &[link(9, "va", MAC, "")]), Ok(9));
        // Another one has its index now.
        assert_eq!(found(&veth, &[link(5, "other", OTHER_MAC, ""), link(9, "va", MAC, "")]), Ok(9));
        for other in [link(9, "va", OTHER_MAC, ""), link(9, "vb", MAC, ""), link(5, "va", MAC, "pci 1")] {
            assert_eq!(found(&veth, &[other]), Err("Deleted".to_owned()));
        }
        assert_eq!(found(&RecordedInterface::named("tun0", 5), &[]), Err("Deleted".to_owned()));
    }

    #[test]
    fn interface_that_is_deleted_needs_no_undoing() {
        let deleted = RecordedInterface::named("no-such", u32::MAX >> 1);
        let restored = deleted.restore(|name, _| panic!("{name} has this index"));
        assert!(restored.is_ok());
    }

    #[test]
    fn absent_device_is_named_with_its_place_and_address() {
        let (function, _) = function();
        assert_eq!(function.words(), format!("enP1 (pci {SLOT} {MAC})"));
        assert_eq!(function.to_string(), "enP1");
    }
}
