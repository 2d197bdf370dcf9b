//! What the jobs of an end are built from, when its sockets are connected. Plain data.
use netduel_model::ids::Token;
use netduel_model::workload::{Role, Timing, Workload};

use crate::packets::bypass::Bypass;
use crate::sockets::Sockets;

/// The workload, role and sockets of an end.
pub(crate) struct EndContext<'a> {
    pub workload: &'a Workload,
    pub role: Role,
    pub token: Token,
    pub sockets: &'a Sockets,
    /// The open kernel-bypass sockets or programs, when the workload uses them.
    pub raw: Option<Bypass>,
    /// Whether to send each datagram separately, because the interface was not seen to segment GSO buffers.
    pub is_unsegmented: bool,
}

impl<'a> EndContext<'a> {
    pub(crate) fn timing(&self) -> Timing {
        self.workload.timing
    }

    /// The cores that its threads are pinned to.
    pub(crate) fn pins(&self) -> &'a [u16] {
        pins(self.workload, self.role)
    }

    /// Whether it sends payload, and whether it receives payload.
    pub(crate) fn directions(&self) -> (bool, bool) {
        self.workload.traffic.facts().directions(self.role)
    }
}

/// The cores that a role's threads are pinned to.
pub(crate) fn pins(workload: &Workload, role: Role) -> &[u16] {
    match role {
        Role::Client => &workload.pin_client,
        Role::Server => &workload.pin_server,
    }
}
