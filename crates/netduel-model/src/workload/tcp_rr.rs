//! `tcp-rr`: requests and responses over one TCP connection.
use super::facts::{Facts, Sockets, TcpFacts, Wire};
pub(super) use super::round_trip::number;
use super::round_trip::{self, RoundTrip};
use super::setting::{self, Range, Setting};

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    Setting::within("size", Range::bytes(1, setting::MESSAGE_MOST)),
    setting::OUTSTANDING,
    Setting::free("wait"),
    setting::REQUEST_RATE,
    Setting::free("timestamps"),
    Setting::free("congestion"),
];

pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    Facts {
        sockets: Sockets { tcp: 1, lanes: 1, bulk: 1, accounted: 1, ..Sockets::default() },
        wire: Wire::Segments,
        tcp: TcpFacts { congestion: settings.congestion.as_deref(), ..TcpFacts::default() },
        ..round_trip::facts(settings)
    }
}
