//! The settings of a workload as they are written, of all types together. Which type has which, with its range and default, stands with
//! the types.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the plan's author.
use crate::dpdk::DpdkDevice;
use crate::failover::PathEventKind;
use crate::packet_path::{PacketEngine, PacketReceiver};
use crate::plan::cores::CoresSpec;
use crate::plan::shape::shape;
use crate::units::{BitRate, Bytes, Nanos, PerSecond, Percent};
use crate::workload::terms::{Direction, Family, ProbeProtocol, Side, TcpEngine, UdpOffload, Wait};
use crate::workload::{ppm, share};

shape! {
    /// Settings of a workload that an arm may override.
    pub struct SettingsSpec {
        /// All types: IP version, default `ipv4`.
        optional family: Family,
        /// All types: cores for the client's threads, in order and from the first again; or `"auto"`: the client chooses those near the
        /// interface that carries the data, and the result says which and why. Default: the kernel places them.
        optional pin_client: CoresSpec,
        /// All types: cores for the server's threads; as `pin_client`.
        optional pin_server: CoresSpec,
        /// All types but pps: DSCP (RFC 2474) of the data packets of both ends, for example 46 for expedited forwarding. Default: the
        /// kernel's, 0.
        optional dscp: u32,
        /// tcp-stream: connections (1024 at most with the engines `zerocopy` and `io-uring`), default 1; they share a thread for each
        /// core, but for these two, and `copy` up to 128. loaded-latency: connections that make the load, beside one that also
        /// carries round trips, default 16. failover: connections beside the probes, default 1.
        optional streams: u32,
        /// tcp-stream, udp-stream, pps: who sends, default `up` (client to server). With `both` rates are the sum of the two
        /// directions, and loss is that of all datagrams. pps: sockets alone have other directions than `up`. loaded-latency: who sends the load, default `both`. failover: who sends on its streams;
        /// probes go both ways.
        optional direction: Direction,
        /// tcp-stream, loaded-latency, failover: bytes a call, default 1 MiB with the `lean` engine, 128 KiB with
        /// `copy` and 256 KiB with `zerocopy` and `io-uring`.
        optional block: Bytes,
        /// tcp-stream, loaded-latency, failover: how bytes are moved, default `lean`.
        optional engine: TcpEngine,
        /// tcp-stream, tcp-rr, tcp-crr, loaded-latency, failover: congestion control as the kernel names it, 15 letters at most; default:
        /// the host's.
        optional congestion: String,
        /// udp-stream: payload of a datagram, default 1448 B (1428 B over IPv6). tcp-rr, udp-rr: bytes of a
        /// request and of its response, default 64 B. tcp-crr: bytes of a
        /// request, default 64 B. loaded-latency: bytes of a probe and of its response, default 64 B. failover: payload of a probe, the same.
        optional size: Bytes,
        /// tcp-crr: bytes of a response, default: as the request (`size`).
        optional response_size: Bytes,
        /// tcp-stream, udp-stream: payload rate of all streams or flows together, in each direction that is used; default: as fast as it can. Datagrams leave in bursts of what falls due in
        /// 100 us, 16 at most.
        optional rate: BitRate,
        /// tcp-stream, udp-stream: each direction ends after this much payload of all streams or flows together, or with
        /// `duration`, whichever comes first; default: with `duration` alone. Flows send whole datagrams, the last one, too.
        optional volume: Bytes,
        /// tcp-stream, udp-stream, pps: send and receive buffer of each socket at both ends, as far as net.core.wmem_max and
        /// rmem_max allow; default: the kernel grows those of TCP, and flows share 64 MiB for receiving.
        optional window: Bytes,
        /// tcp-stream: largest segment, bytes; default: that of the path's MTU.
        optional mss: u32,
        /// udp-stream, pps: source ports, default 1 for udp-stream and 16 for pps (1 with the generator `kernel`, where each has
        /// a thread that keeps a core, 64 at most; with `dpdk` more than 1 means as many as testpmd makes, default 1 for a receiver of one queue). They share as many threads as there are cores or queues, or as `pin_client` and
        /// `pin_server` name.
        optional flows: u32,
        /// udp-stream: who cuts and joins datagrams. Default: `gso` without a `rate` when `size` is at most its default, for then
        /// a core is the limit; `none` otherwise, for a rate asks for even spacing and a longer datagram may not fit the MTU,
        /// which `gso` needs. Where a path carries the 128 datagrams of a buffer as one packet, every report says so.
        optional offload: UdpOffload,
        /// tcp-rr, udp-rr: outstanding requests in a closed loop, default 1. tcp-crr: outstanding transactions, each in a thread at both ends, default 1; with `request_rate` at most, default 64.
        optional outstanding: u32,
        /// tcp-rr, udp-rr, tcp-crr: how both ends wait, default `block`. pps: how the receiver `xdp` does, `spin` (default) or `busy-poll`.
        optional wait: Wait,
        /// tcp-rr, udp-rr, tcp-crr: an open loop at this rate, measured from the scheduled time; excludes
        /// `outstanding` but for tcp-crr. Default: a closed loop. loaded-latency: the rate of the probes, which always are an open
        /// loop, default 200 /s. failover: probes each way, default 1 k/s.
        optional request_rate: PerSecond,
        /// loaded-latency: what the probes travel in, default `udp`.
        optional probe: ProbeProtocol,
        /// loaded-latency: share of the duration in which the path is idle, before the load begins, default 25 %.
        optional idle_share: Percent,
        /// tcp-rr, udp-rr: have the kernels (and NICs whose stamping is enabled) time-stamp some of the requests, which splits
        /// their round trips into network, kernel and program at both ends, and gives one-way delay with its error. Responses
        /// smaller than 48 B (tcp-rr) or 64 B (udp-rr) cannot carry the server's times: then network and server are one part.
        /// What it costs is measured; compare with runs that do the same. Default `false`.
        optional timestamps: bool,
        /// pps: who makes the packets, default `socket`.
        optional generator: PacketEngine,
        /// pps: who takes the packets. Default: `socket`, `xdp`, `count` or `dpdk` for the generator `socket`, `xdp`, `kernel` or `dpdk`.
        optional receiver: PacketReceiver,
        /// pps: size of a frame with its check sequence, bytes (82 at least over IPv6), default 64 (82). What a socket sends
        /// is filled up by the interface when it is shorter than Ethernet's least frame.
        optional frame: u32,
        /// pps: packets a second of all flows together; default: as fast as it can. The generators `kernel` and `dpdk` keep
        /// no rate.
        optional packet_rate: PerSecond,
        /// pps: queues that the generator `xdp` sends by and the receiver `xdp` has threads for, from the first on, default: all
        /// that the interface has (for sending: no more than cores or flows).
        optional queues: u32,
        /// pps: how testpmd is run, with the generator or receiver `dpdk`.
        optional dpdk: DpdkSpec,
        /// failover: what is done to the path while traffic runs, in the order of time; at least one, and each within the duration.
        optional events: Vec<EventSpec>,
    }
}

impl SettingsSpec {
    /// A quantity by its key, in the unit of its range.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match key {
            "streams" => self.streams.map(u64::from),
            "flows" => self.flows.map(u64::from),
            "outstanding" => self.outstanding.map(u64::from),
            "mss" => self.mss.map(u64::from),
            "dscp" => self.dscp.map(u64::from),
            "frame" => self.frame.map(u64::from),
            "queues" => self.queues.map(u64::from),
            "block" => self.block.map(|block| block.0),
            "size" => self.size.map(|size| size.0),
            "response_size" => self.response_size.map(|size| size.0),
            "volume" => self.volume.map(|volume| volume.0),
            "window" => self.window.map(|window| window.0),
            "rate" => self.rate.map(|rate| rate.0),
            "request_rate" => self.request_rate.map(|rate| rate.0),
            "packet_rate" => self.packet_rate.map(|rate| rate.0),
            "idle_share" => self.idle_share.map(ppm),
            _ => None,
        }
    }

    /// Sets a quantity by its key, in the unit of its range; false when there is no such quantity.
    pub fn set_number(&mut self, key: &str, value: u64) -> bool {
        let count = u32::try_from(value).ok();
        match key {
            "streams" => self.streams = count,
            "flows" => self.flows = count,
            "outstanding" => self.outstanding = count,
            "mss" => self.mss = count,
            "dscp" => self.dscp = count,
            "frame" => self.frame = count,
            "queues" => self.queues = count,
            "block" => self.block = Some(Bytes(value)),
            "size" => self.size = Some(Bytes(value)),
            "response_size" => self.response_size = Some(Bytes(value)),
            "volume" => self.volume = Some(Bytes(value)),
            "window" => self.window = Some(Bytes(value)),
            "rate" => self.rate = Some(BitRate(value)),
            "request_rate" => self.request_rate = Some(PerSecond(value)),
            "packet_rate" => self.packet_rate = Some(PerSecond(value)),
            "idle_share" => self.idle_share = Some(share(value)),
            _ => return false,
        }
        true
    }
}

shape! {
    /// DPDK's testpmd as the generator or receiver of a `pps` workload. Its cores are `pin_client` and `pin_server`: that of its prompt first,
    /// then those that forward; without them each end chooses, as with `auto`.
    pub struct DpdkSpec {
        /// The program, to be looked for in PATH unless it is a path. Default `dpdk-testpmd`.
        optional program: String,
        /// The device: `net_af_packet` (default) or `net_af_xdp` on the interface of the data, `net_memif` between ends on one machine,
        /// `net_null` for no network at all, `netvsc`, `mana` or `failsafe` on Azure, or the place of a PCI function,
        /// for example `0000:00:05.0`.
        optional device: DpdkDevice,
        /// Queues in either direction, each with a core of its own while there are enough, 1 to 128, default 1.
        optional queues: u32,
        /// Queues of the receiver, when it has others, 1 to 128. Default: `queues`.
        optional receive_queues: u32,
        /// Descriptors of each queue, 32 to 32768. Default: as many as the driver likes.
        optional descriptors: u32,
        /// Whether its buffers are huge pages with one of the devices `net_...`, too; the others need them in any case. What lacks is
        /// reserved for the trial. Default `false`.
        optional huge_pages: bool,
        /// Further words for testpmd, at the end of its command line, for example `["--burst=64"]`.
        optional args: Vec<String>,
    }
}

shape! {
    /// Something that is done to a path while traffic runs. Whatever it took is given back after the trial.
    pub struct EventSpec {
        /// When, after the start of the traffic: later than the event before, and before the end of the duration.
        required at: Nanos,
        /// What is done. Hosts that are not guests of the lab have `remove` (their PCI device), `down` and `return`.
        required kind as "do": PathEventKind,
        /// To whose interface. Default: the client's.
        optional on: Side,
        /// The interface, on a host that is not a guest of the lab. Guests have theirs: the virtual function `vf0`.
        optional interface: String,
    }
}
