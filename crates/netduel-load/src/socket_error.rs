//! Classification of errors of socket calls.
use std::io;

/// Whether a call may be repeated: it timed out, would have blocked, or was interrupted by a signal. Not an error of the path.
#[inline]
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
