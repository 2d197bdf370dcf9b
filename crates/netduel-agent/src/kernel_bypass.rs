//! Prepares the ends of kernel bypass (AF_XDP) and of the kernel's packet generator: the interface and the next hop of their frames.
use std::net::IpAddr;

use netduel_control::agent::WorkError;
use netduel_host::{DataPath, packets_sent};
use netduel_load::{BypassPath, ClientEnd, ServerEnd};
use netduel_model::workload::{Role, Workload};
use netduel_sys::local_bind::LocalBind;

use crate::failure::{environment, traffic};
use crate::placement::DataAddress;

/// The server's end on its interface; unchanged when its packets pass through the network stack.
pub fn server_over(
    end: ServerEnd,
    workload: &Workload,
    address: DataAddress<'_>,
) -> Result<ServerEnd, WorkError> {
    let Some(packets) = workload.traffic.facts().packets.filter(|packets| packets.is_raw(Role::Server))
    else {
        return Ok(end);
    };
    let own = address.own().map_err(environment)?;
    let named = packets.interface(Role::Server);
    let path = match address {
        DataAddress::Own(_) => DataPath::at(own, named),
        DataAddress::Towards(peer, bind) => DataPath::from_peer(own, (peer, bind), named),
    };
    let path = path.map_err(environment)?;
    end.with_bypass(&raw(path, Role::Server)).map_err(traffic)
}

/// The client's end on its interface; unchanged when its packets pass through the network stack.
pub fn client_over(
    end: ClientEnd,
    workload: &Workload,
    peer: IpAddr,
    bind: &LocalBind,
) -> Result<ClientEnd, WorkError> {
    let Some(packets) = workload.traffic.facts().packets else { return Ok(end) };
    if !packets.is_raw(Role::Client) {
        // The loopback has no next hop, and no interface whose counters show segmentation.
        return Ok(match DataPath::to_peer(peer, bind, packets.interface(Role::Client)) {
            Ok(path) => end.try_segmentation(&path.interface, || packets_sent(path.index).ok().flatten()),
            Err(_) => end,
        });
    }
    let path = DataPath::to_peer(peer, bind, packets.interface(Role::Client)).map_err(environment)?;
    end.with_bypass(&raw(path, Role::Client)).map_err(traffic)
}

fn raw(path: DataPath, role: Role) -> BypassPath {
    let queues = match role {
        Role::Client => path.tx_queues,
        Role::Server => path.rx_queues,
    };
    let DataPath { interface, index, xdp, own_mac, peer_mac, .. } = path;
    BypassPath { interface, index, xdp, queues, own_mac, peer_mac }
}
