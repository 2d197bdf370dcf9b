//! The header of the datagrams: a magic number that identifies the flow, a sequence number and a time. Pure bytes, no socket.
use netduel_model::ids::Token;
use netduel_model::workload::Role;

/// Bytes of the header of a `udp-stream` datagram: magic, number, time of sending.
pub(crate) const STREAM_HEADER: usize = 24;
/// Bytes of the header of a `udp-rr` message: magic, number.
pub(crate) const MESSAGE_HEADER: usize = 16;
/// Largest UDP payload over IPv4 (65535 less 20 and 8 bytes of headers), used for IPv6 too.
#[cfg(test)]
pub(crate) const PAYLOAD_MAX: usize = 65_507;
/// What to do when a test with literal bytes fails: the bytes between two ends have no version of their own.
#[cfg(test)]
pub(crate) const CHANGED_BYTES: &str =
    "bytes between ends changed: raise PROTOCOL in netduel-control if it is released, and update this test";

/// The direction of a datagram and its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Payload or request of the client.
    FromClient = 1,
    /// Payload or response of the server.
    FromServer = 2,
    /// End marker of the client.
    ClientEnds = 3,
    /// End marker of the server.
    ServerEnds = 4,
    /// Tests whether the client's interface segments GSO buffers; not part of the traffic.
    SegmentationProbe = 5,
}

/// Payload and end marker that an end sends, and those that it expects.
pub(crate) fn kinds(role: Role) -> ((Kind, Kind), (Kind, Kind)) {
    let client = (Kind::FromClient, Kind::ClientEnds);
    let server = (Kind::FromServer, Kind::ServerEnds);
    match role {
        Role::Client => (client, server),
        Role::Server => (server, client),
    }
}

/// The first 8 bytes of each datagram, derived from the token. It excludes late datagrams of earlier trials and those of other
/// programs from the counts. It is no protection: the connected socket excludes other senders.
pub(crate) fn magic(token: Token, flow: u32, kind: Kind) -> u64 {
    let secret = u128::from_le_bytes(token.0);
    let folded = (secret as u64) ^ ((secret >> 64) as u64).rotate_left(29);
    // The finaliser of splitmix64 (Steele, Lea, Flood 2014) spreads the few bits of flow and kind over the whole number.
    let mut mixed =
        folded.wrapping_add(((u64::from(flow) << 8) | kind as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Writes magic and number.
#[inline]
pub(crate) fn write_number(payload: &mut [u8], magic: u64, number: u64) {
    payload[..8].copy_from_slice(&magic.to_le_bytes());
    payload[8..16].copy_from_slice(&number.to_le_bytes());
}

/// Writes the time of sending, nanoseconds of the sender's monotonic clock.
#[inline]
pub(crate) fn write_time(payload: &mut [u8], sent_ns: u64) {
    payload[16..24].copy_from_slice(&sent_ns.to_le_bytes());
}

#[inline]
fn word(payload: &[u8], index: usize) -> Option<u64> {
    payload.get(index * 8..index * 8 + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// The magic of a datagram; absent when it is too short to have one.
#[inline]
pub(crate) fn read_magic(payload: &[u8]) -> Option<u64> {
    word(payload, 0)
}

/// The number of a datagram.
#[inline]
pub(crate) fn read_number(payload: &[u8]) -> Option<u64> {
    word(payload, 1)
}

/// The time of sending, on the sender's clock.
#[inline]
pub(crate) fn read_time(payload: &[u8]) -> Option<u64> {
    word(payload, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read_as_it_was_written() {
        let mut payload = [0; STREAM_HEADER];
        write_number(&mut payload, 7, 8);
        write_time(&mut payload, 9);
        assert_eq!(
            (read_magic(&payload), read_number(&payload), read_time(&payload)),
            (Some(7), Some(8), Some(9))
        );
        assert_eq!(read_time(&payload[..20]), None);
    }

    #[test]
    fn bytes_are_those_of_protocol_3() {
        let token = Token(*b"sixteen bytes ok");
        let kinds =
            [Kind::FromClient, Kind::FromServer, Kind::ClientEnds, Kind::ServerEnds, Kind::SegmentationProbe];
        let magics = kinds.map(|kind| magic(token, 7, kind));
        let expected = [
            0x3716_25fd_d84d_32ff_u64,
            0x2937_1577_3e9a_067c,
            0xa60c_8d38_2d55_5ca1,
            0x740f_24f8_4f17_cf1e,
            0xa4ea_ed61_dc65_b0f1,
        ];
        assert_eq!(magics, expected, "{CHANGED_BYTES}");

        let mut header = [0; STREAM_HEADER];
        write_number(&mut header, magics[0], 0x1122_3344_5566_7788);
        write_time(&mut header, 0x0102_0304_0506_0708);
        let expected = [
            [0xff_u8, 0x32, 0x4d, 0xd8, 0xfd, 0x25, 0x16, 0x37],
            [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11],
            [0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01],
        ];
        assert_eq!(header[..], expected.concat(), "{CHANGED_BYTES}");
    }

    #[test]
    fn magics_differ_by_token_flow_and_kind() {
        let mut all = Vec::new();
        for token in [Token([0; 16]), Token([1; 16]), Token(*b"0123456789abcdef")] {
            for flow in 0..200 {
                for kind in [Kind::FromClient, Kind::FromServer, Kind::ClientEnds, Kind::ServerEnds] {
                    all.push(magic(token, flow, kind));
                }
            }
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
