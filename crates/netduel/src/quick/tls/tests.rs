//! Pairing over real sockets: the right client, and everybody else.
use std::io::{Read as _, Write as _, copy};
use std::net::{Shutdown, TcpListener};
use std::thread::JoinHandle;

use super::*;

struct Served {
    pairing: Pairing,
    address: SocketAddr,
    server: JoinHandle<Result<UnixStream, TlsError>>,
}

fn serve_one() -> Served {
    let generated = rcgen::generate_simple_self_signed(vec!["netduel".to_owned()]).expect("a certificate");
    let secret = *b"sixteen bytes ok";
    let identity = ServerIdentity::new(generated.cert.der(), &generated.signing_key.serialize_der(), secret)
        .expect("an identity");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || accept(&identity, listener.accept().expect("a client").0));
    let pairing = Pairing {
        host: "127.0.0.1".to_owned(),
        port: address.port(),
        fingerprint: fingerprint(generated.cert.der()),
        secret,
    };
    Served { pairing, address, server }
}

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn a_paired_client_gets_a_stream_that_carries_much_both_ways_and_ends_by_halves() {
    let served = serve_one();
    let (client, _) = connect(&served.pairing, &[served.address], LIMIT).expect("paired");
    let server = served.server.join().expect("no panic").expect("paired");
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
fn a_client_with_another_secret_gets_a_closed_connection() {
    let served = serve_one();
    let wrong = Pairing { secret: *b"another secret..", ..served.pairing };
    let error = connect(&wrong, &[served.address], LIMIT).expect_err("not paired");
    assert!(matches!(error, TlsError::Refused { .. }), "{error}");
    let error = served.server.join().expect("no panic").expect_err("a stranger");
    assert!(error.to_string().contains("does not know the secret"), "{error}");
}

#[test]
fn a_client_tells_nothing_to_a_server_with_another_certificate() {
    let served = serve_one();
    let wrong = Pairing { fingerprint: [1; 32], ..served.pairing };
    let error = connect(&wrong, &[served.address], LIMIT).expect_err("not paired");
    assert!(matches!(error, TlsError::OtherServer { .. }), "{error}");
    assert!(served.server.join().expect("no panic").is_err());
}

#[test]
fn what_is_no_tls_gets_no_byte() {
    for bytes in
        [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0x16, 0x03, 0x01, 0xff, 0xff, 0, 0], &[0; 4096]]
    {
        let served = serve_one();
        let mut stream = TcpStream::connect(served.address).expect("connected");
        stream.write_all(bytes).expect("sent");
        stream.shutdown(Shutdown::Write).expect("ended");
        let mut answer = Vec::new();
        // A reset is as good as an end.
        drop(stream.read_to_end(&mut answer));
        assert!(answer.is_empty(), "{answer:?}");
        assert!(served.server.join().expect("no panic").is_err());
    }
}

#[test]
fn either_end_notices_that_the_other_has_gone() {
    for client_goes in [true, false] {
        let served = serve_one();
        let (client, _) = connect(&served.pairing, &[served.address], LIMIT).expect("paired");
        let server = served.server.join().expect("no panic").expect("paired");
        let (goes, mut stays) = if client_goes { (client, server) } else { (server, client) };
        drop(goes);
        assert_eq!(stays.read(&mut [0; 8]).expect("an end"), 0);
    }
}
