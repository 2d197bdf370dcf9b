//! `pps`: packets of one size, from sockets, by kernel bypass or from the kernel itself: how many a second.
use serde::{Deserialize, Serialize};

use super::facts::{End, Facts, WorkUnit};
use super::udp_stream::{self, UdpStream};
use crate::packet_path::PacketPath;
use crate::search::Search;

/// The settings of `pps`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pps {
    /// The flows of its datagrams, each of which is a packet.
    pub udp: UdpStream,
    /// How packets are made and received.
    pub packets: PacketPath,
}

pub(super) fn facts(settings: &Pps) -> Facts<'_> {
    let flows = udp_stream::facts(&settings.udp);
    let search = settings.packets.search.as_ref();
    Facts {
        unit: WorkUnit::Packet,
        end: search.map_or(flows.end, End::Search),
        packets: Some(&settings.packets),
        default_metrics: search.map_or_else(|| flows.default_metrics.clone(), Search::metrics),
        possible_metrics: search.map_or(flows.possible_metrics, Search::possible_metrics),
        ..flows
    }
}
