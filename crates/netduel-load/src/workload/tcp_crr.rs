//! `tcp-crr`: transactions over TCP, each on a connection of its own.
use std::sync::Arc;

use netduel_model::sample::RoundTripReport;
use netduel_model::workload::{Role, Transaction};

use crate::counted::{Counted, Messages};
use crate::end_context::EndContext;
use crate::job::Job;
use crate::transaction::{self, Settings};

/// The jobs of an end.
pub(super) fn jobs(transaction: &Transaction, end: &EndContext<'_>) -> Vec<Job> {
    let threads = transaction.outstanding as usize;
    let standing = Arc::clone(&end.sockets.tcp[0]);
    let congestion = transaction.congestion.clone();
    let settings = Settings {
        request: transaction.request.0 as usize,
        response: transaction.response.0 as usize,
        wait: transaction.wait,
        rate: transaction.rate.map(|rate| rate.0),
        from_ns: 0,
        timing: end.timing(),
        token: end.token,
        stream: 0,
    };
    match end.role {
        Role::Client => transaction::client_jobs(
            settings,
            congestion,
            threads,
            end.sockets.peer.clone(),
            standing,
            counted,
        ),
        Role::Server => transaction::server_jobs(settings, congestion, threads, end.sockets, standing),
    }
}

fn counted(report: RoundTripReport) -> Counted {
    Counted::RoundTrips { report: Box::new(report), messages: Messages::default() }
}
