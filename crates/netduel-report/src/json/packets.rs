//! Packets in the JSON document. Rates are packets per second, counts are of all valid trials; what is not known is null.
use serde_json::{Value, json};

use super::point;
use crate::analysis::{ArmPackets, PacketRates, PacketSpread};
use crate::words;

/// One direction of an arm.
pub(super) fn arm(way: &ArmPackets) -> Value {
    let interface = |seen: &Option<(String, u64)>| {
        seen.as_ref().map(|(name, packets)| json!({ "interface": name, "packets": packets }))
    };
    json!({
        "direction": words::direction(way.sender),
        "generator": way.path.engine,
        "receiver": way.path.receiver,
        "frame_bytes": way.path.frame,
        "sent_pps": way.sent.map(rates),
        "received_pps": way.received.map(rates),
        "sent": way.sent_count,
        "received": way.received_count,
        "loss": way.loss(),
        "lost": way.lost.as_ref().map(|places| places.iter().map(|lost| json!({
            "counted_as": lost.place, "packets": lost.packets,
        })).collect::<Vec<_>>()),
        "back_pressure": way.back_pressure,
        "not_taken": way.not_taken,
        "interface_sent": interface(&way.interface_sent),
        "interface_received": interface(&way.interface_received),
        "line": way.line.as_ref().map(|line| json!({
            "interface": line.interface, "bps": line.bps, "share": line.share,
        })),
        "sent_series_pps": way.sent_series.iter().map(point).collect::<Vec<_>>(),
        "received_series_pps": way.received_series.iter().map(point).collect::<Vec<_>>(),
        "spread": way.spread.iter().map(spread).collect::<Vec<_>>(),
    })
}

fn rates(rates: PacketRates) -> Value {
    json!({
        "trials": rates.trials, "median": rates.median, "intervals": rates.intervals, "min": rates.min, "max": rates.max,
    })
}

fn spread(end: &PacketSpread) -> Value {
    json!({
        "role": end.role,
        "host": end.host,
        "interface": end.interface,
        "interface_node": end.interface_node,
        "queues": end.queues.iter().map(|(queue, packets)| json!({ "queue": queue, "packets": packets })).collect::<Vec<_>>(),
        "cores": end.cores.iter().map(|(core, packets)| json!({ "core": core, "packets": packets })).collect::<Vec<_>>(),
        "pinned": end.pinned,
        "threads": end.threads,
        "busy": end.busy.iter().map(|(core, share)| json!({ "core": core, "share": share, "node": end.core_nodes.get(core) }))
            .collect::<Vec<_>>(),
        "mode": end.mode,
        "dpdk": end.dpdk,
        "zero_copy": end.zero_copy,
    })
}
