//! What all TCP listeners have in common. Accepts nothing.
use std::net::TcpListener;
use std::time::Duration;

use netduel_sys::tcp;

use crate::error::LoadError;

/// The accept queue of a listener: room for the streams of the largest workload, and connections of other programs. The kernel limits
/// it to net.core.somaxconn.
pub(crate) const BACKLOG: i32 = 4096;
/// How long the kernel holds back a connection without data: silent clients reach no thread.
const DEFER_ACCEPT: Duration = Duration::from_secs(4);

/// Lets the kernel hold back connections without data (`TCP_DEFER_ACCEPT`).
///
/// # Errors
/// [`LoadError::System`] with the error of setsockopt(2).
pub(crate) fn defer_accept(listener: &TcpListener) -> Result<(), LoadError> {
    tcp::defer_accept(listener, DEFER_ACCEPT)
        .map_err(|error| LoadError::system("set TCP_DEFER_ACCEPT on the listener", error))
}
