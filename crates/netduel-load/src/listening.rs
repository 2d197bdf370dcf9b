//! What all TCP listeners have in common. Accepts nothing.
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use netduel_sys::{socket, tcp};

use crate::error::LoadError;

/// The accept queue of a listener: room for the streams of the largest workload, and connections of other programs. The kernel limits
/// it to net.core.somaxconn.
pub(crate) const BACKLOG: i32 = 4096;
/// How long the kernel holds back a connection without data: silent clients reach no thread.
const DEFER_ACCEPT: Duration = Duration::from_secs(4);

/// Prepares a listener that accepts while traffic runs. Its connections inherit the options, also those that come before the traffic:
/// no call on them blocks longer than `call_limit`.
///
/// # Errors
/// As [`defer_accept`].
pub(crate) fn prepare_runtime(listener: &TcpListener, call_limit: Duration) -> Result<(), LoadError> {
    defer_accept(listener)?;
    tcp::send_at_once(listener)
        .and_then(|()| socket::limit_receive_wait(listener, call_limit))
        .and_then(|()| socket::limit_send_wait(listener, call_limit))
        .map_err(|error| LoadError::system("limit the calls on connections of the listener", error))
}

/// Removes the limit of a connection of such a listener that lasts for the whole trial.
///
/// # Errors
/// [`LoadError::System`] with the error of setsockopt(2).
pub(crate) fn unlimit(stream: &TcpStream) -> Result<(), LoadError> {
    stream
        .set_read_timeout(None)
        .and_then(|()| stream.set_write_timeout(None))
        .map_err(|error| LoadError::system("remove the limit of calls on a connection", error))
}

/// Lets the kernel hold back connections without data (`TCP_DEFER_ACCEPT`).
///
/// # Errors
/// [`LoadError::System`] with the error of setsockopt(2).
pub(crate) fn defer_accept(listener: &TcpListener) -> Result<(), LoadError> {
    tcp::defer_accept(listener, DEFER_ACCEPT)
        .map_err(|error| LoadError::system("set TCP_DEFER_ACCEPT on the listener", error))
}
