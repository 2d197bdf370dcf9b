//! What the guests must show of the NICs as they are now. Nothing is asked or changed here.
use netduel_control::coordinator::GuestCheck;
use netduel_model::ids::HostName;

use super::Known;
use super::state::State;

impl Known {
    /// Keeps the MAC address that Azure names. The NIC of a stopped VM may have none.
    pub(super) fn keep_mac(&mut self, mac: Option<&String>) {
        if let Some(mac) = mac {
            self.mac = Some(mac.clone());
        }
    }

    /// What the guest must show; nothing of a placement, and of a NIC whose state or MAC address is not known.
    pub(super) fn shown(&self) -> Option<(HostName, GuestCheck)> {
        let Some(State::Nic { nic, accelerated, .. }) = &self.current else { return None };
        let check = GuestCheck { nic: nic.clone(), mac: self.mac.clone()?, has_vf: *accelerated };
        Some((self.host.clone(), check))
    }
}
