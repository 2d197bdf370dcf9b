//! Sending by AF_XDP: one socket for each thread, each on a queue of its own.
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use netduel_model::packet_path::{PacketReport, QueuePackets};
use netduel_sys::bpf::Link;
use netduel_sys::xdp::{Settings, XdpSocket, ZeroCopy};
use netduel_sys::{clock, error_name};

use super::bypass_path::BypassPath;
use super::frame::Template;

/// The kernel takes so many in a call when it copies (TX_BATCH_SIZE in net/xdp/xsk.c).
const TAKEN: usize = 32;
/// Frames under way of a thread.
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
    /// Frames that the kernel took and the interface then refused.
    refused: u64,
    /// What the kernel said of frames that were handed over already.
    failed: Option<io::Error>,
    #[expect(dead_code, reason = "held for its end alone")]
    /// What lets a driver with zero copy serve this queue.
    program: Option<Arc<Link>>,
}

impl XdpSender {
    /// On a queue of the path's interface; without copies where a program on the interface makes that possible.
    pub(crate) fn open(path: &BypassPath, queue: u32, program: Option<Arc<Link>>) -> io::Result<Self> {
        // A queue that a socket has with zero copy receives into that socket's frames, whoever gets them then.
        let settings = Settings {
            interface: path.index,
            queue,
            send_frames: FRAMES,
            receive_frames: if program.is_some() { FRAMES } else { 0 },
            zero_copy: if program.is_some() { ZeroCopy::Auto } else { ZeroCopy::Never },
            ..Settings::default()
        };
        let socket = XdpSocket::open(&settings)?;
        // A driver that does not serve the queue says so of nothing to send, too.
        let socket = match socket.kick() {
            Err(error) if socket.is_zero_copy() && !is_full(&error) => {
                drop(socket);
                XdpSocket::open(&Settings { zero_copy: ZeroCopy::Never, ..settings })?
            }
            _ => socket,
        };
        let path = path.clone();
        Ok(Self { socket, path, templates: Vec::new(), queue, sent: 0, refused: 0, failed: None, program })
    }

    /// Makes the frames that this flow's socket would send.
    pub(crate) fn add(&mut self, stream: usize, flow: &UdpSocket, payload: usize) -> io::Result<()> {
        let template = Template::new(&self.path, flow.local_addr()?, flow.peer_addr()?, payload);
        self.templates.push((stream, template));
        Ok(())
    }

    /// Sends payloads of a flow, each in a frame, and returns how many found room: as many are under way.
    pub(crate) fn send<'a>(
        &mut self,
        stream: usize,
        payloads: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let found = self.templates.iter().find(|(index, _)| *index == stream);
        let Some((_, template)) = found else { return Err(io::ErrorKind::NotFound.into()) };
        // What was handed over before is under way whatever the kernel said of it.
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
            // The interface's queue is full: what is under way stays so.
            Some("EAGAIN" | "ENOBUFS" | "EINTR") => Ok(()),
            // The interface dropped the frame that was handed to it (`NET_XMIT_DROP` in net/xdp/xsk.c).
            Some("EBUSY") => {
                self.refused += 1;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The interface that it sends by.
    pub(crate) fn interface(&self) -> &str {
        &self.path.interface
    }

    /// What became of the frames.
    pub(crate) fn report(&self, core: Option<u16>) -> PacketReport {
        let queue = QueuePackets { queue: Some(self.queue), core, packets: self.sent };
        let dropped = ("dropped by the sender's interface".to_owned(), self.refused);
        PacketReport {
            interface: self.path.interface.clone(),
            queues: vec![queue],
            zero_copy: Some(self.socket.is_zero_copy()),
            segmentation: None,
            mode: None,
            drops: Some(dropped).filter(|(_, count)| *count > 0).into_iter().collect(),
        }
    }

    /// Waits until the last frame has left; how many have not, in the end.
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

/// Whether the interface's queue is full for now, or has dropped a frame for want of room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error().and_then(error_name::of), Some("EAGAIN" | "ENOBUFS" | "EINTR" | "EBUSY"))
}
