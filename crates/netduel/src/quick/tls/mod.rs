//! The control connection of quick tests: TLS 1.3 to a certificate whose hash is in the pairing, then a proof of the pairing's
//! secret by each side, bound to this TLS session (RFC 9266 gives the reasons for an exporter, RFC 8446 section 7.5 the
//! function). A peer without a valid proof gets a closed connection and no response.
mod proof;
mod relay;
mod verifier;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_sys::local_bind::LocalBind;
use netduel_sys::{clock, tcp};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use netduel_model::pairing::{Pairing, SECRET_LEN};
use verifier::PinnedCertificate;

pub use verifier::fingerprint;

/// Time limit of handshake and proof, on the server: that of its clients, which may wait for a core of a busy host. It does not limit what
/// strangers cost: when there are many of them, those that are late give way much sooner (`serve/pending.rs`).
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// Errors of the control connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No address answered.
    #[error(
        "failed to connect to {tried}; is `netduel serve` running there, and does a firewall let the port through?"
    )]
    Connect {
        /// Addresses with their errors.
        tried: String,
    },
    /// The certificate is not the one of the pairing.
    #[error(
        "the server at {address} is not the one that was paired: its certificate differs. If its identity was replaced, pair again with \
         the string that it prints now. If not, another server answers at this address"
    )]
    OtherServer {
        /// The address.
        address: SocketAddr,
    },
    /// The server closed the connection instead of proving the secret.
    #[error(
        "the server at {address} closed the connection: its pairing string has changed, or it has too many clients; pair again with the \
         string that it prints now, or wait"
    )]
    Refused {
        /// The address.
        address: SocketAddr,
    },
    /// The peer uses another protocol, or the connection broke.
    #[error("failed to agree on TLS 1.3 with {address}: {reason}; is it a `netduel serve` of this version?")]
    Handshake {
        /// The address.
        address: SocketAddr,
        /// The error.
        reason: String,
    },
    /// The peer of a server is not a paired client.
    #[error("no paired client: {0}")]
    NotPaired(String),
    /// The keys cannot be used.
    #[error("failed to use the identity: {0}; `netduel serve --new-identity` creates a new one")]
    Identity(String),
}

/// The credentials of a server.
#[derive(Clone)]
pub struct ServerIdentity {
    config: Arc<ServerConfig>,
    secret: [u8; SECRET_LEN],
}

impl ServerIdentity {
    /// From a certificate and its key (PKCS #8), both DER, and the secret of the pairings.
    pub fn new(certificate: &[u8], key: &[u8], secret: [u8; SECRET_LEN]) -> Result<Self, TlsError> {
        let failed = |error: rustls::Error| TlsError::Identity(error.to_string());
        let certificate = CertificateDer::from(certificate.to_vec());
        let key = PrivatePkcs8KeyDer::from(key.to_vec());
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())
            .map_err(failed)?;
        // Every control connection sends the whole certificate and proves the secret again.
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), secret })
    }
}

/// Connects from the address or interface of `bind` to the first address that answers, and pairs, within `limit` in total. The
/// stream leads to the server's agent.
pub fn connect(
    pairing: &Pairing,
    addresses: &[SocketAddr],
    limit: Duration,
    bind: &LocalBind,
) -> Result<(UnixStream, SocketAddr), TlsError> {
    let deadline_ns = deadline(limit);
    let mut tried = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        // Each address gets an equal share of the time, and the last one the rest.
        let left = Duration::from_nanos(deadline_ns.saturating_sub(clock::monotonic_ns()));
        let share = (left / (addresses.len() - index) as u32).max(Duration::from_millis(1));
        match tcp::connect(*address, None, None, share, bind) {
            Ok(stream) => {
                return pair(pairing, stream, *address, deadline_ns).map(|stream| (stream, *address));
            }
            Err(error) => tried.push(format!("{address}: {error}")),
        }
    }
    if tried.is_empty() {
        tried.push(format!("{}: it has no address", pairing.server.host()));
    }
    Err(TlsError::Connect { tried: tried.join(", ") })
}

fn pair(
    pairing: &Pairing,
    stream: TcpStream,
    address: SocketAddr,
    deadline_ns: u64,
) -> Result<UnixStream, TlsError> {
    let failed = |reason: String| TlsError::Handshake { address, reason };
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| failed(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedCertificate::new(pairing.fingerprint)))
        .with_no_client_auth();
    // The name is ignored: the certificate itself is compared.
    let name = ServerName::IpAddress(address.ip().into());
    let connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| failed(error.to_string()))?;
    let mut wire = Wire { stream, deadline_ns };
    let mut connection = Connection::Client(connection);
    handshake(&mut connection, &mut wire).map_err(|error| {
        if error.get_ref().is_some_and(|inner| inner.to_string().contains(verifier::ANOTHER)) {
            TlsError::OtherServer { address }
        } else {
            failed(error.to_string())
        }
    })?;
    let ours = proof::of_client(&connection, &pairing.secret).map_err(|error| failed(error.to_string()))?;
    write_all(&mut connection, &mut wire, &ours).map_err(|error| failed(error.to_string()))?;
    let mut theirs = [0; proof::LENGTH];
    read_exact(&mut connection, &mut wire, &mut theirs).map_err(|_| TlsError::Refused { address })?;
    proof::check_server(&connection, &pairing.secret, &theirs)
        .map_err(|_| TlsError::OtherServer { address })?;
    let (stream, _carrier) =
        relay::start(connection, wire.stream).map_err(|error| failed(error.to_string()))?;
    Ok(stream)
}

/// A paired client, on the server.
pub struct Paired {
    /// The stream to the client.
    pub stream: UnixStream,
    /// Ends when the stream is closed and its data has been sent, or cannot be.
    pub carrier: JoinHandle<()>,
}

/// The server's side of a connection whose first bytes are still unread. An unpaired peer receives TLS messages only.
/// `on_first_message` is called when the first message of the peer is whole and valid.
pub fn accept(
    identity: &ServerIdentity,
    stream: TcpStream,
    on_first_message: impl FnOnce(),
) -> Result<Paired, TlsError> {
    let not_paired = |error: io::Error| TlsError::NotPaired(error.to_string());
    let connection = ServerConnection::new(Arc::clone(&identity.config))
        .map_err(|error| TlsError::Identity(error.to_string()))?;
    let mut connection = Connection::Server(connection);
    let mut wire = Wire { stream, deadline_ns: deadline(HANDSHAKE_LIMIT) };
    while connection.is_handshaking() && !connection.wants_write() {
        take(&mut connection, &mut wire).map_err(not_paired)?;
    }
    on_first_message();
    handshake(&mut connection, &mut wire).map_err(not_paired)?;
    let mut theirs = [0; proof::LENGTH];
    read_exact(&mut connection, &mut wire, &mut theirs).map_err(not_paired)?;
    proof::check_client(&connection, &identity.secret, &theirs)
        .map_err(|_| TlsError::NotPaired("the client does not know the secret".to_owned()))?;
    let ours = proof::of_server(&connection, &identity.secret)
        .map_err(|error| TlsError::NotPaired(error.to_string()))?;
    write_all(&mut connection, &mut wire, &ours).map_err(not_paired)?;
    let (stream, carrier) = relay::start(connection, wire.stream).map_err(not_paired)?;
    Ok(Paired { stream, carrier })
}

fn deadline(limit: Duration) -> u64 {
    clock::monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

/// A socket with one deadline for all its calls, so that a peer cannot extend it by sending single bytes.
struct Wire {
    stream: TcpStream,
    deadline_ns: u64,
}

impl Wire {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline_ns.saturating_sub(clock::monotonic_ns());
        if left == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "pairing exceeded its time limit"));
        }
        Ok(Duration::from_nanos(left))
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl Write for Wire {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(buffer).map_err(timed_out)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, "pairing exceeded its time limit")
        }
        _ => error,
    }
}

/// Processes received data. Alerts about errors are not sent: an unpaired peer learns nothing.
fn take(connection: &mut Connection, wire: &mut Wire) -> io::Result<()> {
    match connection.read_tls(wire) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => connection.process_new_packets().map(drop).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(error),
    }
}

fn send_all(connection: &mut Connection, wire: &mut Wire) -> io::Result<()> {
    while connection.wants_write() {
        match connection.write_tls(wire) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn handshake(connection: &mut Connection, wire: &mut Wire) -> io::Result<()> {
    loop {
        send_all(connection, wire)?;
        if !connection.is_handshaking() {
            return Ok(());
        }
        take(connection, wire)?;
    }
}

fn write_all(connection: &mut Connection, wire: &mut Wire, bytes: &[u8]) -> io::Result<()> {
    connection.writer().write_all(bytes)?;
    send_all(connection, wire)
}

fn read_exact(connection: &mut Connection, wire: &mut Wire, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match connection.reader().read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => take(connection, wire)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
