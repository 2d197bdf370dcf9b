//! `tcp-rr`: requests and responses over one TCP connection.
use super::facts::{Facts, Sockets, TcpFacts, Wire};
use super::round_trip::{self, RoundTrip};

pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    Facts {
        sockets: Sockets { tcp: 1, lanes: 1, bulk: 1, accounted: 1, ..Sockets::default() },
        wire: Wire::Segments,
        tcp: TcpFacts { congestion: settings.congestion.as_deref(), ..TcpFacts::default() },
        ..round_trip::facts(settings)
    }
}
