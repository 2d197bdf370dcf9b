//! What the guests must show of the NICs as they are now. Nothing is asked or changed here.
use netduel_control::coordinator::GuestCheck;
use netduel_model::ids::HostName;

use super::{Known, Resource, State};

impl Known {
    /// Keeps the MAC address that Azure names. The NIC of a stopped VM may have none.
    pub(super) fn keep_mac(&mut self, mac: Option<&String>) {
        if let Some(mac) = mac {
            self.mac = Some(mac.clone());
        }
    }

    /// What the guest must show; nothing of a placement, and of a NIC whose state or MAC address is not known.
    pub(super) fn shown(&self, resource: &Resource) -> Option<(HostName, GuestCheck)> {
        let Resource::Nic { nic, .. } = resource else { return None };
        let Some(State::Accelerated(has_vf)) = self.current else { return None };
        Some((self.host.clone(), GuestCheck { nic: nic.clone(), mac: self.mac.clone()?, has_vf }))
    }
}
