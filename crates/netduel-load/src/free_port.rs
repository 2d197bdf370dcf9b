//! Binds the sockets of a server to the first free ports of a range, or to ports that the kernel chooses. Accepts nothing.
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use netduel_model::data_ports::{ListenAt, PortProtocol};
use netduel_sys::tcp;

use crate::error::LoadError;
use crate::{listening, preflight};

/// A listener that does not block.
///
/// # Errors
/// [`LoadError::PortsInUse`] when no port of the range is free; [`LoadError::Congestion`] and [`LoadError::Bind`].
pub(crate) fn listener(listen: ListenAt, congestion: Option<&str>) -> Result<TcpListener, LoadError> {
    let bind = |address: SocketAddr| tcp::listen(address, congestion, listening::BACKLOG);
    let mut bound = first_free(listen, PortProtocol::Tcp, 1, bind).map_err(|error| match error {
        LoadError::Bind { address, source, .. } => preflight::congestion_error(congestion, source)
            .unwrap_or_else(|error| LoadError::bind(address, error)),
        other => other,
    })?;
    let listener = bound.remove(0);
    listener
        .set_nonblocking(true)
        .map_err(|error| LoadError::system("make the listener non-blocking", error))?;
    Ok(listener)
}

/// So many UDP sockets, each with a port of its own.
///
/// # Errors
/// [`LoadError::PortsInUse`] when too few ports of the range are free; [`LoadError::Bind`].
pub(crate) fn udp_sockets(listen: ListenAt, count: u32) -> Result<Vec<UdpSocket>, LoadError> {
    first_free(listen, PortProtocol::Udp, count, UdpSocket::bind)
}

fn first_free<S>(
    listen: ListenAt,
    protocol: PortProtocol,
    needed: u32,
    bind: impl Fn(SocketAddr) -> io::Result<S>,
) -> Result<Vec<S>, LoadError> {
    let at = |port: u16| SocketAddr::new(listen.address, port);
    let failed = |port: u16| move |error| LoadError::bind(at(port), error);
    let Some(ports) = listen.ports else {
        return (0..needed).map(|_| bind(at(0)).map_err(failed(0))).collect();
    };
    let (mut sockets, mut in_use) = (Vec::new(), Vec::new());
    for port in ports.numbers() {
        if sockets.len() == needed as usize {
            break;
        }
        match bind(at(port)) {
            Ok(socket) => sockets.push(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => in_use.push(port),
            Err(error) => return Err(failed(port)(error)),
        }
    }
    if sockets.len() < needed as usize {
        let address = listen.address;
        return Err(LoadError::PortsInUse { address, protocol, ports, needed, in_use: listed(&in_use) });
    }
    Ok(sockets)
}

/// Ports in use, for people: the first, and how many more.
fn listed(in_use: &[u16]) -> String {
    const MOST: usize = 8;
    let words: Vec<String> = in_use.iter().take(MOST).map(u16::to_string).collect();
    let more = in_use.len().saturating_sub(MOST);
    match (words.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (_, 0) => words.join(", "),
        (_, more) => format!("{}, and {more} more", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use netduel_model::data_ports::DataPorts;

    use super::*;

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A socket of another program, and the port as a range.
    fn taken() -> (UdpSocket, DataPorts) {
        let socket = UdpSocket::bind((HOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        (socket, DataPorts::new(port, port).unwrap())
    }

    #[test]
    fn port_of_another_program_is_named() {
        let (_other, ports) = taken();
        let error = udp_sockets(ListenAt { address: HOST, ports: Some(ports) }, 1).unwrap_err().to_string();
        assert!(error.contains(&format!("in use: {ports}")) && error.contains("UDP"), "{error}");
    }

    #[test]
    fn too_small_range_says_how_many_ports_are_needed() {
        let (other, ports) = taken();
        drop(other);
        let error = udp_sockets(ListenAt { address: HOST, ports: Some(ports) }, 3).unwrap_err().to_string();
        assert!(error.contains("3 UDP ports"), "{error}");
    }

    #[test]
    fn ports_of_the_kernel_differ() {
        let sockets = udp_sockets(HOST.into(), 2).unwrap();
        let [one, other] = [0, 1].map(|index: usize| sockets[index].local_addr().unwrap().port());
        assert_ne!(one, other);
    }
}
