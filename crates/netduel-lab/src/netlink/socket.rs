//! The lab's netlink socket: every request is acknowledged, and an error names the operation and its object.
use netduel_sys::netlink::{NetlinkError, NetlinkSocket, Request, messages};

use crate::error::{Errno, LabError};

/// The operation and its object: the start of every error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    /// A verb phrase, for example `create bridge`.
    pub operation: &'a str,
    /// For example `h1/vsw0`.
    pub object: &'a str,
    /// The kernel option and module that it needs; absent when every kernel supports it.
    pub feature: Option<&'a str>,
}

impl Step<'_> {
    fn refused(&self, error: NetlinkError) -> LabError {
        self.failed(Errno::from(error.cause), error.words.as_deref())
    }

    /// The error of this step.
    pub(crate) fn failed(&self, errno: Errno, words: Option<&str>) -> LabError {
        let unsupported =
            [Errno::OPNOTSUPP, Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT, Errno::NOENT].contains(&errno);
        let (operation, object) = (self.operation.to_owned(), self.object.to_owned());
        match self.feature {
            Some(feature) if unsupported => {
                LabError::KernelFeature { operation, object, errno, feature: feature.to_owned() }
            }
            _ => {
                let mut detail =
                    words.map(|words| format!("; kernel message: \"{words}\"")).unwrap_or_default();
                if [Errno::PERM, Errno::ACCES].contains(&errno) {
                    detail.push_str("; run as root with CAP_NET_ADMIN, or as an ordinary user where user namespaces are permitted");
                }
                LabError::Kernel { operation, object, errno, detail }
            }
        }
    }
}

/// A netlink socket that stays in the network namespace it was opened in.
pub(crate) struct Netlink(NetlinkSocket);

impl Netlink {
    /// Opens a socket for links, addresses, neighbours and queueing disciplines.
    pub(crate) fn route() -> std::io::Result<Self> {
        NetlinkSocket::route().map(Self)
    }

    /// Opens a socket for nftables.
    pub(crate) fn netfilter() -> std::io::Result<Self> {
        NetlinkSocket::netfilter().map(Self)
    }

    /// Sends a request and receives its acknowledgement.
    pub(crate) fn request(&mut self, request: Request, step: Step<'_>) -> Result<(), LabError> {
        self.0.request(request).map_err(|error| step.refused(error))
    }

    /// Sends several requests as one datagram; the last one is acknowledged, and any error fails them all.
    pub(crate) fn batch(&mut self, requests: Vec<Request>, step: Step<'_>) -> Result<(), LabError> {
        self.0.batch(requests).map_err(|error| step.refused(error))
    }

    /// Sends a request for one object and returns the payload of the answer.
    pub(crate) fn get(&mut self, request: Request, step: Step<'_>) -> Result<Vec<u8>, LabError> {
        let answer = self.0.get(request).map_err(|error| step.refused(error))?;
        Ok(payloads(&answer).into_iter().next().unwrap_or_default())
    }

    /// Requests a table and returns the payload of each of its rows.
    pub(crate) fn dump(&mut self, request: &Request, step: Step<'_>) -> Result<Vec<Vec<u8>>, LabError> {
        let mut table = Vec::new();
        self.0.dump(request, &mut table).map_err(|error| step.refused(error))?;
        Ok(payloads(&table))
    }
}

fn payloads(bytes: &[u8]) -> Vec<Vec<u8>> {
    messages(bytes).map(|message| message.payload.to_vec()).collect()
}
