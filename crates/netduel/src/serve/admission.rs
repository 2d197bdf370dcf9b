//! Admission of control connections: pairing, and a session for each paired client. Their time and number are limited, so that
//! unpaired peers cannot block a client.
use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use netduel_control::agent::Bounds;
use netduel_load::Port;
use netduel_model::units::Nanos;

use super::ServerEvent;
use super::refusals::Refusals;
use super::session::{ServerContext, Session, Stop};
use crate::quick::tls::{self, Paired, ServerIdentity};

/// Maximum number of concurrent pairings. Beyond it the oldest one is closed: a client pairs within milliseconds.
const PAIRING_MAX: usize = 64;
/// Maximum number of concurrent paired clients beyond `--max-clients` that get an error message; further ones get a closed
/// connection.
const REJECTED_MAX: usize = 16;
/// Time limit of such a client, which sends one request.
const REJECTED_LIMIT: Nanos = Nanos(10_000_000_000);
/// Time that a client waits for a free place before it is rejected: a client with a result may not have closed its connection
/// yet.
const SLOT_PATIENCE: Duration = Duration::from_secs(1);
/// Time that an ending server waits for its clients to read the reason.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// The clients of a server.
pub struct Admission {
    identity: ServerIdentity,
    context: ServerContext,
    clients_max: usize,
    over: Sender<ServerEvent>,
    port: Mutex<Weak<Port>>,
    pairing: Mutex<VecDeque<(usize, TcpStream)>>,
    clients: Mutex<Clients>,
    /// A client left.
    freed: Condvar,
    numbers: AtomicUsize,
    refusals: Mutex<Refusals>,
    is_closed: AtomicBool,
}

/// Paired clients.
#[derive(Default)]
struct Clients {
    served: Vec<Client>,
    rejected: Vec<Client>,
}

/// A client in a session.
struct Client {
    number: usize,
    stream: UnixStream,
    stop: Stop,
}

/// Counts a client while this value exists.
struct Admitted<'a> {
    admission: &'a Admission,
    number: usize,
    is_served: bool,
    stop: Stop,
}

/// No code panics while it holds one of these locks, so a poisoned one still guards a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Admission {
    /// A server without clients. `over` receives the end of each session.
    pub fn new(
        identity: ServerIdentity,
        context: ServerContext,
        clients_max: usize,
        over: Sender<ServerEvent>,
    ) -> Self {
        Self {
            identity,
            context,
            clients_max,
            over,
            port: Mutex::new(Weak::new()),
            pairing: Mutex::default(),
            clients: Mutex::default(),
            freed: Condvar::new(),
            numbers: AtomicUsize::new(0),
            refusals: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// The port for data; it passes other connections to [`Admission::enter`].
    pub fn serve_through(&self, port: &Arc<Port>) {
        *lock(&self.port) = Arc::downgrade(port);
    }

    /// Starts the admission of a control connection. Returns at once.
    pub fn enter(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        if self.is_closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(copy) = stream.try_clone() else { return };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        {
            let mut pairing = lock(&self.pairing);
            if pairing.len() == PAIRING_MAX
                && let Some((_, oldest)) = pairing.pop_front()
            {
                // It may already be closed.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            pairing.push_back((number, copy));
        }
        let admission = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("session".to_owned()).spawn(move || {
            let paired = tls::accept(&admission.identity, stream);
            lock(&admission.pairing).retain(|(other, _)| *other != number);
            match paired {
                Ok(paired) => admission.serve(number, paired, peer),
                Err(error) => admission.refused(peer, &error.to_string()),
            }
        });
        if spawned.is_err() {
            lock(&self.pairing).retain(|(other, _)| *other != number);
        }
    }

    fn refused(&self, peer: SocketAddr, why: &str) {
        for line in lock(&self.refusals).take(why, netduel_sys::clock::monotonic_ns()) {
            self.context.log.refused(peer, &line);
        }
    }

    fn serve(&self, number: usize, paired: Paired, peer: SocketAddr) {
        let Some(port) = lock(&self.port).upgrade() else { return };
        let Paired { stream, carrier } = paired;
        let Some(admitted) = self.admit(number, &stream) else {
            return self.refused(peer, "many more clients than --max-clients allows");
        };
        let mut context = self.context.clone();
        let mut session = if admitted.is_served {
            Session::new(port, context, peer, admitted.stop.clone())
        } else {
            let max = self.clients_max;
            self.refused(peer, &format!("{max} clients are connected, the limit of --max-clients"));
            context.bounds = Bounds { total: REJECTED_LIMIT, idle: REJECTED_LIMIT, ..context.bounds };
            Session::new(port, context, peer, admitted.stop.clone()).rejecting(format!(
                "this server has {max} clients, the limit of its --max-clients; try again when one of them has finished"
            ))
        };
        if let Err(error) = session.serve(&stream) {
            self.refused(peer, &error);
        }
        let had_test = session.had_test();
        drop((session, stream));
        // The last message has been sent when it ends. Its own panic is printed on stderr.
        let _ = carrier.join();
        drop(admitted);
        // An ending server no longer counts sessions.
        let _ = self.over.send(ServerEvent::SessionOver { had_test });
    }

    /// Admits a client to be served, or to be rejected with a message; `None` when there are too many of both kinds.
    fn admit(&self, number: usize, stream: &UnixStream) -> Option<Admitted<'_>> {
        let stream = stream.try_clone().ok()?;
        let none_is_free = |clients: &mut Clients| {
            clients.served.len() >= self.clients_max && !self.is_closed.load(Ordering::SeqCst)
        };
        let waited = self.freed.wait_timeout_while(lock(&self.clients), SLOT_PATIENCE, none_is_free);
        let (mut clients, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if self.is_closed.load(Ordering::SeqCst) {
            return None;
        }
        let is_served = clients.served.len() < self.clients_max;
        if !is_served && clients.rejected.len() >= REJECTED_MAX {
            return None;
        }
        let stop = Stop::default();
        let place = Client { number, stream, stop: stop.clone() };
        clients.of(is_served).push(place);
        Some(Admitted { admission: self, number, is_served, stop })
    }

    /// Ends all sessions. Clients with a running test get the reason, and this waits until they have read it.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for (_, stream) in lock(&self.pairing).drain(..) {
            // It may already be closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
        let clients = lock(&self.clients);
        for place in clients.served.iter().chain(&clients.rejected) {
            place.stop.ask();
            // The session ends with its input, after the message about its test.
            let _ = place.stream.shutdown(Shutdown::Read);
        }
        let some_are_there =
            |clients: &mut Clients| !clients.served.is_empty() || !clients.rejected.is_empty();
        // A client that does not read within this time is abandoned.
        drop(self.freed.wait_timeout_while(clients, CLOSE_LIMIT, some_are_there));
    }
}

impl Clients {
    fn of(&mut self, is_served: bool) -> &mut Vec<Client> {
        if is_served { &mut self.served } else { &mut self.rejected }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut clients = lock(&self.admission.clients);
        clients.of(self.is_served).retain(|place| {
            if place.number == self.number {
                // After a panic of the session its stream is still open.
                let _ = place.stream.shutdown(Shutdown::Both);
            }
            place.number != self.number
        });
        self.admission.freed.notify_all();
    }
}
