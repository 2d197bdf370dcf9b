//! Datagrams against packets: the sentences that every format has, and a table of every trial.
use maud::{Markup, html};
use netduel_model::units::three_digits;

use crate::analysis::{DatagramWay, Lost, Packets, WorkloadAnalysis};
use crate::words;

/// Nothing for traffic without datagrams.
pub(super) fn of(workload: &WorkloadAnalysis) -> Markup {
    let sentences = words::datagrams(workload);
    html! {
        @if !sentences.is_empty() {
            h3 { (words::datagrams_title(workload)) }
            p.reading {
                @if workload.arms.iter().all(|arm| arm.packets.is_empty()) {
                    "A datagram is what programs send, a packet is what an interface counts; all valid trials together."
                } @else { "All valid trials together." }
            }
            ul { @for sentence in sentences { li { (sentence) } } }
            details {
                summary { "Every trial" }
                div.scroll { table {
                    thead { tr {
                        th { "Arm" } th.number { "Block" } th { "Direction" } th.number { "Sent" } th.number { "Received" }
                        th.number { "Lost at the receiver's socket" } th.number { "Lost at an interface" } th.number { "Lost elsewhere" }
                        th.number { "Packets sent" } th.number { "Packets received" } th.number { "Bytes a packet" }
                        th.number { "Datagrams a packet" }
                    } }
                    tbody { @for arm in &workload.arms { @for way in &arm.datagrams { (row(arm.arm.as_str(), way)) } } }
                } }
            }
        }
    }
}

fn row(arm: &str, way: &DatagramWay) -> Markup {
    let lost = |of: fn(Lost) -> u64| way.lost.map(|lost| of(lost).to_string());
    let packets = |seen: &Option<Packets>| seen.as_ref().map(|seen| seen.packets.to_string());
    let length = way.packets_received.as_ref().and_then(Packets::bytes_per_packet);
    let cells = [
        lost(|lost| lost.at_socket),
        lost(|lost| lost.at_interface),
        lost(Lost::elsewhere),
        packets(&way.packets_sent),
        packets(&way.packets_received),
        length.map(three_digits),
        way.datagrams_per_packet.map(three_digits),
    ];
    html! {
        tr {
            td { (arm) } td.number { (way.block + 1) } td { (words::direction(way.sender)) }
            td.number { (way.sent) } td.number { (way.received) }
            @for cell in cells { td.number { @if let Some(cell) = cell { (cell) } @else { span.absent { "not told" } } } }
        }
    }
}
