//! The client's transport with time stamps: chooses and marks requests, and passes the stamps of their responses to the collector.
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use netduel_model::stamps::StampReport;
use netduel_sys::socket::Waiting;
use netduel_sys::timestamping::{self, Stamp};

use super::collector::Collector;
use super::request_stamps::{RequestStamps, Sampler};
use super::server_times::{
    ANNOUNCED_BIT, ANNOUNCED_BYTE, STAMPED_BIT, STAMPED_BYTE, ServerTimes, TIMES_BYTES, carries_times,
};
use super::stamp_keys::{StampKeys, enable_datagrams, enable_stream};
use super::stamped_calls::{StampedReceiver, send};
use crate::recorder::Trip;
use crate::round_trip::settings::Settings;
use crate::round_trip::transport::{ReceiveStamps, SendStamps};
use crate::worker::Worker;

/// Transmit stamps read after a response, at most: those of the kernel and the NIC for a few requests.
const QUEUE_READS_MAX: usize = 8;
/// Transmit stamps read at the end, at most.
const LAST_READS_MAX: usize = 1024;

/// Both sides of a client over TCP.
pub(in crate::round_trip) fn of_stream(
    stream: &Arc<TcpStream>,
    settings: Settings,
) -> (Stamper, ClientStamps) {
    ClientStamps::new(enable_stream(stream), settings, true)
}

/// Both sides of a client over UDP.
pub(in crate::round_trip) fn of_datagrams(
    socket: &Arc<UdpSocket>,
    settings: Settings,
) -> (Stamper, ClientStamps) {
    ClientStamps::new(enable_datagrams(socket), settings, false)
}

/// The sending side.
pub(in crate::round_trip) struct Stamper {
    sampler: Sampler,
    request_stamps: Arc<RequestStamps>,
    /// Whether the current request is stamped.
    is_stamped: bool,
    /// Stamped requests that were sent.
    index: u64,
}

impl SendStamps for Stamper {
    #[inline]
    fn begin_stream(&mut self, number: u64, now_ns: u64, message: &mut [u8]) {
        let choice = self.sampler.choose(number, now_ns);
        self.is_stamped = choice.is_stamped;
        message[0] = if choice.is_stamped { STAMPED_BYTE } else { 0 }
            | if choice.announces { ANNOUNCED_BYTE } else { 0 };
        if choice.is_stamped {
            let end = (number + 1) * message.len() as u64;
            self.request_stamps.record(number, now_ns, end, self.index);
        }
    }

    #[inline]
    fn begin_datagram(&mut self, number: u64, now_ns: u64) -> u64 {
        let choice = self.sampler.choose(number, now_ns);
        self.is_stamped = choice.is_stamped;
        if choice.is_stamped {
            self.request_stamps.record(number, now_ns, self.index, self.index);
        }
        number
            | if choice.is_stamped { STAMPED_BIT } else { 0 }
            | if choice.announces { ANNOUNCED_BIT } else { 0 }
    }

    #[inline]
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], waiting: Waiting) -> io::Result<usize> {
        send(socket, bytes, waiting, self.is_stamped)
    }

    #[inline]
    fn sent(&mut self) {
        self.index += u64::from(self.is_stamped);
    }

    fn failed(&mut self, error: &io::Error) {
        if self.is_stamped && error.kind() != io::ErrorKind::WouldBlock {
            self.request_stamps.fail();
        }
    }
}

/// The receiving side.
pub(in crate::round_trip) struct ClientStamps {
    request_stamps: Arc<RequestStamps>,
    collector: Collector,
    settings: Settings,
    keys: StampKeys,
    is_stream: bool,
    /// Whether each call reads the receive stamp: another thread may send a stamped request while this one waits.
    always: bool,
    /// Stamped requests that were answered.
    answered: u64,
    failure: Option<(&'static str, io::Error)>,
}

impl ClientStamps {
    fn new(enabled: io::Result<StampKeys>, settings: Settings, is_stream: bool) -> (Stamper, Self) {
        let request_stamps = Arc::new(RequestStamps::new(settings.outstanding, settings.rate));
        let open_loop = settings.rate.is_some();
        let collector =
            Collector::new(request_stamps.slots(), open_loop, carries_times(settings.size, is_stream));
        let (keys, failure) = match enabled {
            Ok(keys) => (keys, None),
            Err(error) => (StampKeys::of_datagrams(), Some(("setsockopt SO_TIMESTAMPING", error))),
        };
        let stamper = Stamper {
            sampler: Sampler::default(),
            request_stamps: Arc::clone(&request_stamps),
            is_stamped: false,
            index: 0,
        };
        let stamps = Self {
            request_stamps,
            collector,
            settings,
            keys,
            is_stream,
            always: open_loop,
            answered: 0,
            failure,
        };
        (stamper, stamps)
    }

    /// Reads transmit stamps from the error queue, before the next request is sent.
    fn drain(&mut self, socket: impl AsFd, most: usize) {
        if self.request_stamps.take_failure() {
            self.keys.forget();
        }
        let Self { request_stamps, collector, keys, is_stream, settings, .. } = self;
        let size = settings.size as u64;
        let result = timestamping::transmitted(socket, most, |transmitted| {
            let number = match keys.position(transmitted.key, request_stamps.last_position()) {
                Some(end) if *is_stream => (end > 0 && end % size == 0).then(|| end / size - 1),
                Some(index) => Some(request_stamps.number(index)),
                None => None,
            };
            // A message sent in several calls has a stamp for each call; only that of its end counts.
            match number.filter(|number| request_stamps.sent_ns(*number).is_some()) {
                Some(number) if collector.transmitted(number, transmitted.stamp) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        if let Err(error) = result {
            self.failure = Some(("recvmsg MSG_ERRQUEUE", error));
        }
    }
}

impl StampedReceiver for ClientStamps {
    #[inline]
    fn may_be_stamped(&self) -> bool {
        self.always || self.request_stamps.count() != self.answered
    }
}

impl ReceiveStamps for ClientStamps {
    const HEAD_BYTES: usize = TIMES_BYTES;

    #[inline]
    fn sent_ns(&self, number: u64) -> Option<u64> {
        self.request_stamps.sent_ns(number)
    }

    fn answered(&mut self, number: u64, sent_ns: u64, trip: Trip, stamp: Stamp, head: &[u8]) {
        let times = head.try_into().map(ServerTimes::read).unwrap_or_default();
        self.answered += 1;
        self.collector.answered(number, sent_ns, trip, stamp, times);
    }

    fn between(&mut self, socket: BorrowedFd<'_>) {
        self.drain(socket, QUEUE_READS_MAX);
    }

    fn begin(&mut self, worker: &mut Worker) {
        self.collector.begin(worker.control.started_ns(), self.settings.timing);
    }

    fn finish(mut self, socket: BorrowedFd<'_>, worker: &mut Worker) -> Option<StampReport> {
        self.drain(socket, LAST_READS_MAX);
        if let Some((call, error)) = &self.failure {
            worker.errors.count(call, error);
        }
        Some(self.collector.finish())
    }
}
