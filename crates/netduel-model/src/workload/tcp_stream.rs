//! `tcp-stream`: bulk data over TCP connections.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::by_hand::{self, ByHand, QuickTest};
use super::facts::{self, Demand, Descriptors, End, Facts, PacedRate, Sockets, TcpFacts, Threads, Wire};
use super::given::Given;
pub(super) use super::given::unchecked as check;
use super::particular::Particular;
use super::setting::{self, Range, Setting};
use super::terms::{Direction, Family, StreamThreads, TcpEngine};
use super::timing::Timing;
use super::work_unit::WorkUnit;
use crate::metric::Metric;
use crate::shell;
use crate::units::{BitRate, Bytes, Nanos, plural};

/// What a paced stream sends at a time at most, bytes.
const PACED_BYTES: u64 = 65_536;

/// The settings of `tcp-stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpStream {
    /// Connections.
    pub streams: u32,
    /// The ends that send.
    pub direction: Direction,
    /// Bytes handed to the kernel in one call.
    pub block: Bytes,
    /// How bytes are moved in and out of the kernel.
    pub engine: TcpEngine,
    /// Congestion control, as the kernel names it; `null` leaves the host's default (which is recorded).
    pub congestion: Option<String>,
    /// Payload rate of all streams together, in each direction that is used; `null` sends as fast as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// When it ends before its time, and the options of its sockets.
    #[serde(default, skip_serializing_if = "StreamTuning::is_default")]
    pub tuning: StreamTuning,
}

/// What most TCP streams leave to the clock and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StreamTuning {
    /// Each direction ends after this much payload of all streams together, at the end of the duration at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Bytes>,
    /// `SO_SNDBUF` and `SO_RCVBUF` at both ends (socket(7)); `null` lets the kernel grow them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// `TCP_MAXSEG` of the client's sockets, which bounds the segments of both ends (tcp(7)), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
}

impl StreamTuning {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Particular for TcpStream {
    fn narrowed(&self, key: &str, range: Range, _family: Family) -> Option<(Range, String)> {
        let is_part = key == "streams" && self.engine.stream_threads() == StreamThreads::Each;
        is_part.then(|| {
            let beside = format!(" with the engines {}", TcpEngine::with_thread_each());
            (Range { most: range.most.min(setting::THREADS_MOST), ..range }, beside)
        })
    }
}

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    // The port opens this many sockets in some seconds; they share a thread for each core.
    Setting::within("streams", Range::count(1, 20_000)).described_by(streams_text),
    Setting::free("direction")
        .described("default `up`; with `both`, rates are the sum of the two directions"),
    setting::BLOCK,
    Setting::free("engine"),
    Setting::free("congestion"),
    setting::RATE,
    setting::VOLUME,
    setting::WINDOW.described("default: the kernel grows them"),
    // TCP_MIN_MSS and MAX_TCP_WINDOW in include/net/tcp.h.
    Setting::within("mss", Range::byte_count(88, 32_767)),
];

/// What `streams` is, with the threads of each engine.
fn streams_text() -> String {
    let some = TcpEngine::ALL.into_iter().filter_map(|engine| match engine.stream_threads() {
        StreamThreads::EachUpTo(most) => {
            Some(format!(", as up to {most} connections have with `{}`", engine.word()))
        }
        StreamThreads::Shared | StreamThreads::Each => None,
    });
    format!(
        "default 1; at most {} with the engines {}, where each connection has a thread{}; otherwise connections share one thread per core",
        setting::THREADS_MOST,
        TcpEngine::with_thread_each(),
        some.collect::<String>()
    )
}

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &TcpStream, key: &str, _timing: &Timing) -> Option<u64> {
    match key {
        "streams" => Some(settings.streams.into()),
        "block" => Some(settings.block.0),
        "rate" => settings.rate.map(|rate| rate.0),
        "volume" => settings.tuning.volume.map(|volume| volume.0),
        "window" => settings.tuning.window.map(|window| window.0),
        "mss" => settings.tuning.mss.map(u64::from),
        _ => None,
    }
}

pub(super) fn facts(settings: &TcpStream) -> Facts<'_> {
    let TcpStream { streams, direction, engine, rate, tuning, .. } = settings;
    let paced = |rate: BitRate| PacedRate { rate, grain: u64::from(*streams), burst: PACED_BYTES };
    Facts {
        sockets: Sockets {
            tcp: *streams,
            counters: *streams,
            bulk: *streams,
            accounted: *streams,
            ..Sockets::default()
        },
        descriptors: descriptors(*engine, *streams),
        threads: Threads::Bulk(*streams),
        concurrency: *streams,
        payload: Some(*direction),
        bulk: Some(*direction),
        starts_first: facts::starts_first(*direction),
        deciders: facts::senders(*direction),
        end: tuning.volume.map_or(End::Duration, End::Volume),
        unit: WorkUnit::Byte,
        wire: Wire::Segments,
        demand: rate.map_or(Demand::Unlimited, Demand::Rate),
        paced: rate.map(paced),
        tcp: TcpFacts { congestion: settings.congestion.as_deref(), mss: tuning.mss, engine: Some(*engine) },
        default_metrics: vec![Metric::Throughput, Metric::CpuPerGigabyte],
        possible_metrics: &[Metric::Throughput, Metric::CpuPerGigabyte, Metric::RetransmitsPerGigabyte],
        ..Facts::default()
    }
}

/// Descriptors besides the sockets. On each core that streams share, a thread of either direction has a set of sockets, and the sender
/// reads its own waiting time from a file.
fn descriptors(engine: TcpEngine, streams: u32) -> Descriptors {
    const SETS_AND_FILE: u32 = 3;
    const PIPE: u32 = 2;
    match engine {
        TcpEngine::Lean => Descriptors { fixed: 0, shared: (streams, SETS_AND_FILE + PIPE) },
        TcpEngine::Copy if engine.has_thread_each(streams) => Descriptors::default(),
        TcpEngine::Copy => Descriptors { fixed: 0, shared: (streams, SETS_AND_FILE) },
        // Completions arrive on the socket itself.
        TcpEngine::Zerocopy => Descriptors::default(),
        // A ring for each direction.
        TcpEngine::IoUring => Descriptors { fixed: u64::from(streams) * 2, shared: (0, 0) },
    }
}

impl TcpEngine {
    /// The bytes a call when the plan does not say. `splice` of 1 MiB and `write` of 256 KiB were the fastest in measurements (128 KiB: 5 to
    /// 20 % less, with 4 to 10 % more CPU time per byte); the other engines receive a completion for each call, when the kernel no longer uses their memory.
    pub const fn default_block(self) -> Bytes {
        match self {
            Self::Lean => Bytes(1 << 20),
            Self::Copy | Self::Zerocopy | Self::IoUring => Bytes(256 << 10),
        }
    }
}

/// The settings with every default.
pub(super) fn resolve(given: &Given<'_>) -> TcpStream {
    let settings = given.settings;
    let engine = settings.engine.unwrap_or_default();
    TcpStream {
        streams: settings.streams.unwrap_or(1),
        direction: settings.direction.unwrap_or_default(),
        block: settings.block.unwrap_or(engine.default_block()),
        engine,
        congestion: settings.congestion.clone(),
        rate: settings.rate,
        tuning: StreamTuning { volume: settings.volume, window: settings.window, mss: settings.mss },
    }
}

/// What repeats it by hand.
pub(super) fn by_hand(settings: &TcpStream, timing: &Timing) -> ByHand {
    ByHand::Test(quick_test(settings, timing.duration))
}

/// The quick test of these streams, alone or as a part of a workload.
pub(super) fn quick_test(stream: &TcpStream, duration: Nanos) -> QuickTest {
    let mut options = Vec::new();
    if stream.streams != 1 {
        options.push(format!("-P {}", stream.streams));
    }
    options.extend(by_hand::way(stream.direction));
    options.extend(by_hand::rate(stream.rate, stream.streams));
    options.extend(stream.tuning.volume.map(|bytes| format!("-n {}", bytes.0)));
    if stream.block != stream.engine.default_block() {
        options.push(format!("-l {}", stream.block.0));
    }
    options.extend(stream.tuning.window.map(|window| format!("-w {}", window.0)));
    options.extend(stream.tuning.mss.map(|mss| format!("-M {mss}")));
    options.extend(stream.congestion.as_ref().map(|name| format!("-C {}", shell::word(name))));
    options.push(format!("--engine {}", stream.engine.word()));
    QuickTest::timed("tcp", duration, options)
}

/// The settings for people.
pub(super) fn words(settings: &TcpStream) -> Vec<String> {
    let TcpStream { streams, direction, block, engine, congestion, rate, tuning } = settings;
    let mut words = vec![plural(*streams, "stream"), direction.words().to_owned()];
    words.push(engine.words().to_owned());
    words.push(format!("{block} per send call"));
    words.extend(congestion.iter().cloned());
    words.extend(rate.map(|rate| format!("at {rate}")));
    words.extend(tuning.volume.map(|volume| format!("{volume} total")));
    words.extend(tuning.window.map(|window| format!("{window} buffers")));
    words.extend(tuning.mss.map(|mss| format!("mss {mss} B")));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_follow_the_threads_of_each_engine() {
        let on_four_cores = |engine, streams| descriptors(engine, streams).count(4);
        for (engine, few, many) in [
            (TcpEngine::Lean, 10, 20),
            (TcpEngine::Copy, 0, 12),
            (TcpEngine::Zerocopy, 0, 0),
            (TcpEngine::IoUring, 4, 2000),
        ] {
            assert_eq!((on_four_cores(engine, 2), on_four_cores(engine, 1000)), (few, many), "{engine:?}");
        }
    }

    #[test]
    fn text_of_streams_names_the_engines_by_their_threads() {
        let text = streams_text();
        for engine in TcpEngine::ALL {
            let is_named = text.contains(&format!("`{}`", engine.word()));
            assert_eq!(is_named, engine.stream_threads() != StreamThreads::Shared, "{engine:?}: {text}");
        }
    }
}
