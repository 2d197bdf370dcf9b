//! Admission of control connections: pairing, and a session for each paired client. Their time and number are limited, so that
//! unpaired peers cannot block a client.
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use netduel_control::agent::Bounds;
use netduel_load::{Port, Source};
use netduel_model::units::Nanos;

use super::ServerEvent;
use super::pending::{Connection, Pending};
use super::session::{ServerContext, Session, Stop};
use crate::quick::tls::{self, Paired, ServerIdentity};

/// Maximum number of concurrent paired clients beyond `--max-clients` that get an error message; further ones get a closed
/// connection.
const REJECTED_MAX: usize = 16;
/// Time limit of such a client, which sends one request.
const REJECTED_LIMIT: Nanos = Nanos(10_000_000_000);
/// Time that a client waits for a free place before it is rejected: a client with a result may not have closed its connection
/// yet, and the thread of its session may wait for a core. Only clients that have proven the secret wait, and a user whose client is
/// rejected waits as long for the reason.
const SLOT_PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of clients that wait for it: each has two threads. Further ones get a closed connection.
const WAITING_MAX: usize = 256;
/// Time that an ending server waits for its clients to read the reason.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The clients of a server.
pub struct Admission {
    identity: ServerIdentity,
    context: ServerContext,
    clients_max: usize,
    over: Sender<ServerEvent>,
    port: Mutex<Weak<Port>>,
    pending: Mutex<Pending<Unpaired>>,
    clients: Mutex<Clients>,
    /// A client left.
    freed: Condvar,
    numbers: AtomicUsize,
    is_closed: AtomicBool,
}

/// A connection that is not paired yet.
struct Unpaired {
    stream: TcpStream,
    peer: SocketAddr,
}

impl Connection for Unpaired {
    fn close(&self) {
        // It may already be closed.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn has_unread(&self) -> bool {
        rustix::io::ioctl_fionread(&self.stream).is_ok_and(|bytes| bytes > 0)
    }
}

/// Paired clients.
#[derive(Default)]
struct Clients {
    served: Vec<Client>,
    rejected: Vec<Client>,
    /// Clients that wait for a free place.
    waiting: usize,
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

/// The thread of a connection that is not paired yet. When it ends, also by a panic, a waiting connection is started.
struct PairingPlace<'a> {
    admission: &'a Arc<Admission>,
    number: usize,
}

impl Drop for PairingPlace<'_> {
    fn drop(&mut self) {
        lock(&self.admission.pending).finished(self.number);
        self.admission.pair_waiting();
    }
}

/// No code panics while it holds one of these locks, so a poisoned one still guards a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> Nanos {
    Nanos(netduel_sys::clock::monotonic_ns())
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
            pending: Mutex::default(),
            clients: Mutex::default(),
            freed: Condvar::new(),
            numbers: AtomicUsize::new(0),
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
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.pending).add(number, Source::of(peer.ip()), Unpaired { stream, peer }, now());
        self.pair_waiting();
        self.watch_late();
    }

    /// Lets late connections give way to those that wait, in a thread that ends when none waits any more.
    fn watch_late(self: &Arc<Self>) {
        if !lock(&self.pending).watch() {
            return;
        }
        let admission = Arc::clone(self);
        let relieve = move || {
            loop {
                let next = lock(&admission.pending).relieve(now());
                let Some(next) = next else { return };
                netduel_sys::clock::sleep_until(next.0);
            }
        };
        if std::thread::Builder::new().name("patience".to_owned()).spawn(relieve).is_err() {
            // The next connection tries again.
            lock(&self.pending).unwatch();
        }
    }

    /// Starts a thread for each waiting connection that may have one.
    fn pair_waiting(self: &Arc<Self>) {
        loop {
            let mut pending = lock(&self.pending);
            let Some((number, Unpaired { stream, peer })) = pending.next(now()) else { return };
            let (peer, stream) = (*peer, stream.try_clone());
            drop(pending);
            let admission = Arc::clone(self);
            let spawned = stream.and_then(|stream| {
                let pair = move || admission.pair(number, stream, peer);
                std::thread::Builder::new().name("session".to_owned()).spawn(pair)
            });
            if let Err(error) = spawned {
                // The connection is closed.
                lock(&self.pending).finished(number);
                self.refused(peer, &format!("this host has no descriptor or thread left for it: {error}"));
            }
        }
    }

    fn pair(self: &Arc<Self>, number: usize, stream: TcpStream, peer: SocketAddr) {
        let place = PairingPlace { admission: self, number };
        let on_first_message = || lock(&self.pending).received_first(number, now());
        let paired = tls::accept(&self.identity, stream, on_first_message);
        drop(place);
        match paired {
            Ok(paired) => self.serve(number, paired, peer),
            Err(error) => self.refused(peer, &error.to_string()),
        }
    }

    fn refused(&self, peer: SocketAddr, why: &str) {
        self.context.log.refused(peer, why);
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
        let mut clients = lock(&self.clients);
        if self.is_full(&clients) {
            if clients.waiting >= WAITING_MAX {
                return None;
            }
            clients.waiting += 1;
            let is_full = |clients: &mut Clients| self.is_full(clients);
            let waited = self.freed.wait_timeout_while(clients, SLOT_PATIENCE, is_full);
            (clients, _) = waited.unwrap_or_else(PoisonError::into_inner);
            clients.waiting -= 1;
        }
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

    /// Whether a client has to wait for a place.
    fn is_full(&self, clients: &Clients) -> bool {
        clients.served.len() >= self.clients_max && !self.is_closed.load(Ordering::SeqCst)
    }

    /// Ends all sessions. Clients with a running test get the reason, and this waits until they have read it.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        lock(&self.pending).close();
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::identity::Identity;
    use super::super::log::Log;
    use super::super::rules::Rules;
    use super::*;

    fn admission(clients_max: usize) -> Admission {
        let identity = Identity::draw().and_then(|identity| identity.for_tls());
        let context = ServerContext {
            rules: Rules { longest: Nanos(1), fastest: None, streams: 1 },
            bounds: Bounds::default(),
            log: Arc::new(Log::start(true).unwrap_or_else(|error| panic!("{error}"))),
            tests: Arc::default(),
        };
        let identity = identity.unwrap_or_else(|error| panic!("{error}"));
        Admission::new(identity, context, clients_max, channel().0)
    }

    #[test]
    fn clients_beyond_those_that_may_wait_get_no_place() {
        let (stream, _peer) = UnixStream::pair().expect("a pair");
        let admission = admission(1);
        let first = admission.admit(0, &stream).expect("a free place");
        assert!(first.is_served);
        lock(&admission.clients).waiting = WAITING_MAX;
        // One that waits is rejected with a message after its patience; this one is not admitted.
        assert!(admission.admit(1, &stream).is_none());
        drop(first);
        let second = admission.admit(2, &stream).expect("a free place");
        assert!(second.is_served && lock(&admission.clients).waiting == WAITING_MAX);
    }
}
