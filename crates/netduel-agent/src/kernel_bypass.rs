//! Prepares the ends of kernel bypass (AF_XDP) and of the kernel's packet generator: the interface and the next hop of their frames. What
//! they have on the interface stays there until both hosts were read.
use std::net::IpAddr;
use std::time::Duration;

use netduel_control::agent::{FailureKind, WorkError};
use netduel_control::protocol::STEP_TIMEOUT_NS;
use netduel_host::{DRAIN_PATIENCE, DataPath, packets_sent};
use netduel_load::{Attachment, BypassPath, ClientEnd, LoadError, ServerEnd};
use netduel_model::failover::RETURN_DEADLINE_NS;
use netduel_model::workload::{Role, Workload};
use netduel_sys::local_bind::LocalBind;

use crate::carrier::{interface_with_carrier, without_carrier};
use crate::failure::{environment, traffic};
use crate::placement::DataAddress;
use crate::trial_end::Lingering;

/// How long an interface may be without carrier after a program or a socket came or went. igb in an emulated guest takes 2 to 4 s.
const CARRIER_PATIENCE: Duration = Duration::from_secs(8);

// The agent waits for it where it also waits for queues to drain, or for treatments to be undone, while the coordinator waits for the answer.
const _: () = assert!((CARRIER_PATIENCE.as_nanos() + DRAIN_PATIENCE.as_nanos()) < STEP_TIMEOUT_NS as u128);
const _: () = assert!(CARRIER_PATIENCE.as_nanos() as u64 + RETURN_DEADLINE_NS < STEP_TIMEOUT_NS);

/// The programs and sockets of an end on their interface. Some drivers restart the interface when they come or go (igb), so they come before
/// the first reading of the host, and go when both ends have been read: a link without a switch loses its carrier at both.
pub(crate) struct OnInterface {
    interface: String,
    attachment: Attachment,
}

impl OnInterface {
    /// Removes them. An interface that then stays without carrier is seen by the next trial.
    pub(crate) fn remove(self) {
        let Self { interface, attachment } = self;
        let restarted = interface_with_carrier(&interface);
        drop(attachment);
        let _ = without_carrier(restarted.as_slice(), CARRIER_PATIENCE);
    }
}

impl Lingering for OnInterface {
    fn end(self: Box<Self>) -> Result<(), WorkError> {
        self.remove();
        Ok(())
    }
}

/// The server's end on its interface; unchanged when its packets pass through the network stack.
pub(crate) fn server_over(
    end: ServerEnd,
    workload: &Workload,
    address: DataAddress<'_>,
) -> Result<(ServerEnd, Option<OnInterface>), WorkError> {
    let Some(packets) = workload.traffic.facts().packets.filter(|packets| packets.is_raw(Role::Server))
    else {
        return Ok((end, None));
    };
    let path = server_path(address, packets.interface(Role::Server))?;
    opened(raw(path, Role::Server), |path| {
        let end = end.with_bypass(path)?;
        let attachment = end.attachment();
        Ok((end, attachment))
    })
}

/// Where the frames of a trial arrive at its server: at the named interface, or at the one that leads to the client.
pub(crate) fn server_path(address: DataAddress<'_>, named: Option<&str>) -> Result<DataPath, WorkError> {
    let own = address.own().map_err(environment)?;
    let path = match address {
        DataAddress::Own(_) => DataPath::at(own, named),
        DataAddress::Towards(peer, bind) => DataPath::from_peer(own, (peer, bind), named),
    };
    path.map_err(environment)
}

/// The client's end on its interface; unchanged when its packets pass through the network stack.
pub(crate) fn client_over(
    end: ClientEnd,
    workload: &Workload,
    peer: IpAddr,
    bind: &LocalBind,
) -> Result<(ClientEnd, Option<OnInterface>), WorkError> {
    let Some(packets) = workload.traffic.facts().packets else { return Ok((end, None)) };
    if !packets.is_raw(Role::Client) {
        // The loopback has no next hop, and no interface whose counters show segmentation.
        let end = match DataPath::to_peer(peer, bind, packets.interface(Role::Client)) {
            Ok(path) => end.try_segmentation(&path.interface, || packets_sent(path.index).ok().flatten()),
            Err(_) => end,
        };
        return Ok((end, None));
    }
    let path = DataPath::to_peer(peer, bind, packets.interface(Role::Client)).map_err(environment)?;
    opened(raw(path, Role::Client), |path| {
        let end = end.with_bypass(path)?;
        let attachment = end.attachment();
        Ok((end, attachment))
    })
}

/// Opens the sockets and programs of an end, and waits until an interface that the driver restarted for them has carrier again.
fn opened<E>(
    path: BypassPath,
    open: impl FnOnce(&BypassPath) -> Result<(E, Option<Attachment>), LoadError>,
) -> Result<(E, Option<OnInterface>), WorkError> {
    let restarted = interface_with_carrier(&path.interface);
    let (end, attachment) = open(&path).map_err(traffic)?;
    let on_interface = attachment.map(|attachment| OnInterface { interface: path.interface, attachment });
    let without = without_carrier(restarted.as_slice(), CARRIER_PATIENCE).map_err(environment)?;
    if without.is_empty() {
        return Ok((end, on_interface));
    }
    let message = format!(
        "failed to wait for the carrier of {}: none for {} s after the driver restarted it for an XDP program; use the generator and the receiver \
         `socket` there",
        without.join(", "),
        CARRIER_PATIENCE.as_secs()
    );
    Err(WorkError { kind: FailureKind::Environment, message })
}

fn raw(path: DataPath, role: Role) -> BypassPath {
    let queues = match role {
        Role::Client => path.tx_queues,
        Role::Server => path.rx_queues,
    };
    let DataPath { interface, index, xdp, own_mac, peer_mac, .. } = path;
    BypassPath { interface, index, xdp, queues, own_mac, peer_mac }
}
