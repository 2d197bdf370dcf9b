//! Checks of a workload, an address and this host before a socket is opened. Sends nothing.
use std::io;
use std::net::IpAddr;

use netduel_model::workload::{Family, Role, TcpEngine, Wait, Workload};
use netduel_sys::{affinity, busy_poll, descriptor_limit, uring, zerocopy};

use crate::echo_socket;
use crate::end_context::pins;
use crate::error::LoadError;
use crate::kernel_timestamping::KernelTimestamping;

/// Descriptors that the process needs besides its open ones and the sockets: acceptors, wakers, counter files, epoll sets. Pending
/// handshakes use the rest.
const DESCRIPTORS_BESIDES: u64 = 24;

/// All checks that need no socket of the trial.
pub(crate) fn check_workload(workload: &Workload, role: Role) -> Result<(), LoadError> {
    check_ranges(workload)?;
    let facts = workload.traffic.facts();
    facts.tcp.engine.map_or(Ok(()), check_engine)?;
    check_wait(facts.wait)?;
    if facts.sockets.echo > 0 && role == Role::Server {
        echo_socket::check_kernel_answers(workload.family)?;
    }
    check_cores(pins(workload, role))?;
    raise_descriptor_limit(descriptors(workload))
}

/// Rejects a workload with a setting out of range. The ranges are those of a plan.
///
/// # Errors
/// [`LoadError::Range`] for the first such setting.
pub fn check_ranges(workload: &Workload) -> Result<(), LoadError> {
    workload.out_of_range().map_or(Ok(()), |out| Err(LoadError::Range(out)))
}

/// Tests the kernel features of the engine on a separate socket.
fn check_engine(engine: TcpEngine) -> Result<(), LoadError> {
    match engine {
        TcpEngine::Lean | TcpEngine::Copy => Ok(()),
        TcpEngine::Zerocopy => zerocopy::probe().map_err(|source| LoadError::ZeroCopy { source }),
        TcpEngine::IoUring => uring::probe().map_err(|source| LoadError::IoUring { source }),
    }
}

/// Tests busy polling on a separate socket, so that the trial fails before it starts.
pub(crate) fn check_wait(wait: Wait) -> Result<(), LoadError> {
    if wait != Wait::BusyPoll {
        return Ok(());
    }
    let socket = std::os::unix::net::UnixDatagram::unbound()
        .map_err(|error| LoadError::system("make a socket", error))?;
    let failure = |source| LoadError::BusyPoll { micros: Wait::BUSY_POLL.as_micros(), source };
    busy_poll::enable(&socket, Wait::BUSY_POLL).map(|_| ()).map_err(failure)
}

/// Enables time stamping in the kernel, when the workload uses it.
pub(crate) fn enable_timestamping(workload: &Workload) -> Option<KernelTimestamping> {
    // On failure, time stamps may be missing at the beginning; the report counts them.
    workload.traffic.facts().is_stamped.then(KernelTimestamping::enable).and_then(Result::ok)
}

fn check_cores(cores: &[u16]) -> Result<(), LoadError> {
    if cores.is_empty() {
        return Ok(());
    }
    let allowed = affinity::allowed().map_err(|error| LoadError::system("read the allowed cores", error))?;
    match cores.iter().find(|core| !allowed.contains(core)) {
        None => Ok(()),
        Some(core) => {
            let list = allowed.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            Err(LoadError::Core { core: *core, allowed: list })
        }
    }
}

/// Descriptors of the workload: its sockets, and what its threads open besides.
fn descriptors(workload: &Workload) -> u64 {
    let facts = workload.traffic.facts();
    let cores = affinity::allowed().map_or(1, |cores| cores.len() as u64);
    facts.sockets.count() + facts.descriptors.count(cores)
}

/// Raises the limit of this process so that it can open so many descriptors more.
pub(crate) fn raise_descriptor_limit(own: u64) -> Result<(), LoadError> {
    let open = descriptor_limit::open()
        .map_err(|error| LoadError::system("count the open descriptors (/proc/self/fd)", error))?;
    let needed = open + own + DESCRIPTORS_BESIDES;
    let limit = descriptor_limit::raise(needed)
        .map_err(|error| LoadError::system("raise the limit of open descriptors", error))?;
    match limit {
        Some(limit) if limit < needed => Err(LoadError::DescriptorLimit { needed, limit }),
        _ => Ok(()),
    }
}

/// Rejects an address that is not that of one host, or not of the workload's family.
pub(crate) fn check_address(address: IpAddr, family: Family, is_peer: bool) -> Result<(), LoadError> {
    let matches = match family {
        Family::Ipv4 => address.is_ipv4(),
        Family::Ipv6 => address.is_ipv6(),
    };
    if !matches {
        return Err(LoadError::Family { address, family });
    }
    let broadcast = matches!(address.to_canonical(), IpAddr::V4(v4) if v4.is_broadcast());
    let kind = if address.to_canonical().is_multicast() {
        "a multicast address"
    } else if broadcast {
        "the broadcast address"
    } else if is_peer && address.to_canonical().is_unspecified() {
        "the unspecified address"
    } else {
        return Ok(());
    };
    Err(LoadError::Peer { address, kind })
}

/// Distinguishes a missing congestion control from other errors of opening a TCP socket.
pub(crate) fn congestion_error(name: Option<&str>, source: io::Error) -> Result<LoadError, io::Error> {
    // ENOENT: not available; EPERM: available but not allowed for this user (tcp(7)).
    let about_congestion = matches!(source.kind(), io::ErrorKind::NotFound)
        || (matches!(source.kind(), io::ErrorKind::PermissionDenied) && source.raw_os_error() == Some(1));
    match name {
        Some(name) if about_congestion => {
            let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
                .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
            Ok(LoadError::Congestion { name: name.to_owned(), available, source })
        }
        _ => Err(source),
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::workload::WorkloadType;

    use super::*;
    use crate::datagram::{MESSAGE_HEADER, PAYLOAD_MAX, STREAM_HEADER};
    use crate::transaction::{REQUEST_MIN, RESPONSE_MIN};

    /// The model defines the ranges, this crate the headers.
    #[test]
    fn smallest_message_of_each_type_has_room_for_its_header() {
        let range = |kind: WorkloadType, key: &str| {
            let setting = kind.settings().iter().find(|setting| setting.key == key).expect("it has it");
            setting.range.expect("it is a quantity")
        };
        let sizes = [
            (WorkloadType::UdpStream, "size", STREAM_HEADER),
            (WorkloadType::Failover, "size", STREAM_HEADER),
            (WorkloadType::UdpRr, "size", MESSAGE_HEADER),
            (WorkloadType::LoadedLatency, "size", MESSAGE_HEADER),
            (WorkloadType::TcpCrr, "size", REQUEST_MIN),
            (WorkloadType::TcpCrr, "response_size", RESPONSE_MIN),
        ];
        for (kind, key, header) in sizes {
            assert_eq!(range(kind, key).least, header as u64, "{} {key}", kind.word());
        }
        for kind in [WorkloadType::UdpStream, WorkloadType::UdpRr] {
            assert_eq!(range(kind, "size").most, PAYLOAD_MAX as u64);
        }
    }

    #[test]
    fn only_unicast_addresses_are_accepted() {
        for bad in ["0.0.0.0", "255.255.255.255", "224.0.0.1"] {
            let refused = check_address(bad.parse().unwrap(), Family::Ipv4, true);
            assert!(matches!(refused, Err(LoadError::Peer { .. })), "{bad}");
        }
        for bad in ["::", "ff02::1", "::ffff:255.255.255.255", "::ffff:224.0.0.1"] {
            let refused = check_address(bad.parse().unwrap(), Family::Ipv6, true);
            assert!(matches!(refused, Err(LoadError::Peer { .. })), "{bad}");
        }
        assert!(check_address("0.0.0.0".parse().unwrap(), Family::Ipv4, false).is_ok());
        assert!(check_address("127.0.0.1".parse().unwrap(), Family::Ipv4, true).is_ok());
        assert!(check_address("fd77::1".parse().unwrap(), Family::Ipv6, true).is_ok());
        let other = check_address("::1".parse().unwrap(), Family::Ipv4, true);
        assert!(matches!(other, Err(LoadError::Family { .. })));
    }
}
