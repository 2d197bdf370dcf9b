//! `udp-rr`: requests and responses as UDP datagrams.
use super::facts::{Facts, Sockets, Wire};
pub(super) use super::round_trip::number;
use super::round_trip::{self, RoundTrip};
use super::setting::{self, Range, Setting};
use super::terms::UdpOffload;

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    Setting::within("size", Range::bytes(setting::MESSAGE_LEAST, setting::DATAGRAM_MOST))
        .advise("a datagram begins with whose it is and its number"),
    setting::OUTSTANDING,
    Setting::free("wait"),
    setting::REQUEST_RATE,
    Setting::free("timestamps"),
];

pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    Facts {
        sockets: Sockets { udp: 1, lanes: 1, bulk: 1, ..Sockets::default() },
        wire: Wire::Datagrams { size: settings.size, offload: UdpOffload::None },
        finish_cuts: true,
        ..round_trip::facts(settings)
    }
}
