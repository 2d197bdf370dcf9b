//! The traffic of the lab's tests. `echo serve ADDRESS` prints its TCP and UDP ports and answers until standard input ends. `echo
//! ask ADDRESS TCP UDP COUNT` makes round trips over both. `echo push ADDRESS TCP BYTES` sends and receives bulk data and prints
//! the time in nanoseconds. `echo flow ADDRESS TCP` makes round trips over one connection until standard input ends, and answers
//! each input line after 50 further round trips. Exits with 1 when data is lost or changed.
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use netduel_sys::clock;

/// Bytes of a round trip.
const MESSAGE: usize = 1000;
/// Round trips between an input line of `flow` and its answer.
const TRIPS_PER_LINE: usize = 50;
/// Timeout of a datagram or a connection.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> io::Result<()> {
    let number = |text: &str| text.parse::<u64>().map_err(io::Error::other);
    let to = |address: &str, port: &str| {
        let address: IpAddr = address.parse().map_err(io::Error::other)?;
        Ok::<_, io::Error>(SocketAddr::new(address, port.parse().map_err(io::Error::other)?))
    };
    match words {
        ["serve", address] => serve(to(address, "0")?),
        ["ask", address, tcp, udp, count] => {
            ask_udp(to(address, udp)?, number(count)?)?;
            let mut stream = connect(to(address, tcp)?)?;
            (0..number(count)?).try_for_each(|trip| round_trip(&mut stream, trip))
        }
        ["push", address, tcp, bytes] => push(&connect(to(address, tcp)?)?, number(bytes)?),
        ["flow", address, tcp] => flow(connect(to(address, tcp)?)?),
        _ => Err(io::Error::other("usage: echo serve|ask|push|flow ...")),
    }
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn serve(address: SocketAddr) -> io::Result<()> {
    let (tcp, udp) = (TcpListener::bind(address)?, UdpSocket::bind(address)?);
    println!("{} {}", tcp.local_addr()?.port(), udp.local_addr()?.port());
    thread::spawn(move || {
        let mut buffer = [0; 2 * MESSAGE];
        while let Ok((length, from)) = udp.recv_from(&mut buffer) {
            let _ = udp.send_to(&buffer[..length], from);
        }
    });
    thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            let _ = stream.set_nodelay(true);
            thread::spawn(move || io::copy(&mut &stream, &mut &stream));
        }
    });
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}

fn message(trip: u64) -> Vec<u8> {
    trip.to_le_bytes().into_iter().cycle().take(MESSAGE).collect()
}

fn ask_udp(to: SocketAddr, count: u64) -> io::Result<()> {
    let any: IpAddr = if to.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    for trip in 0..count {
        socket.send(&message(trip))?;
        let mut buffer = vec![0; 2 * MESSAGE];
        let length = socket.recv(&mut buffer)?;
        if buffer[..length] != message(trip) {
            return Err(io::Error::other(format!("datagram {trip} came back changed or out of order")));
        }
    }
    Ok(())
}

fn round_trip(stream: &mut TcpStream, trip: u64) -> io::Result<()> {
    stream.write_all(&message(trip))?;
    let mut buffer = vec![0; MESSAGE];
    stream.read_exact(&mut buffer)?;
    if buffer == message(trip) { Ok(()) } else { Err(io::Error::other("the stream came back changed")) }
}

fn push(stream: &TcpStream, bytes: u64) -> io::Result<()> {
    let begin = clock::monotonic_ns();
    thread::scope(|scope| {
        let sender = scope.spawn(|| io::copy(&mut io::repeat(7).take(bytes), &mut &*stream));
        let received = io::copy(&mut stream.take(bytes), &mut io::sink())?;
        let sent = sender.join().map_err(|_| io::Error::other("the sender panicked"))??;
        if (sent, received) != (bytes, bytes) {
            return Err(io::Error::other("bytes are missing"));
        }
        println!("{}", clock::monotonic_ns() - begin);
        Ok(())
    })
}

fn flow(mut stream: TcpStream) -> io::Result<()> {
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || io::stdin().lines().map_while(Result::ok).try_for_each(|_| sender.send(())));
    let mut trips = 0..;
    loop {
        match requests.try_recv() {
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => round_trip(&mut stream, trips.next().unwrap_or_default())?,
            Ok(()) => {
                trips.by_ref().take(TRIPS_PER_LINE).try_for_each(|trip| round_trip(&mut stream, trip))?;
                println!("{TRIPS_PER_LINE}");
            }
        }
    }
}
