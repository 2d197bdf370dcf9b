//! Peers of a shared port that are not clients of a trial: they get nothing, and disturb no client.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use netduel_load::{LoadError, Port, prepare_client};
use netduel_model::ids::Token;
use netduel_model::workload::{Direction, Family, TcpEngine};

use crate::harness::{LIMIT, TOKEN, loopback, tcp, turn, workload};
use crate::port::{all_traffic, check, datagrams, open, run, token, trial};

const OTHER: Token = Token(*b"some other token");

/// A greeting of `token` for stream 0, as a client sends it.
pub fn hello(step: u8, token: Token) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(b"NETDUEL1");
    bytes[8] = step;
    bytes[16..32].copy_from_slice(&token.0);
    bytes
}

/// A client's response with `token` to a challenge with `nonce`, see `key_for`: 3 times 0x5b is 0x111.
pub fn confirm(token: Token, nonce: [u8; 16]) -> [u8; 48] {
    let mut bytes = hello(3, token);
    for index in 0..16 {
        bytes[16 + index] ^= nonce[(index + 5) % 16].rotate_left(3) ^ 0x11;
    }
    bytes[32..].copy_from_slice(&nonce);
    bytes
}

fn address(port: &Port) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port.address().port()).into()
}

/// Reads to the end, and returns the data. A reset is also an end.
fn answer(mut stream: &TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("not closed: {error}"),
        _ => bytes,
    }
}

#[test]
fn client_without_the_token_is_closed_without_a_reply() {
    let (port, control) = open(Ipv6Addr::UNSPECIFIED.into());
    let bulk = workload(tcp(2, Direction::Up, TcpEngine::Copy), Family::Ipv4, 50);
    let _server = port.prepare_server(&bulk, TOKEN).unwrap();
    // A greeting is read completely, so the connection closes without a reset.
    for step in [1, 5] {
        let mut foreign = TcpStream::connect(address(&port)).unwrap();
        foreign.write_all(&hello(step, OTHER)).unwrap();
        foreign.set_read_timeout(Some(LIMIT)).unwrap();
        assert_eq!(foreign.read(&mut [0; 64]).unwrap(), 0, "step {step}");
    }
    let mut wrong_index = hello(1, TOKEN);
    wrong_index[12] = 2;
    let wrong: [&[u8]; 7] = [
        &wrong_index,
        &hello(2, TOKEN),
        &hello(3, TOKEN),
        &hello(5, TOKEN),
        &hello(77, TOKEN),
        &[0; 4096],
        b"GET / HTTP/1.1\r\nHost: netduel\r\n\r\n",
    ];
    for bytes in wrong {
        let mut foreign = TcpStream::connect(address(&port)).unwrap();
        foreign.write_all(bytes).unwrap();
        assert_eq!(answer(&foreign), b"", "{bytes:?}");
    }
    let Err(error) = prepare_client(&bulk, loopback(Family::Ipv4), &[port.address().port()], OTHER, LIMIT)
    else {
        panic!("it was taken")
    };
    assert!(matches!(error, LoadError::TokenRefused { .. }), "{error}");
    assert!(control.try_recv().is_err(), "none of them is a TLS client");
}

#[test]
fn each_stream_is_accepted_once() {
    let (port, _control) = open(Ipv4Addr::LOCALHOST.into());
    let bulk = workload(tcp(2, Direction::Up, TcpEngine::Copy), Family::Ipv4, 50);
    let _server = port.prepare_server(&bulk, TOKEN).unwrap();
    let mut first = TcpStream::connect(address(&port)).unwrap();
    first.write_all(&hello(1, TOKEN)).unwrap();
    first.set_read_timeout(Some(LIMIT)).unwrap();
    first.read_exact(&mut [0; 48]).unwrap();
    let mut second = TcpStream::connect(address(&port)).unwrap();
    second.write_all(&hello(1, TOKEN)).unwrap();
    assert_eq!(answer(&second), b"");
}

#[test]
fn datagrams_without_the_token_have_no_reply() {
    let (port, _control) = open(Ipv6Addr::UNSPECIFIED.into());
    let flows = workload(datagrams(2, Direction::Up, 800_000), Family::Ipv4, 50);
    let _server = port.prepare_server(&flows, TOKEN).unwrap();
    let foreign = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for length in [0, 1, 24, 47, 48, 49, 1400] {
        foreign.send_to(&vec![0x4e; length], address(&port)).unwrap();
    }
    let mut wrong_index = hello(1, TOKEN);
    wrong_index[12] = 2;
    let mut longer = hello(1, TOKEN).to_vec();
    longer.push(0);
    let wrong: [&[u8]; 6] =
        [&hello(1, OTHER), &hello(2, TOKEN), &hello(3, TOKEN), &hello(4, TOKEN), &wrong_index, &longer];
    for bytes in wrong {
        foreign.send_to(bytes, address(&port)).unwrap();
    }
    // The last one is valid, and datagrams of one sender are processed in order, so its reply is the first one.
    let right = hello(1, TOKEN);
    foreign.send_to(&right, address(&port)).unwrap();
    foreign.set_read_timeout(Some(LIMIT)).unwrap();
    let mut bytes = [0; 2048];
    let length = foreign.recv(&mut bytes).unwrap();
    assert!(length <= right.len(), "no answer is longer than its question: {length}");
    assert_eq!((&bytes[..8], bytes[8], bytes[12]), (&b"NETDUEL1"[..], 2, 0));
    foreign.set_nonblocking(true).unwrap();
    assert!(foreign.recv(&mut bytes).is_err(), "and it is the only one");
}

#[test]
fn forged_source_gains_nothing() {
    let (port, _control) = open(Ipv4Addr::LOCALHOST.into());
    let flows = workload(datagrams(1, Direction::Down, 800_000), Family::Ipv4, 50);
    let server = port.prepare_server(&flows, TOKEN).unwrap();
    // A peer that knows the token but cannot receive replies: the victim gets as many bytes as were sent in its name, and no
    // flow.
    let victim = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    victim.send_to(&hello(1, TOKEN), address(&port)).unwrap();
    victim.send_to(&confirm(TOKEN, [7; 16]), address(&port)).unwrap();
    let mut bytes = [0; 2048];
    victim.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(victim.recv(&mut bytes).unwrap(), 48);
    // The flow is still available to a peer that replies.
    let host = loopback(Family::Ipv4);
    let client = prepare_client(&flows, host, server.ports(), TOKEN, LIMIT).unwrap();
    let (client, server) = crate::port::run_ends(&flows, client, server);
    check(&flows.traffic, &client, &server);
    victim.set_nonblocking(true).unwrap();
    assert!(victim.recv(&mut bytes).is_err());
}

/// Connects more peers than the limit, of all invalid kinds; returns the slow ones.
fn besiege(port: &Port) -> Vec<TcpStream> {
    let connect = || TcpStream::connect(address(port)).unwrap();
    let mut slow = Vec::new();
    for number in 0..300 {
        let mut foreign = connect();
        match number % 3 {
            // Sends nothing.
            0 => {}
            // Half a greeting.
            1 => foreign.write_all(b"NETDUEL1\x01").unwrap(),
            _ => foreign.write_all(b"N").unwrap(),
        }
        slow.push(foreign);
    }
    for _ in 0..50 {
        connect().write_all(&[0x55; 4096]).unwrap();
        connect().write_all(&hello(1, OTHER)).unwrap();
        drop(connect());
    }
    slow
}

#[test]
fn garbage_silence_and_slow_peers_do_not_disturb_clients() {
    let _turn = turn();
    let (port, control) = open(Ipv6Addr::UNSPECIFIED.into());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let foreign = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let mut slow = besiege(&port);
            let mut sent = 0_u64;
            while !is_over.load(SeqCst) {
                let _ = foreign.send_to(&[0x4e; 48], address(&port));
                let _ = foreign.send_to(&hello(1, OTHER), address(&port));
                sent += 2;
                // Single bytes from time to time, from those that are still connected.
                if sent.is_multiple_of(64) {
                    slow.retain_mut(|peer| peer.write_all(b"E").is_ok());
                    std::thread::yield_now();
                }
            }
            sent
        });
        for (number, traffic) in all_traffic().into_iter().enumerate() {
            let workload = trial(traffic.clone(), Family::Ipv4);
            let (client, server) = run(&port, loopback(Family::Ipv4), &workload, token(number));
            check(&traffic, &client, &server);
        }
        is_over.store(true, SeqCst);
        assert!(flood.join().unwrap() > 0);
    });
    assert!(control.try_recv().is_err());
    // Control connections still work.
    let mut client = TcpStream::connect(address(&port)).unwrap();
    client.write_all(&[0x16]).unwrap();
    assert_eq!(control.recv_timeout(LIMIT).unwrap().1, client.local_addr().unwrap());
}
