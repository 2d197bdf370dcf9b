//! `tcp-rr`: requests and responses over one TCP connection.
use super::by_hand::{ByHand, QuickTest};
use super::facts::{Facts, Sockets, TcpFacts, Wire};
use super::round_trip::{self, RoundTrip};
pub(super) use super::round_trip::{check, number, resolve, words};
use super::setting::{self, Range, Setting};
use super::timing::Timing;

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    Setting::within("size", Range::bytes(1, setting::MESSAGE_MOST)).described_by(round_trip::size_text),
    setting::OUTSTANDING.described(setting::ONE_IN_FLIGHT),
    Setting::free("wait").described(setting::BOTH_WAIT),
    setting::REQUEST_RATE.described(setting::EXCLUDES_OUTSTANDING),
    Setting::free("timestamps").described(
        "a response of at least 48 B carries the server's times; with less, network and server are one part",
    ),
    Setting::free("congestion"),
];

pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    Facts {
        sockets: Sockets { tcp: 1, counters: 1, bulk: 1, accounted: 1, ..Sockets::default() },
        wire: Wire::Segments,
        tcp: TcpFacts { congestion: settings.congestion.as_deref(), ..TcpFacts::default() },
        ..round_trip::facts(settings)
    }
}

/// What repeats it by hand.
pub(super) fn by_hand(settings: &RoundTrip, timing: &Timing) -> ByHand {
    ByHand::Test(QuickTest::timed("rr", timing.duration, round_trip::options(settings)))
}
