//! Connects standard input and output with a paired server, as `ssh HOST netduel agent` would: for the coordinator a standing
//! server is an agent with another launcher.
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netduel_model::socket_name::SocketName;
use netduel_sys::local_bind::LocalBind;

use super::{known, tls};
use crate::exit::{Failure, Kind, OrFail as _};

/// Time limit of connecting and pairing.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Runs until either side ends.
pub fn command(at: &str, bind: &LocalBind) -> Result<(), Failure> {
    let name = SocketName::parse(at).ok_or_else(|| known::names_no_server(at, "is not HOST or HOST:PORT"))?;
    let pairing = known::find(&name)?.ok_or_else(|| {
        Failure::message(Kind::NotPaired, format!("there is no pairing with {name}")).remedy(known::PAIR)
    })?;
    let addresses: Vec<SocketAddr> = (name.host(), name.port())
        .to_socket_addrs()
        .map_err(|error| {
            let text = format!("failed to find the address of {}: {error}", name.host());
            Failure::caused(Kind::Host, text, error)
        })?
        .filter(|found| bind.address.is_none_or(|address| address.is_ipv4() == found.is_ipv4()))
        .collect();
    let (stream, address) = tls::connect(&pairing, &addresses, CONNECT_LIMIT, bind).kind(Kind::Host)?;
    let ending = carry(stream).map_err(|error| {
        Failure::caused(Kind::Host, format!("the connection to {name} broke: {error}"), error)
    })?;
    match ending {
        Ending::Bye => Ok(()),
        Ending::Cut => Err(Failure::message(
            Kind::Host,
            format!(
                "the server at {address} closed the connection: it was stopped or killed, the connection broke, or no message was sent for longer than its --idle-timeout"
            ),
        )),
    }
}

/// How a session ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// Regularly: the client closed its input, or the server sent `bye`.
    Bye,
    /// Early: the server closed the connection.
    Cut,
}

/// Copies in both directions; the end of either side ends the other.
fn carry(stream: UnixStream) -> io::Result<Ending> {
    let mut to_server = stream.try_clone()?;
    let is_done = Arc::new(AtomicBool::new(false));
    let input_ended = Arc::clone(&is_done);
    std::thread::Builder::new().name("link-in".to_owned()).spawn(move || {
        // A read error is also the end of the input, which the server detects. After a write error the server has ended the session.
        let copied = copy(io::stdin(), &mut to_server);
        input_ended.store(!matches!(copied, Err(CopyError::Write(_))), Ordering::SeqCst);
        drop(to_server.shutdown(Shutdown::Write));
    })?;
    let mut answers = Answers::new(io::stdout());
    copy(stream, &mut answers)?;
    let is_over = answers.ends_with_bye || is_done.load(Ordering::SeqCst);
    Ok(if is_over { Ending::Bye } else { Ending::Cut })
}

/// The beginning of `bye` in `netduel_control::protocol`.
const BYE: &[u8] = br#"{"type":"bye""#;

/// Forwards the messages of the server, and detects its last one (`bye`).
struct Answers<W> {
    output: W,
    /// The beginning of the current line, at most as long as that of `bye`.
    line: Vec<u8>,
    /// The last whole line is `bye`.
    ends_with_bye: bool,
}

impl<W: Write> Answers<W> {
    fn new(output: W) -> Self {
        Self { output, line: Vec::new(), ends_with_bye: false }
    }

    fn notice(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.ends_with_bye = self.line == BYE;
                self.line.clear();
            } else if self.line.len() < BYE.len() {
                self.line.push(*byte);
            }
        }
    }
}

impl<W: Write> Write for Answers<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.output.write(bytes)?;
        self.notice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Why a copy ended before its input.
#[derive(Debug)]
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl From<CopyError> for io::Error {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Read(error) | CopyError::Write(error) => error,
        }
    }
}

fn copy(mut from: impl Read, to: &mut impl Write) -> Result<(), CopyError> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count]).and_then(|()| to.flush()).map_err(CopyError::Write)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(CopyError::Read(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use netduel_control::protocol::{FromAgent, encode};

    use super::*;

    /// The stream of a server that has ended the session.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Otherwise a session that the server has ended would be taken for one that its client has.
    #[test]
    fn message_that_a_closed_server_does_not_take_is_no_end_of_the_input() {
        assert!(matches!(copy(&b"hello"[..], &mut Closed), Err(CopyError::Write(_))));
        assert!(copy(&b""[..], &mut Closed).is_ok());
    }

    #[test]
    fn bye_is_recognized_in_parts_of_any_size() {
        let bye = encode(&FromAgent::Bye { problems: vec!["x".into()] });
        let started = encode(&FromAgent::Started);
        for (words, is_farewell) in [
            (String::new(), false),
            (started.clone(), false),
            (format!("{started}{bye}"), true),
            (format!("{bye}{started}"), false),
            (bye.trim_end().to_owned(), false),
        ] {
            for size in [1, 5, 1000] {
                let mut answers = Answers::new(Vec::new());
                for bytes in words.as_bytes().chunks(size) {
                    answers.write_all(bytes).expect("a vector takes everything");
                }
                assert_eq!(answers.ends_with_bye, is_farewell, "{words}");
                assert_eq!(answers.output, words.as_bytes());
            }
        }
    }
}
