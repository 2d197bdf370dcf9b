//! `pps`: packets of one size, from sockets, by kernel bypass or from the kernel itself: how many a second.
use serde::{Deserialize, Serialize};

use super::facts::{End, Facts, WorkUnit};
use super::setting::{self, Range, Setting};
use super::timing::Timing;
use super::udp_stream::{self, UdpStream};
use crate::packet_path::{FRAME_LEAST, FRAME_MOST, PacketPath};
use crate::search::Search;

/// The settings of `pps`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pps {
    /// The flows of its datagrams, each of which is a packet.
    pub udp: UdpStream,
    /// How packets are made and received.
    pub packets: PacketPath,
}

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    udp_stream::FLOWS,
    Setting::free("direction"),
    setting::WINDOW,
    Setting::free("wait"),
    Setting::free("generator"),
    Setting::free("receiver"),
    Setting::within("frame", Range::count(FRAME_LEAST as u64, FRAME_MOST as u64)).advise(
        "a frame has its check sequence of 4 bytes, and a datagram with its trial's magic and number",
    ),
    // More than any interface carries; keeps the payload rate within its type.
    Setting::within("packet_rate", Range::per_second(1, 1_000_000_000))
        .advise("leave `packet_rate` out to send as fast as it can"),
    Setting::within("queues", Range::count(1, setting::THREADS_MOST))
        .advise("leave `queues` out for all of the interface"),
    Setting::free("dpdk"),
];

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &Pps, key: &str, _timing: &Timing) -> Option<u64> {
    match key {
        "flows" => Some(settings.udp.flows.into()),
        "window" => settings.udp.tuning.window.map(|window| window.0),
        "frame" => Some(settings.packets.frame.into()),
        "packet_rate" => {
            let bits = settings.udp.size.0.saturating_mul(8).max(1);
            settings.udp.rate.map(|rate| rate.0 / bits)
        }
        "queues" => settings.packets.queues.map(u64::from),
        _ => None,
    }
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
