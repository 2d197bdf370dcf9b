//! The MTU of an interface.
use netduel_host::{MtuRange, StackedLink};
use netduel_sys::link;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::lost_addresses;
use super::error::TreatmentError;
use super::recorded_interface::RecordedInterface;

/// The kernel turns IPv6 off on a link with a smaller MTU (RFC 8200, section 5).
const IPV6_MTU_MIN: u32 = 1280;
/// What MACsec adds to a packet at most, bytes (`macsec_extra_len` and a check value of 16 bytes).
const MACSEC_LEN: u32 = 32;

/// The MTU of an interface, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct MtuOriginal {
    interface: RecordedInterface,
    mtu: u32,
}

impl Original for MtuOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        self.interface.restore(|interface, _| set(interface, self.mtu))
    }

    fn what(&self) -> String {
        format!("the change of the MTU of {}", self.interface)
    }

    fn by_hand(&self) -> String {
        format!("`ip link set dev {} mtu {}`", self.interface, self.mtu)
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct MtuChange {
    interface: String,
    mtu: u32,
}

/// Reads what is there and checks whether the change can be made and undone.
pub(super) fn prepare(interface: &str, mtu: u32) -> Result<(MtuOriginal, MtuChange), TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let doing = || format!("read the MTU of {interface}");
    let original =
        link::mtu(interface).map_err(|cause| TreatmentError::about_interface(interface, doing(), cause))?;
    if let Some(range) = netduel_host::mtu_range(interface)?.filter(|range| !holds(*range, mtu)) {
        let interface = interface.to_owned();
        return Err(TreatmentError::MtuRange { interface, mtu, range: in_words(range) });
    }
    if mtu < IPV6_MTU_MIN && original >= IPV6_MTU_MIN {
        let lost = lost_addresses(&netduel_host::addresses_of(interface)?);
        if !lost.is_empty() {
            let (interface, addresses) = (interface.to_owned(), lost.join(", "));
            return Err(TreatmentError::MtuDropsAddresses { interface, mtu, addresses });
        }
    }
    let stacked: Vec<String> = netduel_host::stacked_links(recorded.index())?
        .iter()
        .filter(|link| mtu != original && loses_mtu(link, original, mtu))
        .map(|link| format!("{}: {} bytes", link.name, link.mtu))
        .collect();
    if !stacked.is_empty() {
        let (interface, stacked) = (interface.to_owned(), stacked.join(", "));
        return Err(TreatmentError::MtuOfStacked { interface, mtu, stacked });
    }
    let undo = MtuOriginal { interface: recorded, mtu: original };
    Ok((undo, MtuChange { interface: interface.to_owned(), mtu }))
}

/// Whether a link on the interface has another MTU after a change of that of the interface and its undo. The kernel lowers the MTU of most
/// such links and never raises it (`NETDEV_CHANGEMTU` in drivers/net/macvlan.c, drivers/net/macsec.c and net/8021q/vlan.c); ipvlan always
/// has that of the interface after a change.
fn loses_mtu(link: &StackedLink, original: u32, mtu: u32) -> bool {
    match link.kind.as_str() {
        "vlan" | "macvlan" | "macvtap" => link.mtu > mtu,
        "macsec" => link.mtu.saturating_add(MACSEC_LEN) > mtu,
        "ipvlan" | "ipvtap" => link.mtu != original,
        _ => false,
    }
}

fn holds(range: MtuRange, mtu: u32) -> bool {
    range.min.is_none_or(|min| mtu >= min) && range.max.is_none_or(|max| mtu <= max)
}

fn in_words(range: MtuRange) -> String {
    match (range.min, range.max) {
        (Some(min), Some(max)) => format!("{min} to {max} bytes"),
        (Some(min), None) => format!("{min} bytes and more"),
        (None, Some(max)) => format!("up to {max} bytes"),
        (None, None) => "other values".to_owned(),
    }
}

impl Change for MtuChange {
    fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, self.mtu)
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        read_back(&self.interface, self.mtu)
    }

    fn restarts(&self) -> Option<&str> {
        Some(&self.interface)
    }
}

fn doing(interface: &str, mtu: u32) -> String {
    format!("set the MTU of {interface} to {mtu} bytes")
}

/// Sets the MTU and reads it back.
pub(super) fn set(interface: &str, mtu: u32) -> Result<(), TreatmentError> {
    let refused = |cause| TreatmentError::about_interface(interface, doing(interface, mtu), cause);
    // A change that was refused for lack of a right needs none to be undone.
    if link::mtu(interface).map_err(refused)? == mtu {
        return Ok(());
    }
    link::set_mtu(interface, mtu).map_err(refused)?;
    read_back(interface, mtu)
}

fn read_back(interface: &str, mtu: u32) -> Result<(), TreatmentError> {
    let refused = |cause| TreatmentError::about_interface(interface, doing(interface, mtu), cause);
    let now = link::mtu(interface).map_err(refused)?;
    if now == mtu {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(interface, mtu), answered: format!("{now} bytes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_links_whose_mtu_would_not_return_are_in_the_way() {
        let loses = |kind: &str, own: u32, mtu: u32| {
            let link = StackedLink { name: "on0".to_owned(), kind: kind.to_owned(), mtu: own };
            loses_mtu(&link, 1500, mtu)
        };
        for kind in ["vlan", "macvlan", "macvtap"] {
            assert!(loses(kind, 1500, 1400), "{kind}");
            assert!(!loses(kind, 1400, 1400) && !loses(kind, 1500, 9000), "{kind}");
        }
        assert!(loses("macsec", 1468, 1480) && !loses("macsec", 1448, 1480));
        assert!(loses("ipvlan", 1300, 1400) && !loses("ipvlan", 1500, 1400));
        // The other end of a pair keeps its own.
        assert!(!loses("veth", 1500, 1400));
    }

    #[test]
    fn a_driver_that_names_no_limit_has_none() {
        let open = MtuRange { min: Some(68), max: None };
        assert!(holds(open, 65_535) && !holds(open, 67));
        assert_eq!(in_words(MtuRange { min: Some(68), max: Some(1500) }), "68 to 1500 bytes");
    }
}
