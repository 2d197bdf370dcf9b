//! The direct path: one veth pair between the guests with several queues.
use std::os::fd::AsFd as _;

use netduel_sys::clock;

use super::wiring::{GUEST, SYNTHETIC};
use super::{PORTS_PATIENCE_NS, Topology, new_link, plug, wait_for_port};
use crate::error::{Errno, LabError};
use crate::netlink::link::{self, NewLink, PortSettings};

/// The feature that gives each receive queue of a veth a NAPI instance, which accepts frames that a program in the peer's kernel
/// sends (drivers/net/veth.c: `veth_xdp_xmit` returns ENXIO without one).
const NAPI_FEATURE: &str = "rx-gro";

impl Topology {
    /// Creates the pair if it does not exist, and configures both ends.
    pub(super) fn plug_direct(&mut self) -> Result<(), LabError> {
        let (mtu, queues) = (self.spec.mtu, self.spec.queues);
        let [left, right] = &mut self.halves;
        let object = left.guest.object(left.side.direct.name);
        if link::state(&mut left.guest.route, left.side.direct.index, &object)?.is_none() {
            let [near, far] = [left.side, right.side].map(|side| NewLink {
                mac: Some(side.mac),
                queues: Some(queues),
                ..new_link(side.direct, mtu)
            });
            link::create_veth(&mut left.guest.route, near, far, right.guest.network.as_fd(), &object)?;
        }
        for half in &mut self.halves {
            let (direct, guest) = (half.side.direct, &mut half.guest);
            // Like the VF, it gets no copy of flooded frames.
            let port = PortSettings { isolated: true, flood: false, backup: Some(SYNTHETIC.index) };
            plug(guest, direct, GUEST, port)?;
            // The kernel announces to the peer that an interface accepts frames only while the interface is up
            // (`veth_set_features`).
            guest.drivers.request_features(direct.name, &[(NAPI_FEATURE.to_owned(), true)]).map_err(
                |error| LabError::Kernel {
                    operation: "enable NAPI (generic receive offload) of".to_owned(),
                    object: guest.object(direct.name),
                    errno: Errno::from(error),
                    detail: String::new(),
                },
            )?;
        }
        let deadline = clock::monotonic_ns() + PORTS_PATIENCE_NS;
        for half in &mut self.halves {
            wait_for_port(&mut half.guest, half.side.direct, deadline)?;
        }
        Ok(())
    }
}
