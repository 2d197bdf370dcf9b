//! `udp-rr`: requests and responses as UDP datagrams.
use super::facts::{Facts, Sockets, Wire};
use super::round_trip::{self, RoundTrip};
use super::terms::UdpOffload;

pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    Facts {
        sockets: Sockets { udp: 1, lanes: 1, bulk: 1, ..Sockets::default() },
        wire: Wire::Datagrams { size: settings.size, offload: UdpOffload::None },
        finish_cuts: true,
        ..round_trip::facts(settings)
    }
}
