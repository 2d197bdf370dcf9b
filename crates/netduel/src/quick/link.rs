//! Carries an agent's conversation between standard input and output and a paired server, as `ssh HOST netduel agent` would:
//! to the coordinator a standing server is an agent behind one more launcher.
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use netduel_model::socket_name::SocketName;

use super::{known, tls};
use crate::exit::{Failure, Kind, OrFail as _};

/// How long connecting and pairing may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Runs until either side ends.
pub fn command(at: &str) -> Result<(), Failure> {
    let name = SocketName::parse(at)
        .ok_or_else(|| Failure::message(Kind::Usage, format!("{at:?} is not HOST or HOST:PORT")))?;
    let pairing = known::find(&name)?.ok_or_else(|| {
        let text = format!("there is no pairing with {name}: keep it with `netduel pair STRING`, the string that `netduel serve` printed");
        Failure::message(Kind::Usage, text)
    })?;
    let addresses: Vec<SocketAddr> = (name.host.as_str(), name.port)
        .to_socket_addrs()
        .map_err(|error| {
            Failure::message(Kind::Host, format!("failed to find the address of {}: {error}", name.host))
        })?
        .collect();
    let (stream, _) = tls::connect(&pairing, &addresses, CONNECT_LIMIT).kind(Kind::Host)?;
    carry(stream)
        .map_err(|error| Failure::message(Kind::Host, format!("the conversation with {name} broke: {error}")))
}

/// Both ways at once; the end of either side ends the other.
fn carry(stream: UnixStream) -> io::Result<()> {
    let mut to_server = stream.try_clone()?;
    std::thread::Builder::new().name("link-in".to_owned()).spawn(move || {
        // An error here is the end of the input as well; the server sees that nothing more comes.
        drop(copy(io::stdin(), &mut to_server));
        drop(to_server.shutdown(Shutdown::Write));
    })?;
    copy(stream, io::stdout())
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count]).and_then(|()| to.flush())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
