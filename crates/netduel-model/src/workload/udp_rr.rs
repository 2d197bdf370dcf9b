//! `udp-rr`: requests and responses as UDP datagrams.
use super::by_hand::{ByHand, QuickTest, over_udp};
use super::facts::{Facts, Sockets, Wire};
use super::round_trip::{self, RoundTrip};
pub(super) use super::round_trip::{check, number, resolve, words};
use super::setting::{self, Range, Setting};
use super::terms::UdpOffload;
use super::timing::Timing;

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    Setting::within("size", Range::bytes(setting::MESSAGE_LEAST, setting::DATAGRAM_MOST))
        .described_by(round_trip::size_text)
        .advise("a datagram begins with the identity of its trial and its number"),
    setting::OUTSTANDING.described(setting::ONE_IN_FLIGHT),
    Setting::free("wait").described(setting::BOTH_WAIT),
    setting::REQUEST_RATE.described(setting::EXCLUDES_OUTSTANDING),
    Setting::free("timestamps").described(
        "a response of at least 64 B carries the server's times; with less, network and server are one part",
    ),
];

pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    Facts {
        sockets: Sockets { udp: 1, counters: 1, bulk: 1, ..Sockets::default() },
        wire: Wire::Datagrams { size: settings.size, offload: UdpOffload::None },
        finish_shuts_down: true,
        possible_metrics: round_trip::DATAGRAM_METRICS,
        ..round_trip::facts(settings)
    }
}

/// What repeats it by hand.
pub(super) fn by_hand(settings: &RoundTrip, timing: &Timing) -> ByHand {
    ByHand::Test(QuickTest::timed("rr", timing.duration, over_udp(round_trip::options(settings))))
}
