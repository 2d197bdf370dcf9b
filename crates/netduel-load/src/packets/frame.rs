//! Ethernet frames with a UDP datagram, written byte by byte (RFC 791, RFC 8200, RFC 768). Pure: no socket.
use std::net::{IpAddr, SocketAddr};

use super::bypass_path::BypassPath;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// Minimum frame length (IEEE 802.3, without the check sequence of 4 bytes); shorter frames are padded.
pub(crate) const FRAME_MIN: usize = 60;
const PROTOCOL_UDP: u8 = 17;
/// Time to live.
const HOPS: u8 = 64;

/// The template of the frames of one flow; they differ at the beginning of the payload only.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    payload_at: usize,
    payload_len: usize,
    /// Checksum of the datagram without its payload, for IPv6, where the checksum is mandatory.
    sum: Option<u32>,
}

impl Template {
    /// Frames of datagrams with `payload_len` bytes between two addresses of one family.
    ///
    /// # Panics
    /// When the addresses are of two families, which no socket has.
    pub(crate) fn new(path: &BypassPath, from: SocketAddr, to: SocketAddr, payload_len: usize) -> Self {
        let mut bytes = Vec::new();
        bytes.extend(path.peer_mac);
        bytes.extend(path.own_mac);
        let udp_len = (UDP + payload_len) as u16;
        let sum = match (from.ip(), to.ip()) {
            (IpAddr::V4(from_ip), IpAddr::V4(to_ip)) => {
                bytes.extend([0x08, 0x00]);
                let total = IPV4 as u16 + udp_len;
                let mut head = [0; IPV4];
                head[0] = 0x45;
                head[2..4].copy_from_slice(&total.to_be_bytes());
                // Do not fragment: a frame that is too large must be lost, not split.
                head[6] = 0x40;
                head[8] = HOPS;
                head[9] = PROTOCOL_UDP;
                head[12..16].copy_from_slice(&from_ip.octets());
                head[16..20].copy_from_slice(&to_ip.octets());
                let check = finish(words(&head));
                head[10..12].copy_from_slice(&check.to_be_bytes());
                bytes.extend(head);
                // RFC 768: the checksum is optional over IPv4.
                None
            }
            (IpAddr::V6(from_ip), IpAddr::V6(to_ip)) => {
                bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                bytes.extend(udp_len.to_be_bytes());
                bytes.extend([PROTOCOL_UDP, HOPS]);
                bytes.extend(from_ip.octets());
                bytes.extend(to_ip.octets());
                let addresses = words(&from_ip.octets()) + words(&to_ip.octets());
                let ports = u32::from(from.port()) + u32::from(to.port());
                // The length counts twice: in the pseudo-header and in the header.
                Some(addresses + ports + 2 * u32::from(udp_len) + u32::from(PROTOCOL_UDP))
            }
            _ => unreachable!("a connected socket has one family"),
        };
        bytes.extend(from.port().to_be_bytes());
        bytes.extend(to.port().to_be_bytes());
        bytes.extend(udp_len.to_be_bytes());
        bytes.extend([0; 2]);
        let payload_at = bytes.len();
        bytes.resize((payload_at + payload_len).max(FRAME_MIN), 0);
        Self { bytes, payload_at, payload_len, sum }
    }

    /// Where the payload begins.
    pub(crate) fn payload_at(&self) -> usize {
        self.payload_at
    }

    /// The frame without a payload, as long as those with one.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the frame with this payload, and returns its length.
    #[inline]
    pub(crate) fn write(&self, payload: &[u8], frame: &mut [u8]) -> usize {
        let length = self.bytes.len();
        debug_assert_eq!(payload.len(), self.payload_len);
        frame[..self.payload_at].copy_from_slice(&self.bytes[..self.payload_at]);
        frame[self.payload_at..self.payload_at + payload.len()].copy_from_slice(payload);
        frame[self.payload_at + payload.len()..length].fill(0);
        if let Some(sum) = self.sum {
            let check = match finish(sum + words(payload)) {
                // RFC 8200, section 8.1: a checksum of 0 is sent as 0xffff.
                0 => 0xffff,
                check => check,
            };
            frame[self.payload_at - 2..self.payload_at].copy_from_slice(&check.to_be_bytes());
        }
        length
    }
}

/// The sum of 16-bit words; an odd last byte counts as the upper one. No payload of a frame overflows it.
fn words(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u32 = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    sum + rest.first().map_or(0, |byte| u32::from(*byte) << 8)
}

/// The complement of the sum in ones' complement arithmetic (RFC 1071).
fn finish(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The payload of a frame that carries a datagram to this port; `None` for anything else.
#[inline]
pub fn payload(frame: &[u8]) -> Option<(u16, &[u8])> {
    let udp = match frame.get(12..14)? {
        [0x08, 0x00] if frame.get(14)? == &0x45 && frame.get(23)? == &PROTOCOL_UDP => ETHERNET + IPV4,
        [0x86, 0xdd] if frame.get(20)? == &PROTOCOL_UDP => ETHERNET + IPV6,
        _ => return None,
    };
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let (port, length) = (word(udp + 2)?, usize::from(word(udp + 4)?));
    Some((port, frame.get(udp + UDP..udp + length)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(from: &str, to: &str, length: usize) -> Template {
        let path = BypassPath {
            interface: "veth0".to_owned(),
            index: 1,
            xdp: None,
            queues: 1,
            own_mac: [2, 0, 0, 0, 0, 1],
            peer_mac: [2, 0, 0, 0, 0, 2],
        };
        Template::new(&path, from.parse().unwrap(), to.parse().unwrap(), length)
    }

    #[test]
    fn frame_has_the_standard_layout() {
        let template = template("10.77.0.1:1000", "10.77.0.2:2000", 18);
        let mut frame = [0xaa; 64];
        let payload_bytes: [u8; 18] = std::array::from_fn(|index| index as u8);
        assert_eq!(template.write(&payload_bytes, &mut frame), 60);
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        // A header with its sum in place sums to all ones.
        assert_eq!(finish(words(&frame[14..34])), 0);
        assert_eq!(frame[34..42], [0x03, 0xe8, 0x07, 0xd0, 0, 26, 0, 0]);
        assert_eq!(payload(&frame[..60]), Some((2000, &payload_bytes[..])));
        assert_eq!(payload(&frame[..50]), None);
    }

    #[test]
    fn ipv6_checksum_is_valid_for_every_payload() {
        let template = template("[fd77::1]:1000", "[fd77::2]:2000", 25);
        for first in 0..=255_u8 {
            let bytes = [first; 25];
            let mut frame = [0; 128];
            let length = template.write(&bytes, &mut frame);
            assert_eq!(payload(&frame[..length]), Some((2000, &bytes[..])));
            // RFC 8200, section 8.1: addresses, length, protocol, and the datagram sum to all ones.
            let sum = words(&frame[22..54]) + 33 + 17 + words(&frame[54..length]);
            assert_eq!(finish(sum), 0, "{first}");
        }
    }

    #[test]
    fn short_frames_are_padded_to_the_minimum() {
        let template = template("10.77.0.1:1", "10.77.0.2:2", 16);
        let mut frame = [0xaa; 64];
        assert_eq!(template.write(&[7; 16], &mut frame), FRAME_MIN);
        assert_eq!((payload(&frame[..60]), &frame[58..60]), (Some((2, &[7; 16][..])), &[0, 0][..]));
    }
}
