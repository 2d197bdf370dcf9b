//! Why a host could not be read. A missing file or counter is no error: it is absent in the result.
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// A reader failed. The text completes "failed to ..." and holds the cause.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A socket to the kernel could not be opened.
    #[error("open a {what} socket: {cause}; the agent may have no descriptor left, see `ulimit -n`")]
    Open {
        /// Which kind of socket.
        what: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The kernel did not list what was asked for.
    #[error("list the {what} of this network namespace by netlink: {cause}")]
    List {
        /// What was listed.
        what: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// Frames that bypass the kernel's network stack cannot reach the peer.
    #[error("find the data path to {peer} for kernel bypass: {reason}")]
    NoWay {
        /// To whom.
        peer: IpAddr,
        /// What is missing, and what to do.
        reason: String,
    },
    /// A file that is there could not be read.
    #[error("read {}: {cause}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
}
