//! A metadata service on the loopback: accepts one connection at a time and sends the answers of the test.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use netduel_host::MetadataService;

/// A request: the first line without its version, and the other lines.
pub struct Request {
    pub line: String,
    pub headers: Vec<String>,
}

impl Request {
    pub fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|line| line.eq_ignore_ascii_case(header))
    }
}

/// The reaction of the service to a connection.
pub enum Answer {
    /// Sends this and closes.
    Say(Vec<u8>),
    /// Sends this, and then nothing until the client closes.
    Stall(Vec<u8>),
}

/// 200 with a body.
pub fn ok(body: &str) -> Answer {
    Answer::Say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

/// An answer without a body.
pub fn status(words: &str) -> Answer {
    Answer::Say(format!("HTTP/1.1 {words}\r\nContent-Length: 0\r\n\r\n").into_bytes())
}

/// Serves until it is dropped.
pub struct Service {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub fn start(answer: impl Fn(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::SeqCst) {
                    return;
                }
                serve(stream.unwrap(), &answer);
            }
        });
        Self { address, ended, thread: Some(thread) }
    }

    /// With timeouts for a busy machine.
    pub fn patiently(&self) -> MetadataService {
        MetadataService { address: self.address, try_ms: 60_000, total_ms: 60_000 }
    }

    /// With the timeouts of a cloud.
    pub fn as_in_a_cloud(&self) -> MetadataService {
        MetadataService { address: self.address, ..MetadataService::LINK_LOCAL }
    }
}

fn serve(mut stream: TcpStream, answer: impl Fn(&Request) -> Answer) {
    let mut text = Vec::new();
    let mut piece = [0; 1024];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(length) => text.extend_from_slice(&piece[..length]),
        }
    }
    let text = String::from_utf8(text).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    let line = lines.next().unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned();
    let request = Request { line, headers: lines.filter(|line| !line.is_empty()).collect() };
    // The client may close the connection before it has read the whole answer.
    match answer(&request) {
        Answer::Say(bytes) => drop(stream.write_all(&bytes)),
        Answer::Stall(bytes) => {
            let _ = stream.write_all(&bytes);
            while stream.read(&mut piece).is_ok_and(|length| length > 0) {}
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let served = thread.join();
            assert!(served.is_ok() || thread::panicking(), "the service met what it should not have");
        }
    }
}
