//! One end of a trial as its workload sees it, when its sockets are connected. Plain data.
use netduel_model::ids::Token;
use netduel_model::workload::{Role, Timing, Workload};

use crate::packets::bypass::Bypass;
use crate::sockets::Sockets;

/// What the jobs of an end are made of.
pub(crate) struct EndContext<'a> {
    pub workload: &'a Workload,
    pub role: Role,
    pub token: Token,
    pub sockets: &'a Sockets,
    /// What is open for kernel bypass, where its packets take that.
    pub raw: Option<Bypass>,
    /// Whether each datagram is sent by itself, because the interface was not seen to segment joined ones.
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
