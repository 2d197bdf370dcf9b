//! Why an end could not be prepared or run. Errors of traffic itself are counted (`error_counts.rs`), not raised.
use std::io;
use std::net::{IpAddr, SocketAddr};

use netduel_model::workload::Family;
use netduel_sys::error_name;

/// Why there is no traffic. Each message completes "failed to ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The server's address cannot be used.
    #[error("bind {address}: {source}; {remedy}")]
    Bind {
        /// The address and port asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The peer did not take the connection.
    #[error("connect to {address}: {source}; {remedy}")]
    Connect {
        /// Whom.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The peer took the connection but ended it at the greeting.
    #[error(
        "greet {address}: the peer does not take this trial's token; it is an agent of another trial, or no agent at all. \
         Nothing was sent but the greeting"
    )]
    TokenRefused {
        /// Who.
        address: SocketAddr,
    },
    /// The peer answered what only a program that is not netduel answers.
    #[error(
        "greet {address}: the peer could not prove that it knows this trial's token, so it gets no traffic; \
         another program listens there"
    )]
    NotAnAgent {
        /// Who.
        address: SocketAddr,
    },
    /// Fewer clients connected than the workload has streams.
    #[error(
        "accept the client: {connected} of {expected} streams arrived; the client ended early, or a firewall lets only \
         some ports through"
    )]
    NoClient {
        /// Streams that proved the token.
        connected: usize,
        /// Streams of the workload.
        expected: usize,
    },
    /// The congestion control is not there.
    #[error(
        "use congestion control `{name}`: {source}; this host offers: {available}. Load its module (`modprobe tcp_{name}`), or \
         allow it in net.ipv4.tcp_allowed_congestion_control"
    )]
    Congestion {
        /// The name in the plan.
        name: String,
        /// `net.ipv4.tcp_available_congestion_control` of this host.
        available: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Too few descriptors for the streams.
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
    /// A door past the network stack that did not open.
    #[error("{doing} on {interface}: {source}; {remedy}")]
    KernelBypass {
        /// What was done.
        doing: &'static str,
        /// On which interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The driver does not take frames that the kernel makes.
    #[error(
        "send frames that the kernel makes (`generator = \"kernel\"`) by {interface}: its driver takes none now (it has no `ndo-xmit` among \
         its XDP features, see `netduel inspect`); on a veth, switch GRO on at its other end while that is up (`ethtool -K PEER gro off`, \
         then `gro on`) or have an XDP program there, in the lab use the path `direct`; else use the generator `xdp` or `socket`"
    )]
    NoXdpTransmit {
        /// Which interface.
        interface: String,
    },
    /// More queues than the interface has.
    #[error(
        "open {asked} queues of {interface}: it has {has}; ask for no more, or give it more with the treatment `queues` \
         (`ethtool -L {interface} combined {asked}`) where it may have them (`ethtool -l {interface}`)"
    )]
    Queues {
        /// Which interface.
        interface: String,
        /// How many it has in that direction.
        has: u32,
        /// How many were asked for.
        asked: u32,
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
    /// The plan pins a thread to a core that this process cannot use.
    #[error(
        "pin a thread to core {core}: this process may run on {allowed}; name others in `pin_client` and \
         `pin_server` of the plan, or in --pin-client and --pin-server"
    )]
    Core {
        /// The core in the plan.
        core: u16,
        /// The cores that are allowed, as a list.
        allowed: String,
    },
    /// The address is one that no traffic may go to.
    #[error("use {address} as the peer: it is {kind}; give the address of one host that runs an agent")]
    Peer {
        /// Which.
        address: IpAddr,
        /// What kind of address.
        kind: &'static str,
    },
    /// Address and plan disagree on the IP version.
    #[error("use {address}: the workload asks for {family}")]
    Family {
        /// The address given.
        address: IpAddr,
        /// The plan's family.
        family: Family,
    },
    /// The kernel does not let us busy-poll.
    #[error(
        "busy-poll for {micros} us (`wait = \"busy-poll\"`): {source}; run the agent as root (CAP_NET_ADMIN), or have root set \
         net.core.busy_read = {micros} on this host; a kernel without CONFIG_NET_RX_BUSY_POLL cannot"
    )]
    BusyPoll {
        /// How long, microseconds.
        micros: u128,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not send without a copy.
    #[error(
        "send without a copy (`engine = \"zerocopy\"`, SO_ZEROCOPY): {source}; it needs Linux 4.14 or newer, so use the engine \
         `lean` or `copy` on this host"
    )]
    ZeroCopy {
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not let us use io_uring, or is too old.
    #[error(
        "open an io_uring (`engine = \"io-uring\"`): {source}; it needs Linux 6.0 or newer, kernel.io_uring_disabled = 0 on this \
         host (root sets it: sysctl kernel.io_uring_disabled=0), and in a container a seccomp profile that allows it; else use \
         the engine `lean` or `copy`"
    )]
    IoUring {
        /// What the kernel said.
        source: io::Error,
    },
    /// A quantity of the workload cannot be run.
    #[error("run the workload with {what} {value}: it must be {least} to {most}")]
    Range {
        /// Which setting.
        what: &'static str,
        /// Its value, with its unit.
        value: String,
        /// Smallest.
        least: String,
        /// Largest.
        most: String,
    },
    /// With segmentation each datagram must fit the path, and these do not.
    #[error(
        "send datagrams of {size} bytes with segmentation offload: the path's MTU is {mtu} bytes, which leaves room for {most}; \
         set `size` to that, or `offload = \"none\"`, with which IP cuts them into fragments"
    )]
    DatagramTooLarge {
        /// Payload of a datagram, bytes.
        size: usize,
        /// MTU of the path as the sender's host knows it, bytes.
        mtu: u32,
        /// Largest payload that fits, bytes.
        most: usize,
    },
    /// The kernel takes no datagrams of the workload.
    #[error("{operation}: {source}; {remedy}")]
    Datagrams {
        /// What was tried.
        operation: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The server's ports do not fit the workload.
    #[error(
        "connect to the server: it gave {given} ports, the workload needs {needed}; both ends must run the same workload"
    )]
    Ports {
        /// Ports given.
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
        /// What was tried, with its object.
        operation: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What is done when a program is put on an interface.
pub(crate) const ATTACH: &str = "attach an XDP program";

impl LoadError {
    /// A failed system call that has no remedy of its own.
    pub(crate) fn system(operation: impl Into<String>, source: io::Error) -> Self {
        Self::System { operation: operation.into(), source }
    }

    /// A door past the network stack that did not open.
    pub(crate) fn bypass(doing: &'static str, interface: &str, source: io::Error) -> Self {
        let remedy = match source.raw_os_error().and_then(error_name::of) {
            Some("EPERM" | "EACCES") => {
                "it needs root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run as root, or use the generator and the receiver `socket`"
            }
            Some("EBUSY") if doing == ATTACH => {
                "another XDP program is attached there: `ip link show` and `bpftool net` tell which; end what attached it, or detach it \
                 (`ip link set INTERFACE xdp off`)"
            }
            Some("EBUSY") => {
                "an AF_XDP socket of another program has this queue: `ss --xdp -p` tells whose; end it, or use another interface"
            }
            Some("ERANGE") => {
                "its MTU is too large for XDP, which wants a frame in one page: about 3500 bytes at most (`ip link set INTERFACE mtu 3498`)"
            }
            Some("ENOSPC") if doing == ATTACH => {
                "a veth needs as many receive queues as its other end has for sending, or more (`ethtool -L INTERFACE rx N`)"
            }
            Some("ENXIO") => {
                "its other end takes no frames now: it is down, or a veth's that needs GRO or an XDP program there"
            }
            Some("ENETDOWN") => "it is down: set it up (`ip link set INTERFACE up`)",
            Some("EINVAL" | "EOPNOTSUPP") => {
                "the interface or this kernel has no such thing (AF_XDP and XDP links need Linux 5.9, frames made in the kernel 5.18): \
                 use the engine `socket`"
            }
            Some("ENOBUFS" | "ENOMEM") => {
                "no memory that may be locked: raise RLIMIT_MEMLOCK (`ulimit -l unlimited`)"
            }
            Some("ENODEV") => "the interface is gone",
            _ => "see the kernel's log (`dmesg`)",
        };
        Self::KernelBypass { doing, interface: interface.to_owned(), source, remedy }
    }

    /// Datagrams of `size` bytes that the kernel does not cut out of a buffer.
    pub(crate) fn segmentation(size: usize, source: io::Error) -> Self {
        let remedy = match source.raw_os_error().and_then(error_name::of) {
            Some("EMSGSIZE") => {
                "a datagram does not fit the MTU of the path: set a smaller `size`, or `offload = \"none\"`"
            }
            Some("EIO") => {
                "the interface computes no checksums (see `ethtool -k`, tx-checksumming) or an IPsec policy applies, and this \
                 kernel then cuts nothing: set `offload = \"none\"`"
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

    /// Datagrams of `size` bytes that the kernel does not take.
    pub(crate) fn datagram(size: usize, source: io::Error) -> Self {
        let remedy = "the host or the path forbids datagrams of this length: set a smaller `size`";
        Self::Datagrams { operation: format!("send datagrams of {size} bytes"), source, remedy }
    }

    /// Merged datagrams that the kernel does not hand over.
    pub(crate) fn merging(source: io::Error) -> Self {
        let remedy = "UDP_GRO needs Linux 5.0: set `offload = \"gso\"`";
        Self::Datagrams { operation: "receive merged datagrams (UDP_GRO)".to_owned(), source, remedy }
    }

    /// A failed bind, with the remedy for its cause.
    pub(crate) fn bind(address: SocketAddr, source: io::Error) -> Self {
        let remedy = match source.kind() {
            io::ErrorKind::AddrInUse if address.port() != 0 => {
                "another program has the port, for TCP or UDP (`ss -lntup` tells which); end it, or choose another port"
            }
            io::ErrorKind::AddrInUse => {
                "no free port: widen net.ipv4.ip_local_port_range, or wait for connections in TIME_WAIT to end"
            }
            io::ErrorKind::AddrNotAvailable => {
                "no interface of this host has the address; see `ip address`, and for IPv6 whether it is still tentative"
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
                "nothing listens there; the server's agent has ended or is another one"
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                "no answer; a firewall or security group drops the packets, or the route is wrong: allow the local port range"
            }
            io::ErrorKind::AddrNotAvailable => {
                "no free port: widen net.ipv4.ip_local_port_range, or wait for connections in TIME_WAIT to end"
            }
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                "no route to it; see `ip route get`"
            }
            io::ErrorKind::PermissionDenied => {
                "the address is a broadcast address, or a local firewall forbids it"
            }
            _ => "see whether the address is right and the host is up",
        };
        Self::Connect { address, source, remedy }
    }
}
