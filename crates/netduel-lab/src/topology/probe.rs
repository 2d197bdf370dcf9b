//! Datagrams between the guests, to check that a path carries traffic before a measurement.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use netduel_model::lab;
use netduel_model::plan::spec::LabPath;
use netduel_model::units::BitRate;
use netduel_sys::clock;

use crate::error::LabError;

/// Bytes of a probe's frame: 7 bytes of data and the headers of UDP, IPv6 and Ethernet.
const FRAME: u64 = 7 + 8 + 40 + 14;
/// What the kernel itself sends when an interface comes up (RFC 4861, RFC 9777), bytes, generously.
const KERNELS_SHARE: u64 = 4096;
/// Time that all probes of a family in a direction take at least: 10 of the kernel's attempts to find a neighbor, 1 s each (RFC 4861, section 10).
const LEAST_NS: u64 = 10_000_000_000;

/// How probes of a path are sent. They take at most half of a cap: probes that wait in a queue behind earlier ones are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// Time between probes that do not arrive.
    pause_ns: u64,
    /// Most probes of a family in a direction. Their number is limited and not their time: a process that gets no processor sends none.
    probes_max: u64,
}

impl Pace {
    /// The kernel configures IPv6 addresses and carriers in its own workers, which are late on a loaded machine.
    fn within(cap: Option<BitRate>) -> Self {
        let time_of = |bytes: u64| cap.map_or(0, |cap| bytes * 8 * 1_000_000_000 / cap.0.max(1));
        let pause_ns = time_of(2 * FRAME).max(10_000_000);
        Self { pause_ns, probes_max: (LEAST_NS + time_of(KERNELS_SHARE)).div_ceil(pause_ns) }
    }
}

/// Sockets opened in a guest's network namespace.
pub(crate) struct Sockets {
    of_family: [UdpSocket; 2],
    pace: Pace,
}

impl Sockets {
    /// Opens one socket of each family in the calling thread's network namespace, for paths with or without a cap.
    pub(crate) fn open(cap: Option<BitRate>) -> Result<Self, LabError> {
        let pace = Pace::within(cap);
        let open = |address: IpAddr| {
            let socket = UdpSocket::bind(SocketAddr::new(address, 0))
                .map_err(LabError::local(format!("open a probe socket on {address}")))?;
            socket
                .set_read_timeout(Some(Duration::from_nanos(pace.pause_ns)))
                .map_err(LabError::local("limit the time of a probe"))?;
            Ok(socket)
        };
        let of_family = [open(Ipv4Addr::UNSPECIFIED.into())?, open(Ipv6Addr::UNSPECIFIED.into())?];
        Ok(Self { of_family, pace })
    }
}

/// Sends datagrams of each family in each direction until one arrives.
pub(crate) fn reach(guests: [&Sockets; 2], path: LabPath) -> Result<(), LabError> {
    for (family, name) in ["IPv4", "IPv6"].into_iter().enumerate() {
        for (from, to) in [(0, 1), (1, 0)] {
            let address = lab::addresses(lab::GUESTS[to])[family];
            let ends = [from, to].map(|end| &guests[end].of_family[family]);
            once(ends, address, guests[from].pace).map_err(|error| LabError::Unreachable {
                from: lab::GUESTS[from].to_owned(),
                to: lab::GUESTS[to].to_owned(),
                interface: lab::interface(path).to_owned(),
                family: name.to_owned(),
                errno: error.into(),
            })?;
        }
    }
    Ok(())
}

fn once([sender, receiver]: [&UdpSocket; 2], address: IpAddr, pace: Pace) -> io::Result<()> {
    let to = SocketAddr::new(address, receiver.local_addr()?.port());
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for _ in 0..pace.probes_max {
        let sent = sender.send_to(b"netduel", to);
        let sending_failed = sent.is_err();
        match sent.and_then(|_| receiver.recv(&mut [0; 16])) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
        if sending_failed {
            clock::sleep_until(clock::monotonic_ns() + pace.pause_ns);
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_take_at_most_half_of_a_cap() {
        assert_eq!(Pace::within(None).pause_ns, 10_000_000);
        for cap in [8_000, 64_000, 1_000_000_000] {
            let Pace { pause_ns, probes_max } = Pace::within(Some(BitRate(cap)));
            let carried_bits = cap * pause_ns / 1_000_000_000;
            assert!(2 * 8 * FRAME <= carried_bits, "{cap} bit/s: a probe every {pause_ns} ns");
            assert!(probes_max >= 20, "{cap} bit/s: {probes_max} probes, each {pause_ns} ns");
        }
    }
}
