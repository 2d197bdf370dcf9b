//! As much of HTTP/1.1 (RFC 9112) as a metadata service needs: one request on one connection, an answer of known length or until
//! the end. Every step has a deadline and every answer a limit. No proxy is used: the service is on the link of the machine.
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use netduel_sys::clock::monotonic_ns;

use crate::source::MetadataService;

use super::response::{LEN_MAX, body, is_whole};

const MS_NS: u64 = 1_000_000;

/// A client of one service. After its total time every request fails at once.
pub(super) struct Client {
    service: MetadataService,
    end_ns: u64,
}

impl Client {
    /// Starts the total time.
    pub fn new(service: MetadataService) -> Self {
        Self { service, end_ns: monotonic_ns() + service.total_ms * MS_NS }
    }

    /// The body of an answer with status 200; `None` for 404.
    pub fn get(&mut self, path: &str, headers: &[&str]) -> Result<Option<String>, String> {
        self.request("GET", path, headers)
    }

    /// As [`Client::get`], with nothing to put.
    pub fn put(&mut self, path: &str, headers: &[&str]) -> Result<Option<String>, String> {
        self.request("PUT", path, headers)
    }

    fn request(&self, method: &str, path: &str, headers: &[&str]) -> Result<Option<String>, String> {
        let MetadataService { address, try_ms, total_ms } = self.service;
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", address.ip());
        for header in headers {
            text.push_str(header);
            text.push_str("\r\n");
        }
        if method == "PUT" {
            text.push_str("Content-Length: 0\r\n");
        }
        text.push_str("\r\n");
        let now = monotonic_ns();
        let deadline = Deadline { end_ns: self.end_ns.min(now + try_ms * MS_NS) };
        let what = path.split('?').next().unwrap_or(path);
        let failed = |doing: &str, cause: std::io::Error| match cause.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                format!(
                    "{address} did not answer {what} within {try_ms} ms (limit of all requests: {total_ms} ms)"
                )
            }
            _ => format!("{doing} {address} for {what}: {cause}"),
        };
        let answer = exchange(address, text.as_bytes(), &deadline);
        let answer = answer.map_err(|(doing, cause)| failed(doing, cause))?;
        body(&answer).map_err(|why| format!("invalid answer of {address} to {what}: {why}"))
    }
}

/// A deadline. The remaining time limits the next step.
struct Deadline {
    end_ns: u64,
}

impl Deadline {
    fn left(&self) -> Result<Duration, std::io::Error> {
        match self.end_ns.saturating_sub(monotonic_ns()) {
            0 => Err(ErrorKind::TimedOut.into()),
            left => Ok(Duration::from_nanos(left)),
        }
    }
}

/// The operation, and why it failed.
type Failure = (&'static str, std::io::Error);

/// Sends a request and reads until the answer is complete, the connection ends, or the answer is too long.
fn exchange(service: SocketAddr, request: &[u8], deadline: &Deadline) -> Result<Vec<u8>, Failure> {
    let connect = || TcpStream::connect_timeout(&service, deadline.left()?);
    let mut stream = connect().map_err(|cause| ("connect to", cause))?;
    let write = |stream: &mut TcpStream| {
        stream.set_write_timeout(Some(deadline.left()?))?;
        stream.write_all(request)
    };
    write(&mut stream).map_err(|cause| ("write to", cause))?;
    let mut answer = Vec::new();
    let mut piece = [0; 8 << 10];
    while answer.len() <= LEN_MAX && !is_whole(&answer) {
        let read = |stream: &mut TcpStream, piece: &mut [u8]| {
            stream.set_read_timeout(Some(deadline.left()?))?;
            stream.read(piece)
        };
        match read(&mut stream, &mut piece) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(("read from", cause)),
        }
    }
    Ok(answer)
}
