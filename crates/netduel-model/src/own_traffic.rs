//! What is known of a trial's own packets and bytes, and of the traffic beside it: enough to prove a path that carries little. It reads
//! no counter.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::observation::ControlTraffic;
use crate::path_proof::PATH_SHARE_MIN;
use crate::sample::EndReport;
use crate::workload::{Facts, Wire, WorkUnit};

/// With few round trips, background traffic is more than 1 % of the bytes. The trial's own packets are then counted: of so many, at most
/// one may have used another path, even if other interfaces carried nothing but packets of the trial. The same holds for bytes.
const OWN_PER_STRAY: u64 = 10;
/// Bytes of the shortest IP header (IPv4 without options).
const IP_HEADER_BYTES: u64 = 20;
/// Bytes of a UDP header, and of the header of an ICMP echo message.
const DATAGRAM_HEADER_BYTES: u64 = 8;
/// What a message of the agent's connection adds to its bytes on an interface over ssh, at most: an SSH packet has 14 bytes before the
/// data, padding and MAC of up to 48; the segment and its acknowledgement have 98 each (Ethernet, IPv6, TCP with options).
const CONTROL_MESSAGE_BYTES: u64 = 14 + 48 + 2 * 98;
/// Background traffic of the host that a trial may have beside it, bytes: neighbour discovery, ARP, multicast membership, spanning tree.
const BACKGROUND_BYTES_MAX: u64 = 4096;

/// Background traffic that is allowed for beside this many bytes of a host in a trial, bytes.
pub(crate) fn background_bytes(bytes: u64) -> u64 {
    BACKGROUND_BYTES_MAX.min(bytes / OWN_PER_STRAY)
}

/// The trial's own packets at one end, and the packets that the interfaces counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnPackets {
    /// Packets that the trial sent and received at this end, at least: two for each completed round trip.
    pub packets: u64,
    /// Packets that the expected interface counted, sent and received.
    pub expected: u64,
    /// Packets of other interfaces that are long enough to belong to the trial, at most. Those of the agent's own connection are left out.
    pub elsewhere_max: u64,
}

/// Bytes of a trial at one end, and of the traffic beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherTraffic {
    /// Bytes that the trial sent and received at this end, at least: the payload that both ends received.
    pub own_bytes: u64,
    /// Bytes of the agent's own connection to the coordinator, with its headers, at most; 0 when it does not use the network.
    pub control_bytes: u64,
    /// Background traffic of the host that is allowed for, bytes.
    pub background_bytes: u64,
}

/// Traffic of a trial, as far as it is known from the counts of its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTraffic {
    packets: Option<PacketsMin>,
    /// Bytes at each end, at least.
    bytes: u64,
    control: ControlTraffic,
}

/// The packets of a trial's round trips, as far as they can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacketsMin {
    /// Packets at each end, at least.
    packets: u64,
    /// Bytes of the shortest of them, from the IP header on.
    packet_bytes_min: u64,
    /// Whether there can be no fewer: late requests of an open loop over TCP share packets.
    is_certain: bool,
}

impl PacketsMin {
    /// Of round trips that the client completed; absent for other workloads, whose packets are many or of unknown number.
    fn of(facts: &Facts<'_>, client: &EndReport) -> Option<Self> {
        let requests = facts.requests?;
        // Outstanding requests of a TCP connection may share a packet. Those of an open loop do so only where they are late.
        let is_certain = matches!(facts.wire, Wire::Datagrams { .. })
            || requests.rate.is_none() && requests.outstanding == 1;
        if facts.unit != WorkUnit::RoundTrip || facts.bulk.is_some() || !is_certain && requests.rate.is_none()
        {
            return None;
        }
        let packet_bytes_min = match facts.wire {
            Wire::Datagrams { size, .. } => IP_HEADER_BYTES + DATAGRAM_HEADER_BYTES + size.0,
            _ => IP_HEADER_BYTES,
        };
        let responses = client.round_trips.as_ref()?.responses;
        (responses > 0).then_some(Self { packets: responses.saturating_mul(2), packet_bytes_min, is_certain })
    }
}

impl OwnTraffic {
    /// Of the reports of both ends, the client first; absent when neither packets nor bytes are known.
    pub fn of(facts: &Facts<'_>, ends: [&EndReport; 2]) -> Option<Self> {
        let [client, _] = ends;
        let received = ends.iter().filter_map(|end| end.received.as_ref());
        let payload: u64 = received.map(|flow| flow.bytes).fold(0, u64::saturating_add);
        let messages = match (facts.requests, &client.round_trips) {
            (Some(requests), Some(round_trips)) if !requests.are_probes => {
                round_trips.responses.saturating_mul(requests.size.0)
            }
            _ => 0,
        };
        let packets = PacketsMin::of(facts, client);
        let own = Self { packets, bytes: payload.max(messages), control: ControlTraffic::default() };
        (own.packets.is_some() || own.bytes > 0).then_some(own)
    }

    /// Beside this connection of the agent to its coordinator, when that uses the network.
    #[must_use]
    pub fn beside(self, control: Option<ControlTraffic>) -> Self {
        Self { control: control.unwrap_or_default(), ..self }
    }

    /// Compares its packets with the interfaces. `bytes` and `packets` are by interface or kind, the one with the most bytes first.
    pub(crate) fn packets(
        self,
        expected: &str,
        bytes: &[(String, u64)],
        packets: &[(String, u64)],
    ) -> Option<OwnPackets> {
        let own = self.packets?;
        let of = |name: &str| packets.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count);
        let others = bytes.iter().filter(|(name, _)| name != expected);
        let control = self.control;
        let elsewhere_max = others
            .enumerate()
            .map(|(rank, (name, bytes))| {
                // Each message is a packet at least, which is acknowledged. Its connection has the bytes of one interface.
                let (messages, data) = if rank == 0 { (control.messages, control.bytes) } else { (0, 0) };
                let longest = bytes.saturating_sub(data) / own.packet_bytes_min;
                of(name).saturating_sub(messages.saturating_mul(2)).min(longest)
            })
            .fold(0, u64::saturating_add);
        Some(OwnPackets { packets: own.packets, expected: of(expected), elsewhere_max })
    }

    /// Its bytes and those beside it; absent when its packets are known for certain, which say more.
    pub(crate) fn other(self) -> Option<OtherTraffic> {
        let Self { packets, bytes, control } = self;
        if packets.is_some_and(|own| own.is_certain) {
            return None;
        }
        let headers = control.messages.saturating_mul(CONTROL_MESSAGE_BYTES);
        Some(OtherTraffic {
            own_bytes: bytes,
            control_bytes: control.bytes.saturating_add(headers),
            background_bytes: background_bytes(bytes),
        })
    }
}

impl OwnPackets {
    /// Whether enough of the trial's packets used the expected path, even if all other packets were of the trial.
    pub(crate) fn is_proof(self) -> bool {
        self.expected >= self.packets && self.elsewhere_max <= self.packets / OWN_PER_STRAY
    }
}

impl OtherTraffic {
    /// Whether the expected path carried all bytes of the trial, and nearly all that are not known to be other traffic.
    pub(crate) fn is_proof(self, expected: u64, elsewhere: u64) -> bool {
        let unknown = elsewhere.saturating_sub(self.control_bytes.saturating_add(self.background_bytes));
        let all = expected.saturating_add(unknown);
        expected >= self.own_bytes && all > 0 && expected as f64 >= PATH_SHARE_MIN * all as f64
    }
}
