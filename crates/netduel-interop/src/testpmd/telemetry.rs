//! DPDK's telemetry socket: a request of one message, and a response of one message in JSON
//! (<https://doc.dpdk.org/guides/howto/telemetry.html>). Reading it does not slow down the forwarding threads.
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with, sockopt,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::deadline;
use super::error::DpdkError;

/// Name of the socket in the runtime folder of a process.
pub(super) const SOCKET_NAME: &str = "dpdk_telemetry.v2";
/// Time limit of a response, and of the room for a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// What a response has also shortly before a deadline: the last of several requests is answered as fast as the first.
const ANSWER_LEAST: Duration = Duration::from_secs(1);
/// The least wait of the kernel: 0 is none at all.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// Buffer for a response. DPDK documents a maximum of 16 kB; the statistics of 64 queues are longer in some versions.
const ANSWER_LEN: usize = 256 * 1024;

/// A connection to a process.
#[derive(Debug)]
pub struct Telemetry {
    socket: OwnedFd,
    /// The version that the process reports.
    pub version: String,
    answer: Vec<u8>,
}

/// The first message of a process.
#[derive(Debug, Deserialize)]
struct Greeting {
    version: String,
}

/// A port's link.
#[derive(Debug, Deserialize)]
struct Link {
    status: String,
}

/// A port from `/ethdev/info`. A value that a version does not report is absent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PortInfo {
    /// DPDK's name: `net_af_packet0`, or a place on a bus.
    pub name: String,
    /// Number of configured receive queues.
    pub nb_rx_queues: u32,
    /// Number of configured transmit queues.
    pub nb_tx_queues: u32,
    /// Hardware address.
    pub mac_addr: String,
    /// NUMA node; absent or -1 when unknown.
    #[serde(default)]
    pub numa_node: Option<i64>,
    /// Whether it was started: testpmd shows its prompt even with a port that failed.
    #[serde(default)]
    pub dev_started: Option<u8>,
    /// MTU, bytes.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Whether it is in promiscuous mode.
    #[serde(default)]
    pub promiscuous: Option<u8>,
}

/// The counters of a port since the start of the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct PortStats {
    /// Packets received.
    pub ipackets: u64,
    /// Packets passed to the device.
    pub opackets: u64,
    /// Bytes received, with most drivers without the check sequence.
    pub ibytes: u64,
    /// Bytes sent, with most drivers without the check sequence.
    pub obytes: u64,
    /// Packets that the device dropped because its receive queues were full.
    pub imissed: u64,
    /// Packets received with an error.
    pub ierrors: u64,
    /// Packets that could not be sent.
    pub oerrors: u64,
    /// Receptions without a free buffer.
    pub rx_nombuf: u64,
    /// Packets received by queue: the first 16, if the driver reports them.
    #[serde(default)]
    pub q_ipackets: Vec<u64>,
    /// Packets sent by queue: the first 16, if the driver reports them.
    #[serde(default)]
    pub q_opackets: Vec<u64>,
}

impl Telemetry {
    /// Connects to the process with this runtime folder, and waits for its greeting until the deadline on the monotonic clock.
    ///
    /// # Errors
    /// When there is no socket, no response, or a greeting in another format.
    pub fn connect(folder: &Path, deadline_ns: u64) -> Result<Self, DpdkError> {
        let path = folder.join(SOCKET_NAME);
        let doing = || format!("connect to the telemetry socket {}", path.display());
        let failed = |error: Errno| DpdkError::system(doing(), error);
        let address = SocketAddrUnix::new(&path).map_err(failed)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(failed)?;
        limit(&socket, sockopt::Timeout::Send, ANSWER_TIMEOUT)?;
        connect(&socket, &address).map_err(failed)?;
        Self::over(socket, deadline_ns)
    }

    /// Reads the greeting of a process from a connected socket that keeps the limits of messages.
    ///
    /// # Errors
    /// When there is no greeting before the deadline on the monotonic clock, or one in another format.
    pub fn over(socket: OwnedFd, deadline_ns: u64) -> Result<Self, DpdkError> {
        let mut telemetry = Self { socket, version: String::new(), answer: vec![0; ANSWER_LEN] };
        let greeting: Greeting =
            parse(&telemetry.receive(deadline_ns)?, "the greeting of the telemetry", "")?;
        telemetry.version = greeting.version;
        Ok(telemetry)
    }

    /// Receives a message before the deadline, within [`ANSWER_LEAST`] to [`ANSWER_TIMEOUT`].
    fn receive(&mut self, deadline_ns: u64) -> Result<String, DpdkError> {
        let failed = |error: Errno| DpdkError::system("receive from the telemetry socket of testpmd", error);
        let within = deadline::left(deadline_ns).clamp(ANSWER_LEAST, ANSWER_TIMEOUT);
        let end_ns = deadline::after(within);
        loop {
            limit(&self.socket, sockopt::Timeout::Recv, deadline::left(end_ns).max(WAIT_MIN))?;
            match recv(&self.socket, self.answer.as_mut_slice(), RecvFlags::empty()) {
                Ok((0, _)) => return Err(failed(Errno::CONNRESET)),
                Ok((length, _)) => return Ok(String::from_utf8_lossy(&self.answer[..length]).into_owned()),
                Err(Errno::AGAIN) if deadline::left(end_ns).is_zero() => {
                    return Err(DpdkError::Silent {
                        doing: "ask testpmd",
                        missed: "did not answer on its telemetry socket",
                        within,
                        text: "not read".to_owned(),
                    });
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Sends a request and parses the response, an object with the request as its only key.
    fn ask<T: DeserializeOwned>(
        &mut self,
        request: &str,
        what: &'static str,
        deadline_ns: u64,
    ) -> Result<T, DpdkError> {
        let sent = send(&self.socket, request.as_bytes(), SendFlags::NOSIGNAL);
        sent.map_err(|error| DpdkError::system("send a request to the telemetry socket of testpmd", error))?;
        let answer = self.receive(deadline_ns)?;
        let key = request.split(',').next().unwrap_or_default();
        let mut object: BTreeMap<String, serde_json::Value> = parse(&answer, what, &self.version)?;
        let value = object.remove(key).unwrap_or_default();
        serde_json::from_value(value).map_err(|_| unreadable(&answer, what, &self.version))
    }

    /// The properties of a port.
    ///
    /// # Errors
    /// When there is no such port, the process is gone, or it does not answer before the deadline on the monotonic clock.
    pub fn info(&mut self, port: u16, deadline_ns: u64) -> Result<PortInfo, DpdkError> {
        self.ask(&format!("/ethdev/info,{port}"), "the facts of a port", deadline_ns)
    }

    /// Whether a port's link is up.
    ///
    /// # Errors
    /// As [`Self::info`].
    pub fn has_link(&mut self, port: u16, deadline_ns: u64) -> Result<bool, DpdkError> {
        let link: Link =
            self.ask(&format!("/ethdev/link_status,{port}"), "the link of a port", deadline_ns)?;
        Ok(link.status.eq_ignore_ascii_case("up"))
    }

    /// The ports of the process.
    ///
    /// # Errors
    /// When the process is gone, or does not answer before the deadline on the monotonic clock.
    pub fn ports(&mut self, deadline_ns: u64) -> Result<Vec<u16>, DpdkError> {
        self.ask("/ethdev/list", "the list of ports", deadline_ns)
    }

    /// The counters of a port.
    ///
    /// # Errors
    /// As [`Self::info`].
    pub fn stats(&mut self, port: u16, deadline_ns: u64) -> Result<PortStats, DpdkError> {
        self.ask(&format!("/ethdev/stats,{port}"), "the counters of a port", deadline_ns)
    }

    /// The driver's extended counters of a port, by name.
    ///
    /// # Errors
    /// As [`Self::info`].
    pub fn extended(&mut self, port: u16, deadline_ns: u64) -> Result<BTreeMap<String, u64>, DpdkError> {
        self.ask(&format!("/ethdev/xstats,{port}"), "the extended counters of a port", deadline_ns)
    }
}

/// Limits the waits of a socket in one direction.
fn limit(socket: &OwnedFd, direction: sockopt::Timeout, wait: Duration) -> Result<(), DpdkError> {
    sockopt::set_socket_timeout(socket, direction, Some(wait))
        .map_err(|error| DpdkError::system("set the time limit of the telemetry socket of testpmd", error))
}

fn parse<T: DeserializeOwned>(answer: &str, what: &'static str, version: &str) -> Result<T, DpdkError> {
    serde_json::from_str(answer).map_err(|_| unreadable(answer, what, version))
}

fn unreadable(answer: &str, what: &'static str, version: &str) -> DpdkError {
    DpdkError::Unreadable { what, version: version.to_owned(), line: answer.chars().take(300).collect() }
}

#[cfg(test)]
mod tests {
    use rustix::net::{accept, bind, listen, socketpair};

    use super::*;

    /// A process that answers one request.
    fn answering(folder: &Path, answer: &'static str) -> std::thread::JoinHandle<()> {
        let listener =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(folder.join(SOCKET_NAME)).unwrap()).unwrap();
        listen(&listener, 1).unwrap();
        std::thread::spawn(move || {
            let peer = accept(&listener).unwrap();
            let greeting = br#"{"version":"DPDK 22.11.11","pid":1,"max_output_len":16384}"#;
            send(&peer, greeting, SendFlags::empty()).unwrap();
            let mut request = [0; 100];
            recv(&peer, request.as_mut_slice(), RecvFlags::empty()).unwrap();
            send(&peer, answer.as_bytes(), SendFlags::empty()).unwrap();
        })
    }

    #[test]
    fn counters_of_dpdk_22_11_are_parsed() {
        let folder = tempfile::tempdir().unwrap();
        let process = answering(
            folder.path(),
            r#"{"/ethdev/stats":{"ipackets":10,"opackets":1516896,"ibytes":852,"obytes":97081344,"imissed":0,"ierrors":0,"oerrors":0,"rx_nombuf":0,"q_ipackets":[10,0],"q_opackets":[1516896,0],"q_ibytes":[852,0],"q_obytes":[97081344,0],"q_errors":[0,0]}}"#,
        );
        let mut telemetry = Telemetry::connect(folder.path(), u64::MAX).unwrap();
        assert_eq!(telemetry.version, "DPDK 22.11.11");
        let stats = telemetry.stats(0, u64::MAX).unwrap();
        process.join().unwrap();
        assert_eq!((stats.ipackets, stats.opackets, stats.obytes), (10, 1_516_896, 97_081_344));
        assert_eq!(stats.q_opackets, [1_516_896, 0]);
    }

    #[test]
    fn unknown_response_is_shown_with_the_version() {
        let folder = tempfile::tempdir().unwrap();
        let process = answering(folder.path(), r#"{"/ethdev/stats":null}"#);
        let mut telemetry = Telemetry::connect(folder.path(), u64::MAX).unwrap();
        let error = telemetry.stats(3, u64::MAX).unwrap_err().to_string();
        process.join().unwrap();
        assert!(error.contains(r#"`{"/ethdev/stats":null}`"#) && error.contains("22.11.11"), "{error}");
    }

    #[test]
    fn missing_telemetry_socket_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = Telemetry::connect(folder.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("dpdk_telemetry.v2") && error.contains("No such file"), "{error}");
    }

    #[test]
    fn silent_process_is_reported_at_the_end_of_the_wait() {
        let (ours, _theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let error = Telemetry::over(ours, 0).unwrap_err().to_string();
        assert!(error.contains("did not answer on its telemetry socket within 1.0 s"), "{error}");
    }
}
