//! The MTU of an interface.
use std::net::IpAddr;

use netduel_host::MtuRange;
use netduel_sys::link;

use super::error::TreatmentError;
use super::offload::index_of;
use super::undo::Undo;

/// The kernel turns IPv6 off on a link with a smaller MTU (RFC 8200, section 5).
const IPV6_MTU_MIN: u32 = 1280;

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct MtuChange {
    interface: String,
    mtu: u32,
}

/// Reads what is there and checks whether the change can be made and undone.
pub(super) fn prepare(interface: &str, mtu: u32) -> Result<(Undo, MtuChange), TreatmentError> {
    let index = index_of(interface)?;
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
    let undo = Undo::Mtu { interface: interface.to_owned(), index, mtu: original };
    Ok((undo, MtuChange { interface: interface.to_owned(), mtu }))
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

/// IPv6 addresses that were given to the interface. The kernel makes the link-local one anew by itself.
pub(super) fn lost_addresses(addresses: &[IpAddr]) -> Vec<String> {
    let given = |address: &&IpAddr| matches!(address, IpAddr::V6(six) if !six.is_unicast_link_local());
    addresses.iter().filter(given).map(ToString::to_string).collect()
}

impl MtuChange {
    /// Makes the change and reads back whether it took.
    pub(super) fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, self.mtu)
    }
}

/// Sets the MTU and reads it back.
pub(super) fn set(interface: &str, mtu: u32) -> Result<(), TreatmentError> {
    let doing = || format!("set the MTU of {interface} to {mtu} bytes");
    let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
    link::set_mtu(interface, mtu).map_err(refused)?;
    let now = link::mtu(interface).map_err(refused)?;
    if now == mtu {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(), answered: format!("{now} bytes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_do_not_come_back_by_themselves_are_in_the_way() {
        let addresses = ["10.0.0.1", "fe80::1", "2001:db8::1"].map(|text| text.parse().unwrap());
        assert_eq!(lost_addresses(&addresses), ["2001:db8::1"]);
    }

    #[test]
    fn a_driver_that_names_no_limit_has_none() {
        let open = MtuRange { min: Some(68), max: None };
        assert!(holds(open, 65_535) && !holds(open, 67));
        assert_eq!(in_words(MtuRange { min: Some(68), max: Some(1500) }), "68 to 1500 bytes");
    }
}
