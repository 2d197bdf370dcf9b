//! The trials of a port, by token, and the streams and flows that each still expects.
//!
//! The token is looked up and not compared in constant time. It is 128 random bits, and the map hashes it with a key that
//! no peer knows: a guess is compared with a token only when their keyed hashes are equal, so timing reveals no byte of a token, and
//! 128 bits cannot be guessed.
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::TcpStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netduel_model::ids::Token;
use netduel_sys::tcp;

use crate::connection_source::{ConnectionSource, IncomingConnection};
use crate::error::LoadError;
use crate::handshake::{HandshakeMessage, Step};
use crate::pending_handshakes;
use crate::udp_acceptor::Arrival;
use crate::udp_handshake::UdpHandshake;
use crate::waker::WakerHandle;

/// Delivers streams or flows to the acceptor of a trial. Dropping it ends the delivery.
pub(super) struct Delivery<T> {
    sender: Option<Sender<T>>,
    nudge: WakerHandle,
}

impl<T> Delivery<T> {
    pub(super) fn new(sender: Sender<T>, nudge: WakerHandle) -> Self {
        Self { sender: Some(sender), nudge }
    }

    /// Sends to the acceptor; no effect when that has ended.
    pub(super) fn send(&self, what: T) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(what);
            self.nudge.wake();
        }
    }
}

impl<T> Drop for Delivery<T> {
    fn drop(&mut self) {
        self.sender = None;
        self.nudge.wake();
    }
}

/// A connected stream, and its index.
pub(super) type Stream = (usize, TcpStream);

/// A trial as its port sees it.
pub(super) struct Trial {
    token: Token,
    congestion: Option<String>,
    /// By index, whether the stream is connected.
    taken: Vec<bool>,
    streams: Option<Delivery<Stream>>,
    /// By index, the handshake of each flow that is not connected.
    pub handshakes: Vec<Option<UdpHandshake>>,
    pub flows: Option<Delivery<Arrival>>,
    /// The accept queue of connections that are made while traffic runs.
    pub incoming: Option<Arc<ConnectionSource>>,
}

impl Trial {
    pub(super) fn new(token: Token, congestion: Option<&str>) -> Self {
        Self {
            token,
            congestion: congestion.map(str::to_owned),
            taken: Vec::new(),
            streams: None,
            handshakes: Vec::new(),
            flows: None,
            incoming: None,
        }
    }

    pub(super) fn expect_streams(&mut self, count: usize, delivery: Delivery<Stream>) {
        self.taken = vec![false; count];
        self.streams = Some(delivery);
    }

    pub(super) fn expect_flows(&mut self, count: u32, delivery: Delivery<Arrival>) {
        self.handshakes = (0..count).map(|flow| Some(UdpHandshake::new(self.token, flow))).collect();
        self.flows = Some(delivery);
    }

    /// Accepts a connection with a handshake message, or closes it.
    pub(super) fn accept(&mut self, stream: TcpStream, message: &HandshakeMessage) {
        match message.step {
            Step::Hello => self.accept_stream(stream, message),
            Step::Transaction => {
                if let Some(ConnectionSource::Queue(queue)) = self.incoming.as_deref()
                    && stream.set_nonblocking(false).is_ok()
                {
                    queue.add(IncomingConnection { stream, head: Some(message.to_bytes()) });
                }
            }
            _ => {}
        }
    }

    /// All trials share the listener, so the congestion control of this one is set on its connections, before they carry data.
    fn set_congestion(&self, stream: &TcpStream) -> bool {
        self.congestion.as_ref().is_none_or(|name| tcp::set_congestion(stream, name).is_ok())
    }

    fn accept_stream(&mut self, mut stream: TcpStream, hello: &HandshakeMessage) {
        let index = hello.stream as usize;
        let is_set = self.set_congestion(&stream);
        let (Some(taken), Some(delivery)) = (self.taken.get_mut(index), &self.streams) else { return };
        if *taken || !is_set {
            return;
        }
        if pending_handshakes::prove(&mut stream, self.token, hello).unwrap_or(false) {
            *taken = true;
            delivery.send((index, stream));
        }
    }
}

/// The trials of a port.
#[derive(Default)]
pub(crate) struct Registry {
    trials: Mutex<HashMap<[u8; 16], Trial>>,
}

impl Registry {
    /// No code panics while it holds the lock, so a poisoned one still guards a whole value.
    fn trials(&self) -> MutexGuard<'_, HashMap<[u8; 16], Trial>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves `trial` until the registration is dropped.
    pub(super) fn register(self: &Arc<Self>, trial: Trial) -> Result<Registration, LoadError> {
        let token = trial.token;
        match self.trials().entry(token.0) {
            Entry::Occupied(_) => return Err(LoadError::TokenTaken),
            Entry::Vacant(place) => drop(place.insert_entry(trial)),
        }
        Ok(Registration { registry: Arc::clone(self), token })
    }

    /// Calls `act` with the trial of a token, if there is one.
    pub(super) fn with<T>(&self, token: Token, act: impl FnOnce(&mut Trial) -> T) -> Option<T> {
        self.trials().get_mut(&token.0).map(act)
    }

    /// Removes all trials: no further client is accepted.
    pub(super) fn clear(&self) {
        self.trials().clear();
    }
}

/// Registers a trial with its port until it is dropped.
pub(crate) struct Registration {
    registry: Arc<Registry>,
    token: Token,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let trial = self.registry.trials().remove(&self.token.0);
        // Not under the lock.
        drop(trial);
    }
}
