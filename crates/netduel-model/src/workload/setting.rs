//! The settings of a type of workload as they stand in a plan, with their ranges. A range stands in the file of its type and nowhere else:
//! `plan check`, quick tests, the JSON Schema and the guide, agents and `netduel serve` all read it from there.
use crate::units::{BitRate, Bytes, PerSecond, Percent};

/// A setting of a type of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its key in a plan.
    pub key: &'static str,
    /// Its range, when it is a quantity.
    pub range: Option<Range>,
    /// What an author should know who is out of it; may be empty.
    pub advice: &'static str,
}

impl Setting {
    /// A setting that is not a quantity.
    pub(super) const fn free(key: &'static str) -> Self {
        Self { key, range: None, advice: "" }
    }

    /// A quantity.
    pub(super) const fn within(key: &'static str, range: Range) -> Self {
        Self { key, range: Some(range), advice: "" }
    }

    /// The same, with advice.
    pub(super) const fn advise(self, advice: &'static str) -> Self {
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
    /// What they are.
    pub unit: Unit,
}

/// What the numbers of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes, as text with a unit.
    Bytes,
    /// Bits a second, as text with a unit.
    BitRate,
    /// Events a second, as text with a unit.
    PerSecond,
    /// Parts of a million, as text in percent.
    Share,
}

impl Range {
    pub(super) const fn count(least: u64, most: u64) -> Self {
        Self { least, most, unit: Unit::Count }
    }
    pub(super) const fn bytes(least: u64, most: u64) -> Self {
        Self { least, most, unit: Unit::Bytes }
    }
    pub(super) const fn bit_rate(least: u64, most: u64) -> Self {
        Self { least, most, unit: Unit::BitRate }
    }
    pub(super) const fn per_second(least: u64, most: u64) -> Self {
        Self { least, most, unit: Unit::PerSecond }
    }
    pub(super) const fn share(least_percent: u64, most_percent: u64) -> Self {
        Self {
            least: least_percent * PPM_PER_PERCENT,
            most: most_percent * PPM_PER_PERCENT,
            unit: Unit::Share,
        }
    }

    /// Whether a value is in it.
    pub const fn contains(&self, value: u64) -> bool {
        self.least <= value && value <= self.most
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
            Self::Count => value.to_string(),
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
        match self {
            Self::Count => self.show(value),
            _ => format!("\"{}\"", self.show(value)),
        }
    }
}

/// Cores and IP version, which every type has.
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
/// What 400 Gbit/s move in a day, the longest duration; and text with a unit is exact up to twice as much (2^53).
pub(super) const VOLUME: Setting = Setting::within("volume", Range::bytes(1, 1 << 52));
/// Each is a thread with a stack, or a socket with its buffers.
pub(super) const THREADS_MOST: u64 = 1024;
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
/// What a datagram of a stream begins with: whose it is, its number and the time it was sent.
pub(super) const DATAGRAM_LEAST: u64 = 24;
/// What a message as a datagram begins with: whose it is and its number.
pub(super) const MESSAGE_LEAST: u64 = 16;
/// A probe fits an MTU of 1500.
pub(super) const PROBE_MOST: u64 = 1472;
