//! Network devices by index and name, and the socket to their drivers. Nothing here changes a device.
use std::net::IpAddr;
use std::time::Duration;

use netduel_model::failover::RETURN_DEADLINE_NS;
use netduel_sys::ethtool::Ethtool;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::error::TreatmentError;
use crate::carrier::without_carrier;

/// Longest wait for an interface that is removed or restored.
pub(super) const RETURN_DEADLINE: Duration = Duration::from_nanos(RETURN_DEADLINE_NS);

/// A socket to the drivers of this network namespace.
pub(super) fn ethtool_socket() -> Result<Ethtool, TreatmentError> {
    Ethtool::open()
        .map_err(|cause| TreatmentError::Refused { doing: "open an ethtool socket".to_owned(), cause })
}

/// The index of an interface, by any of its names.
pub(super) fn index_of(interface: &str) -> Result<u32, TreatmentError> {
    let refused =
        |cause: Errno| TreatmentError::about_interface(interface, format!("find {interface}"), cause.into());
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(refused)?;
    name_to_index(&socket, interface).map_err(refused)
}

/// Waits until interfaces that a driver restarted have carrier again.
pub(super) fn wait_for_carrier(indices: &[u32]) -> Result<(), TreatmentError> {
    let without = without_carrier(indices, RETURN_DEADLINE)?;
    if without.is_empty() {
        return Ok(());
    }
    let doing = format!("wait for the carrier of {}", without.join(", "));
    let answered = format!("none for {} s after the driver restarted it", RETURN_DEADLINE.as_secs());
    Err(TreatmentError::NotTaken { doing, answered })
}

/// Destinations that an error lists.
const ROUTES_SHOWN: usize = 4;

/// Refuses to take away a link with routes that its return does not bring back.
pub(super) fn refuse_routes(interface: &str, index: u32) -> Result<(), TreatmentError> {
    let lost = netduel_host::added_routes(index)?;
    if lost.is_empty() {
        return Ok(());
    }
    Err(TreatmentError::DownDropsRoutes { interface: interface.to_owned(), routes: shortened(&lost) })
}

fn shortened(routes: &[String]) -> String {
    let shown = routes.iter().take(ROUTES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match routes.len().saturating_sub(ROUTES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// IPv6 addresses that were configured on an interface. The kernel makes the link-local one again by itself.
pub(super) fn lost_addresses(addresses: &[IpAddr]) -> Vec<String> {
    let given = |address: &&IpAddr| matches!(address, IpAddr::V6(six) if !six.is_unicast_link_local());
    addresses.iter().filter(given).map(ToString::to_string).collect()
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
    fn of_many_routes_the_first_are_named() {
        let routes = |count: u8| (0..count).map(|each| format!("10.{each}.0.0/16")).collect::<Vec<_>>();
        assert_eq!(shortened(&routes(2)), "10.0.0.0/16, 10.1.0.0/16");
        assert_eq!(shortened(&routes(6)), "10.0.0.0/16, 10.1.0.0/16, 10.2.0.0/16, 10.3.0.0/16 and 2 more");
    }
}
