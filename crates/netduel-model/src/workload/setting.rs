//! The settings of a type of workload as they stand in a plan, with their ranges. A range stands in the file of its type, or here when it
//! is no type's own, and nowhere else: `plan check`, quick tests, the JSON Schema and the guide, agents and `netduel serve` all read it
//! from there.
use std::fmt;

use crate::units::{BitRate, Bytes, Nanos, PerSecond, Percent};

/// A setting of a type of workload.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its key in a plan: `TABLE.KEY` when it is in a table of its own.
    pub key: &'static str,
    text: Text,
    /// Its range, when it is a quantity.
    pub range: Option<Range>,
    /// What an author should know who is out of it; may be empty.
    pub advice: &'static str,
    /// Whether an arm may override it.
    pub is_overridable: bool,
}

/// What a setting is for one type: written, or made from what it depends on.
#[derive(Debug, Clone, Copy)]
enum Text {
    Written(&'static str),
    Made(fn() -> String),
}

impl Setting {
    /// What it is for this type, for the guide, where types differ: a fragment. Else empty.
    pub fn text(&self) -> String {
        match self.text {
            Text::Written(text) => text.to_owned(),
            Text::Made(make) => make(),
        }
    }

    /// A setting that is not a quantity.
    pub(crate) const fn free(key: &'static str) -> Self {
        Self { key, text: Text::Written(""), range: None, advice: "", is_overridable: true }
    }

    /// A quantity.
    pub(crate) const fn within(key: &'static str, range: Range) -> Self {
        Self { range: Some(range), ..Self::free(key) }
    }

    /// The same, with what it is for this type.
    pub(crate) const fn described(self, text: &'static str) -> Self {
        Self { text: Text::Written(text), ..self }
    }

    /// The same, with what it is for this type, made when it is shown.
    pub(crate) const fn described_by(self, make: fn() -> String) -> Self {
        Self { text: Text::Made(make), ..self }
    }

    /// The same, which is one for all arms.
    pub(crate) const fn of_workload(self) -> Self {
        Self { is_overridable: false, ..self }
    }

    /// The same, with advice.
    pub(crate) const fn advise(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }
}

/// The values that a setting may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub least: u64,
    /// The largest.
    pub most: u64,
    /// Each value is a multiple of this.
    pub step: u64,
    /// What they are.
    pub unit: Unit,
}

/// What the numbers of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes, as a number.
    ByteCount,
    /// Bytes, as text with a unit.
    Bytes,
    /// Bits a second, as text with a unit.
    BitRate,
    /// Events a second, as text with a unit.
    PerSecond,
    /// Parts of a million, as text in percent.
    Share,
    /// Nanoseconds, as text with a unit.
    Duration,
    /// A number of a port, in a text.
    Port,
}

impl Range {
    const fn of(unit: Unit, least: u64, most: u64) -> Self {
        Self { least, most, step: 1, unit }
    }
    /// The same, of which only multiples of a step are allowed.
    pub(crate) const fn in_steps_of(self, step: u64) -> Self {
        Self { step, ..self }
    }
    pub(crate) const fn count(least: u64, most: u64) -> Self {
        Self::of(Unit::Count, least, most)
    }
    pub(crate) const fn byte_count(least: u64, most: u64) -> Self {
        Self::of(Unit::ByteCount, least, most)
    }
    pub(crate) const fn port() -> Self {
        Self::of(Unit::Port, 1, u16::MAX as u64)
    }
    pub(crate) const fn duration(least: u64, most: u64) -> Self {
        Self::of(Unit::Duration, least, most)
    }
    pub(crate) const fn bytes(least: u64, most: u64) -> Self {
        Self::of(Unit::Bytes, least, most)
    }
    pub(crate) const fn bit_rate(least: u64, most: u64) -> Self {
        Self::of(Unit::BitRate, least, most)
    }
    pub(crate) const fn per_second(least: u64, most: u64) -> Self {
        Self::of(Unit::PerSecond, least, most)
    }
    pub(crate) const fn share(least_percent: u64, most_percent: u64) -> Self {
        Self::ppm(least_percent * PPM_PER_PERCENT, most_percent * PPM_PER_PERCENT)
    }
    pub(crate) const fn ppm(least: u64, most: u64) -> Self {
        Self::of(Unit::Share, least, most)
    }

    /// What is allowed, as it is written in a plan: `"1 s" to "2 s" is allowed`.
    pub fn allowed(&self) -> String {
        let [least, most] = [self.least, self.most].map(|value| self.unit.toml(value));
        format!("{least} to {most}{}{} is allowed", self.unit.noun(), self.steps(&self.unit.toml(self.step)))
    }

    /// For people: `1 s to 2 s`.
    pub fn words(&self) -> String {
        let [least, most] = [self.least, self.most].map(|value| self.unit.show(value));
        format!("{least} to {most}{}{}", self.unit.noun(), self.steps(&self.unit.show(self.step)))
    }

    fn steps(&self, step: &str) -> String {
        if self.step == 1 { String::new() } else { format!(" in steps of {step}") }
    }

    /// Whether a value is in it.
    pub const fn contains(&self, value: u64) -> bool {
        self.least <= value && value <= self.most && value.is_multiple_of(self.step)
    }
}

/// A value beyond the range of its setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfRange {
    /// The key of the setting in a plan.
    pub key: &'static str,
    /// The value.
    pub value: u64,
    /// What is allowed.
    pub range: Range,
    /// Beside what, when it is less than the range of the setting; else empty.
    pub beside: String,
}

/// For people: `streams is 2000; 1 to 1024 with the engine ... is allowed`.
impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, range, beside } = self;
        write!(f, "{key} is {}; {}{beside} is allowed", range.unit.show(*value), range.words())
    }
}

impl OutOfRange {
    /// The first quantity of a table that is out of its range. `number`: a value by its key, in the unit of its range.
    pub(crate) fn first(settings: &[Setting], number: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        settings.iter().find_map(|setting| {
            let (range, value) = (setting.range?, number(setting.key)?);
            let beside = String::new();
            (!range.contains(value)).then_some(Self { key: setting.key, value, range, beside })
        })
    }
}

/// Parts of a million in a percent.
const PPM_PER_PERCENT: u64 = 10_000;

/// A share in the unit of its range.
pub(crate) fn ppm(share: Percent) -> u64 {
    (share.0 * PPM_PER_PERCENT as f64).round() as u64
}

/// The share that is so many parts of a million.
pub(crate) fn share(ppm: u64) -> Percent {
    Percent(ppm as f64 / PPM_PER_PERCENT as f64)
}

impl Unit {
    /// A value as it is written in a plan, without quotes.
    pub fn show(self, value: u64) -> String {
        match self {
            Self::Count | Self::ByteCount | Self::Port => value.to_string(),
            Self::Duration if value > 0 && value.is_multiple_of(HOUR) => format!("{} h", value / HOUR),
            Self::Duration => Nanos(value).to_string(),
            Self::Bytes => Bytes(value).to_string(),
            Self::BitRate => BitRate(value).to_string(),
            Self::PerSecond if value >= 1_000_000 && value.is_multiple_of(1_000_000) => {
                format!("{} M/s", value / 1_000_000)
            }
            Self::PerSecond if value >= 10_000 && value.is_multiple_of(1_000) => {
                format!("{} k/s", value / 1_000)
            }
            Self::PerSecond => PerSecond(value).to_string(),
            Self::Share => share(value).to_string(),
        }
    }

    /// A value as TOML.
    pub fn toml(self, value: u64) -> String {
        if self.is_number() { self.show(value) } else { format!("\"{}\"", self.show(value)) }
    }

    /// Whether a plan has it as a number, without a unit.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Count | Self::ByteCount)
    }

    /// What follows a value that is written without its unit.
    fn noun(self) -> &'static str {
        if self == Self::ByteCount { " bytes" } else { "" }
    }
}

/// Nanoseconds in an hour, and in a millisecond.
const HOUR: u64 = 3_600_000_000_000;
const MS: u64 = 1_000_000;

/// From the first to the last send.
pub const DURATION: Setting = Setting::within("duration", Range::duration(100 * MS, 24 * HOUR));
/// The duration of a workload that has none in its plan, and of a quick test without `-t`.
pub const DURATION_DEFAULT: Nanos = Nanos(10_000 * MS);

/// The rate of the wire. The kernel's token bucket counts whole bytes per second (`struct tc_ratespec`), its queue in 32 bits, and no
/// veth carries more than 100 Gbit/s; below 8 kbit/s a frame takes longer than a second.
const CAP: Setting = Setting::within("cap", Range::bit_rate(8_000, 100_000_000_000).in_steps_of(8))
    .advise("leave `cap` out for none");

/// The local lab. The rules are walked one by one; IPv6 needs the least MTU (RFC 8200, section 5).
pub const LAB: &[Setting] = &[
    Setting::within("rules", Range::count(0, 10_000)),
    CAP,
    Setting::within("mtu", Range::byte_count(1280, 9000)),
    Setting::within("queues", Range::count(1, 64)),
];

/// The design. Two blocks are the least that differ; verdicts need no more than ten thousand; a run ends within 90 days.
pub const DESIGN: &[Setting] = &[
    Setting::within("blocks_min", Range::count(2, BLOCKS_MOST)),
    Setting::within("blocks_max", Range::count(2, BLOCKS_MOST)),
    Setting::within("budget", Range::duration(1, 90 * 24 * HOUR)).advise("leave `budget` out for no limit"),
    Setting::within("precision", Range::ppm(1, 100 * PPM_PER_PERCENT)),
    Setting::within("equivalence", Range::ppm(1, 100 * PPM_PER_PERCENT)),
    Setting::within("confidence", Range::ppm(80 * PPM_PER_PERCENT, 999_000)),
];
/// The largest block limit.
pub(crate) const BLOCKS_MOST: u64 = 10_000;

/// Most queues of an interface and most weights of an RSS table: no known NIC has more.
pub(crate) const QUEUES_MOST: u64 = 1024;
/// Treatments. Every host takes a packet of 576 bytes whole (RFC 791, section 3.1); over the 68 bytes that IPv4 itself needs, Linux sends no
/// TCP, whose segments have 48 bytes at least (`TCP_MIN_SND_MSS` in include/net/tcp.h).
pub const TREATMENT: &[Setting] = &[
    Setting::within("mtu", Range::byte_count(576, 65_535)),
    Setting::within("queues", Range::count(1, QUEUES_MOST)),
];
/// Descriptors of a ring, the `value` of a treatment `ring`; no known driver has rings of more than 64 Ki.
pub const DESCRIPTORS: Setting = Setting::within("value", Range::count(1, 1 << 20));

/// The bandwidth limit of a host, and of the pair of an arm, Mbit/s: ten terabits a second are more than any NIC has.
pub const BANDWIDTH_LIMIT: &[Setting] = &[Setting::within("expect_mbps", Range::count(1, 10_000_000))];

/// The keys of a host of `launch = "ssh"`.
pub const SSH: &[Setting] = &[Setting::within("port", Range::count(1, u16::MAX as u64))];

/// Both ends of a range of data ports.
pub const DATA_PORT: Setting = Setting::within("data_ports", Range::port());

/// The longest that the steps of a search goal may take together, nanoseconds: a day, as any workload.
pub(crate) const DURATION_SUM_MOST: u64 = 24 * HOUR;
/// A goal of a search. A step shorter than 100 ms is mostly its beginning and its end; after a pause longer than a minute it says
/// nothing else; pacing and clocks do not allow a smaller width.
pub const SEARCH_GOAL: &[Setting] = &[
    Setting::within("final_trial", Range::duration(100 * MS, HOUR)),
    Setting::within("duration_sum", Range::duration(100 * MS, DURATION_SUM_MOST)),
    // Less than 50 %, and less than 100 %.
    Setting::within("loss_ratio", Range::ppm(0, 499_999)),
    Setting::within("exceed_ratio", Range::ppm(0, 999_999)),
    Setting::within("width", Range::ppm(500, 500_000)),
    Setting::within("initial_trial", Range::duration(100 * MS, HOUR)),
    Setting::within("settle", Range::duration(0, 60_000 * MS)),
];

/// The numbers of cores, in every list of cores: `pin_client` and `pin_server` of workloads, `rps`, `xps` and `irq_affinity` of treatments.
/// The largest kernels have 8192 (`NR_CPUS` in arch/x86/Kconfig).
pub(crate) const CORES: Range = Range::count(0, 8191);
/// One of them.
pub const CORE: Setting = Setting::within("core", CORES);

/// Cores and IP version, which every type has. The cores of a list have the range of [`CORE`].
pub(super) const FAMILY: Setting = Setting::free("family");
pub(super) const PIN_CLIENT: Setting = Setting::free("pin_client");
pub(super) const PIN_SERVER: Setting = Setting::free("pin_server");
/// Six bits (RFC 2474, section 3).
pub(super) const DSCP: Setting = Setting::within("dscp", Range::count(0, 63));

/// Bytes that a TCP stream hands over in one call. Each sending thread has a buffer of this size, so that 1,024 of them need 64 GiB at
/// the largest; no send buffer of Linux holds a tenth of it (`tcp_wmem`), so a larger block is no faster.
pub(super) const BLOCK: Setting = Setting::within("block", Range::bytes(1, 64 << 20));
/// The kernel takes less and gives this (SOCK_MIN_RCVBUF in include/net/sock.h). setsockopt(2) takes an int, and the kernel doubles it.
pub(super) const WINDOW: Setting = Setting::within("window", Range::bytes(4096, 1 << 30));
/// At least what the kernel hands over at a time (the largest GSO packet): less arrives at one moment, and has no rate. At most what
/// 400 Gbit/s move in a day, the longest duration; and text with a unit is exact up to twice as much (2^53).
pub(super) const VOLUME: Setting = Setting::within("volume", Range::bytes(64 << 10, 1 << 52));
/// Notes on settings that several types share.
pub(super) const EXCLUDES_OUTSTANDING: &str = "not together with `outstanding`; default: a closed loop";
pub(super) const BOTH_WAIT: &str = "both ends, default `block`";
pub(super) const ONE_IN_FLIGHT: &str = "in a closed loop, default 1";
/// Each is a thread with a stack, or a socket with its buffers.
pub const THREADS_MOST: u64 = 1024;
/// More than any interface has. A schedule beyond it would be as good as none, and look like one.
pub(super) const RATE: Setting = Setting::within("rate", Range::bit_rate(1, 10_000_000_000_000))
    .advise("leave `rate` out to send as fast as it can");
/// A slot for each is kept for the whole trial, and the default socket buffer holds some 270 small datagrams: a thousand fill any queue.
pub(super) const OUTSTANDING: Setting = Setting::within("outstanding", Range::count(1, THREADS_MOST));
/// A thread makes some million system calls a second at most, and a schedule of 100 ns is the finest that its clock can keep.
pub(super) const REQUEST_RATE: Setting = Setting::within("request_rate", Range::per_second(1, 10_000_000))
    .advise("leave `request_rate` out for a closed loop");
/// Sixteen times the largest send buffer that Linux gives by default (`tcp_wmem`): beyond it a message is a stream.
pub(super) const MESSAGE_MOST: u64 = 16 << 20;
/// 65535 less the headers of IPv4 (20) and UDP (8).
pub(super) const DATAGRAM_MOST: u64 = 65_507;
/// The header of a stream's datagram: the magic of the trial, its number and its send time.
pub(super) const DATAGRAM_LEAST: u64 = 24;
/// The header of a message as a datagram: the magic of the trial and its number.
pub(crate) const MESSAGE_LEAST: u64 = 16;
/// A probe fits an MTU of 1500.
pub(super) const PROBE_MOST: u64 = 1472;
