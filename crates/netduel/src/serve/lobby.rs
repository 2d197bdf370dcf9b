//! Who comes for control: pairing, and a session for each client that is paired. Everything here is bounded, so that no
//! stranger, however slow or many, keeps a client out.
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

use super::Occasion;
use super::refusals::Refusals;
use super::session::{Premises, Session, Stop};
use crate::quick::tls::{self, Paired, ServerIdentity};

/// Connections that are pairing at a time. When there are more the oldest goes: a client pairs in some milliseconds.
const PAIRING_MAX: usize = 64;
/// Paired clients beyond `--max-clients` that are told so at a time; others see a closed connection.
const TURNED_AWAY_MAX: usize = 16;
/// What such a client may take of time: it asks once.
const TURNED_AWAY_LIMIT: Nanos = Nanos(10_000_000_000);
/// How long a client waits for a place before it is told that there is none: one that has just had its result may not quite
/// have gone.
const SEAT_PATIENCE: Duration = Duration::from_secs(1);
/// How long the clients of a server that ends are waited for to have heard so.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// The clients of a server.
pub struct Lobby {
    identity: ServerIdentity,
    premises: Premises,
    clients_max: usize,
    over: Sender<Occasion>,
    port: Mutex<Weak<Port>>,
    pairing: Mutex<VecDeque<(usize, TcpStream)>>,
    seats: Mutex<Seats>,
    /// A seat became free.
    freed: Condvar,
    numbers: AtomicUsize,
    refusals: Mutex<Refusals>,
    is_closed: AtomicBool,
}

/// Clients that are paired.
#[derive(Default)]
struct Seats {
    served: Vec<Place>,
    turned_away: Vec<Place>,
}

/// A client's place among the others.
struct Place {
    number: usize,
    stream: UnixStream,
    stop: Stop,
}

/// A place, for as long as this lives.
struct Seat<'a> {
    lobby: &'a Lobby,
    number: usize,
    is_served: bool,
    stop: Stop,
}

/// No code panics while it holds one of these locks, so a poisoned one still guards a whole value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lobby {
    /// An empty one. Each session that is over is told to `over`.
    pub fn new(
        identity: ServerIdentity,
        premises: Premises,
        clients_max: usize,
        over: Sender<Occasion>,
    ) -> Self {
        Self {
            identity,
            premises,
            clients_max,
            over,
            port: Mutex::new(Weak::new()),
            pairing: Mutex::default(),
            seats: Mutex::default(),
            freed: Condvar::new(),
            numbers: AtomicUsize::new(0),
            refusals: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// The port through which data comes; it calls [`Lobby::enter`] for the rest.
    pub fn serve_through(&self, port: &Arc<Port>) {
        *lock(&self.port) = Arc::downgrade(port);
    }

    /// A connection that wants control. Returns at once.
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
                // It may have gone by itself.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            pairing.push_back((number, copy));
        }
        let lobby = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("session".to_owned()).spawn(move || {
            let paired = tls::accept(&lobby.identity, stream);
            lock(&lobby.pairing).retain(|(other, _)| *other != number);
            match paired {
                Ok(paired) => lobby.serve(number, paired, peer),
                Err(error) => lobby.refused(peer, &error.to_string()),
            }
        });
        if spawned.is_err() {
            lock(&self.pairing).retain(|(other, _)| *other != number);
        }
    }

    fn refused(&self, peer: SocketAddr, why: &str) {
        for line in lock(&self.refusals).take(why, netduel_sys::clock::monotonic_ns()) {
            self.premises.log.refused(peer, &line);
        }
    }

    fn serve(&self, number: usize, paired: Paired, peer: SocketAddr) {
        let Some(port) = lock(&self.port).upgrade() else { return };
        let Paired { stream, carrier } = paired;
        let Some(seat) = self.seat(number, &stream) else {
            return self.refused(peer, "there are more clients than --max-clients allows, and many of them");
        };
        let mut premises = self.premises.clone();
        let mut session = if seat.is_served {
            Session::new(port, premises, peer, seat.stop.clone())
        } else {
            let max = self.clients_max;
            self.refused(peer, &format!("there are {max} clients, as many as --max-clients allows"));
            premises.bounds = Bounds { total: TURNED_AWAY_LIMIT, idle: TURNED_AWAY_LIMIT, ..premises.bounds };
            Session::new(port, premises, peer, seat.stop.clone()).turning_away(format!(
                "this server has {max} clients already, as many as it takes (--max-clients): try again when one of them is done"
            ))
        };
        if let Err(error) = session.serve(&stream) {
            self.refused(peer, &error);
        }
        let had_test = session.had_test();
        drop((session, stream));
        // What was said last has left when it ends. A panic of its own is on stderr.
        let _ = carrier.join();
        drop(seat);
        // The server may be ending; then nobody counts.
        let _ = self.over.send(Occasion::SessionOver { had_test });
    }

    /// A place among those that are served, or else among those that are told that they are not, or else none.
    fn seat(&self, number: usize, stream: &UnixStream) -> Option<Seat<'_>> {
        let stream = stream.try_clone().ok()?;
        let none_is_free = |seats: &mut Seats| {
            seats.served.len() >= self.clients_max && !self.is_closed.load(Ordering::SeqCst)
        };
        let waited = self.freed.wait_timeout_while(lock(&self.seats), SEAT_PATIENCE, none_is_free);
        let (mut seats, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if self.is_closed.load(Ordering::SeqCst) {
            return None;
        }
        let is_served = seats.served.len() < self.clients_max;
        if !is_served && seats.turned_away.len() >= TURNED_AWAY_MAX {
            return None;
        }
        let stop = Stop::default();
        let place = Place { number, stream, stop: stop.clone() };
        seats.of(is_served).push(place);
        Some(Seat { lobby: self, number, is_served, stop })
    }

    /// Ends all sessions. Clients whose test is under way are told why it has no result, and are waited for to have heard it.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for (_, stream) in lock(&self.pairing).drain(..) {
            // It may have gone by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
        let seats = lock(&self.seats);
        for place in seats.served.iter().chain(&seats.turned_away) {
            place.stop.ask();
            // The session ends with its input, after the word about its test.
            let _ = place.stream.shutdown(Shutdown::Read);
        }
        let some_are_there = |seats: &mut Seats| !seats.served.is_empty() || !seats.turned_away.is_empty();
        // Who does not listen for so long is left.
        drop(self.freed.wait_timeout_while(seats, CLOSE_LIMIT, some_are_there));
    }
}

impl Seats {
    fn of(&mut self, is_served: bool) -> &mut Vec<Place> {
        if is_served { &mut self.served } else { &mut self.turned_away }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut seats = lock(&self.lobby.seats);
        seats.of(self.is_served).retain(|place| {
            if place.number == self.number {
                // After a panic of the session its stream is still open.
                let _ = place.stream.shutdown(Shutdown::Both);
            }
            place.number != self.number
        });
        self.lobby.freed.notify_all();
    }
}
