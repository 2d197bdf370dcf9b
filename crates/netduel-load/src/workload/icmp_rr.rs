//! `icmp-rr`: echo requests, which the kernel of the server's host answers. The server's end sends and receives nothing: it checks that
//! its kernel answers, and then waits for the client to be done.
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use netduel_model::stamps::StampReport;
use netduel_model::workload::{Family, Role, RoundTrip};
use netduel_sys::icmp::{BEFORE_MAX, HEADER, IcmpSocket};
use netduel_sys::socket::{self, Waiting};

use crate::counted::Counted;
use crate::datagram::{self, Kind};
use crate::end_context::EndContext;
use crate::error::LoadError;
use crate::job::Job;
use crate::recorder::Trip;
use crate::round_trip::{self, Received, Requests, Responses, Settings};
use crate::sequence_window::{Arrival, SequenceWindow};
use crate::socket_error::is_transient;
use crate::udp_acceptor::BUFFER_BYTES;
use crate::worker::Worker;

/// How often the server looks whether it is told that the trial is over. The end of the client wakes it in any case.
const LOOK: Duration = Duration::from_millis(50);
const GROUP_RANGE: &str = "/proc/sys/net/ipv4/ping_group_range";

/// The jobs of an end.
///
/// # Errors
/// When the client may open no socket for echo requests, or the kernel of the server answers none.
pub(super) fn jobs(settings: &RoundTrip, end: &EndContext<'_>) -> Result<Vec<Job>, LoadError> {
    if end.role == Role::Server {
        check_kernel_answers(end.workload.family)?;
        let standing = Arc::clone(&end.sockets.tcp[0]);
        return Ok(vec![Job::infallible(0, 0, move |worker| stand_by(worker, &standing))]);
    }
    let peer = end.sockets.peer.as_ref().expect("a client knows the address of its connection");
    let socket = Arc::new(IcmpSocket::connect(peer.address.ip(), &peer.bind).map_err(not_opened)?);
    let magic = datagram::magic(end.token, 0, Kind::FromClient);
    let settings = Settings::new(settings, end.timing());
    let message = round_trip::filled(HEADER + settings.size);
    let requests = EchoRequests { socket: Arc::clone(&socket), message, magic };
    let responses = EchoReplies {
        socket,
        buffer: vec![0; BEFORE_MAX + HEADER + settings.size],
        size: settings.size,
        magic,
        dscp: end.workload.dscp,
        seen: SequenceWindow::new(),
    };
    Ok(round_trip::client_jobs(settings, Some(settings.lost_after_ns), requests, responses))
}

fn not_opened(error: io::Error) -> LoadError {
    if !matches!(error.kind(), io::ErrorKind::PermissionDenied) {
        return LoadError::system("open an ICMP socket", error);
    }
    let range = std::fs::read_to_string(GROUP_RANGE).unwrap_or_default();
    let range = range.split_whitespace().collect::<Vec<_>>().join(" ");
    LoadError::Datagrams {
        operation: format!(
            "open an ICMP socket (net.ipv4.ping_group_range is \"{range}\" in this network namespace and has no group of this \
             process, which has no CAP_NET_RAW)"
        ),
        source: error,
        remedy: "run `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"` as root on the client, or run its agent as root",
    }
}

/// Refuses a server whose kernel answers no echo requests.
fn check_kernel_answers(family: Family) -> Result<(), LoadError> {
    let (name, remedy) = match family {
        Family::Ipv4 => (
            "net.ipv4.icmp_echo_ignore_all",
            "run `sysctl -w net.ipv4.icmp_echo_ignore_all=0` as root on the server",
        ),
        Family::Ipv6 => (
            "net.ipv6.icmp.echo_ignore_all",
            "run `sysctl -w net.ipv6.icmp.echo_ignore_all=0` as root on the server",
        ),
    };
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    // A kernel without the setting answers.
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim() != "0" => Err(LoadError::Datagrams {
            operation: "answer echo requests".to_owned(),
            source: io::Error::other(format!(
                "{name} is {} on the server, so its kernel answers none",
                text.trim()
            )),
            remedy,
        }),
        _ => Ok(()),
    }
}

/// The job of a server: nothing, until the client is done.
fn stand_by(worker: &Worker, standing: &TcpStream) -> Counted {
    while !worker.control.is_finishing() {
        match socket::wait_readable(&[standing.as_fd()], LOOK) {
            Ok(ready) if !ready[0] => {}
            // The client sends nothing on it: it is gone.
            _ => break,
        }
    }
    Counted::Nothing
}

/// Echo requests. The payload begins with the trial's magic and the number, so that 65,536 requests later a sequence number is no
/// mistake.
struct EchoRequests {
    socket: Arc<IcmpSocket>,
    message: Vec<u8>,
    magic: u64,
}

impl Requests for EchoRequests {
    #[inline]
    fn send(&mut self, number: u64, _: u64, waiting: Waiting) -> io::Result<()> {
        datagram::write_number(&mut self.message[HEADER..], self.magic, number);
        self.socket.write_header(&mut self.message, number as u16);
        socket::send(&*self.socket, &self.message, waiting)?;
        Ok(())
    }

    fn end(&mut self) {}
}

/// Their replies.
struct EchoReplies {
    socket: Arc<IcmpSocket>,
    buffer: Vec<u8>,
    size: usize,
    magic: u64,
    dscp: Option<u8>,
    /// Tells a reply that the path duplicated.
    seen: SequenceWindow,
}

impl Responses for EchoReplies {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let length = socket::receive(&*self.socket, &mut self.buffer, waiting).inspect_err(|error| {
            // An ICMP error of the path: its report is counted, and must not fill the buffer.
            if !is_transient(error) {
                self.socket.drain_errors();
            }
        })?;
        let room = self.buffer.len();
        let payload = self.socket.reply(&self.buffer[..length.min(room)]);
        let own = payload.filter(|payload| datagram::read_magic(payload) == Some(self.magic));
        let Some(payload) = own else {
            // A raw socket receives what is for other programs, too: as if nothing had come.
            let foreign = Err(io::Error::from(io::ErrorKind::Interrupted));
            return if self.socket.is_raw() { foreign } else { Ok(Received::Unexpected) };
        };
        let number = datagram::read_number(payload).filter(|_| payload.len() == self.size && length <= room);
        let Some(number) = number else { return Ok(Received::Unexpected) };
        if !matches!(self.seen.arrive(number), Arrival::InOrder | Arrival::Reordered) {
            return Ok(Received::Unexpected);
        }
        answered(number, false);
        Ok(Received::Some)
    }

    fn is_final(_: &io::Error) -> bool {
        // ICMP errors are of the path, and may pass.
        false
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn begin(&mut self, worker: &mut Worker) {
        worker.errors.count_failure("setsockopt SO_RCVBUF", socket::set_buffers(&*self.socket, BUFFER_BYTES));
        if let Some(dscp) = self.dscp {
            worker.errors.count_failure("setsockopt IP_TOS", self.socket.set_dscp(dscp));
        }
    }

    fn finish(self, _: &mut Worker) -> Option<StampReport> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::process::Command;
    use std::sync::mpsc::channel;

    use netduel_model::ids::{Token, WorkloadName};
    use netduel_model::sample::EndReport;
    use netduel_model::units::{Bytes, Nanos, PerSecond};
    use netduel_model::workload::{PinAuto, Timing, Traffic, Wait, Workload};
    use netduel_sys::local_bind::LocalBind;

    use super::*;
    use crate::{prepare_client, prepare_server};

    const LIMIT: Duration = Duration::from_secs(60);
    /// Set in the process that runs a test inside of its namespace.
    const INSIDE: &str = "NETDUEL_ICMP_TEST_INSIDE";
    /// Echo requests of another program.
    const FOREIGN: usize = 100;
    /// A new network namespace has a range without a group.
    const CLOSED: &str = "true";
    const MODULE: &str = "workload::icmp_rr::tests";

    fn workload(family: Family, wait: Wait, rate: Option<u64>, outstanding: u32, size: u64) -> Workload {
        let settings = RoundTrip {
            size: Bytes(size),
            outstanding,
            wait,
            rate: rate.map(PerSecond),
            timestamps: false,
            congestion: None,
        };
        Workload {
            name: WorkloadName::new("w").unwrap(),
            traffic: Traffic::IcmpRr(settings),
            timing: Timing { duration: Nanos::from_millis(200), warmup: Nanos(0), cooldown: Nanos(0) },
            family,
            pin_client: Vec::new(),
            pin_server: Vec::new(),
            pin_auto: PinAuto::default(),
            dscp: Some(46),
            metrics: Vec::new(),
        }
    }

    /// Runs both ends over loopback as a coordinator does.
    fn run(workload: &Workload) -> [Result<EndReport, LoadError>; 2] {
        let address: IpAddr = match workload.family {
            Family::Ipv4 => Ipv4Addr::LOCALHOST.into(),
            Family::Ipv6 => Ipv6Addr::LOCALHOST.into(),
        };
        let token = Token(*b"a token of tests");
        let server = prepare_server(workload, address, token).unwrap();
        let client = prepare_client(workload, address, server.ports(), token, LIMIT).unwrap();
        let (sender, done) = channel();
        let server = server.start(Box::new(|| ()));
        let client = client.start(Box::new(move || sender.send(()).unwrap()));
        done.recv_timeout(LIMIT).expect("the client is done");
        server.finish();
        [client.join(), server.join()]
    }

    /// Whether this process may send echo requests; says so aloud when not.
    fn is_allowed() -> bool {
        match IcmpSocket::connect(Ipv4Addr::LOCALHOST.into(), &LocalBind::ANY) {
            Ok(_) => true,
            Err(error) => {
                assert!(std::env::var_os("REQUIRE_ALL").is_none(), "cannot open an ICMP socket: {error}");
                println!("skipped: no ICMP socket is allowed here: {error}");
                false
            }
        }
    }

    #[test]
    fn every_echo_is_counted_in_both_loops_over_both_versions() {
        if !is_allowed() {
            return;
        }
        for family in [Family::Ipv4, Family::Ipv6] {
            for wait in [Wait::Block, Wait::Spin] {
                for (rate, outstanding, size) in [(None, 1, 16), (None, 7, 1400), (Some(1000), 1, 64)] {
                    let what = format!("{family} {wait:?} {rate:?} {size}");
                    let [client, server] =
                        run(&workload(family, wait, rate, outstanding, size)).map(Result::unwrap);
                    let trips = client.round_trips.unwrap();
                    assert!(trips.responses > 0, "{what}");
                    assert_eq!((trips.requests, trips.timeouts), (trips.responses, 0), "{what}");
                    assert_eq!(trips.histogram.count, trips.responses, "{what}");
                    assert_eq!(trips.pacing_error.map(|record| record.count), rate.map(|_| 200), "{what}");
                    assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");
                    assert!(server.round_trips.is_none() && server.received.is_none(), "{what}");
                }
            }
        }
    }

    /// Runs a test again in a network namespace of its own, with a prepared shell and without some capabilities.
    fn inside(test: &str, prepare: &str, without: &str) {
        let name = format!("{MODULE}::{test}");
        let drop =
            if without.is_empty() { String::new() } else { format!("setpriv --bounding-set={without}") };
        let script =
            format!("ip link set lo up && {prepare} && exec {drop} \"$0\" --exact {name} --nocapture");
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "sh", "-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        if text.contains("unshare failed") || text.contains("not found") {
            assert!(std::env::var_os("REQUIRE_ALL").is_none(), "cannot run: {text}");
            return println!("skipped: no network namespace can be made here: {text}");
        }
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    fn is_inside() -> bool {
        std::env::var_os(INSIDE).is_some()
    }

    #[test]
    fn a_group_in_the_range_needs_no_capability() {
        if !is_inside() {
            let open = "echo 0 0 > /proc/sys/net/ipv4/ping_group_range";
            return inside("a_group_in_the_range_needs_no_capability", open, "-net_raw");
        }
        assert!(!IcmpSocket::connect(Ipv4Addr::LOCALHOST.into(), &LocalBind::ANY).unwrap().is_raw());
        for family in [Family::Ipv4, Family::Ipv6] {
            let [client, _] = run(&workload(family, Wait::Block, None, 1, 64));
            assert!(client.unwrap().round_trips.unwrap().responses > 0);
        }
    }

    #[test]
    fn a_closed_range_leaves_raw_sockets_that_pass_over_the_replies_to_others() {
        if !is_inside() {
            return inside(
                "a_closed_range_leaves_raw_sockets_that_pass_over_the_replies_to_others",
                CLOSED,
                "",
            );
        }
        let other = IcmpSocket::connect(Ipv4Addr::LOCALHOST.into(), &LocalBind::ANY).unwrap();
        assert!(other.is_raw());
        let mut message = vec![0; HEADER + 64];
        other.write_header(&mut message, 1);
        for family in [Family::Ipv4, Family::Ipv6] {
            let workload = workload(family, Wait::Block, Some(1000), 1, 64);
            let [client, _] = std::thread::scope(|scope| {
                let run = scope.spawn(|| run(&workload));
                // Fewer than a default receive buffer holds: a reader that is not scheduled loses nothing by them.
                for _ in 0..FOREIGN {
                    socket::send(&other, &message, Waiting::Block).unwrap();
                    socket::receive(&other, &mut [0; 256], Waiting::Block).unwrap();
                }
                run.join().unwrap()
            });
            let client = client.unwrap();
            let trips = client.round_trips.unwrap();
            assert_eq!((trips.requests, trips.responses, client.errors), (200, 200, vec![]), "{family}");
        }
    }

    #[test]
    fn without_either_right_the_error_names_both() {
        if !is_inside() {
            return inside("without_either_right_the_error_names_both", CLOSED, "-net_raw");
        }
        let [client, _] = run(&workload(Family::Ipv4, Wait::Block, None, 1, 64));
        let error = client.unwrap_err().to_string();
        for part in ["net.ipv4.ping_group_range is \"", "CAP_NET_RAW", "sysctl -w"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_server_whose_kernel_answers_no_echo_says_so() {
        if !is_inside() {
            let ignores = "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all";
            return inside("a_server_whose_kernel_answers_no_echo_says_so", ignores, "");
        }
        let [client, server] = run(&workload(Family::Ipv4, Wait::Block, None, 1, 64));
        let error = server.unwrap_err().to_string();
        assert!(error.contains("net.ipv4.icmp_echo_ignore_all is 1"), "{error}");
        let trips = client.unwrap().round_trips.unwrap();
        assert_eq!((trips.responses, trips.timeouts), (0, trips.requests));
    }
}
