//! `udp-stream`: datagrams, counted one by one at both ends.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_hand::{self, ByHand, QuickTest};
use super::facts::{self, Demand, Descriptors, End, Facts, PacedRate, Sockets, Threads, Wire};
use super::given::Given;
pub(super) use super::given::unchecked as check;
use super::particular::Particular;
use super::setting::{self, Range, Setting};
use super::terms::{Direction, Family, UdpOffload};
use super::timing::Timing;
use super::work_unit::WorkUnit;
use crate::metric::Metric;
use crate::units::{BitRate, Bytes, Nanos, plural};

/// The settings of `udp-stream`: flows of datagrams of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpStream {
    /// Source ports. They share as many threads as there are cores to run on.
    pub flows: u32,
    /// The ends that send.
    pub direction: Direction,
    /// UDP payload of each datagram.
    pub size: Bytes,
    /// Payload rate of all flows together, in each direction that is used; `null` sends as fast as it can.
    pub rate: Option<BitRate>,
    /// What segments and merges datagrams.
    #[serde(default, skip_serializing_if = "UdpOffload::is_none")]
    pub offload: UdpOffload,
    /// Settings with a default of the kernel or the program.
    #[serde(default, skip_serializing_if = "FlowTuning::is_default")]
    pub tuning: FlowTuning,
}

/// What most UDP flows leave to the clock and the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowTuning {
    /// Each direction ends after this much payload of all flows together, rounded up to whole datagrams, at the end of the duration
    /// at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Bytes>,
    /// `SO_SNDBUF` and `SO_RCVBUF` at both ends (socket(7)); `null` is a share of 64 MiB for receiving, and the kernel's default for
    /// sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
}

impl FlowTuning {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Particular for UdpStream {}

/// Source ports: each has a socket of its own at both ends.
pub(super) const FLOWS: Setting = Setting::within("flows", Range::count(1, setting::THREADS_MOST));

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    FLOWS.described("default 1"),
    Setting::free("direction").described("default `up`; with `both`, rates are the sum of the two directions and loss is that of all datagrams"),
    Setting::within("size", Range::bytes(setting::DATAGRAM_LEAST, setting::DATAGRAM_MOST)).described_by(|| {
            let [v4, v6] = [Family::Ipv4, Family::Ipv6].map(UdpStream::default_size);
            format!("payload of a datagram, default {v4} ({v6} over IPv6)")
        })
        .advise("a datagram begins with the identity of its trial, its number and its send time"),
    setting::RATE.described("datagrams leave in bursts of what is due in 100 us, at most 16"),
    Setting::free("offload"),
    setting::VOLUME.described("flows send whole datagrams, also the last one"),
    setting::WINDOW.described_by(|| format!("default: {}", UdpStream::receive_buffers_words())),
];

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &UdpStream, key: &str, _timing: &Timing) -> Option<u64> {
    match key {
        "flows" => Some(settings.flows.into()),
        "size" => Some(settings.size.0),
        "rate" => settings.rate.map(|rate| rate.0),
        "volume" => settings.tuning.volume.map(|volume| volume.0),
        "window" => settings.tuning.window.map(|window| window.0),
        _ => None,
    }
}

pub(super) fn facts(settings: &UdpStream) -> Facts<'_> {
    let UdpStream { flows, direction, size, rate, offload, tuning } = settings;
    let paced =
        |rate: BitRate| PacedRate { rate, grain: u64::from(*flows).saturating_mul(size.0), burst: size.0 };
    Facts {
        sockets: Sockets { udp: *flows, counters: *flows, bulk: *flows, ..Sockets::default() },
        descriptors: Descriptors { fixed: 0, shared: (*flows, 1) },
        threads: Threads::Bulk(*flows),
        concurrency: *flows,
        payload: Some(*direction),
        bulk: Some(*direction),
        starts_first: facts::starts_first(*direction),
        deciders: facts::senders(*direction),
        end: tuning.volume.map_or(End::Duration, End::Volume),
        unit: WorkUnit::Datagram,
        flows: Some(settings),
        wire: Wire::Datagrams { size: *size, offload: *offload },
        demand: rate.map_or(Demand::Unlimited, Demand::Rate),
        paced: rate.map(paced),
        default_metrics: vec![Metric::DatagramRate, Metric::Loss, Metric::CpuPerDatagram],
        possible_metrics: &[
            Metric::Throughput,
            Metric::DatagramRate,
            Metric::PacketRate,
            Metric::Loss,
            Metric::Jitter,
            Metric::CpuPerDatagram,
            Metric::CpuPerGigabyte,
        ],
        ..Facts::default()
    }
}

impl UdpStream {
    /// Buffers of the receiving sockets of all flows together where the plan sets no `window`.
    const RECEIVE_BUFFERS: Bytes = Bytes(64 << 20);
    /// Least and largest receive buffer of a flow. The kernel charges about 700 bytes per small datagram: 32 MiB hold 60 ms at a million
    /// packets/s, as long as a receiver waits on a contended core; with 8 MiB up to a third was dropped.
    const RECEIVE_BUFFER: [Bytes; 2] = [Bytes(1 << 20), Bytes(32 << 20)];

    /// The receive buffer of each of so many flows where the plan sets no `window`.
    pub fn receive_buffer(flows: u32) -> Bytes {
        let [least, most] = Self::RECEIVE_BUFFER;
        Bytes(Self::RECEIVE_BUFFERS.0 / u64::from(flows.max(1))).clamp(least, most)
    }

    /// The default of the receive buffers, for help.
    pub fn receive_buffers_words() -> String {
        let [least, most] = Self::RECEIVE_BUFFER;
        format!("the flows share {} for receiving, {least} to {most} each", Self::RECEIVE_BUFFERS)
    }

    /// The payload of a datagram when the plan does not say: it fits an MTU of 1500 with the headers of a tunnel.
    pub fn default_size(family: Family) -> Bytes {
        match family {
            Family::Ipv4 => Bytes(1448),
            Family::Ipv6 => Bytes(1428),
        }
    }
}

/// The settings with every default.
pub(super) fn resolve(given: &Given<'_>) -> UdpStream {
    let settings = given.settings;
    let default = UdpStream::default_size(settings.family.unwrap_or_default());
    let size = settings.size.unwrap_or(default);
    let offload = if settings.rate.is_none() && size <= default { UdpOffload::Gso } else { UdpOffload::None };
    UdpStream {
        flows: settings.flows.unwrap_or(1),
        direction: settings.direction.unwrap_or_default(),
        size,
        rate: settings.rate,
        offload: settings.offload.unwrap_or(offload),
        tuning: FlowTuning { volume: settings.volume, window: settings.window },
    }
}

/// What repeats it by hand.
pub(super) fn by_hand(settings: &UdpStream, timing: &Timing) -> ByHand {
    ByHand::Test(quick_test(settings, timing.duration))
}

/// The quick test of these flows, alone or as a part of a workload.
pub(super) fn quick_test(stream: &UdpStream, duration: Nanos) -> QuickTest {
    let mut options = Vec::new();
    if stream.flows != 1 {
        options.push(format!("-P {}", stream.flows));
    }
    options.extend(by_hand::way(stream.direction));
    options.extend(by_hand::rate(stream.rate, stream.flows));
    options.extend(stream.tuning.volume.map(|bytes| format!("-n {}", bytes.0)));
    options.push(format!("-l {}", stream.size.0));
    options.extend(stream.tuning.window.map(|window| format!("-w {}", window.0)));
    options.push(format!("--offload {}", stream.offload.word()));
    QuickTest::timed("udp", duration, options)
}

/// The settings for people.
pub(super) fn words(settings: &UdpStream) -> Vec<String> {
    let UdpStream { flows, direction, size, rate, offload, tuning } = settings;
    let mut words = vec![plural(*flows, "flow"), direction.words().to_owned()];
    words.push(format!("{size} datagrams"));
    words.push(rate.map_or("unpaced".to_owned(), |rate| format!("at {rate}")));
    words.push(offload.words().to_owned());
    words.extend(tuning.volume.map(|volume| format!("{volume} total")));
    words.extend(tuning.window.map(|window| format!("{window} buffers")));
    words
}
