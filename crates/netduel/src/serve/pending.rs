//! Connections that are not paired yet. Their number is limited, and the number of threads that pair them. When there are too many, the
//! source with the most gives way, so that a flood from one address keeps no client of another address out.
use std::collections::VecDeque;

use netduel_load::Source;
use netduel_model::units::Nanos;

/// Maximum number of open connections. Beyond it the oldest of the largest source is closed.
const OPEN_MAX: usize = 64;
/// Maximum number of threads. A handshake costs some hundred microseconds of CPU time; with too many at a time none ends soon, and the
/// thread that accepts connections falls behind.
const THREADS_MAX: usize = 32;
/// Duration after which a handshake gives way to a waiting one, while its peer has not sent its first message: a client sends it with the
/// first byte. A waiting client gets a thread after this time even when as many silent strangers as may be open came before it.
const PATIENCE: Nanos = Nanos(2_000_000_000);
/// The same from the first message on: a client that waits for a core of a busy host takes seconds for its second one. It is half of the time
/// that a client has, so a client behind as many such peers has the other half.
const PATIENCE_AFTER_MESSAGE: Nanos = Nanos(5_000_000_000);

/// A connection that can be closed while another thread reads from it.
pub trait Connection {
    /// Ends both directions.
    fn close(&self);
    /// Whether it has data that its thread has not read: its peer waits for this host, not the other way round.
    fn has_unread(&self) -> bool;
}

/// The connections, the oldest first.
#[derive(Debug)]
pub struct Pending<C> {
    entries: VecDeque<Entry<C>>,
    /// A thread calls [`Self::relieve`] until it returns `None`.
    is_watched: bool,
}

#[derive(Debug)]
struct Entry<C> {
    number: usize,
    source: Source,
    connection: C,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Without a thread.
    Waiting,
    /// With a thread, which waits for the first message of the peer since this time, or for the next one.
    Pairing { since: Nanos, has_message: bool },
    /// Closed; its thread is about to end.
    Closed,
}

impl<C> Entry<C> {
    /// When its handshake gives way; never while it has no thread.
    fn late_at(&self) -> Nanos {
        match self.state {
            State::Pairing { since, has_message } => {
                let patience = if has_message { PATIENCE_AFTER_MESSAGE } else { PATIENCE };
                Nanos(since.0.saturating_add(patience.0))
            }
            State::Waiting | State::Closed => Nanos(u64::MAX),
        }
    }
}

impl<C> Default for Pending<C> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), is_watched: false }
    }
}

impl<C: Connection> Pending<C> {
    /// Adds a connection, which waits until [`Self::next`] returns its number.
    pub fn add(&mut self, number: usize, source: Source, connection: C, now: Nanos) {
        if self.open().count() >= OPEN_MAX {
            self.close_oldest_of_largest(|_| true);
        }
        self.entries.push_back(Entry { number, source, connection, state: State::Waiting });
        if self.threads() < THREADS_MAX {
            return;
        }
        let pairing = |wanted| self.pairing().filter(|entry| entry.source == wanted).count();
        if self.pairing().any(|entry| pairing(source) + 1 < pairing(entry.source)) {
            self.close_oldest_of_largest(|entry| matches!(entry.state, State::Pairing { .. }));
            return;
        }
        self.close_late(now);
    }

    /// Whether the caller has to call [`Self::relieve`] from now on, at the times that it returns: connections wait for a thread, and
    /// no caller does yet.
    pub fn watch(&mut self) -> bool {
        let starts = !self.is_watched && self.waiting() > 0;
        self.is_watched |= starts;
        starts
    }

    /// The caller that had to call [`Self::relieve`] cannot.
    pub fn unwatch(&mut self) {
        self.is_watched = false;
    }

    /// Closes late connections for those that wait for a thread, and returns the time of the next call; `None` when none waits.
    pub fn relieve(&mut self, now: Nanos) -> Option<Nanos> {
        self.is_watched = self.waiting() > 0;
        if !self.is_watched {
            return None;
        }
        if self.threads() >= THREADS_MAX {
            self.close_late(now);
        }
        let next = self.pairing().map(Entry::late_at).filter(|at| *at > now).min();
        Some(next.unwrap_or(Nanos(now.0.saturating_add(PATIENCE.0))))
    }

    /// Starts a waiting connection while there is a free thread: the oldest one of the source with the fewest threads.
    pub fn next(&mut self, now: Nanos) -> Option<(usize, &C)> {
        if self.threads() >= THREADS_MAX {
            return None;
        }
        let waiting = self.entries.iter().filter(|entry| entry.state == State::Waiting);
        // The first of equal ones.
        let number = waiting.min_by_key(|entry| self.threads_of(entry.source))?.number;
        let entry = self.entries.iter_mut().find(|entry| entry.number == number)?;
        entry.state = State::Pairing { since: now, has_message: false };
        Some((number, &entry.connection))
    }

    /// The first message of a connection with a thread is here.
    pub fn received_first(&mut self, number: usize, now: Nanos) {
        let entry = self.entries.iter_mut().find(|entry| entry.number == number);
        if let Some(entry) = entry
            && matches!(entry.state, State::Pairing { .. })
        {
            entry.state = State::Pairing { since: now, has_message: true };
        }
    }

    /// Removes a connection whose thread ends, or never started.
    pub fn finished(&mut self, number: usize) {
        self.entries.retain(|entry| entry.number != number);
    }

    /// Closes all.
    pub fn close(&mut self) {
        self.entries.drain(..).for_each(|entry| entry.connection.close());
    }

    fn open(&self) -> impl Iterator<Item = &Entry<C>> {
        self.entries.iter().filter(|entry| entry.state != State::Closed)
    }

    fn pairing(&self) -> impl Iterator<Item = &Entry<C>> {
        self.entries.iter().filter(|entry| matches!(entry.state, State::Pairing { .. }))
    }

    fn waiting(&self) -> usize {
        self.entries.iter().filter(|entry| entry.state == State::Waiting).count()
    }

    /// Closes as many late connections as wait for a thread, the oldest first. The threads of closed ones are about to be free.
    fn close_late(&mut self, now: Nanos) {
        let ending = self.entries.iter().filter(|entry| entry.state == State::Closed).count();
        for _ in ending..self.waiting() {
            // On a busy host a client takes longer than the patience. It keeps its thread when another source has more of them.
            let most = self.entries.iter().map(|entry| self.threads_of(entry.source)).max();
            let gives_way = |entry: &&Entry<C>| {
                entry.late_at() <= now
                    && Some(self.threads_of(entry.source)) == most
                    && !entry.connection.has_unread()
            };
            let Some(number) = self.pairing().find(gives_way).map(|entry| entry.number) else { return };
            self.close_one(number);
        }
    }

    fn threads(&self) -> usize {
        self.entries.iter().filter(|entry| entry.state != State::Waiting).count()
    }

    fn threads_of(&self, source: Source) -> usize {
        self.entries.iter().filter(|entry| entry.source == source && entry.state != State::Waiting).count()
    }

    /// Closes the oldest such open connection of the source that has the most of them.
    fn close_oldest_of_largest(&mut self, is_such: impl Fn(&Entry<C>) -> bool) {
        let such = |entry: &Entry<C>| entry.state != State::Closed && is_such(entry);
        let of_such = self.entries.iter().filter(|entry| such(entry)).map(|entry| entry.source);
        let Some(largest) = Source::most_frequent(of_such) else { return };
        let oldest = self.entries.iter().find(|entry| such(entry) && entry.source == largest);
        if let Some(number) = oldest.map(|entry| entry.number) {
            self.close_one(number);
        }
    }

    fn close_one(&mut self, number: usize) {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) else { return };
        entry.connection.close();
        if entry.state == State::Waiting {
            self.finished(number);
        } else {
            entry.state = State::Closed;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::net::IpAddr;
    use std::rc::Rc;

    use super::*;

    struct Fake {
        number: usize,
        closed: Rc<RefCell<Vec<usize>>>,
        has_unread: Rc<Cell<bool>>,
    }

    impl Connection for Fake {
        fn close(&self) {
            self.closed.borrow_mut().push(self.number);
        }

        fn has_unread(&self) -> bool {
            self.has_unread.get()
        }
    }

    /// Connections with the numbers of those that were closed.
    #[derive(Default)]
    struct Server {
        pending: Pending<Fake>,
        closed: Rc<RefCell<Vec<usize>>>,
        /// Of all of them.
        has_unread: Rc<Cell<bool>>,
        added: usize,
    }

    impl Server {
        fn add(&mut self, host: u8, now_s: u64) -> usize {
            let number = self.added;
            self.added += 1;
            let (closed, has_unread) = (Rc::clone(&self.closed), Rc::clone(&self.has_unread));
            let fake = Fake { number, closed, has_unread };
            let source = Source::of(IpAddr::from([10, 0, 0, host]));
            self.pending.add(number, source, fake, Nanos(now_s * 1_000_000_000));
            number
        }

        fn start(&mut self) -> Vec<usize> {
            self.start_at(0)
        }

        fn start_at(&mut self, now_s: u64) -> Vec<usize> {
            let now = Nanos(now_s * 1_000_000_000);
            std::iter::from_fn(|| self.pending.next(now).map(|(number, _)| number)).collect()
        }

        fn is_closed(&self, number: usize) -> bool {
            self.closed.borrow().contains(&number)
        }
    }

    #[test]
    fn flood_of_one_source_does_not_close_the_connection_of_another() {
        let mut server = Server::default();
        let client = server.add(1, 0);
        assert_eq!(server.start(), [client]);
        for _ in 0..5000 {
            server.add(2, 0);
            server.start();
        }
        assert!(!server.is_closed(client));
        assert!(server.pending.entries.len() <= OPEN_MAX + THREADS_MAX);
        assert_eq!(server.pending.threads(), THREADS_MAX);
    }

    #[test]
    fn slow_connection_does_not_give_way_to_a_flood_from_another_source() {
        let mut server = Server::default();
        let client = server.add(1, 0);
        assert_eq!(server.start(), [client]);
        for _ in 0..5000 {
            // The flood is younger than the patience; the client is older.
            server.add(2, 2);
            server.start_at(2);
        }
        assert!(!server.is_closed(client));
        assert_eq!(server.pending.threads(), THREADS_MAX);
    }

    #[test]
    fn connection_of_another_source_is_started_before_those_of_a_flood() {
        let mut server = Server::default();
        for _ in 0..5000 {
            server.add(2, 0);
            server.start();
        }
        let client = server.add(1, 0);
        assert!(server.start().is_empty(), "all threads are in use");
        // The threads are those of closed connections, and end.
        assert!(server.is_closed(0));
        server.pending.finished(0);
        assert_eq!(server.start(), [client]);
    }

    #[test]
    fn burst_of_one_source_is_paired_without_closing_any() {
        let mut server = Server::default();
        let burst: Vec<usize> = (0..OPEN_MAX).map(|_| server.add(1, 0)).collect();
        let mut done = Vec::new();
        loop {
            let started = server.start();
            if started.is_empty() {
                break;
            }
            for number in &started {
                server.pending.finished(*number);
            }
            done.extend(started);
        }
        assert_eq!(done, burst);
        assert!(server.closed.borrow().is_empty() && server.pending.entries.is_empty());
    }

    #[test]
    fn silent_connections_give_way_to_later_ones_of_their_source() {
        let mut server = Server::default();
        let silent: Vec<usize> = (0..THREADS_MAX).map(|_| server.add(1, 0)).collect();
        server.start();
        server.add(1, 0);
        assert!(server.closed.borrow().is_empty(), "they may still pair");
        server.add(1, 2);
        assert_eq!(*server.closed.borrow(), silent[..2], "one for each that waits");
        server.add(1, 2);
        assert_eq!(*server.closed.borrow(), silent[..3]);
    }

    #[test]
    fn slow_clients_of_one_source_have_more_time_from_their_first_message_on() {
        let mut server = Server::default();
        let clients: Vec<usize> = (0..THREADS_MAX).map(|_| server.add(1, 0)).collect();
        server.start();
        for client in &clients {
            server.pending.received_first(*client, Nanos(1_000_000_000));
        }
        server.add(1, 5);
        assert!(server.closed.borrow().is_empty(), "they may still pair");
        server.add(1, 6);
        assert_eq!(*server.closed.borrow(), clients[..2]);
        // The first message of one without a thread, or that is closed, is none.
        server.pending.received_first(clients[0], Nanos(6_000_000_000));
        assert_eq!(server.pending.threads(), THREADS_MAX);
        assert_eq!(server.pending.open().count(), THREADS_MAX);
    }

    #[test]
    fn connection_whose_data_this_host_has_not_read_does_not_give_way() {
        let mut server = Server::default();
        let clients: Vec<usize> = (0..THREADS_MAX).map(|_| server.add(1, 0)).collect();
        server.start();
        server.has_unread.set(true);
        server.add(1, 60);
        assert!(server.closed.borrow().is_empty(), "their threads wait for a core");
        server.has_unread.set(false);
        server.add(1, 60);
        assert_eq!(*server.closed.borrow(), clients[..2]);
    }

    /// As many silent strangers as may be open, and a client of the same source behind them.
    #[test]
    fn client_behind_silent_connections_is_started_though_no_other_arrives() {
        let mut server = Server::default();
        assert!(!server.pending.watch(), "none waits");
        for _ in 0..2 * OPEN_MAX {
            server.add(1, 0);
            server.start();
        }
        let client = server.add(1, 0);
        assert!(server.pending.watch() && !server.pending.watch(), "one thread watches");
        let mut now = Nanos(0);
        let mut started = None;
        while let Some(next) = server.pending.relieve(now) {
            let closed = server.closed.borrow().clone();
            for number in closed {
                server.pending.finished(number);
            }
            if server.start_at(now.0 / 1_000_000_000).contains(&client) {
                started = Some(now);
            }
            now = next;
        }
        assert_eq!((started, server.is_closed(client)), (Some(PATIENCE), false));
        server.pending.close();
        assert!(!server.pending.watch());
    }
}
