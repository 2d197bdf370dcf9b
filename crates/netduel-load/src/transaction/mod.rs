//! Transactions that each have a connection of their own: connect, request, response, close. Which threads an end needs.
//!
//! A standing, authenticated connection exists as long as the client runs; by it the server has proven that it knows the token
//! before any transaction. Each request begins with 48 bytes that contain the token, so other clients of the port get no response,
//! and each response begins with 16 bytes derived from it. The exchange is otherwise unchanged.
use std::net::TcpStream;
use std::sync::Arc;

use netduel_model::sample::RoundTripReport;

use crate::counted::Counted;
use crate::job::Job;
use crate::sockets::{Peer, Sockets};

mod client;
mod message;
mod server;
mod settings;

#[cfg(test)]
pub(crate) use message::{REQUEST_MIN, RESPONSE_MIN};
pub(crate) use settings::{CALL_LIMIT, Settings};

/// The threads of a client; `counted` is called once, in the last of them, with the figures of all.
pub(crate) fn client_jobs(
    settings: Settings,
    congestion: Option<String>,
    threads: usize,
    peer: Option<Peer>,
    standing: Arc<TcpStream>,
    counted: fn(RoundTripReport) -> Counted,
) -> Vec<Job> {
    let peer = peer.expect("a client has the address of its peer");
    let shared = Arc::new(client::Shared::new(settings, congestion, peer, standing));
    (0..threads)
        .map(|thread| {
            let shared = Arc::clone(&shared);
            Job::infallible(settings.stream + thread, thread, move |worker| {
                client::run(worker, &shared);
                // The last thread returns the figures of all, and signals the end to the server.
                Arc::into_inner(shared).map_or(Counted::Nothing, |shared| counted(shared.finish()))
            })
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
    let incoming =
        Arc::clone(sockets.incoming.as_ref().expect("the acceptor of this workload keeps its listener"));
    let listener = Arc::new(server::TransactionListener::new(incoming, congestion, &standing));
    let watched = Arc::clone(&listener);
    let watch = Job::infallible(settings.stream, 0, move |worker| {
        server::watch(worker, &standing, &watched);
        Counted::Nothing
    });
    let serve = (0..threads).map(|thread| {
        let listener = Arc::clone(&listener);
        Job::infallible(settings.stream + thread, thread, move |worker| {
            server::run(worker, &listener, settings);
            Counted::Nothing
        })
    });
    std::iter::once(watch).chain(serve).collect()
}
