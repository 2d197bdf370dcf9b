//! Requests and responses: which threads an end needs, and the settings they share.
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;

use netduel_model::ids::Token;
use netduel_model::sample::RoundTripReport;
use netduel_model::stamps::StampReport;
use netduel_model::workload::{Role, Wait};
use netduel_sys::socket;

use crate::counted::{Counted, Messages};
use crate::datagram::{self, kinds};
use crate::job::Job;
use crate::pacing::Schedule;
use crate::recorder::Recorder;
use crate::worker::{SLEEP_MAX, Worker};
use timestamps::StampedResponder;
use transport::{ReceiveStamps, SendStamps, TcpRequests, TcpResponses, UdpRequests, UdpResponses};
use unstamped::Unstamped;

#[cfg(test)]
mod after_stall;
mod busy_polling;
mod closed_loop;
mod loss;
mod open_loop;
mod responder;
mod settings;
mod timestamps;
mod transport;
mod unstamped;

pub(crate) use settings::Settings;
pub(crate) use transport::{Received, Requests, Responses, filled};

/// The jobs of an end of `tcp-rr`.
pub(crate) fn tcp_jobs(settings: Settings, role: Role, stream: &Arc<TcpStream>) -> Vec<Job> {
    if role == Role::Server {
        let stream = Arc::clone(stream);
        return vec![job(0, move |worker| {
            busy_polling::begin(worker, settings.wait, &*stream);
            let stamps = if settings.timestamps {
                let service = StampedResponder::of_stream(worker, &stream, settings);
                responder::tcp(worker, &stream, settings, service)
            } else {
                responder::tcp(worker, &stream, settings, Unstamped)
            };
            responses(stamps, busy_polling::end(worker, settings.wait, &*stream))
        })];
    }
    if settings.timestamps {
        let (stamper, stamps) = timestamps::of_stream(stream, settings);
        return tcp_client_jobs(settings, stream, stamper, stamps);
    }
    tcp_client_jobs(settings, stream, Unstamped, Unstamped)
}

/// The jobs of an end of `udp-rr`.
pub(crate) fn udp_jobs(settings: Settings, role: Role, token: Token, socket: &Arc<UdpSocket>) -> Vec<Job> {
    let ((data_out, end_out), (data_in, end_in)) = kinds(role);
    let magic = |kind| datagram::magic(token, 0, kind);
    if role == Role::Server {
        let socket = Arc::clone(socket);
        let magics =
            responder::Magics { request: magic(data_in), response: magic(data_out), end: magic(end_in) };
        return vec![job(0, move |worker| {
            busy_polling::begin(worker, settings.wait, &*socket);
            let stamps = if settings.timestamps {
                let service = StampedResponder::of_datagrams(worker, &socket, settings);
                responder::udp(worker, &socket, settings, magics, service)
            } else {
                responder::udp(worker, &socket, settings, magics, Unstamped)
            };
            responses(stamps, busy_polling::end(worker, settings.wait, &*socket))
        })];
    }
    let magics = (magic(data_out), magic(data_in), magic(end_out));
    if settings.timestamps {
        let (stamper, stamps) = timestamps::of_datagrams(socket, settings);
        return udp_client_jobs(settings, socket, magics, stamper, stamps);
    }
    udp_client_jobs(settings, socket, magics, Unstamped, Unstamped)
}

fn tcp_client_jobs(
    settings: Settings,
    stream: &Arc<TcpStream>,
    sending: impl SendStamps,
    receiving: impl ReceiveStamps,
) -> Vec<Job> {
    let requests = TcpRequests::new(Arc::clone(stream), settings.size, sending);
    let responses = TcpResponses::new(Arc::clone(stream), settings.size, receiving);
    client_jobs(settings, None, requests, responses)
}

fn udp_client_jobs(
    settings: Settings,
    socket: &Arc<UdpSocket>,
    (request, response, end): (u64, u64, u64),
    sending: impl SendStamps,
    receiving: impl ReceiveStamps,
) -> Vec<Job> {
    let requests = UdpRequests::new(Arc::clone(socket), settings.size, request, end, sending);
    let responses = UdpResponses::new(Arc::clone(socket), settings.size, response, receiving);
    client_jobs(settings, Some(settings.lost_after_ns), requests, responses)
}

/// The jobs of a client over any transport. `lost_after_ns`: how long it waits for a response, where one can be lost.
pub(crate) fn client_jobs<Q: Requests, R: Responses>(
    settings: Settings,
    lost_after_ns: Option<u64>,
    mut requests: Q,
    mut responses: R,
) -> Vec<Job> {
    match (settings.rate, settings.wait) {
        (None, _) => vec![job(0, move |worker| {
            prepare(worker, &mut responses, settings.wait, lost_after_ns);
            let recorder = Recorder::new(worker.control.started_ns(), settings.timing, false)
                .shown_live(&worker.control.live_latency);
            let report =
                closed_loop::run(worker, settings, lost_after_ns, recorder, &mut requests, &mut responses);
            finish(worker, report, settings.wait, responses)
        })],
        (Some(rate), Wait::Spin) => vec![job(0, move |worker| {
            prepare(worker, &mut responses, settings.wait, lost_after_ns);
            let started = worker.control.started_ns();
            let open =
                open_loop::Open { schedule: Schedule::per_second(started, rate), settings, lost_after_ns };
            let report = open_loop::spin(worker, open, &mut requests, &mut responses);
            finish(worker, report, settings.wait, responses)
        })],
        (Some(rate), Wait::Block | Wait::BusyPoll) => {
            let shared = Arc::new(open_loop::Shared::default());
            let sender_shared = Arc::clone(&shared);
            let receive = job(0, move |worker| {
                prepare(worker, &mut responses, settings.wait, lost_after_ns);
                let started = worker.control.started_ns();
                let open = open_loop::Open {
                    schedule: Schedule::per_second(started, rate),
                    settings,
                    lost_after_ns,
                };
                let report = open_loop::receive(worker, open, &shared, &mut responses);
                finish(worker, report, settings.wait, responses)
            });
            let send = job(1, move |worker| {
                let started = worker.control.started_ns();
                let open = open_loop::Open {
                    schedule: Schedule::per_second(started, rate),
                    settings,
                    lost_after_ns,
                };
                open_loop::send(worker, open, &sender_shared, &mut requests);
                Counted::Nothing
            });
            vec![receive, send]
        }
    }
}

/// Prepares receiving. A UDP client needs a timeout to detect lost responses; the end of the stream wakes a TCP client.
fn prepare<R: Responses>(worker: &mut Worker, responses: &mut R, wait: Wait, lost_after_ns: Option<u64>) {
    responses.begin(worker);
    busy_polling::begin(worker, wait, responses.descriptor());
    if lost_after_ns.is_some() {
        let limit = socket::limit_receive_wait(responses.descriptor(), SLEEP_MAX);
        worker.errors.count_failure("setsockopt SO_RCVTIMEO", limit);
    }
}

/// What the client counted.
fn finish<R: Responses>(worker: &mut Worker, report: RoundTripReport, wait: Wait, responses: R) -> Counted {
    let napi_id = busy_polling::end(worker, wait, responses.descriptor());
    let stamps = responses.finish(worker).map(Box::new);
    Counted::RoundTrips { report: Box::new(report), messages: Messages { stamps, napi_id } }
}

/// What the server counted.
fn responses(stamps: Option<StampReport>, napi_id: Option<u32>) -> Counted {
    Counted::Responses(Messages { stamps: stamps.map(Box::new), napi_id })
}

fn job(thread: usize, work: impl FnOnce(&mut Worker) -> Counted + Send + 'static) -> Job {
    Job::infallible(0, thread, work)
}
