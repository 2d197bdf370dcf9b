//! Datagrams past the network stack: the sender writes whole frames, the receiver takes or counts them before the stack does. Flows
//! are greeted over their sockets as ever, and the frames are those that these sockets would send, so that ports, tokens and
//! accounting are the same for all engines.
mod frame;
mod maker;
mod programs;
mod raw;
mod receiver;
mod sender;

pub(crate) use raw::Raw;
pub(crate) use sender::RawSender;

/// Where frames leave or arrive: what an agent knows of the interface, because this crate does not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPath {
    /// Name of the interface, for messages.
    pub interface: String,
    /// Its index.
    pub index: u32,
    /// Its queues: for sending at the sender, for receiving at the receiver.
    pub queues: u32,
    /// The hardware address of this host's end of the path; of no use to a receiver.
    pub own_mac: [u8; 6],
    /// That of the next hop to the peer; of no use to a receiver.
    pub peer_mac: [u8; 6],
}
