//! Which trials a port serves, by token, and what each of them still waits for.
//!
//! The token is looked up and not compared in constant time. It is 128 random bits, and the map hashes it with a key that
//! nobody outside knows: a guess is compared with a token only when their keyed hashes agree, so time tells nothing of a
//! token's bytes one after the other, and guessing it whole is hopeless.
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

/// Brings something to the gate of a trial. Dropping it tells the gate that no more comes.
pub(super) struct Delivery<T> {
    sender: Option<Sender<T>>,
    nudge: WakerHandle,
}

impl<T> Delivery<T> {
    pub(super) fn new(sender: Sender<T>, nudge: WakerHandle) -> Self {
        Self { sender: Some(sender), nudge }
    }

    /// A gate that is gone wants nothing more.
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

/// A trial, as far as its port is concerned.
pub(super) struct Trial {
    token: Token,
    congestion: Option<String>,
    /// By index, whether the stream is there.
    taken: Vec<bool>,
    streams: Option<Delivery<Stream>>,
    /// By index, the greeting of each flow that has no peer yet.
    pub greeters: Vec<Option<UdpHandshake>>,
    pub flows: Option<Delivery<Arrival>>,
    /// Where connections go that are made while traffic runs.
    pub later: Option<Arc<ConnectionSource>>,
}

impl Trial {
    pub(super) fn new(token: Token, congestion: Option<&str>) -> Self {
        Self {
            token,
            congestion: congestion.map(str::to_owned),
            taken: Vec::new(),
            streams: None,
            greeters: Vec::new(),
            flows: None,
            later: None,
        }
    }

    pub(super) fn expect_streams(&mut self, count: usize, delivery: Delivery<Stream>) {
        self.taken = vec![false; count];
        self.streams = Some(delivery);
    }

    pub(super) fn expect_flows(&mut self, count: u32, delivery: Delivery<Arrival>) {
        self.greeters = (0..count).map(|flow| Some(UdpHandshake::new(self.token, flow))).collect();
        self.flows = Some(delivery);
    }

    /// Takes a connection that has greeted, or closes it.
    pub(super) fn take(&mut self, stream: TcpStream, greeting: &HandshakeMessage) {
        match greeting.step {
            Step::Hello => self.take_stream(stream, greeting),
            Step::Transaction => {
                if let Some(ConnectionSource::Queue(queue)) = self.later.as_deref()
                    && stream.set_nonblocking(false).is_ok()
                {
                    queue.add(IncomingConnection { stream, head: Some(greeting.to_bytes()) });
                }
            }
            _ => {}
        }
    }

    /// The listener is everybody's, so what a trial asks for is set on its connections, before they carry anything of ours.
    fn sets_congestion(&self, stream: &TcpStream) -> bool {
        self.congestion.as_ref().is_none_or(|name| tcp::set_congestion(stream, name).is_ok())
    }

    fn take_stream(&mut self, mut stream: TcpStream, hello: &HandshakeMessage) {
        let index = hello.stream as usize;
        let is_set = self.sets_congestion(&stream);
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

    /// Does something with the trial of a token, if there is one.
    pub(super) fn with<T>(&self, token: Token, act: impl FnOnce(&mut Trial) -> T) -> Option<T> {
        self.trials().get_mut(&token.0).map(act)
    }

    /// Forgets all trials: no client comes to them any more.
    pub(super) fn clear(&self) {
        self.trials().clear();
    }
}

/// Keeps a trial known to its port.
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
