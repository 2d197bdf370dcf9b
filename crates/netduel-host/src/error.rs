//! Errors of reading a host. A missing file or counter is no error: it is absent in the result.
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// A failed reader. The text completes "failed to ..." and contains the cause.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A socket to the kernel could not be opened.
    #[error(
        "open a {what} socket: {cause}; the agent may have reached its limit of descriptors (`ulimit -n`)"
    )]
    Open {
        /// The kind of socket.
        what: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The kernel did not return a list.
    #[error(
        "list the {what} of this network namespace over netlink: {cause}; run netduel again, and see the kernel log (`dmesg`) if it persists"
    )]
    List {
        /// The objects of the list.
        what: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// Frames that bypass the kernel's network stack cannot reach the peer.
    #[error("find the data path to {peer} for kernel bypass: {reason}")]
    NoRoute {
        /// The address of the peer.
        peer: IpAddr,
        /// What is missing, and what to do.
        reason: String,
    },
    /// An existing file could not be read.
    #[error("read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
}
