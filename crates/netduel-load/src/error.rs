//! Why an end could not be prepared or run. Errors of traffic itself are counted (`error_counts.rs`), not raised.
use std::io;
use std::net::{IpAddr, SocketAddr};

use netduel_model::data_ports::{DataPorts, PortProtocol};
use netduel_model::units::plural;
use netduel_model::workload::{Family, OutOfRange};
use netduel_sys::error_name;
use netduel_sys::local_bind::LocalBind;

/// Why an end has no traffic. Each message completes "failed to ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The server's address cannot be used.
    #[error("bind {address}: {source}; {remedy}")]
    Bind {
        /// The requested address and port.
        address: SocketAddr,
        /// The error of the system call.
        source: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// The range of data ports has too few free ones.
    #[error(
        "bind {} of {ports} on {address}; in use: {in_use}; stop the other program (`ss -lntup`), or choose other `data_ports`",
        plural(*needed, &format!("{protocol} port"))
    )]
    PortsInUse {
        /// The address.
        address: IpAddr,
        /// The protocol.
        protocol: PortProtocol,
        /// The range.
        ports: DataPorts,
        /// Ports that a trial needs.
        needed: u32,
        /// Those of other programs, for people.
        in_use: String,
    },
    /// The connection could not be established.
    #[error("connect to {address}: {source}; {remedy}")]
    Connect {
        /// The address of the peer.
        address: SocketAddr,
        /// The error of the system call.
        source: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// The peer was not reached from the address or interface that the client is bound to.
    #[error("connect to {address} from {from}: {source}; {remedy}")]
    ConnectFrom {
        /// The address of the peer.
        address: SocketAddr,
        /// The address, interface or both.
        from: LocalBind,
        /// The error of the kernel.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The peer closed the connection during the handshake.
    #[error(
        "authenticate to {address}: the peer closed the connection after the token; it is the agent of another trial or another \
         program. Only the 48 bytes of the handshake were sent; check the address of the server host"
    )]
    TokenRefused {
        /// The address of the peer.
        address: SocketAddr,
    },
    /// The peer could not prove that it knows the token.
    #[error(
        "authenticate {address}: the peer did not prove that it knows the token of this trial, so it receives no traffic; \
         another program listens there, so check the address of the server host"
    )]
    NotAnAgent {
        /// The address of the peer.
        address: SocketAddr,
    },
    /// Fewer clients connected than the workload has streams.
    #[error(
        "accept the client: {connected} of {expected} streams connected; the client ended early, or a firewall blocks the \
         ports: allow the `data_ports` of this host, without them net.ipv4.ip_local_port_range"
    )]
    NoClient {
        /// Streams that proved the token.
        connected: usize,
        /// Streams of the workload.
        expected: usize,
    },
    /// The congestion control is not available.
    #[error(
        "use congestion control `{name}`: {source}; this host offers: {available}. Load its module (`modprobe {}`), or \
         allow it in net.ipv4.tcp_allowed_congestion_control",
        netduel_model::shell::word(&format!("tcp_{name}"))
    )]
    Congestion {
        /// The name in the plan.
        name: String,
        /// `net.ipv4.tcp_available_congestion_control` of this host.
        available: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// The limit of open descriptors is too low for the streams.
    #[error(
        "open {needed} descriptors: the hard limit is {limit}; raise it (`ulimit -Hn`, LimitNOFILE= of the service) or use \
         fewer streams"
    )]
    DescriptorLimit {
        /// How many the workload needs.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The host has no thread left.
    #[error(
        "{operation}: {source}; raise the limit of threads (`ulimit -u`, TasksMax= of the service, pids.max of a container, \
         kernel.threads-max) or use fewer streams"
    )]
    Thread {
        /// The operation, with the thread.
        operation: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// Kernel bypass is not possible on the interface.
    #[error("{doing} on {interface}: {source}; {remedy}")]
    KernelBypass {
        /// The operation.
        doing: &'static str,
        /// The interface.
        interface: String,
        /// The error of the system call.
        source: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// The driver does not transmit frames that the kernel generates.
    #[error(
        "send with the kernel generator (`generator = \"kernel\"`) on {interface}: its driver has no XDP transmit (`ndo-xmit` is not \
         among its XDP features, see `netduel inspect`); on a veth, enable GRO on its peer while that is up (`ethtool -K PEER gro off`, \
         then `gro on`) or attach an XDP program there; in the lab, only the path `direct` has it (`netduel lab path direct`, or \
         `path = \"direct\"` in an arm); otherwise use the generator `xdp` or `socket`"
    )]
    NoXdpTransmit {
        /// The interface.
        interface: String,
    },
    /// More queues than the interface has.
    #[error(
        "open {requested} queues of {interface}: it has {has}; request {has} or fewer, or add queues with the treatment `queues` \
         (`ethtool -L {interface} combined {requested}`; `ethtool -l {interface}` shows its maximum)"
    )]
    Queues {
        /// The interface.
        interface: String,
        /// How many it has in that direction.
        has: u32,
        /// How many are requested.
        requested: u32,
    },
    /// Too few local ports for the connections.
    #[error(
        "connect {needed} times to one port of the peer: net.ipv4.ip_local_port_range of this host is {first} to {last}; widen it, or \
         use fewer streams"
    )]
    LocalPorts {
        /// How many connections the workload needs.
        needed: u64,
        /// The lowest local port.
        first: u64,
        /// The highest.
        last: u64,
    },
    /// The plan pins a thread to a core on which this process may not run.
    #[error(
        "pin a thread to core {core}: this process may run on the cores {allowed}; change `pin_client` and \
         `pin_server` of the plan, or --pin-client and --pin-server"
    )]
    Core {
        /// The core in the plan.
        core: u16,
        /// The allowed cores, as a list.
        allowed: String,
    },
    /// The address is not the address of one host.
    #[error("use {address} as the peer: it is {kind}; give the address of one host that runs an agent")]
    Peer {
        /// The address.
        address: IpAddr,
        /// The kind of address.
        kind: &'static str,
    },
    /// The IP versions of address and plan differ.
    #[error(
        "use {address}: the workload uses {family}; give an address of that version, or change `family` of the workload"
    )]
    Family {
        /// The address given.
        address: IpAddr,
        /// The plan's family.
        family: Family,
    },
    /// The kernel does not permit busy polling.
    #[error(
        "busy-poll for {micros} us (`wait = \"busy-poll\"`): {source}; run the agent as root (CAP_NET_ADMIN), or set \
         net.core.busy_read = {micros} on this host; the kernel needs CONFIG_NET_RX_BUSY_POLL"
    )]
    BusyPoll {
        /// The busy-poll time, microseconds.
        micros: u128,
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel has no zero-copy send.
    #[error(
        "enable zero-copy sends (`engine = \"zerocopy\"`, SO_ZEROCOPY): {source}; they need Linux 4.14 or newer; use the engine \
         `lean` or `copy` on this host"
    )]
    ZeroCopy {
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel does not permit io_uring, or is too old.
    #[error(
        "open an io_uring (`engine = \"io-uring\"`): {source}; it needs Linux 6.0 or newer, kernel.io_uring_disabled = 0 on this \
         host (`sysctl kernel.io_uring_disabled=0` as root), and in a container a seccomp profile that allows it; otherwise use \
         the engine `lean` or `copy`"
    )]
    IoUring {
        /// The error of the system call.
        source: io::Error,
    },
    /// A setting of the workload is out of range.
    #[error("run the workload: {0}")]
    Range(OutOfRange),
    /// Datagrams are larger than the MTU of the path, which segmentation offload does not allow.
    #[error(
        "send datagrams of {size} bytes with segmentation offload: the path's MTU of {mtu} bytes leaves {most} for the payload; \
         set `size` to {most}, or `offload = \"none\"` to let IP fragment them"
    )]
    DatagramTooLarge {
        /// Payload of a datagram, bytes.
        size: usize,
        /// MTU of the path as the sender's host knows it, bytes.
        mtu: u32,
        /// Largest payload that fits, bytes.
        most: usize,
    },
    /// The kernel refuses the datagrams of the workload.
    #[error("{operation}: {source}; {remedy}")]
    Datagrams {
        /// The operation.
        operation: String,
        /// The error of the system call.
        source: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// The number of server ports differs from that of the workload.
    #[error(
        "connect to the server: it has {given} ports, the workload needs {needed}; both ends must run the same workload"
    )]
    Ports {
        /// Ports of the server.
        given: usize,
        /// Ports needed.
        needed: usize,
    },
    /// Two trials of one port have the same token.
    #[error("serve the trial: another trial of this port has its token; draw a random token for each trial")]
    TokenTaken,
    /// Another system call failed.
    #[error("{operation}: {source}")]
    System {
        /// The operation and its object.
        operation: String,
        /// The error of the system call.
        source: io::Error,
    },
}

/// What has to change before the operation can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The settings of the workload: they are wrong for this host.
    Settings,
    /// The host: it lacks a permission, a kernel feature or a resource.
    Host,
    /// The traffic: the peer, the path, or an error during the test.
    Traffic,
}

/// The operation of attaching a program to an interface.
pub(crate) const ATTACH: &str = "attach an XDP program";

impl LoadError {
    /// What has to change.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Core { .. }
            | Self::Range(_)
            | Self::Queues { .. }
            | Self::Peer { .. }
            | Self::Family { .. }
            | Self::DatagramTooLarge { .. } => Cause::Settings,
            // Their size, or a permission or feature of the kernel.
            Self::Datagrams { source, .. } => match source.raw_os_error().and_then(error_name::of) {
                Some("EMSGSIZE" | "EINVAL") => Cause::Settings,
                _ => Cause::Host,
            },
            Self::DescriptorLimit { .. }
            | Self::LocalPorts { .. }
            | Self::Thread { .. }
            | Self::KernelBypass { .. }
            | Self::NoXdpTransmit { .. }
            | Self::BusyPoll { .. }
            | Self::ZeroCopy { .. }
            | Self::IoUring { .. }
            | Self::Congestion { .. }
            | Self::PortsInUse { .. } => Cause::Host,
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Cause::Host,
            // No local port is free, or this host does not have the address.
            Self::Connect { source, .. } | Self::ConnectFrom { source, .. }
                if source.kind() == io::ErrorKind::AddrNotAvailable =>
            {
                Cause::Host
            }
            Self::Bind { .. }
            | Self::Connect { .. }
            | Self::ConnectFrom { .. }
            | Self::TokenRefused { .. }
            | Self::NotAnAgent { .. }
            | Self::NoClient { .. }
            | Self::Ports { .. }
            | Self::TokenTaken
            | Self::System { .. } => Cause::Traffic,
        }
    }

    /// A failed system call without a specific remedy.
    pub(crate) fn system(operation: impl Into<String>, source: io::Error) -> Self {
        Self::System { operation: operation.into(), source }
    }

    /// Thread `number` of the `count` threads of a workload did not start.
    pub(crate) fn thread_of(number: usize, count: usize, source: io::Error) -> Self {
        Self::Thread { operation: format!("start thread {number} of {count} of the workload"), source }
    }

    /// A failed kernel-bypass operation, with the remedy for its cause.
    pub(crate) fn bypass(doing: &'static str, interface: &str, source: io::Error) -> Self {
        let remedy = match source.raw_os_error().and_then(error_name::of) {
            Some("EPERM" | "EACCES") => {
                "run as root or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, or use the generator and the receiver `socket`"
            }
            Some("EBUSY") if doing == ATTACH => {
                "another XDP program is attached there (`ip link show`, `bpftool net`); stop the program that attached it, or detach it \
                 (`ip link set INTERFACE xdp off`)"
            }
            Some("EBUSY") => {
                "another program has an AF_XDP socket on this queue (`ss --xdp -p`); stop it, or use another interface"
            }
            Some("ERANGE") => {
                "its MTU is too large for XDP, which needs each frame in one page: set at most about 3500 bytes (`ip link set INTERFACE mtu 3498`)"
            }
            Some("ENOSPC") if doing == ATTACH => {
                "a veth needs at least as many receive queues as its peer has transmit queues (`ethtool -L INTERFACE rx N`)"
            }
            Some("ENXIO") => {
                "its peer does not receive: set it up, and on a veth enable GRO or attach an XDP program there"
            }
            Some("ENETDOWN") => "the interface is down: set it up (`ip link set INTERFACE up`)",
            Some("EINVAL" | "EOPNOTSUPP") => {
                "the interface or this kernel does not support it (AF_XDP and XDP links need Linux 5.9, the kernel generator 5.18): \
                 use the generator and the receiver `socket`"
            }
            Some("ENOBUFS" | "ENOMEM") => {
                "the limit of locked memory is too low: raise RLIMIT_MEMLOCK (`ulimit -l unlimited`)"
            }
            Some("ENODEV") => "the interface was removed; check `ip link`",
            _ => "see the kernel log (`dmesg`)",
        };
        Self::KernelBypass { doing, interface: interface.to_owned(), source, remedy }
    }

    /// The kernel does not segment a buffer into datagrams of `size` bytes.
    pub(crate) fn segmentation(size: usize, source: io::Error) -> Self {
        let remedy = match source.raw_os_error().and_then(error_name::of) {
            Some("EMSGSIZE") => {
                "a datagram does not fit the MTU of the path: set a smaller `size`, or `offload = \"none\"`"
            }
            Some("EIO") => {
                "the interface has no checksum offload (`ethtool -k`, tx-checksumming) or an IPsec policy applies, and then this \
                 kernel does not segment: set `offload = \"none\"`"
            }
            Some("EINVAL") => {
                "a datagram does not fit the MTU of the path, or the socket sends without checksums: set a smaller `size`, or \
                 `offload = \"none\"`"
            }
            Some("ENOPROTOOPT") => "UDP_SEGMENT needs Linux 4.18: set `offload = \"none\"`",
            _ => "set `offload = \"none\"` to send without segmentation",
        };
        let operation = format!("send datagrams of {size} bytes with segmentation offload (UDP_SEGMENT)");
        Self::Datagrams { operation, source, remedy }
    }

    /// The kernel does not send datagrams of `size` bytes.
    pub(crate) fn datagram(size: usize, source: io::Error) -> Self {
        let remedy = "the host or the path does not allow datagrams of this size: set a smaller `size`";
        Self::Datagrams { operation: format!("send datagrams of {size} bytes"), source, remedy }
    }

    /// The kernel does not coalesce received datagrams.
    pub(crate) fn merging(source: io::Error) -> Self {
        let remedy = "UDP_GRO needs Linux 5.0: set `offload = \"gso\"`";
        Self::Datagrams { operation: "receive coalesced datagrams (UDP_GRO)".to_owned(), source, remedy }
    }

    /// A failed bind, with the remedy for its cause.
    pub(crate) fn bind(address: SocketAddr, source: io::Error) -> Self {
        let remedy = match source.kind() {
            io::ErrorKind::AddrInUse if address.port() != 0 => {
                "another program uses the port for TCP or UDP (`ss -lntup`); stop it, or choose another port"
            }
            io::ErrorKind::AddrInUse => {
                "no local port is free: widen net.ipv4.ip_local_port_range, or wait for connections in TIME_WAIT to end"
            }
            io::ErrorKind::AddrNotAvailable => {
                "no interface of this host has the address (`ip address`), or an IPv6 address is still tentative"
            }
            io::ErrorKind::PermissionDenied => {
                "ports below net.ipv4.ip_unprivileged_port_start (1024) need CAP_NET_BIND_SERVICE; choose one above"
            }
            _ if source.raw_os_error().and_then(error_name::of) == Some("EAFNOSUPPORT") => {
                "this host has no IPv6; bind 0.0.0.0 or an IPv4 address"
            }
            _ => "check the address with `ip address`",
        };
        Self::Bind { address, source, remedy }
    }

    /// A failed connect, with the remedy for its cause.
    pub(crate) fn connect(address: SocketAddr, source: io::Error) -> Self {
        let remedy = match source.kind() {
            io::ErrorKind::ConnectionRefused => {
                "no program listens on that port; the server's agent has ended, or the address is another host's"
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                "no answer; a firewall or security group drops the packets, or the route is wrong: allow the `data_ports` of the server, \
                 without them its net.ipv4.ip_local_port_range"
            }
            io::ErrorKind::AddrNotAvailable => {
                "no local port is free: widen net.ipv4.ip_local_port_range, or wait for connections in TIME_WAIT to end"
            }
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                "no route to it; see `ip route get`"
            }
            io::ErrorKind::PermissionDenied => {
                "the address is a broadcast address, or a local firewall forbids it"
            }
            _ => "check the address, and that the host is up",
        };
        Self::Connect { address, source, remedy }
    }

    /// A failed connect of a socket that may be bound, with the remedy for its cause.
    pub(crate) fn connect_from(bind: &LocalBind, address: SocketAddr, source: io::Error) -> Self {
        if *bind == LocalBind::ANY {
            return Self::connect(address, source);
        }
        let remedy = match source.raw_os_error().and_then(error_name::of) {
            Some("ENODEV") => "this host has no such interface; see `ip link`",
            Some("EPERM") => {
                "binding to an interface needs Linux 5.7 or CAP_NET_RAW; bind its address instead"
            }
            Some("EADDRNOTAVAIL") => {
                "no interface of this host has the address (see `ip address`), or no port of it is free"
            }
            Some("EINVAL" | "EAFNOSUPPORT") => {
                "the address is of the other IP version, or is only valid within this host, as 127.0.0.1 is"
            }
            Some("ENETUNREACH" | "EHOSTUNREACH") => {
                "no route to it from there; see `ip route get ADDRESS from ... oif ...`"
            }
            _ => match Self::connect(address, io::Error::from(source.kind())) {
                Self::Connect { remedy, .. } => remedy,
                _ => "check the address, and that the host is up",
            },
        };
        Self::ConnectFrom { address, from: bind.clone(), source, remedy }
    }
}

#[cfg(test)]
mod tests;
