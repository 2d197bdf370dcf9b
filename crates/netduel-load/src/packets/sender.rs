//! Sending by AF_XDP: one socket for each thread, each on a queue of its own.
use std::io;
use std::net::UdpSocket;

use netduel_model::packet_path::{PacketReport, QueuePackets};
use netduel_sys::xdp::{Settings, XdpSocket, ZeroCopy};
use netduel_sys::{clock, error_name};

use super::attachment::Attachment;
use super::bypass_path::BypassPath;
use super::frame::Template;

/// Frames that the kernel takes per call when it copies (TX_BATCH_SIZE in net/xdp/xsk.c).
const TAKEN: usize = 32;
/// Frames in flight per thread.
const FRAMES: u32 = 2048;
/// How long the last frames may take to leave, nanoseconds.
const FLUSH_NS: u64 = 1_000_000_000;

/// A socket with the frames of its flows.
#[derive(Debug)]
pub(crate) struct XdpSender {
    socket: XdpSocket,
    path: BypassPath,
    templates: Vec<(usize, Template)>,
    queue: u32,
    sent: u64,
    /// Frames that the kernel accepted and the interface dropped.
    refused: u64,
    /// The error of a call whose frames were submitted already.
    failed: Option<io::Error>,
    attachment: Attachment,
}

impl XdpSender {
    /// Opens a socket on a queue of the interface; with zero copy when the attachment is a program, which allows it.
    pub(crate) fn open(path: &BypassPath, queue: u32, attachment: Attachment) -> io::Result<Self> {
        let may_share = attachment.has_program();
        // A zero-copy queue also receives into the frames of its socket.
        let settings = Settings {
            interface: path.index,
            queue,
            send_frames: FRAMES,
            receive_frames: if may_share { FRAMES } else { 0 },
            zero_copy: if may_share { ZeroCopy::Auto } else { ZeroCopy::Never },
            ..Settings::default()
        };
        let socket = XdpSocket::open(&settings)?;
        // A driver that does not serve the queue returns the error even with nothing to send.
        let socket = match socket.kick() {
            Err(error) if socket.is_zero_copy() && !is_full(&error) => {
                drop(socket);
                XdpSocket::open(&Settings { zero_copy: ZeroCopy::Never, ..settings })?
            }
            _ => socket,
        };
        let path = path.clone();
        Ok(Self { socket, path, templates: Vec::new(), queue, sent: 0, refused: 0, failed: None, attachment })
    }

    /// Prepares the frames that this flow's socket would send.
    pub(crate) fn add(&mut self, stream: usize, flow: &UdpSocket, payload: usize) -> io::Result<()> {
        let template = Template::new(&self.path, flow.local_addr()?, flow.peer_addr()?, payload);
        self.templates.push((stream, template));
        Ok(())
    }

    /// Sends payloads of a flow, one per frame, and returns how many had room in the ring.
    pub(crate) fn send<'a>(
        &mut self,
        stream: usize,
        payloads: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let found = self.templates.iter().find(|(index, _)| *index == stream);
        let Some((_, template)) = found else { return Err(io::ErrorKind::NotFound.into()) };
        // Submitted frames are in flight whatever the error of the call was.
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.socket.reclaim();
        let (count, mut payloads) = (payloads.len(), payloads);
        let taken = self
            .socket
            .send(count, |frame| payloads.next().map_or(0, |payload| template.write(payload, frame)));
        self.sent += taken as u64;
        for _ in 0..taken.div_ceil(TAKEN).max(1) {
            if let Err(error) = self.kick() {
                self.failed = Some(error);
                break;
            }
        }
        if taken == 0 { Err(netduel_sys::xdp::no_room()) } else { Ok(taken) }
    }

    fn kick(&mut self) -> io::Result<()> {
        let Err(error) = self.socket.kick() else { return Ok(()) };
        match error.raw_os_error().and_then(error_name::of) {
            // The queue of the interface is full: the frames stay in flight.
            Some("EAGAIN" | "ENOBUFS" | "EINTR") => Ok(()),
            // The interface dropped the frame (`NET_XMIT_DROP` in net/xdp/xsk.c).
            Some("EBUSY") => {
                self.refused += 1;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The interface of the socket.
    pub(crate) fn interface(&self) -> &str {
        &self.path.interface
    }

    /// Keeps the program and the socket on the interface.
    pub(crate) fn attachment(&self) -> Attachment {
        self.attachment.clone()
    }

    /// The report of the frames. The socket stays on the interface as long as its attachment.
    pub(crate) fn into_report(self, core: Option<u16>) -> PacketReport {
        let queue = QueuePackets { queue: Some(self.queue), core, packets: self.sent };
        let dropped = ("dropped by the sender's interface".to_owned(), self.refused);
        let zero_copy = Some(self.socket.is_zero_copy());
        self.attachment.keep(self.socket);
        PacketReport {
            interface: self.path.interface,
            queues: vec![queue],
            zero_copy,
            segmentation: None,
            mode: None,
            drops: Some(dropped).filter(|(_, count)| *count > 0).into_iter().collect(),
        }
    }

    /// Waits until all frames have left, and returns how many have not.
    pub(crate) fn flush(&mut self) -> usize {
        let deadline = clock::monotonic_ns() + FLUSH_NS;
        loop {
            self.socket.reclaim();
            let left = FRAMES as usize - self.socket.free_frames();
            if left == 0 || clock::monotonic_ns() > deadline || self.kick().is_err() {
                return left;
            }
        }
    }
}

/// Whether the queue of the interface is full for now, or the interface dropped a frame because it was.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error().and_then(error_name::of), Some("EAGAIN" | "ENOBUFS" | "EINTR" | "EBUSY"))
}
