//! A datagram from guest a to guest b, to know that a path carries traffic before anyone measures it.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use netduel_model::lab;
use netduel_model::plan::spec::LabPath;

use crate::error::LabError;

/// How long a probe may take. It needs microseconds; a loaded machine may schedule us late.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sockets that were opened in a guest and so belong to it.
pub(crate) struct Sockets([UdpSocket; 2]);

impl Sockets {
    /// Opens one socket of each family in the calling thread's network namespace.
    pub(crate) fn open() -> Result<Self, LabError> {
        let open = |address: IpAddr| {
            let socket = UdpSocket::bind(SocketAddr::new(address, 0))
                .map_err(LabError::local(format!("open a probe socket on {address}")))?;
            socket.set_read_timeout(Some(PATIENCE)).map_err(LabError::local("limit the time of a probe"))?;
            Ok(socket)
        };
        Ok(Self([open(Ipv4Addr::UNSPECIFIED.into())?, open(Ipv6Addr::UNSPECIFIED.into())?]))
    }
}

/// Sends one datagram of each family from guest a and waits for it at guest b.
pub(crate) fn reach(from: &Sockets, to: &Sockets, path: LabPath) -> Result<(), LabError> {
    let families = ["IPv4", "IPv6"];
    for ((family, address), (sender, receiver)) in
        families.into_iter().zip(lab::addresses(lab::GUESTS[1])).zip(from.0.iter().zip(&to.0))
    {
        once(sender, receiver, address).map_err(|error| LabError::Unreachable {
            path: lab::interface(path).to_owned(),
            family: family.to_owned(),
            errno: error.into(),
        })?;
    }
    Ok(())
}

fn once(sender: &UdpSocket, receiver: &UdpSocket, address: IpAddr) -> io::Result<()> {
    let port = receiver.local_addr()?.port();
    sender.send_to(b"netduel", SocketAddr::new(address, port))?;
    let mut buffer = [0; 16];
    receiver.recv(&mut buffer).map(|_| ())
}
