//! Pairing over real sockets: valid and invalid clients.
use std::io::{Read as _, Write as _, copy};
use std::net::{Shutdown, TcpListener};

use netduel_model::socket_name::SocketName;
use rustix::net::sockopt;

use super::relay::Relay;
use super::*;

struct Served {
    pairing: Pairing,
    address: SocketAddr,
    server: JoinHandle<Result<Paired, TlsError>>,
}

const SECRET: [u8; SECRET_LEN] = *b"sixteen bytes ok";

struct Made {
    identity: ServerIdentity,
    fingerprint: [u8; 32],
}

fn made_identity() -> Made {
    let generated = rcgen::generate_simple_self_signed(vec!["netduel".to_owned()]).expect("a certificate");
    let key = generated.signing_key.serialize_der();
    let identity = ServerIdentity::new(generated.cert.der(), &key, SECRET).expect("an identity");
    Made { identity, fingerprint: fingerprint(generated.cert.der()) }
}

fn serve_one() -> Served {
    let Made { identity, fingerprint } = made_identity();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || accept(&identity, listener.accept().expect("a client").0, || ()));
    let name = SocketName::new("127.0.0.1", address.port()).expect("a bound port");
    let pairing = Pairing { server: name, fingerprint, secret: SECRET };
    Served { pairing, address, server }
}

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn paired_stream_carries_bulk_data_and_supports_half_close() {
    let served = serve_one();
    let (client, _) = connect(&served.pairing, &[served.address], LIMIT, &LocalBind::ANY).expect("paired");
    let server = served.server.join().expect("no panic").expect("paired").stream;
    let data: Vec<u8> = (0..3_000_000_u32).map(|index| (index * 7) as u8).collect();
    let echo = std::thread::spawn(move || {
        let (mut from, mut to) = (server.try_clone().expect("a copy"), server);
        let copied = copy(&mut from, &mut to).expect("carried");
        to.shutdown(Shutdown::Write).expect("ended");
        copied
    });
    let mut writer = client.try_clone().expect("a copy");
    let sent = data.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&sent).expect("carried");
        writer.shutdown(Shutdown::Write).expect("ended");
    });
    let mut back = Vec::new();
    let mut client = client;
    client.read_to_end(&mut back).expect("carried");
    writing.join().expect("no panic");
    assert_eq!(echo.join().expect("no panic"), data.len() as u64);
    assert!(back == data);
}

#[test]
fn only_a_whole_first_message_of_a_client_is_noticed() {
    let Made { identity, fingerprint } = made_identity();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let name = SocketName::new("127.0.0.1", address.port()).expect("a bound port");
    let pairing = Pairing { server: name, fingerprint, secret: *b"another secret.." };
    let mut has_message = [false; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stranger = TcpStream::connect(address).expect("connected");
            stranger.write_all(&[0x16, 3, 1]).expect("sent");
            stranger.shutdown(Shutdown::Write).expect("ended");
            // It sends the whole message and fails with its proof.
            connect(&pairing, &[address], LIMIT, &LocalBind::ANY).expect_err("not paired");
        });
        for is_called in &mut has_message {
            let stream = listener.accept().expect("a peer").0;
            let accepted = accept(&identity, stream, || *is_called = true);
            assert!(accepted.is_err());
        }
    });
    assert_eq!(has_message, [false, true]);
}

#[test]
fn client_with_another_secret_gets_a_closed_connection() {
    let served = serve_one();
    let wrong = Pairing { secret: *b"another secret..", ..served.pairing };
    let error = connect(&wrong, &[served.address], LIMIT, &LocalBind::ANY).expect_err("not paired");
    assert!(matches!(error, TlsError::Refused { .. }), "{error}");
    let error = served.server.join().expect("no panic").err().expect("a stranger");
    assert!(error.to_string().contains("does not know the secret"), "{error}");
}

#[test]
fn client_sends_no_proof_to_a_server_with_another_certificate() {
    let served = serve_one();
    let wrong = Pairing { fingerprint: [1; 32], ..served.pairing };
    let error = connect(&wrong, &[served.address], LIMIT, &LocalBind::ANY).expect_err("not paired");
    assert!(matches!(error, TlsError::OtherServer { .. }), "{error}");
    assert!(served.server.join().expect("no panic").is_err());
}

#[test]
fn client_without_tls_gets_no_response() {
    for bytes in
        [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0x16, 0x03, 0x01, 0xff, 0xff, 0, 0], &[0; 4096]]
    {
        let served = serve_one();
        let mut stream = TcpStream::connect(served.address).expect("connected");
        stream.write_all(bytes).expect("sent");
        stream.shutdown(Shutdown::Write).expect("ended");
        let mut answer = Vec::new();
        // A reset counts as an end.
        drop(stream.read_to_end(&mut answer));
        assert!(answer.is_empty(), "{answer:?}");
        assert!(served.server.join().expect("no panic").is_err());
    }
}

#[test]
fn either_end_detects_the_close_of_the_other() {
    for client_goes in [true, false] {
        let served = serve_one();
        let (client, _) =
            connect(&served.pairing, &[served.address], LIMIT, &LocalBind::ANY).expect("paired");
        let server = served.server.join().expect("no panic").expect("paired").stream;
        let (goes, mut stays) = if client_goes { (client, server) } else { (server, client) };
        drop(goes);
        assert_eq!(stays.read(&mut [0; 8]).expect("an end"), 0);
    }
}

#[test]
fn relay_ends_with_either_end_even_after_a_half_close() {
    for client_goes in [true, false] {
        let served = serve_one();
        let (client, _) =
            connect(&served.pairing, &[served.address], LIMIT, &LocalBind::ANY).expect("paired");
        let Paired { stream: server, carrier } = served.server.join().expect("no panic").expect("paired");
        let (goes, mut stays) = if client_goes { (client, server) } else { (server, client) };
        stays.shutdown(Shutdown::Write).expect("ended");
        drop(goes);
        assert_eq!(stays.read(&mut [0; 8]).expect("an end"), 0);
        drop(stays);
        carrier.join().expect("no panic");
    }
}

/// A TLS session over loopback, both ends with small buffers, and no relay at either.
fn session() -> ((Connection, TcpStream), (Connection, TcpStream)) {
    let served = made_identity();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let small = |stream: &TcpStream| {
        sockopt::set_socket_send_buffer_size(stream, 4096).expect("set");
        sockopt::set_socket_recv_buffer_size(stream, 4096).expect("set");
    };
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("known")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedCertificate::new(served.fingerprint)))
        .with_no_client_auth();
    let client = std::thread::spawn(move || {
        let stream = TcpStream::connect(address).expect("connected");
        small(&stream);
        let name = ServerName::IpAddress(address.ip().into());
        let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        shaken(Connection::Client(connection), stream)
    });
    let stream = listener.accept().expect("a client").0;
    small(&stream);
    let connection = ServerConnection::new(served.identity.config).expect("a server");
    let server = shaken(Connection::Server(connection), stream);
    (client.join().expect("no panic"), server)
}

fn shaken(mut connection: Connection, stream: TcpStream) -> (Connection, TcpStream) {
    let mut wire = Wire { stream, deadline_ns: deadline(LIMIT) };
    handshake(&mut connection, &mut wire).expect("a handshake");
    (connection, wire.stream)
}

#[test]
fn data_before_a_close_arrives_over_a_slow_network() {
    let ((mut client, network), (server, server_network)) = session();
    let (plain, mut speaker) = UnixStream::pair().expect("a pair");
    speaker.set_nonblocking(true).expect("set");
    let mut sent = 0;
    while let Ok(count) = speaker.write(&[7; 3000]) {
        sent += count;
    }
    assert!(sent > 100_000, "{sent} bytes are too few to fill what is between");
    drop(speaker);
    let relay = Relay::new(server, server_network, plain).expect("a relay");
    let carrier = std::thread::spawn(move || relay.run());
    let mut wire = Wire { stream: network, deadline_ns: deadline(LIMIT) };
    let mut received = vec![0; sent];
    read_exact(&mut client, &mut wire, &mut received).expect("all of it");
    assert!(received.iter().all(|byte| *byte == 7));
    carrier.join().expect("no panic");
}

#[test]
fn peer_that_does_not_read_the_last_data_is_given_up() {
    let ((mut client, network), (server, server_network)) = session();
    let (plain, mut speaker) = UnixStream::pair().expect("a pair");
    speaker.set_nonblocking(true).expect("set");
    let mut sent = 0;
    while let Ok(count) = speaker.write(&[7; 3000]) {
        sent += count;
    }
    assert!(sent > 100_000, "{sent} bytes are too few to fill what is between");
    drop(speaker);
    Relay::new(server, server_network, plain).expect("a relay").run_with(Duration::ZERO);
    let mut wire = Wire { stream: network, deadline_ns: deadline(LIMIT) };
    assert!(read_exact(&mut client, &mut wire, &mut vec![0; sent]).is_err());
}
