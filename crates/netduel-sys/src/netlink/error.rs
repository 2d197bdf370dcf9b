//! Why the kernel refused a request.
use std::io;

/// A refusal of the kernel, or a failure of the socket.
#[derive(Debug, thiserror::Error)]
#[error("{cause}{}", words.as_ref().map(|words| format!("; kernel message: \"{words}\"")).unwrap_or_default())]
pub struct NetlinkError {
    /// The error number.
    pub cause: io::Error,
    /// The kernel's own words (`NLMSGERR_ATTR_MSG`), when it gave any.
    pub words: Option<String>,
}

impl From<io::Error> for NetlinkError {
    fn from(cause: io::Error) -> Self {
        Self { cause, words: None }
    }
}

impl From<rustix::io::Errno> for NetlinkError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::from(io::Error::from(errno))
    }
}

impl From<NetlinkError> for io::Error {
    /// Keeps the error number, by which callers distinguish cases; the kernel's words are lost.
    fn from(error: NetlinkError) -> Self {
        error.cause
    }
}
