//! Who comes for control: pairing, and a session for each client that is paired. Everything here is bounded, so that no
//! stranger, however slow or many, keeps a client out.
use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use netduel_load::Port;

use super::log::Log;
use super::session::{Rules, Session};
use crate::quick::tls::{self, ServerIdentity};

/// Connections that are pairing at a time. When there are more the oldest goes: a client pairs in some milliseconds.
const PAIRING_MAX: usize = 64;
/// Refusals that are printed: a flood of strangers does not fill a log.
const REFUSALS_PRINTED: usize = 1000;

/// The clients of a server.
pub struct Lobby {
    identity: ServerIdentity,
    rules: Rules,
    clients_max: usize,
    log: Arc<Log>,
    /// Told for each session that is over, whether it had a test.
    over: Sender<bool>,
    port: Mutex<Weak<Port>>,
    pairing: Mutex<VecDeque<(usize, TcpStream)>>,
    sessions: Mutex<Vec<(usize, UnixStream)>>,
    numbers: AtomicUsize,
    refusals: AtomicUsize,
    tests: Arc<AtomicUsize>,
}

/// No code panics while it holds one of these locks, so a poisoned one still guards a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lobby {
    /// An empty one.
    pub fn new(
        identity: ServerIdentity,
        rules: Rules,
        clients_max: usize,
        log: Arc<Log>,
        over: Sender<bool>,
    ) -> Self {
        Self {
            identity,
            rules,
            clients_max,
            log,
            over,
            port: Mutex::new(Weak::new()),
            pairing: Mutex::default(),
            sessions: Mutex::default(),
            numbers: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            tests: Arc::default(),
        }
    }

    /// The port through which data comes; it calls [`Lobby::enter`] for the rest.
    pub fn serve_through(&self, port: &Arc<Port>) {
        *lock(&self.port) = Arc::downgrade(port);
    }

    /// A connection that wants control. Returns at once.
    pub fn enter(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let Ok(copy) = stream.try_clone() else { return };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        {
            let mut pairing = lock(&self.pairing);
            if pairing.len() == PAIRING_MAX
                && let Some((_, oldest)) = pairing.pop_front()
            {
                drop(oldest.shutdown(Shutdown::Both));
            }
            pairing.push_back((number, copy));
        }
        let lobby = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("session".to_owned()).spawn(move || {
            let paired = tls::accept(&lobby.identity, stream);
            lock(&lobby.pairing).retain(|(other, _)| *other != number);
            match paired {
                Ok(stream) => lobby.serve(number, stream, peer),
                Err(error) => lobby.refused(peer, &error.to_string()),
            }
        });
        if spawned.is_err() {
            lock(&self.pairing).retain(|(other, _)| *other != number);
        }
    }

    fn refused(&self, peer: SocketAddr, why: &str) {
        match self.refusals.fetch_add(1, Ordering::Relaxed) {
            count if count < REFUSALS_PRINTED => self.log.refused(peer, why),
            REFUSALS_PRINTED => self.log.refused(peer, "and more, which are not printed"),
            _ => {}
        }
    }

    fn serve(&self, number: usize, stream: UnixStream, peer: SocketAddr) {
        let Some(port) = lock(&self.port).upgrade() else { return };
        {
            let mut sessions = lock(&self.sessions);
            let Ok(copy) = stream.try_clone() else { return };
            if sessions.len() >= self.clients_max {
                self.log.refused(peer, "there are as many clients as --max-clients allows");
                return;
            }
            sessions.push((number, copy));
        }
        let mut session =
            Session::new(port, self.rules, peer, Arc::clone(&self.log), Arc::clone(&self.tests));
        let result = session.serve(stream);
        lock(&self.sessions).retain(|(other, _)| *other != number);
        if let Err(error) = result {
            self.log.refused(peer, &error);
        }
        // The server may be ending; then nobody counts.
        let _ = self.over.send(session.had_test());
    }

    /// Ends all sessions: their clients see it at once.
    pub fn close(&self) {
        for (_, stream) in lock(&self.sessions).drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
        for (_, stream) in lock(&self.pairing).drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}
