//! Carries bytes between a TLS session and a socket pair, so that code that wants a plain stream, and two threads on it, can
//! have one. A thread of its own sleeps in poll(2) until something comes. It ends when both directions have ended, or one side
//! is gone and what it said last has been passed on.
//!
//! A socket that has hung up says so in every poll(2), asked or not. So neither side is polled once it has nothing more to tell:
//! an end that waits for a slow other one would be a busy loop.
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;
use rustls::Connection;

/// Bytes that wait for the plain side at most; until they are taken nothing more is read from the network.
const WAITING_MAX: usize = 256 << 10;
const CHUNK: usize = 16 << 10;
/// A peer that has gone without a word, for example with its power, is noticed after this: by probes when nothing is under
/// way, and by what it does not acknowledge, or has no room for, when something is.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const PROBE_AFTER: Duration = Duration::from_secs(20);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 4;

/// The plain side, and the thread that carries. It ends soon after the plain side is closed.
pub fn start(connection: Connection, network: TcpStream) -> io::Result<(UnixStream, JoinHandle<()>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let pump = Pump::new(connection, network, ours)?;
    let carrier = std::thread::Builder::new().name("tls".to_owned()).spawn(move || pump.run())?;
    Ok((theirs, carrier))
}

pub(super) struct Pump {
    connection: Connection,
    network: TcpStream,
    plain: UnixStream,
    /// Decrypted, for the plain side.
    waiting: Vec<u8>,
    plain_end: End,
    network_end: End,
}

/// How far a side has come to its end.
#[derive(Clone, Copy, Default)]
struct End {
    /// It has said its last.
    spoken: bool,
    /// It takes nothing more. What it said before may still be unread.
    gone: bool,
}

impl Pump {
    pub(super) fn new(connection: Connection, network: TcpStream, plain: UnixStream) -> io::Result<Self> {
        network.set_nonblocking(true)?;
        plain.set_nonblocking(true)?;
        // One request and its answer at a time: waiting to fill segments would only add delay.
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
            waiting: Vec::new(),
            plain_end: End::default(),
            network_end: End::default(),
        })
    }

    /// Carries until all is said. An error of the session or of poll(2) ends both sides: who holds the other ends sees it.
    pub(super) fn run(mut self) {
        while !self.is_over() && self.turn().is_ok() {}
        // A peer that has gone already is as well.
        let _ = self.network.shutdown(Shutdown::Both);
    }

    fn has_to_tell_network(&self) -> bool {
        self.connection.wants_write() && !self.network_end.gone
    }

    fn is_over(&self) -> bool {
        let nothing_to_tell = (self.plain_end.spoken || self.network_end.gone) && !self.has_to_tell_network();
        let nothing_to_hear = self.plain_end.gone || (self.network_end.spoken && self.waiting.is_empty());
        nothing_to_tell && nothing_to_hear
    }

    /// Waits and carries.
    fn turn(&mut self) -> io::Result<()> {
        let (network, plain) = self.wait()?;
        let hung_up = PollFlags::HUP | PollFlags::ERR;
        if plain.intersects(hung_up) {
            self.plain_end.gone = true;
            self.waiting.clear();
        }
        if network.intersects(PollFlags::IN | hung_up) && !self.network_end.spoken {
            self.hear_network()?;
        }
        // A side that is gone leaves what it said last, which is read as fast as the network takes it.
        if (plain.contains(PollFlags::IN) || self.plain_end.gone) && self.listens_to_plain() {
            self.hear_plain()?;
        }
        self.tell_network();
        self.tell_plain();
        Ok(())
    }

    fn listens_to_plain(&self) -> bool {
        !self.plain_end.spoken && !self.network_end.gone && !self.connection.wants_write()
    }

    /// Sleeps until either side has something to say or can take something that waits for it. A side that is not asked
    /// anything is not listened to, but for the plain side's going.
    fn wait(&self) -> io::Result<(PollFlags, PollFlags)> {
        if self.plain_end.gone && self.listens_to_plain() {
            // All that is left of it can be read at once.
            return Ok((PollFlags::empty(), PollFlags::empty()));
        }
        let mut of_network = PollFlags::empty();
        of_network.set(PollFlags::IN, !self.network_end.spoken && self.waiting.len() < WAITING_MAX);
        of_network.set(PollFlags::OUT, self.has_to_tell_network());
        let mut of_plain = PollFlags::empty();
        of_plain.set(PollFlags::IN, self.listens_to_plain());
        of_plain.set(PollFlags::OUT, !self.waiting.is_empty());
        let (ask_network, ask_plain) = (!of_network.is_empty(), !self.plain_end.gone);
        let mut asked = Vec::with_capacity(2);
        asked.extend(ask_network.then(|| PollFd::new(&self.network, of_network)));
        asked.extend(ask_plain.then(|| PollFd::new(&self.plain, of_plain)));
        match poll(&mut asked, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let said = |wanted: bool, index: usize| {
            if wanted { asked[index].revents() } else { PollFlags::empty() }
        };
        Ok((said(ask_network, 0), said(ask_plain, usize::from(ask_network))))
    }

    fn hear_network(&mut self) -> io::Result<()> {
        match self.connection.read_tls(&mut self.network) {
            Ok(0) => self.network_end.spoken = true,
            Ok(_) => {
                let state = self.connection.process_new_packets().map_err(io::Error::other)?;
                let start = self.waiting.len();
                self.waiting.resize(start + state.plaintext_bytes_to_read(), 0);
                self.connection.reader().read_exact(&mut self.waiting[start..])?;
                self.network_end.spoken |= state.peer_has_closed();
                if self.plain_end.gone {
                    self.waiting.clear();
                }
            }
            Err(error) if is_transient(&error) => {}
            // The peer or the way to it is gone; what it said before is still passed on.
            Err(_) => self.network_end = End { spoken: true, gone: true },
        }
        self.pass_on_end();
        Ok(())
    }

    fn hear_plain(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        match self.plain.read(&mut chunk) {
            Ok(0) => self.end_plain(),
            Ok(count) => self.connection.writer().write_all(&chunk[..count])?,
            Err(error) if is_transient(&error) => {}
            Err(_) => self.end_plain(),
        }
        Ok(())
    }

    fn end_plain(&mut self) {
        self.plain_end.spoken = true;
        self.connection.send_close_notify();
    }

    fn tell_network(&mut self) {
        while self.has_to_tell_network() {
            match self.connection.write_tls(&mut self.network) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() != ErrorKind::Interrupted => self.network_end.gone = true,
                _ => {}
            }
        }
    }

    fn tell_plain(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.plain.write(&self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(error) if is_transient(&error) => {}
            Err(_) => {
                self.plain_end.gone = true;
                self.waiting.clear();
            }
        }
        self.pass_on_end();
    }

    /// Tells the plain side the end of the network side, after all that came before it.
    fn pass_on_end(&self) {
        if self.network_end.spoken && self.waiting.is_empty() {
            // A plain side that is gone needs to be told nothing.
            let _ = self.plain.shutdown(Shutdown::Write);
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
