//! A netlink socket that stays in the network namespace it was opened in, whatever namespace its owner enters later.
use netlink_sys::Socket;
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use rustix::net::{RecvFlags, SendFlags};

use super::message::{DONE, DUMP, ERROR, Message, Received, attribute, parse, u32_at};
use crate::error::{Errno, LabError};

/// More than the kernel puts in one datagram (32 KiB of a dump).
const BUFFER: usize = 64 * 1024;
/// `NLMSGERR_ATTR_MSG`: the kernel's own words on an error.
const ERROR_TEXT: u16 = 1;

/// What is done, and to what: the beginning of every error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    /// A verb phrase, for example `create bridge`.
    pub operation: &'a str,
    /// For example `h1/vsw0`.
    pub object: &'a str,
    /// The kernel option and module without which it cannot work; absent when every kernel can do it.
    pub feature: Option<&'a str>,
}

impl Step<'_> {
    /// The error of this step.
    pub(crate) fn failed(&self, errno: Errno, words: Option<&str>) -> LabError {
        let unsupported =
            [Errno::OPNOTSUPP, Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT, Errno::NOENT].contains(&errno);
        let (operation, object) = (self.operation.to_owned(), self.object.to_owned());
        match self.feature {
            Some(feature) if unsupported => {
                LabError::KernelFeature { operation, object, errno, feature: feature.to_owned() }
            }
            _ => {
                let detail = words.map(|words| format!("; the kernel says \"{words}\"")).unwrap_or_default();
                LabError::Kernel { operation, object, errno, detail }
            }
        }
    }
}

/// A netlink socket.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket for links, addresses, neighbours and queueing.
    pub(crate) fn route() -> std::io::Result<Self> {
        Self::open(NETLINK_ROUTE)
    }

    /// Opens a socket for nftables.
    pub(crate) fn netfilter() -> std::io::Result<Self> {
        Self::open(NETLINK_NETFILTER)
    }

    fn open(protocol: isize) -> std::io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.set_cap_ack(true)?;
        socket.set_ext_ack(true)?;
        Ok(Self { socket, sequence: 0 })
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn send(&self, bytes: &[u8], step: Step<'_>) -> Result<(), LabError> {
        rustix::net::send(&self.socket, bytes, SendFlags::empty())
            .map(|_| ())
            .map_err(|error| step.failed(Errno(error.raw_os_error()), None))
    }

    /// Receives one datagram. The kernel handles a request within send(2), so an answer that is not there never comes.
    fn receive(&self, step: Step<'_>) -> Result<Vec<Received>, LabError> {
        let mut buffer = vec![0; BUFFER];
        let (length, _) = rustix::net::recv(&self.socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT)
            .map_err(|error| step.failed(Errno(error.raw_os_error()), Some("no answer to a request")))?;
        Ok(parse(&buffer[..length]))
    }

    /// Sends a request and takes its acknowledgement.
    pub(crate) fn request(&mut self, message: Message, step: Step<'_>) -> Result<(), LabError> {
        let sequence = self.next_sequence();
        self.send(&message.acknowledged().finish(sequence), step)?;
        self.acknowledged(sequence, sequence, step)
    }

    /// Sends several messages as one datagram, the last of which is to be acknowledged; any error fails them all.
    pub(crate) fn batch(&mut self, messages: Vec<Message>, step: Step<'_>) -> Result<(), LabError> {
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        for message in messages {
            let sequence = self.next_sequence();
            bytes.extend_from_slice(&message.finish(sequence));
        }
        self.send(&bytes, step)?;
        self.acknowledged(first, self.sequence, step)
    }

    /// Reads until the acknowledgement of a message in `first..=last`, or the first error of one of them.
    fn acknowledged(&self, first: u32, last: u32, step: Step<'_>) -> Result<(), LabError> {
        loop {
            for answer in self.receive(step)? {
                if answer.kind == ERROR && (first..=last).contains(&answer.sequence) {
                    return acknowledgement(&answer, step);
                }
            }
        }
    }

    /// Sends a request for one object and takes the answer.
    pub(crate) fn get(&mut self, message: Message, step: Step<'_>) -> Result<Vec<u8>, LabError> {
        let sequence = self.next_sequence();
        self.send(&message.finish(sequence), step)?;
        loop {
            for answer in self.receive(step)? {
                match answer.kind {
                    _ if answer.sequence != sequence => {}
                    ERROR => acknowledgement(&answer, step)?,
                    _ => return Ok(answer.payload),
                }
            }
        }
    }

    /// Sends a request for a table and takes all its rows.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        body: &[u8],
        fill: impl FnOnce(Message) -> Message,
        step: Step<'_>,
    ) -> Result<Vec<Vec<u8>>, LabError> {
        let sequence = self.next_sequence();
        self.send(&fill(Message::new(kind, DUMP, body)).finish(sequence), step)?;
        let mut rows = Vec::new();
        loop {
            for answer in self.receive(step)? {
                match answer.kind {
                    _ if answer.sequence != sequence => {}
                    ERROR => acknowledgement(&answer, step)?,
                    DONE => return Ok(rows),
                    _ => rows.push(answer.payload),
                }
            }
        }
    }
}

/// What an acknowledgement says (`struct nlmsgerr`): 0, or a negative error number and perhaps words.
fn acknowledgement(answer: &Received, step: Step<'_>) -> Result<(), LabError> {
    let Some(code) = u32_at(&answer.payload, 0) else { return Err(step.failed(Errno::IO, None)) };
    if code == 0 {
        return Ok(());
    }
    // The socket asks for capped errors: after the number comes only the header of the request.
    let words = answer
        .payload
        .get(4 + super::message::HEADER..)
        .and_then(|rest| attribute(rest, ERROR_TEXT))
        .map(|text| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
    Err(step.failed(Errno(code.cast_signed().wrapping_neg()), words.as_deref()))
}
