//! Copies bytes between a TLS session and a socket pair, so that code that needs a plain stream, and two threads on it, can use
//! TLS. A thread sleeps in poll(2) until data arrives. It ends when both directions have ended, or when one side is closed and
//! its last data has been forwarded.
//!
//! poll(2) always returns for a socket that has hung up. So a side without further data is not polled: otherwise an end that
//! waits for a slow peer would busy-loop.
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_sys::{clock, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use rustls::Connection;

/// Maximum number of bytes buffered for the plain side; while it is reached, nothing is read from the network.
const BUFFERED_MAX: usize = 256 << 10;
const CHUNK: usize = 16 << 10;
/// Timeout of a peer that disappeared without closing, for example by a power failure. Keep-alive probes detect it without data
/// in flight, and missing acknowledgements or a zero window with data in flight.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const PROBE_AFTER: Duration = Duration::from_secs(20);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 4;
/// How long the peer may take for the last data of a closed plain side. One that reads a byte now and then is not silent, and would keep
/// its place on a server without end.
const CLOSE_LIMIT: Duration = SILENCE_MAX;

/// The plain side, and the copying thread. The thread ends soon after the plain side is closed.
pub fn start(connection: Connection, network: TcpStream) -> io::Result<(UnixStream, JoinHandle<()>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let relay = Relay::new(connection, network, ours)?;
    let carrier = std::thread::Builder::new().name("tls".to_owned()).spawn(move || relay.run())?;
    Ok((theirs, carrier))
}

pub(super) struct Relay {
    connection: Connection,
    network: TcpStream,
    plain: UnixStream,
    /// Decrypted, for the plain side.
    buffered: Vec<u8>,
    plain_end: End,
    network_end: End,
    /// When the plain side was closed, nanoseconds of the monotonic clock.
    closed_ns: Option<u64>,
    close_limit: Duration,
}

/// Progress of a side towards its end.
#[derive(Clone, Copy, Default)]
struct End {
    /// It has sent its last data.
    at_end: bool,
    /// It accepts no more data. Its earlier data may still be unread.
    closed: bool,
}

impl Relay {
    pub(super) fn new(connection: Connection, network: TcpStream, plain: UnixStream) -> io::Result<Self> {
        network.set_nonblocking(true)?;
        plain.set_nonblocking(true)?;
        // One request and its response at a time: waiting to fill segments would only add delay.
        network.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&network, true)?;
        sockopt::set_tcp_keepidle(&network, PROBE_AFTER)?;
        sockopt::set_tcp_keepintvl(&network, PROBE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(&network, PROBES)?;
        sockopt::set_tcp_user_timeout(&network, SILENCE_MAX.as_millis() as u32)?;
        Ok(Self {
            connection,
            network,
            plain,
            buffered: Vec::new(),
            plain_end: End::default(),
            network_end: End::default(),
            closed_ns: None,
            close_limit: CLOSE_LIMIT,
        })
    }

    /// Copies until both sides end. An error of the session or of poll(2) closes both sides, which their peers detect.
    pub(super) fn run(self) {
        self.run_with(CLOSE_LIMIT);
    }

    /// As [`Self::run`], with another limit for the last data of a closed plain side.
    pub(super) fn run_with(mut self, close_limit: Duration) {
        self.close_limit = close_limit;
        while !self.is_over() && self.close_left() != Some(Duration::ZERO) && self.turn().is_ok() {}
        // The peer may already be closed.
        let _ = self.network.shutdown(Shutdown::Both);
    }

    /// The time that the peer has for the last data of a closed plain side.
    fn close_left(&self) -> Option<Duration> {
        let closed_ns = clock::monotonic_ns().saturating_sub(self.closed_ns?);
        Some(self.close_limit.saturating_sub(Duration::from_nanos(closed_ns)))
    }

    /// The plain side accepts no more data.
    fn close_plain(&mut self) {
        self.plain_end.closed = true;
        self.closed_ns.get_or_insert_with(clock::monotonic_ns);
        self.buffered.clear();
    }

    fn wants_network_write(&self) -> bool {
        self.connection.wants_write() && !self.network_end.closed
    }

    fn is_over(&self) -> bool {
        let no_more_to_network =
            (self.plain_end.at_end || self.network_end.closed) && !self.wants_network_write();
        let no_more_to_plain = self.plain_end.closed || (self.network_end.at_end && self.buffered.is_empty());
        no_more_to_network && no_more_to_plain
    }

    /// Waits and copies.
    fn turn(&mut self) -> io::Result<()> {
        let (network, plain) = self.wait()?;
        let hung_up = PollFlags::HUP | PollFlags::ERR;
        if plain.intersects(hung_up) {
            self.close_plain();
        }
        if network.intersects(PollFlags::IN | hung_up) && !self.network_end.at_end {
            self.read_network()?;
        }
        // The last data of a closed side is read as fast as the network accepts it.
        if (plain.contains(PollFlags::IN) || self.plain_end.closed) && self.wants_plain_read() {
            self.read_plain()?;
        }
        self.write_network();
        self.write_plain();
        Ok(())
    }

    fn wants_plain_read(&self) -> bool {
        !self.plain_end.at_end && !self.network_end.closed && !self.connection.wants_write()
    }

    /// Sleeps until either side has data or can accept buffered data. A side that can do neither is not polled, except for the
    /// closing of the plain side.
    fn wait(&self) -> io::Result<(PollFlags, PollFlags)> {
        if self.plain_end.closed && self.wants_plain_read() {
            // All of its remaining data can be read at once.
            return Ok((PollFlags::empty(), PollFlags::empty()));
        }
        let mut of_network = PollFlags::empty();
        of_network.set(PollFlags::IN, !self.network_end.at_end && self.buffered.len() < BUFFERED_MAX);
        of_network.set(PollFlags::OUT, self.wants_network_write());
        let mut of_plain = PollFlags::empty();
        of_plain.set(PollFlags::IN, self.wants_plain_read());
        of_plain.set(PollFlags::OUT, !self.buffered.is_empty());
        let (poll_network, poll_plain) = (!of_network.is_empty(), !self.plain_end.closed);
        let mut descriptors = Vec::with_capacity(2);
        descriptors.extend(poll_network.then(|| PollFd::new(&self.network, of_network)));
        descriptors.extend(poll_plain.then(|| PollFd::new(&self.plain, of_plain)));
        let timeout = self.close_left().and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let events = |wanted: bool, index: usize| {
            if wanted { descriptors[index].revents() } else { PollFlags::empty() }
        };
        Ok((events(poll_network, 0), events(poll_plain, usize::from(poll_network))))
    }

    fn read_network(&mut self) -> io::Result<()> {
        match self.connection.read_tls(&mut self.network) {
            Ok(0) => self.network_end.at_end = true,
            Ok(_) => {
                let state = self.connection.process_new_packets().map_err(io::Error::other)?;
                let start = self.buffered.len();
                self.buffered.resize(start + state.plaintext_bytes_to_read(), 0);
                self.connection.reader().read_exact(&mut self.buffered[start..])?;
                self.network_end.at_end |= state.peer_has_closed();
                if self.plain_end.closed {
                    self.buffered.clear();
                }
            }
            Err(error) if socket::is_transient(&error) => {}
            // The peer or its path is gone; its earlier data is still forwarded.
            Err(_) => self.network_end = End { at_end: true, closed: true },
        }
        self.pass_on_end();
        Ok(())
    }

    fn read_plain(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        match self.plain.read(&mut chunk) {
            Ok(0) => self.end_plain(),
            Ok(count) => self.connection.writer().write_all(&chunk[..count])?,
            Err(error) if socket::is_transient(&error) => {}
            Err(_) => self.end_plain(),
        }
        Ok(())
    }

    fn end_plain(&mut self) {
        self.plain_end.at_end = true;
        self.connection.send_close_notify();
    }

    fn write_network(&mut self) {
        while self.wants_network_write() {
            match self.connection.write_tls(&mut self.network) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() != ErrorKind::Interrupted => self.network_end.closed = true,
                _ => {}
            }
        }
    }

    fn write_plain(&mut self) {
        if self.buffered.is_empty() {
            return;
        }
        match self.plain.write(&self.buffered) {
            Ok(count) => drop(self.buffered.drain(..count)),
            Err(error) if socket::is_transient(&error) => {}
            Err(_) => self.close_plain(),
        }
        self.pass_on_end();
    }

    /// Closes the plain side after all data of the network side.
    fn pass_on_end(&self) {
        if self.network_end.at_end && self.buffered.is_empty() {
            // A closed plain side needs no signal.
            let _ = self.plain.shutdown(Shutdown::Write);
        }
    }
}
