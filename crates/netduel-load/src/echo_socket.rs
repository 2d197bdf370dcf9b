//! What `icmp-rr` needs of both hosts: permission to open an ICMP socket at the client, and a kernel that answers echo requests at the
//! server. Both are checked before the start, so that a run ends before its first trial.
use std::io;
use std::net::IpAddr;

use netduel_model::workload::Family;
use netduel_sys::icmp::IcmpSocket;
use netduel_sys::local_bind::LocalBind;

use crate::error::LoadError;

const GROUP_RANGE: &str = "/proc/sys/net/ipv4/ping_group_range";

/// Opens the client's socket.
///
/// # Errors
/// [`LoadError::Datagrams`] with the remedy when this process may open no ICMP socket; [`LoadError::System`] for other errors.
pub(crate) fn open(peer: IpAddr, bind: &LocalBind) -> Result<IcmpSocket, LoadError> {
    IcmpSocket::connect(peer, bind).map_err(|error| {
        if error.kind() != io::ErrorKind::PermissionDenied {
            return LoadError::system("open an ICMP socket", error);
        }
        let range = std::fs::read_to_string(GROUP_RANGE).unwrap_or_default();
        let range = range.split_whitespace().collect::<Vec<_>>().join(" ");
        LoadError::Datagrams {
            operation: format!(
                "open an ICMP socket (net.ipv4.ping_group_range is \"{range}\" in this network namespace and contains no group of this \
                 process, and the process has no CAP_NET_RAW)"
            ),
            source: error,
            remedy: "run `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"` as root on the client, or run its agent as root",
        }
    })
}

/// Checks that the kernel of this host answers echo requests.
///
/// # Errors
/// [`LoadError::Datagrams`] with the setting that disables it.
pub(crate) fn check_kernel_answers(family: Family) -> Result<(), LoadError> {
    let (name, remedy) = match family {
        Family::Ipv4 => (
            "net.ipv4.icmp_echo_ignore_all",
            "run `sysctl -w net.ipv4.icmp_echo_ignore_all=0` as root on the server",
        ),
        Family::Ipv6 => (
            "net.ipv6.icmp.echo_ignore_all",
            "run `sysctl -w net.ipv6.icmp.echo_ignore_all=0` as root on the server",
        ),
    };
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    // A kernel without the setting answers.
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim() != "0" => Err(LoadError::Datagrams {
            operation: "answer echo requests".to_owned(),
            source: io::Error::other(format!(
                "{name} is {} on the server, so its kernel answers no echo requests",
                text.trim()
            )),
            remedy,
        }),
        _ => Ok(()),
    }
}
