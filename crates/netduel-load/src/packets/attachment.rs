//! What kernel bypass has on an interface: an XDP program with its map, and sockets whose threads are done. Moves no frame.
use std::sync::{Arc, Mutex, PoisonError};

use netduel_sys::bpf::{HashMap, Link};
use netduel_sys::xdp::XdpSocket;

/// Keeps the XDP program and the AF_XDP sockets of an end on their interface, also after the end of its threads. A driver may restart the
/// interface when one of them goes (`igb_xdp_setup` of Linux 6.12), so the counters of the host are read before the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub struct Attachment(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Before the sockets: the program goes before those that it redirects to.
    program: Option<AttachedProgram>,
    sockets: Mutex<Vec<XdpSocket>>,
}

/// A program on the interface; dropping it detaches it.
#[derive(Debug)]
pub(super) struct AttachedProgram {
    #[expect(dead_code, reason = "held for its end alone")]
    link: Link,
    #[expect(dead_code, reason = "held as long as its program")]
    flows: Option<HashMap>,
}

impl AttachedProgram {
    /// With the map of flows that the program reads, if it reads one.
    pub(super) fn new(link: Link, flows: Option<HashMap>) -> Self {
        Self { link, flows }
    }
}

impl Attachment {
    pub(super) fn of_program(program: AttachedProgram) -> Self {
        Self(Arc::new(Held { program: Some(program), sockets: Mutex::default() }))
    }

    /// Whether a program is part of it.
    pub(super) fn has_program(&self) -> bool {
        self.0.program.is_some()
    }

    /// Keeps a socket whose thread is done.
    pub(super) fn keep(&self, socket: XdpSocket) {
        self.0.sockets.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
    }
}
