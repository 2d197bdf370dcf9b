//! TCP_INFO and socket options of a connection, for the report.
use std::net::TcpStream;

use netduel_model::sample::TcpInfo;
use netduel_sys::{socket, tcp, tcp_info};

/// Reads TCP_INFO, congestion control and send buffer of a connection.
pub(crate) fn read(stream: &TcpStream) -> std::io::Result<TcpInfo> {
    let info = tcp_info::read(stream)?;
    Ok(TcpInfo {
        congestion: tcp::congestion(stream).ok(),
        snd_mss: info.snd_mss(),
        pmtu: info.pmtu(),
        rtt_us: info.rtt(),
        rttvar_us: info.rttvar(),
        min_rtt_us: info.min_rtt().filter(|value| *value != u32::MAX),
        snd_cwnd: info.snd_cwnd(),
        retransmits: info.total_retrans(),
        dsack_dups: info.dsack_dups(),
        lost: info.lost(),
        reord_seen: info.reord_seen(),
        segs_out: info.segs_out(),
        segs_in: info.segs_in(),
        bytes_acked: info.bytes_acked(),
        bytes_received: info.bytes_received(),
        sndbuf: socket::send_buffer(stream).ok().map(|bytes| bytes as u64),
        rcv_wnd: info.rcv_wnd(),
        busy_us: info.busy_time(),
        rwnd_limited_us: info.rwnd_limited(),
        sndbuf_limited_us: info.sndbuf_limited(),
    })
}
