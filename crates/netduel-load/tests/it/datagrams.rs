//! A proxy loses, duplicates, reorders and forges datagrams: the receiver counts exactly these.
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::JoinHandle;

use netduel_model::units::{BitRate, Bytes};
use netduel_model::workload::{Direction, Family, FlowTuning, Traffic, UdpOffload, UdpStream, Wait};

use crate::harness::{messages, run_through, run_until, workload};

const SIZE: usize = 100;

/// The proxy's changes to payload datagrams.
#[derive(Debug, Default, PartialEq, Eq)]
struct Deeds {
    lost: u64,
    doubled: u64,
    swapped: u64,
    forged: u64,
    /// The numbers of the messages that it forwarded from the server.
    answered: BTreeSet<u64>,
}

struct Proxy {
    port: u16,
    thread: JoinHandle<Deeds>,
    stop: UdpSocket,
}

impl Proxy {
    /// A proxy between client and server port; `mangle` decides on each datagram of `SIZE` bytes from the client.
    fn start(server_port: u16) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        netduel_sys::socket::set_buffers(&socket, 16 << 20).unwrap();
        let port = socket.local_addr().unwrap().port();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server_port));
        let thread = std::thread::spawn(move || forward(&socket, server));
        let stop = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self { port, thread, stop }
    }

    fn end(self) -> Deeds {
        self.stop.send_to(b"stop", (Ipv4Addr::LOCALHOST, self.port)).unwrap();
        self.thread.join().unwrap()
    }
}

fn forward(socket: &UdpSocket, server: SocketAddr) -> Deeds {
    let mut deeds = Deeds::default();
    let mut client = None;
    let mut buffer = [0; 2048];
    let mut held: Option<Vec<u8>> = None;
    let mut index = 0;
    loop {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        let bytes = &buffer[..length];
        if bytes == b"stop" {
            return deeds;
        }
        if from == server {
            let client = client.expect("the server answers after the request of the client");
            socket.send_to(bytes, client).unwrap();
            if length == SIZE {
                deeds.answered.insert(u64::from_le_bytes(bytes[8..16].try_into().unwrap()));
            }
            continue;
        }
        client = Some(from);
        if length != SIZE {
            socket.send_to(bytes, server).unwrap();
            continue;
        }
        match index % 10 {
            2 => deeds.lost += 1,
            4 => {
                deeds.doubled += 1;
                socket.send_to(bytes, server).unwrap();
                socket.send_to(bytes, server).unwrap();
            }
            6 => held = Some(bytes.to_vec()),
            7 => {
                deeds.swapped += 1;
                socket.send_to(bytes, server).unwrap();
                socket.send_to(&held.take().unwrap(), server).unwrap();
            }
            8 => {
                deeds.forged += 2;
                socket.send_to(bytes, server).unwrap();
                socket.send_to(&[0x77; SIZE], server).unwrap();
                socket.send_to(&bytes[..SIZE - 1], server).unwrap();
            }
            _ => {
                socket.send_to(bytes, server).unwrap();
            }
        }
        index += 1;
    }
}

#[test]
fn loss_duplicates_reordering_and_foreign_datagrams_are_counted_exactly() {
    for offload in [UdpOffload::None, UdpOffload::Gso, UdpOffload::GsoGro] {
        let traffic = Traffic::UdpStream(UdpStream {
            flows: 1,
            direction: Direction::Up,
            size: Bytes(SIZE as u64),
            rate: Some(BitRate(16_000_000)),
            offload,
            // The volume ends the trial, so that a late sender sends all of it too.
            tuning: FlowTuning { volume: Some(Bytes(4000 * SIZE as u64)), window: None },
        });
        let mut proxy = None;
        let (client, server) = run_through(&workload(traffic, Family::Ipv4, 60_000), |ports| {
            let new = Proxy::start(ports[0]);
            let port = new.port;
            proxy = Some(new);
            vec![port]
        })
        .unwrap();
        let deeds = proxy.unwrap().end();
        let sent = client.sent.unwrap().messages;
        let count = server.datagrams.unwrap();
        // 20,000 per second, two per burst: whole tens, so nothing is held back at the end.
        assert_eq!((sent, &count.next_sequence), (4000, &vec![4000]), "{offload:?}");
        assert_eq!(client.datagrams_sent.unwrap().burst_max, 2);
        let answered = BTreeSet::new();
        assert_eq!(deeds, Deeds { lost: 400, doubled: 400, swapped: 400, forged: 800, answered });
        assert_eq!(sent - count.unique, deeds.lost);
        assert_eq!(count.duplicates, deeds.doubled);
        assert_eq!(count.reordered, deeds.swapped);
        assert_eq!(count.unexpected, deeds.forged);
        assert_eq!((count.outside_window, count.socket_drops), (0, Some(0)));
    }
}

#[test]
fn lost_requests_time_out_and_the_loop_continues() {
    for (wait, rate) in
        [(Wait::Block, None), (Wait::Spin, None), (Wait::Block, Some(400)), (Wait::Spin, Some(400))]
    {
        let what = format!("{wait:?} {rate:?}");
        let traffic = Traffic::UdpRr(messages(SIZE as u64, 1, wait, rate));
        let mut proxy = None;
        let between = |ports: &[u16]| {
            let new = Proxy::start(ports[0]);
            let port = new.port;
            proxy = Some(new);
            vec![port]
        };
        // The third is lost, so the loop has continued after its timeout when more than two have responses.
        let (client, _) =
            run_until(&workload(traffic, Family::Ipv4, 600_000), between, |live| live.messages > 2).unwrap();
        let deeds = proxy.unwrap().end();
        let trips = client.round_trips.unwrap();
        assert!(trips.responses > 2 && deeds.lost > 0, "{what}: {deeds:?} {trips:?}");
        assert_eq!(trips.requests, trips.responses + trips.timeouts, "{what}");
        // Responses that the client does not count came after the timeout.
        let belated = deeds.answered.len() as u64 - trips.responses;
        let given_up = trips.timeouts - belated;
        // The proxy holds every tenth until the next one; at the end it never comes.
        assert!(
            [deeds.lost, deeds.lost + 1].contains(&given_up),
            "{what}: {given_up} given up, {belated} belated, {deeds:?}"
        );
        // In a closed loop each of those is reported, except after the end of the loop.
        let reported = client.errors.iter().filter(|entry| entry.error.contains("after its time-out"));
        let reported: u64 = reported.map(|entry| entry.count).sum();
        assert!(
            reported <= belated && (rate.is_some() || belated <= reported + 1),
            "{what}: {reported} of {belated}"
        );
    }
}

#[test]
fn datagram_of_a_foreign_sender_is_not_counted() {
    let traffic = Traffic::UdpStream(UdpStream {
        flows: 1,
        direction: Direction::Up,
        size: Bytes(SIZE as u64),
        rate: Some(BitRate(1_600_000)),
        offload: UdpOffload::None,
        tuning: FlowTuning::default(),
    });
    let workload = workload(traffic, Family::Ipv4, 100);
    let mut thread = None;
    let (client, server) = run_through(&workload, |ports| {
        let server_port = ports[0];
        let foreign = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        thread = Some(std::thread::spawn(move || {
            // Until the kernel accepts the client's datagrams only, which shows as an error on a connected socket.
            foreign.connect((Ipv4Addr::LOCALHOST, server_port)).unwrap();
            let mut sent = 0_u64;
            while foreign.send(&[0x55; SIZE]).is_ok() {
                sent += 1;
                std::thread::yield_now();
            }
            sent
        }));
        ports.to_vec()
    })
    .unwrap();
    assert!(thread.unwrap().join().unwrap() > 0);
    let count = server.datagrams.unwrap();
    assert_eq!(count.unique, client.sent.unwrap().messages);
    assert_eq!((count.duplicates, count.reordered, count.outside_window), (0, 0, 0));
}
