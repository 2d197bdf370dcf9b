//! Busy polling: enabled on a socket before the traffic; afterwards the socket names the NAPI instance that was polled.
use std::os::fd::AsFd;

use netduel_model::workload::Wait;
use netduel_sys::busy_poll;

use crate::worker::Worker;

/// Enables busy polling on `socket`, when the plan uses it.
pub(super) fn begin(worker: &mut Worker, wait: Wait, socket: impl AsFd) {
    if wait == Wait::BusyPoll {
        worker.errors.count_failure("setsockopt SO_BUSY_POLL", busy_poll::enable(socket, Wait::BUSY_POLL));
    }
}

/// The NAPI instance of the received packets, when the plan uses busy polling.
pub(super) fn end(worker: &mut Worker, wait: Wait, socket: impl AsFd) -> Option<u32> {
    if wait != Wait::BusyPoll {
        return None;
    }
    match busy_poll::incoming_napi_id(socket) {
        Ok(id) => Some(id),
        Err(error) => {
            worker.errors.count("getsockopt SO_INCOMING_NAPI_ID", &error);
            None
        }
    }
}
