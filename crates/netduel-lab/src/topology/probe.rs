//! Datagrams between the guests, to check that a path carries traffic before a measurement.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use netduel_model::lab;
use netduel_model::plan::spec::LabPath;
use netduel_sys::clock;

use crate::error::LabError;

/// Time limit for a path to carry traffic. The kernel configures IPv6 addresses and carriers in its own workers, which are late
/// on a loaded machine.
const PATIENCE_NS: u64 = 5_000_000_000;
/// Time between probes without an answer.
const PAUSE: Duration = Duration::from_millis(10);

/// Sockets opened in a guest's network namespace.
pub(crate) struct Sockets([UdpSocket; 2]);

impl Sockets {
    /// Opens one socket of each family in the calling thread's network namespace.
    pub(crate) fn open() -> Result<Self, LabError> {
        let open = |address: IpAddr| {
            let socket = UdpSocket::bind(SocketAddr::new(address, 0))
                .map_err(LabError::local(format!("open a probe socket on {address}")))?;
            socket.set_read_timeout(Some(PAUSE)).map_err(LabError::local("limit the time of a probe"))?;
            Ok(socket)
        };
        Ok(Self([open(Ipv4Addr::UNSPECIFIED.into())?, open(Ipv6Addr::UNSPECIFIED.into())?]))
    }
}

/// Sends datagrams of each family in each direction until one arrives.
pub(crate) fn reach(guests: [&Sockets; 2], path: LabPath) -> Result<(), LabError> {
    for (family, name) in ["IPv4", "IPv6"].into_iter().enumerate() {
        for (from, to) in [(0, 1), (1, 0)] {
            let address = lab::addresses(lab::GUESTS[to])[family];
            once(&guests[from].0[family], &guests[to].0[family], address).map_err(|error| {
                LabError::Unreachable {
                    from: lab::GUESTS[from].to_owned(),
                    to: lab::GUESTS[to].to_owned(),
                    interface: lab::interface(path).to_owned(),
                    family: name.to_owned(),
                    errno: error.into(),
                }
            })?;
        }
    }
    Ok(())
}

fn once(sender: &UdpSocket, receiver: &UdpSocket, address: IpAddr) -> io::Result<()> {
    let to = SocketAddr::new(address, receiver.local_addr()?.port());
    let deadline = clock::monotonic_ns() + PATIENCE_NS;
    loop {
        let sent = sender.send_to(b"netduel", to);
        let sending_failed = sent.is_err();
        match sent.and_then(|_| receiver.recv(&mut [0; 16])) {
            Ok(_) => return Ok(()),
            Err(error) if clock::monotonic_ns() > deadline => return Err(error),
            Err(_) if sending_failed => clock::sleep_until(clock::monotonic_ns() + PAUSE.as_nanos() as u64),
            Err(_) => {}
        }
    }
}
