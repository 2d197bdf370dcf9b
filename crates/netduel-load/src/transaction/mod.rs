//! Transactions that each have a connection of their own: connect, request, response, close. Which threads an end needs,
//! and the first bytes of both messages.
//!
//! A greeted connection stands beside them for as long as the client is there; by it the server has shown that it knows the
//! token before any of them is made. Each request begins with 48 bytes that hold the token, so a stranger who finds the port
//! gets nothing, and each response with 16 that are derived from it. So the exchange is what it would be anyway.
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::sample::RoundTripReport;
use netduel_model::workload::{Role, Timing, Transaction, Wait};

use crate::control::Sockets;
use crate::datagram::{self, Kind};
use crate::greeting::{self, Greeting, Step};
use crate::jobs::{Job, Worker};

mod client;
mod server;

/// Bytes with which a request begins.
pub(crate) const REQUEST_LEAST: usize = greeting::LENGTH;
/// Bytes with which a response begins: a magic of the trial, and the number of the transaction.
pub(crate) const RESPONSE_LEAST: usize = datagram::MESSAGE_HEADER;

/// A transaction is given up after this long, nanoseconds. The kernel repeats a lost SYN after 1 s and again after 2 s more,
/// so one that is only slow is measured.
const GIVE_UP_NS: u64 = 4_000_000_000;
/// Longest sleep in a call: how late a cut or the end of patience may be noticed.
const CALL_LIMIT: Duration = Duration::from_millis(250);

/// What the threads of both ends need to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    pub wait: Wait,
    pub rate: Option<u64>,
    /// When the first of a schedule is due, nanoseconds after the start.
    pub from_ns: u64,
    pub timing: Timing,
    pub token: Token,
    /// The lane of the first thread.
    pub lane: usize,
}

/// The first bytes of request `number`.
fn request_head(token: Token, number: u64) -> [u8; REQUEST_LEAST] {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    Greeting::new(token, Step::Transaction, number as u32, &nonce, nonce).to_bytes()
}

/// The number of the request that begins with `head`; absent when it is none of this trial.
fn read_request_head(token: Token, head: &[u8]) -> Option<u64> {
    let greeting = Greeting::from_bytes(head)?;
    let is_ours = greeting.step == Step::Transaction && greeting.proves(token, &greeting.nonce);
    is_ours.then(|| u64::from_le_bytes(*greeting.nonce.first_chunk().expect("a nonce has 16 bytes")))
}

/// The magic with which each response of the trial begins.
fn response_magic(token: Token) -> u64 {
    datagram::magic(token, 0, Kind::FromServer)
}

/// The jobs of an end.
pub(crate) fn jobs(
    settings: &Transaction,
    timing: Timing,
    role: Role,
    token: Token,
    sockets: &Sockets,
) -> Vec<Job> {
    let threads = settings.outstanding as usize;
    let standing = Arc::clone(&sockets.tcp[0]);
    let congestion = settings.congestion.clone();
    let settings = Settings {
        request: settings.request.0 as usize,
        response: settings.response.0 as usize,
        wait: settings.wait,
        rate: settings.rate.map(|rate| rate.0),
        from_ns: 0,
        timing,
        token,
        lane: 0,
    };
    match role {
        Role::Client => {
            client_jobs(settings, congestion, threads, sockets.peer, standing, |worker, report| {
                worker.round_trips = Some(report);
            })
        }
        Role::Server => server_jobs(settings, congestion, threads, sockets, standing),
    }
}

/// The threads of a client; `done` is called once, in the last of them, with the figures of all.
pub(crate) fn client_jobs(
    settings: Settings,
    congestion: Option<String>,
    threads: usize,
    peer: Option<SocketAddr>,
    standing: Arc<TcpStream>,
    done: fn(&mut Worker, RoundTripReport),
) -> Vec<Job> {
    let peer = peer.expect("a client knows whom its greeted connection goes to");
    let shared = Arc::new(client::Shared::new(settings, congestion, peer, standing));
    (0..threads)
        .map(|thread| {
            let shared = Arc::clone(&shared);
            let work = Box::new(move |worker: &mut Worker| {
                client::run(worker, &shared);
                // Who is the last has the figures of all, and tells the server that no more come.
                if let Some(shared) = Arc::into_inner(shared) {
                    done(worker, shared.finish());
                }
            });
            Job { stream: settings.lane + thread, thread, work }
        })
        .collect()
}

/// The threads of a server.
pub(crate) fn server_jobs(
    settings: Settings,
    congestion: Option<String>,
    threads: usize,
    sockets: &Sockets,
    standing: Arc<TcpStream>,
) -> Vec<Job> {
    let later = Arc::clone(sockets.later.as_ref().expect("the gate of such a server keeps its listener"));
    let door = Arc::new(server::Door::new(later, congestion));
    let watched = Arc::clone(&door);
    let watch = Job {
        stream: settings.lane,
        thread: 0,
        work: Box::new(move |worker| server::watch(worker, &standing, &watched)),
    };
    let serve = (0..threads).map(|thread| {
        let door = Arc::clone(&door);
        let work = Box::new(move |worker: &mut Worker| server::run(worker, &door, settings));
        Job { stream: settings.lane + thread, thread, work }
    });
    std::iter::once(watch).chain(serve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token(*b"sixteen bytes ok");

    #[test]
    fn a_request_is_known_by_its_token_and_carries_its_number() {
        for number in [0, 1, u64::from(u32::MAX) + 7] {
            let head = request_head(TOKEN, number);
            assert_eq!(read_request_head(TOKEN, &head), Some(number));
            assert_eq!(read_request_head(Token([7; 16]), &head), None);
        }
    }

    #[test]
    fn a_greeting_is_no_request() {
        let hello = Greeting::new(TOKEN, Step::Hello, 0, &[0; 16], [0; 16]).to_bytes();
        assert_eq!(read_request_head(TOKEN, &hello), None);
        assert_eq!(read_request_head(TOKEN, &hello[..40]), None);
    }
}
