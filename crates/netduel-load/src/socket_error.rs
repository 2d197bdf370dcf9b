//! What an error of a socket call means for the loop that made the call.
use std::io;

/// Whether the call only ran into its time limit, found nothing, or was interrupted by a signal: not an error of the path.
#[inline]
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
