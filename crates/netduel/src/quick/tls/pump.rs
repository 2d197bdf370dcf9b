//! Carries bytes between a TLS session and a socket pair, so that code that wants a plain stream, and two threads on it, can
//! have one. A thread of its own sleeps in poll(2) until something comes; it ends when both directions have ended, or either
//! side is gone.
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustls::Connection;

/// Bytes that wait for the plain side at most; until they are taken nothing more is read from the network.
const WAITING_MAX: usize = 256 << 10;
const CHUNK: usize = 16 << 10;

/// Starts the thread. The returned stream is the plain side.
pub fn start(connection: Connection, network: TcpStream) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    network.set_nonblocking(true)?;
    // One request and its answer at a time: waiting to fill segments would only add delay.
    network.set_nodelay(true)?;
    keep_alive(&network)?;
    ours.set_nonblocking(true)?;
    let pump = Pump {
        connection,
        network,
        plain: ours,
        waiting: Vec::new(),
        plain_ended: false,
        plain_gone: false,
        network_ended: false,
    };
    std::thread::Builder::new().name("tls".to_owned()).spawn(move || pump.run())?;
    Ok(theirs)
}

/// A peer that has gone without a word, for example with its power, is noticed within about a minute.
fn keep_alive(network: &TcpStream) -> io::Result<()> {
    use std::time::Duration;

    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(network, true)?;
    sockopt::set_tcp_keepidle(network, Duration::from_secs(20))?;
    sockopt::set_tcp_keepintvl(network, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(network, 4)?;
    Ok(())
}

struct Pump {
    connection: Connection,
    network: TcpStream,
    plain: UnixStream,
    /// Decrypted, for the plain side.
    waiting: Vec<u8>,
    /// The plain side has said its last; close_notify is sent.
    plain_ended: bool,
    /// Nobody is at the plain side any more, neither to speak nor to listen.
    plain_gone: bool,
    /// The network side has said its last.
    network_ended: bool,
}

impl Pump {
    fn run(mut self) {
        // An error of either side ends both: the sockets close with this struct, and who holds the other ends sees it.
        while let Ok(true) = self.turn() {}
        drop(self.network.shutdown(Shutdown::Both));
    }

    /// Waits and carries; `false` when all is said.
    fn turn(&mut self) -> io::Result<bool> {
        if self.plain_gone || (self.network_ended && self.waiting.is_empty() && self.plain_ended) {
            // What was said last still leaves.
            if !self.connection.wants_write() {
                return Ok(false);
            }
        }
        let (network, plain) = self.wait()?;
        let gone = PollFlags::HUP | PollFlags::ERR;
        if network.intersects(gone) && self.network_ended && self.waiting.is_empty() {
            return Ok(false);
        }
        if network.intersects(PollFlags::IN | gone) {
            self.hear_network()?;
        }
        if plain.intersects(PollFlags::IN | gone) && !self.plain_ended {
            self.hear_plain()?;
        } else if plain.intersects(gone) {
            self.plain_gone = true;
        }
        self.tell_network()?;
        if !self.plain_gone {
            self.tell_plain()?;
        }
        Ok(true)
    }

    /// Sleeps until either side has something to say or can take something that waits for it.
    fn wait(&self) -> io::Result<(PollFlags, PollFlags)> {
        let mut of_network = PollFlags::empty();
        let mut of_plain = PollFlags::empty();
        of_network.set(PollFlags::IN, !self.network_ended && self.waiting.len() < WAITING_MAX);
        of_network.set(PollFlags::OUT, self.connection.wants_write());
        of_plain.set(PollFlags::IN, !self.plain_ended && !self.connection.wants_write());
        of_plain.set(PollFlags::OUT, !self.waiting.is_empty());
        let mut polled = [PollFd::new(&self.network, of_network), PollFd::new(&self.plain, of_plain)];
        // A socket that has hung up says so whether it is asked or not: it is not asked again.
        let asked = if self.plain_gone { &mut polled[..1] } else { &mut polled[..] };
        match poll(asked, None) {
            Err(rustix::io::Errno::INTR) => return Ok((PollFlags::empty(), PollFlags::empty())),
            result => result?,
        };
        Ok((polled[0].revents(), polled[1].revents()))
    }

    fn hear_network(&mut self) -> io::Result<()> {
        match self.connection.read_tls(&mut self.network) {
            Ok(0) => self.network_ended = true,
            Ok(_) => {
                let state = self.connection.process_new_packets().map_err(io::Error::other)?;
                let start = self.waiting.len();
                self.waiting.resize(start + state.plaintext_bytes_to_read(), 0);
                self.connection.reader().read_exact(&mut self.waiting[start..])?;
                self.network_ended |= state.peer_has_closed();
            }
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        if self.network_ended && self.waiting.is_empty() {
            self.plain.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    fn hear_plain(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        match self.plain.read(&mut chunk) {
            Ok(0) => {
                self.plain_ended = true;
                self.connection.send_close_notify();
            }
            Ok(count) => self.connection.writer().write_all(&chunk[..count])?,
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn tell_network(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.network) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn tell_plain(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        match self.plain.write(&self.waiting) {
            Ok(count) => drop(self.waiting.drain(..count)),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        if self.network_ended && self.waiting.is_empty() {
            self.plain.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
