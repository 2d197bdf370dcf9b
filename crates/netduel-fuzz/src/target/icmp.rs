//! Messages that a socket for echo requests receives: a raw one gets those of any sender.
use netduel_sys::icmp::{HEADER, payload_of_reply};

/// Finds the payload of a reply, for sockets of each kind and version of IP. The first two bytes are the identifier.
pub(crate) fn run(bytes: &[u8]) {
    let Some((id, message)) = bytes.split_first_chunk() else { return };
    let id = u16::from_be_bytes(*id);
    for is_v6 in [false, true] {
        let of_datagrams = payload_of_reply(message, is_v6, None);
        assert_eq!(of_datagrams.map(<[u8]>::len), of_datagrams.map(|_| message.len() - HEADER));
        for other in [id, id ^ 1] {
            let Some(payload) = payload_of_reply(message, is_v6, Some(other)) else { continue };
            assert!(message.ends_with(payload) && payload.len() + HEADER <= message.len(), "{message:?}");
            assert_eq!(payload_of_reply(message, is_v6, Some(other ^ 1)), None, "two identifiers match");
        }
    }
}
