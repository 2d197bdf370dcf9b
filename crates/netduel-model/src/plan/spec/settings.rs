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
        /// IP version, default `ipv4`.
        optional family: Family,
        /// Cores for the client's threads, in order and from the first again; or `"auto"`: the client chooses cores near the
        /// interface that carries the data, and the result says which and why. Default: the kernel places them.
        optional pin_client: CoresSpec,
        /// Cores for the server's threads; as `pin_client`.
        optional pin_server: CoresSpec,
        /// DSCP (RFC 2474) of the data packets of both ends, for example 46 for expedited forwarding. Default: the
        /// kernel's, 0.
        optional dscp: u32,
        /// TCP connections.
        optional streams: u32,
        /// The end that sends bulk data: `up` is client to server.
        optional direction: Direction,
        /// Bytes per call, default 1 MiB with the `lean` engine, 128 KiB with `copy` and 256 KiB with `zerocopy` and
        /// `io-uring`.
        optional block: Bytes,
        /// How bytes are moved, default `lean`.
        optional engine: TcpEngine,
        /// Congestion control as the kernel names it, at most 15 characters. Default: the host's.
        optional congestion: String,
        /// Payload of a message.
        optional size: Bytes,
        /// Bytes of a response. Default: `size`.
        optional response_size: Bytes,
        /// Payload rate of all streams or flows together, in each direction that is used. Default: as fast as it can.
        optional rate: BitRate,
        /// Each direction ends after this much payload of all streams or flows together, or with `duration`, whichever comes
        /// first. Default: with `duration` alone.
        optional volume: Bytes,
        /// Send and receive buffer of each socket at both ends, as far as net.core.wmem_max and rmem_max allow.
        optional window: Bytes,
        /// Largest segment. Default: that of the path's MTU.
        optional mss: u32,
        /// Source ports. They share as many threads as there are cores or queues, or as `pin_client` and `pin_server` name.
        optional flows: u32,
        /// Who segments and joins datagrams. Default: `gso` without a `rate` when `size` is at most its default, because then
        /// a core is the limit; `none` otherwise, because a rate needs even spacing and a longer datagram may not fit the MTU,
        /// which `gso` needs. Where a path carries the 128 datagrams of a buffer as one packet, every report says so.
        optional offload: UdpOffload,
        /// Requests in flight.
        optional outstanding: u32,
        /// How a thread waits for a message.
        optional wait: Wait,
        /// Requests leave on a schedule of this rate, whatever the responses do, and count from the scheduled time (open loop).
        optional request_rate: PerSecond,
        /// What the probes travel in, default `udp`.
        optional probe: ProbeProtocol,
        /// Share of the duration in which the path is idle, before the load begins. Default 25 %.
        optional idle_share: Percent,
        /// The kernels (and NICs whose time stamping is enabled) time-stamp some of the requests, which splits
        /// their round trips into network, kernel and program at both ends, and gives one-way delay with its error.
        /// What it costs is measured; compare with runs that do the same. Default `false`.
        optional timestamps: bool,
        /// Who makes the packets, default `socket`.
        optional generator: PacketEngine,
        /// Who takes the packets. Default: `socket`, `xdp`, `count` or `dpdk` for the generator `socket`, `xdp`, `kernel` or `dpdk`.
        optional receiver: PacketReceiver,
        /// Size of a frame with its check sequence (at least 82 bytes over IPv6), default 64 (82). The interface pads what a socket
        /// sends when it is shorter than Ethernet's smallest frame.
        optional frame: u32,
        /// Packets per second of all flows together. Default: as fast as it can. The generators `kernel` and `dpdk` keep
        /// no rate.
        optional packet_rate: PerSecond,
        /// Queues that the generator `xdp` sends by and the receiver `xdp` has threads for, from the first on. Default: all
        /// of the interface (for sending: no more than cores or flows).
        optional queues: u32,
        /// How testpmd is run, with the generator or receiver `dpdk`.
        optional dpdk: DpdkSpec,
        /// What is done to the path while traffic runs, in the order of time; at least one, and each within the duration.
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
            "dpdk.queues" => self.dpdk.as_ref()?.queues.map(u64::from),
            "dpdk.receive_queues" => self.dpdk.as_ref()?.receive_queues.map(u64::from),
            "dpdk.descriptors" => self.dpdk.as_ref()?.descriptors.map(u64::from),
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
            "dpdk.queues" => self.dpdk.get_or_insert_default().queues = count,
            "dpdk.receive_queues" => self.dpdk.get_or_insert_default().receive_queues = count,
            "dpdk.descriptors" => self.dpdk.get_or_insert_default().descriptors = count,
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
        /// Queues in either direction, each with a core of its own while there are enough. Default 1.
        optional queues: u32,
        /// Queues of the receiver, when it has another number. Default: `queues`.
        optional receive_queues: u32,
        /// Descriptors of each queue. Default: the driver's.
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
