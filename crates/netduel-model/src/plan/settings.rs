//! The settings of a workload as they are written, of all types together. Which type has which, with its range and default, stands with
//! the types.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the plan's author.
use crate::dpdk::DpdkDevice;
use crate::failover::PathEventKind;
use crate::packet_path::{PacketEngine, PacketReceiver};
use crate::plan::cores::CoresSpec;
use crate::plan::problem::Problems;
use crate::plan::shape::shape;
use crate::plan::value::{Raw, Value, choices, found};
use crate::units::{BitRate, Bytes, Nanos, PerSecond, Percent};
use crate::workload::setting::{ppm, share};
use crate::workload::terms::{Direction, Family, ProbeProtocol, Side, TcpEngine, UdpOffload, Wait};

shape! {
    /// Settings of a workload that an arm may override.
    pub struct SettingsSpec {
        /// IP version, default `ipv4`.
        optional family: Family,
        /// Cores of the client's threads, used in turn; or `"auto"`: the client chooses cores near the interface that carries the
        /// data, and the report names them with the reason. Default: the kernel places the threads.
        optional pin_client: CoresSpec,
        /// Cores of the server's threads; as `pin_client`.
        optional pin_server: CoresSpec,
        /// DSCP (RFC 2474) of the data packets of both ends, for example 46 for expedited forwarding. Default: the
        /// kernel's, 0.
        optional dscp: u32,
        /// Number of TCP connections.
        optional streams: u32,
        /// The end that sends bulk data: `up` is client to server.
        optional direction: Direction,
        /// Bytes per call, default 1 MiB with the `lean` engine, 256 KiB with `copy`, `zerocopy` and
        /// `io-uring`.
        optional block: Bytes,
        /// How the ends pass bytes to and from the kernel, default `lean`.
        optional engine: TcpEngine,
        /// Congestion control as the kernel names it, at most 15 characters. Default: the host's.
        optional congestion: String,
        /// Size of a message.
        optional size: Bytes,
        /// Bytes of a response. Default: `size`.
        optional response_size: Bytes,
        /// Payload rate of all streams or flows together, in each direction that is used. Default: unlimited.
        optional rate: BitRate,
        /// Each direction ends after this much payload of all streams or flows together, or with `duration`, whichever comes
        /// first. Default: with `duration` alone.
        optional volume: Bytes,
        /// Send and receive buffer of each socket at both ends, as far as net.core.wmem_max and rmem_max allow.
        optional window: Bytes,
        /// Maximum segment size (MSS). Default: from the MTU of the path.
        optional mss: u32,
        /// Number of flows. Each flow has its own source port. Flows share threads: one thread per core, per queue with `xdp`, or per
        /// core of `pin_client` and `pin_server`.
        optional flows: u32,
        /// Segmentation offload of the datagrams: with `gso` the sender's kernel splits buffers, with `gso-gro` the receiver's
        /// merges datagrams as well. The treatment `offload` switches an offload of an interface. Default: `gso` without a `rate`
        /// when `size` is at most its default, because then a core is the bottleneck; otherwise `none`, because a rate needs even
        /// spacing, and because `gso` needs datagrams that fit the MTU. The report states when a path carries the 128 datagrams
        /// of a buffer as one packet.
        optional offload: UdpOffload,
        /// Number of requests in flight.
        optional outstanding: u32,
        /// How a thread waits for a message.
        optional wait: Wait,
        /// Requests per second of an open loop: requests leave on a schedule, and the time of a round trip begins at its scheduled time.
        optional request_rate: PerSecond,
        /// Protocol of the probes, default `udp`.
        optional probe: ProbeProtocol,
        /// Share of the duration without load, at the beginning. Default 25 %.
        optional idle_share: Percent,
        /// Kernel time stamps, and NIC time stamps where they are enabled, for a sample of the requests. They split a round trip into
        /// network, kernel and program time at both ends, and give the one-way delay with its error. The report shows the cost of time
        /// stamps; compare arms with the same value. Default `false`.
        optional timestamps: bool,
        /// Generator of the packets, default `socket`.
        optional generator: PacketEngine,
        /// Receiver of the packets. Default: `socket`, `xdp`, `count` or `dpdk` for the generator `socket`, `xdp`, `kernel` or `dpdk`.
        optional receiver: PacketReceiver,
        /// Size of an Ethernet frame with its frame check sequence (at least 82 bytes over IPv6), default 64 (82). The interface pads
        /// packets of a socket to the minimum size of Ethernet.
        optional frame: u32,
        /// Packets per second of all flows together. Default: unlimited. The generators `kernel` and `dpdk`
        /// cannot keep a rate.
        optional packet_rate: PerSecond,
        /// Queues that the generator `xdp` and the receiver `xdp` use, beginning with the first, with a thread for each. Default: all
        /// queues of the interface; the generator uses at most one per core or flow.
        optional queues: u32,
        /// Settings of testpmd, for the generator or receiver `dpdk`.
        optional dpdk: DpdkSpec,
        /// Events that change the path during traffic, in order of time; at least one, each within the duration.
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
    /// DPDK's testpmd as the generator or receiver of a `pps` workload. Its cores are `pin_client` and `pin_server`: the main core
    /// first, then the forwarding cores. Without them each end chooses cores, as with `auto`.
    pub struct DpdkSpec {
        /// The program: a path, or a name that is searched in PATH. Default `dpdk-testpmd`.
        optional program: String,
        /// The device: `net_af_packet` (default) or `net_af_xdp` on the interface of the data; `net_memif` between ends on one machine;
        /// `net_null` without a network; `netvsc`, `mana` or `failsafe` on Azure; or the address of a PCI function, for example
        /// `0000:00:05.0`.
        optional device: DpdkDevice,
        /// Receive queues and transmit queues, each with a core of its own while enough cores exist. Default 1.
        optional queues: u32,
        /// Receive queues of the receiver, when their number differs. Default: `queues`.
        optional receive_queues: u32,
        /// Descriptors of each queue. Default: the default of the driver.
        optional descriptors: u32,
        /// Whether the `net_...` devices use huge pages as well; all other devices always do. netduel reserves missing pages for the
        /// trial. Default `false`.
        optional huge_pages: bool,
        /// Additional arguments of testpmd, at the end of its command line, for example `["--burst=64"]`.
        optional args: Vec<String>,
    }
}

shape! {
    /// An event that changes a path during traffic. netduel restores the path after the trial.
    pub struct EventSpec {
        /// Time after the start of the traffic: later than the previous event, earlier than the end of the duration.
        required at: Nanos,
        /// `remove`, `graceful`, `carrier`, `down`, `return`, `add-nic`, `remove-nic` or `command`. Hosts that are not lab guests have
        /// `remove` (of the PCI device), `down`, `return` and `command`; lab guests have all but `command`.
        required kind as "do": PathEventKind,
        /// The host whose interface is changed. Default: the client.
        optional on: Side,
        /// The interface, on a host that is not a lab guest. Lab guests always use the virtual function `vf0`. Default for hosts with `bed`: that
        /// of the NIC in the `network` of the arm.
        optional interface: String,
        /// With `do = "command"`: the program and its arguments, which the agent runs on the host for at most 30 s. The event lasts as long as
        /// the program runs.
        optional command: Vec<String>,
        /// With `do = "command"`, required: the program and arguments that undo it. `return` runs it; without `return` it runs after the
        /// traffic.
        optional undo: Vec<String>,
    }
}

choices!(
    Direction,
    Family,
    PacketEngine,
    PacketReceiver,
    PathEventKind,
    ProbeProtocol,
    Side,
    TcpEngine,
    UdpOffload,
    Wait
);

impl Value for DpdkDevice {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        match Self::try_from(String::read(raw, path, problems)?) {
            Ok(device) => Some(device),
            Err(wrong) => {
                problems.add(
                    path,
                    format!("{}, which is no device", found(raw)),
                    wrong.split_once(": ").map_or("", |(_, rest)| rest),
                );
                None
            }
        }
    }
}
