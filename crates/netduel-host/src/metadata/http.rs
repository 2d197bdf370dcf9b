//! As much of HTTP/1.1 (RFC 9112) as a metadata service needs: one request on one connection, an answer of known length or until
//! the end. Every step has a deadline and every answer a limit. No proxy is used: the service is on the link of the machine.
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use netduel_sys::clock::monotonic_ns;

use crate::source::MetadataService;

/// Azure's document has some 5 kB; a machine with many tags has more.
const ANSWER_MAX: usize = 256 << 10;
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
    while answer.len() <= ANSWER_MAX && !is_whole(&answer) {
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

/// Head and body; absent until the head is complete.
fn parted(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&answer[..end]).ok()?, &answer[end + 4..]))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Whether the answer of a server that keeps the connection open is complete.
fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = parted(answer) else { return false };
    if header(head, "transfer-encoding").is_some() {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length = header(head, "content-length").and_then(|length| length.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}

/// The body of an answer whose status is 200; `None` for 404.
fn body(answer: &[u8]) -> Result<Option<String>, String> {
    if answer.len() > ANSWER_MAX {
        return Err(format!("more than {} KiB", ANSWER_MAX >> 10));
    }
    if answer.is_empty() {
        return Err("connection closed without an answer".to_owned());
    }
    let (head, body) = parted(answer).ok_or("not HTTP, or an incomplete header")?;
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (version, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !version.starts_with("HTTP/1.") {
        return Err("not HTTP".to_owned());
    }
    match status {
        "200" => {}
        "404" => return Ok(None),
        status => return Err(format!("status {status:?}")),
    }
    let body = match (header(head, "transfer-encoding"), header(head, "content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => {
            unchunked(body).ok_or("inconsistent chunked body")?
        }
        (Some(coding), _) => return Err(format!("unsupported transfer encoding {coding:?}")),
        (None, Some(length)) => {
            let length = length.parse().map_err(|_| format!("invalid Content-Length {length:?}"))?;
            let whole = body.get(..length);
            whole.ok_or_else(|| format!("{} of {length} bytes", body.len()))?.to_vec()
        }
        (None, None) => body.to_vec(),
    };
    let text = String::from_utf8(body).map_err(|_| "not UTF-8".to_owned())?;
    Ok(Some(text))
}

/// RFC 9112, section 7.1; trailers are ignored.
fn unchunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&body[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        body = &body[end + 2..];
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(body.get(..size)?);
        body = body.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed_or_rejected_with_the_reason() {
        let good = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
            "HTTP/1.0 200 OK\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        ];
        for answer in good {
            assert_eq!(body(answer.as_bytes()), Ok(Some("hello".to_owned())), "{answer:?}");
        }
        assert_eq!(body(b"HTTP/1.1 404 Not Found\r\n\r\n<html>"), Ok(None));
        let bad = [
            ("", "without an answer"),
            ("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
            ("HELLO 200\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\nContent-Le", "incomplete header"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "5 of 10 bytes"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello", "Content-Length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nhello", "chunked"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "gzip"),
            ("HTTP/1.1 503 Busy\r\n\r\n", "503"),
        ];
        for (answer, why) in bad {
            let refused = body(answer.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{answer:?}: {refused}");
        }
    }
}
