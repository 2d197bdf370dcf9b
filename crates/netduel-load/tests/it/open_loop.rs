//! The open loop measures from the scheduled time: every request that a stall delays shows it.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use netduel_model::workload::{Family, Traffic, Wait};
use netduel_sys::clock;

use crate::harness::{messages, run_through, workload};

const SIZE: u64 = 32;
const RATE: u64 = 1000;
const STALL_NS: u64 = 150_000_000;

/// A proxy between client and server that once, after some requests, forwards nothing for a while. Returns the duration.
fn stalling_proxy(server_port: u16) -> (u16, JoinHandle<u64>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)).unwrap();
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let back = std::thread::spawn(move || copy(back_from, back_to, None));
        let stalled = copy(client, server, Some(50 * SIZE as usize));
        back.join().unwrap();
        stalled
    });
    (port, thread)
}

fn copy(mut from: TcpStream, mut to: TcpStream, stall_after: Option<usize>) -> u64 {
    let mut buffer = [0; 4096];
    let (mut total, mut stalled) = (0, 0);
    loop {
        let count = from.read(&mut buffer).unwrap();
        if count == 0 {
            let _ = to.shutdown(std::net::Shutdown::Write);
            return stalled;
        }
        total += count;
        if stalled == 0 && stall_after.is_some_and(|limit| total > limit) {
            let start = clock::monotonic_ns();
            clock::sleep_until(start + STALL_NS);
            stalled = clock::monotonic_ns() - start;
        }
        to.write_all(&buffer[..count]).unwrap();
    }
}

#[test]
fn stall_counts_from_the_scheduled_time_of_each_delayed_request() {
    for wait in [Wait::Block, Wait::Spin] {
        let traffic = Traffic::TcpRr(messages(SIZE, 1, wait, Some(RATE)));
        let mut proxy = None;
        let (client, _) = run_through(&workload(traffic, Family::Ipv4, 2_000), |ports| {
            let (port, thread) = stalling_proxy(ports[0]);
            proxy = Some(thread);
            vec![port]
        })
        .unwrap();
        let stalled = proxy.unwrap().join().unwrap();
        let trips = client.round_trips.unwrap();
        assert_eq!((trips.requests, trips.responses), (2_000, 2_000), "{wait:?}");
        // The held request was due before the stall began.
        assert!(trips.histogram.max >= stalled, "{wait:?}: {} of {stalled}", trips.histogram.max);
        // At 1000 per second one is due in each millisecond of the stall: those of its first half wait longer than half of it.
        let held_long =
            trips.histogram.pairs.iter().filter(|pair| pair.0 > stalled / 2).map(|pair| pair.1).sum::<u64>();
        let due_in_first_half = stalled / 2 * RATE / 1_000_000_000;
        assert!(held_long >= due_in_first_half - 1, "{wait:?}: {held_long} of {due_in_first_half}");
    }
}
