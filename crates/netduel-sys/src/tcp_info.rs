//! The kernel's state of a connection (TCP_INFO, tcp(7)). Offsets are those of `struct tcp_info` in
//! include/uapi/linux/tcp.h of Linux 6.12; the struct grows at its end only, so a field is present when the length
//! that the kernel returned covers it.
use std::io;
use std::net::TcpStream;

use crate::socket_option;

/// Buffer size, larger than the struct of any kernel so far (248 bytes in 6.12).
const LENGTH_MAX: usize = 512;

/// The returned struct.
#[derive(Debug, Clone)]
pub struct TcpInfo {
    bytes: [u8; LENGTH_MAX],
    length: usize,
}

/// Reads the struct of a connection.
///
/// # Errors
/// None on an open TCP socket.
pub fn read(stream: &TcpStream) -> io::Result<TcpInfo> {
    let mut bytes = [0; LENGTH_MAX];
    let length = socket_option::read_bytes(stream, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    Ok(TcpInfo { bytes, length })
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $offset:literal),+ $(,)?) => {
        impl TcpInfo {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> Option<$type> {
                    let field = self.bytes[..self.length].get($offset..$offset + size_of::<$type>())?;
                    field.try_into().ok().map(<$type>::from_ne_bytes)
                }
            )+
        }
    };
}

fields! {
    /// The state (include/net/tcp_states.h).
    state: u8 = 0,
    /// Sender's maximum segment size, bytes.
    snd_mss: u32 = 16,
    /// Unacknowledged segments now.
    unacked: u32 = 24,
    /// Segments considered lost now.
    lost: u32 = 32,
    /// Path MTU, bytes.
    pmtu: u32 = 60,
    /// Smoothed round trip, microseconds.
    rtt: u32 = 68,
    /// Its variation, microseconds.
    rttvar: u32 = 72,
    /// Congestion window, segments.
    snd_cwnd: u32 = 80,
    /// Retransmitted segments, whole connection.
    total_retrans: u32 = 100,
    /// Bytes acknowledged by the peer; Linux 4.1 and later, as is all below.
    bytes_acked: u64 = 120,
    /// Bytes received in order.
    bytes_received: u64 = 128,
    /// Segments sent.
    segs_out: u32 = 136,
    /// Segments received.
    segs_in: u32 = 140,
    /// Unsent bytes in the send buffer; Linux 4.6 and later.
    notsent_bytes: u32 = 144,
    /// Smallest round trip seen, microseconds; `u32::MAX` when none was measured.
    min_rtt: u32 = 148,
    /// Time with data in flight, microseconds.
    busy_time: u64 = 168,
    /// Of this, limited by the peer's window, microseconds.
    rwnd_limited: u64 = 176,
    /// Of this, limited by the send buffer, microseconds.
    sndbuf_limited: u64 = 184,
    /// Spurious retransmits by DSACK (RFC 2883), segments; Linux 4.19 and later.
    dsack_dups: u32 = 216,
    /// Times that reordering was seen; Linux 4.19 and later.
    reord_seen: u32 = 220,
    /// Window that this end offers, bytes; Linux 6.2 and later.
    rcv_wnd: u32 = 232,
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn tcp_info_agrees_with_the_sent_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(&[7; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        // The answer carries the acknowledgement, so after it both structs are complete.
        server.write_all(&[1]).unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
        assert_eq!(read(&server).unwrap().bytes_received(), Some(5000));
        let info = read(&client).unwrap();
        // The SYN takes a sequence number and is counted (RFC 9293 section 3.4).
        assert_eq!(info.bytes_acked(), Some(5001));
        assert!(info.snd_mss().is_some_and(|mss| mss > 500 && mss < 65_536));
        assert!(info.pmtu().is_some_and(|mtu| mtu > 500));
        assert!(info.snd_cwnd().is_some_and(|window| window >= 10));
        assert!(info.segs_out().is_some_and(|segments| segments >= 2));
        assert_eq!(info.total_retrans(), Some(0));
        assert_eq!((info.unacked(), info.notsent_bytes()), (Some(0), Some(0)));
    }

    #[test]
    fn field_beyond_the_returned_length_is_absent() {
        let info = TcpInfo { bytes: [1; LENGTH_MAX], length: 104 };
        assert!(info.total_retrans().is_some());
        assert_eq!(info.bytes_acked(), None);
        assert_eq!(TcpInfo { bytes: [1; LENGTH_MAX], length: 102 }.total_retrans(), None);
    }
}
