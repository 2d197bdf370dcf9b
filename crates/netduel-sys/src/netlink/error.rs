//! Errors of netlink requests.
use std::io;

/// A refusal of the kernel, or a failure of the socket.
#[derive(Debug, thiserror::Error)]
#[error("{cause}{}", words.as_ref().map(|words| format!("; kernel message: \"{words}\"")).unwrap_or_default())]
pub struct NetlinkError {
    /// The error number.
    pub cause: io::Error,
    /// The kernel's message (`NLMSGERR_ATTR_MSG`), if any.
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
    /// Keeps the error number, by which callers distinguish cases; the kernel's message is lost.
    fn from(error: NetlinkError) -> Self {
        error.cause
    }
}
