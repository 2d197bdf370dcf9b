//! The TCP sockets of a network namespace, as `/proc/net/tcp` and `tcp6` list them (proc_net_tcp.rst of the kernel). It opens none.
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A connection (`TCP_ESTABLISHED`).
    Established,
    /// A connection whose SYN has arrived, and whose SYN-ACK is not acknowledged (`TCP_SYN_RECV`).
    SynReceived,
    /// Any other.
    Other,
}

/// A socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its own address; an IPv4 address also where it is mapped into IPv6.
    pub local: SocketAddr,
    /// The address of its peer.
    pub peer: SocketAddr,
    /// Its state.
    pub state: State,
    /// The number of its inode; 0 while it belongs to no process.
    pub inode: u64,
}

/// The sockets of both IP versions in the network namespace of this process.
///
/// # Errors
/// When a table cannot be read; the message names the file. A kernel without IPv6 has no table of it.
pub fn read() -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match fs::read_to_string(file) {
            Ok(text) => entries.extend(parse(&text)),
            Err(error) if file.ends_with('6') && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("read {file}: {error}"))),
        }
    }
    Ok(entries)
}

/// The lines after the first; others than those of a socket are left out.
fn parse(text: &str) -> impl Iterator<Item = Entry> {
    text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let state = match *fields.get(3)? {
            "01" => State::Established,
            "03" => State::SynReceived,
            _ => State::Other,
        };
        let (local, peer) = (socket_address(fields.get(1)?)?, socket_address(fields.get(2)?)?);
        Some(Entry { local, peer, state, inode: fields.get(9)?.parse().ok()? })
    })
}

fn socket_address(digits: &str) -> Option<SocketAddr> {
    let (address, port) = digits.split_once(':')?;
    Some(SocketAddr::new(address_of(address)?, u16::from_str_radix(port, 16).ok()?))
}

/// Words of 32 bits in the machine's order, each with the network's bytes in it.
fn address_of(digits: &str) -> Option<IpAddr> {
    let words: Option<Vec<u32>> = (0..digits.len())
        .step_by(8)
        .map(|at| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok())
        .collect();
    let bytes: Vec<u8> = words?.into_iter().flat_map(u32::to_ne_bytes).collect();
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn both_tables_are_parsed() {
        let four = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0\n\
            1: 0501000A:0016 0901000A:C001 01 00000000:00000000 02:00000000 00000000     0        0 12 1 0 100 0 0 10 0\n\
            2: 0501000A:145A 0901000A:C002 03 00000000:00000000 01:00000000 00000000     0        0 0 1 0\n";
        let entry = |local: &str, peer: &str, state, inode| Entry {
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
            state,
            inode,
        };
        let expected = [
            entry("0.0.0.0:22", "0.0.0.0:0", State::Other, 11),
            entry("10.0.1.5:22", "10.0.1.9:49153", State::Established, 12),
            entry("10.0.1.5:5210", "10.0.1.9:49154", State::SynReceived, 0),
        ];
        assert_eq!(parse(four).collect::<Vec<_>>(), expected);
        let six = "  sl  local_address\n\
            0: 0000000000000000FFFF00000501000A:08AE 0000000000000000FFFF00000901000A:C001 01 0:0 02:0 0 0 0 13\n\
            1: 000077FD000000000000000001000000:0016 000077FD000000000000000002000000:C001 01 0:0 02:0 0 0 0 14\n\
            a line of no socket\n";
        let expected = [
            entry("10.0.1.5:2222", "10.0.1.9:49153", State::Established, 13),
            entry("[fd77::1]:22", "[fd77::2]:49153", State::Established, 14),
        ];
        assert_eq!(parse(six).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn connection_of_this_process_is_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (local, peer) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let entries = read().unwrap();
        let own = entries.iter().find(|entry| (entry.local, entry.peer) == (local, peer)).unwrap();
        assert!(own.state == State::Established && own.inode > 0, "{own:?}");
    }
}
