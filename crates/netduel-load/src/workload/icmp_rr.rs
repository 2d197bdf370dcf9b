//! `icmp-rr`: echo requests, which the kernel of the server's host answers. The server's end sends and receives nothing and ends with the
//! client.
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use netduel_model::stamps::StampReport;
use netduel_model::workload::{Role, RoundTrip};
use netduel_sys::icmp::{BEFORE_MAX, HEADER, IcmpSocket};
use netduel_sys::socket::{self, Waiting};

use crate::counted::Counted;
use crate::datagram::{self, Kind};
use crate::end_context::EndContext;
use crate::job::Job;
use crate::own_responses::OwnResponses;
use crate::recorder::Trip;
use crate::round_trip::{self, Received, Requests, Responses, Settings};
use crate::udp_acceptor::BUFFER_BYTES;
use crate::worker::Worker;

/// How often the server checks whether the coordinator has ended the trial. The end of the client's connection wakes it.
const FINISH_CHECK: Duration = Duration::from_millis(50);

/// The jobs of an end.
pub(super) fn jobs(settings: &RoundTrip, end: &EndContext<'_>) -> Vec<Job> {
    if end.role == Role::Server {
        let connection = Arc::clone(&end.sockets.tcp[0]);
        return vec![Job::infallible(0, 0, move |worker| wait_for_end(worker, &connection))];
    }
    let socket = Arc::clone(&end.sockets.echo[0]);
    let magic = datagram::magic(end.token, 0, Kind::FromClient);
    let settings = Settings::new(settings, end.timing());
    let message = round_trip::filled(HEADER + settings.size);
    let requests = EchoRequests { socket: Arc::clone(&socket), message, magic };
    let responses = EchoReplies {
        socket,
        buffer: vec![0; BEFORE_MAX + HEADER + settings.size],
        own: OwnResponses::new(magic, settings.size),
        dscp: end.workload.dscp,
    };
    round_trip::client_jobs(settings, Some(settings.lost_after_ns), requests, responses)
}

/// The job of a server: it waits until the client or the coordinator ends the trial.
fn wait_for_end(worker: &Worker, connection: &TcpStream) -> Counted {
    while !worker.control.is_finishing() {
        match socket::wait_readable(&[connection.as_fd()], FINISH_CHECK) {
            Ok(ready) if !ready[0] => {}
            // The client sends no data on the connection, so it has closed it.
            _ => break,
        }
    }
    Counted::Nothing
}

/// Echo requests. The payload begins with the trial's magic and the number of the request, because the sequence number of ICMP repeats
/// after 65,536 requests.
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
    own: OwnResponses,
    dscp: Option<u8>,
}

impl Responses for EchoReplies {
    #[inline]
    fn receive(
        &mut self,
        waiting: Waiting,
        mut answered: impl FnMut(u64, bool) -> Option<Trip>,
    ) -> io::Result<Received> {
        let length = socket::receive(&*self.socket, &mut self.buffer, waiting).inspect_err(|error| {
            // The caller counts the ICMP error; its record in the error queue would fill the buffer.
            if !socket::is_transient(error) {
                self.socket.drain_errors();
            }
        })?;
        let room = self.buffer.len();
        let payload = self.socket.reply(&self.buffer[..length.min(room)]);
        let Some(payload) = payload.filter(|payload| self.own.is_own(payload)) else {
            // A reply to another program that arrived before the filter of a raw socket: the caller receives again.
            let foreign = Err(io::Error::from(io::ErrorKind::Interrupted));
            return if self.socket.is_raw() { foreign } else { Ok(Received::Unexpected) };
        };
        let Some(number) = self.own.number(payload).filter(|_| length <= room) else {
            return Ok(Received::Unexpected);
        };
        answered(number, false);
        Ok(Received::Some)
    }

    fn is_final(_: &io::Error) -> bool {
        // An ICMP error can be temporary.
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
    use netduel_model::workload::{Family, PinAuto, Timing, Traffic, Wait, Workload};
    use netduel_sys::clock;
    use netduel_sys::local_bind::LocalBind;

    use netduel_test_support::{NewNamespace, skip};

    use super::*;
    use crate::{ClientEnd, LoadError, ServerEnd, prepare_client, prepare_server};

    const LIMIT: Duration = Duration::from_secs(60);
    /// Echo requests of another program.
    const FOREIGN: usize = 100;
    /// Permits datagram ICMP sockets to root.
    const OPEN: &str = "echo 0 0 > /proc/sys/net/ipv4/ping_group_range";
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

    /// Prepares both ends over loopback as a coordinator does.
    fn prepare(workload: &Workload) -> Result<(ClientEnd, ServerEnd), LoadError> {
        prepare_at(
            workload,
            match workload.family {
                Family::Ipv4 => Ipv4Addr::LOCALHOST.into(),
                Family::Ipv6 => Ipv6Addr::LOCALHOST.into(),
            },
        )
    }

    /// As [`prepare`], at another address of this machine.
    fn prepare_at(workload: &Workload, address: IpAddr) -> Result<(ClientEnd, ServerEnd), LoadError> {
        let token = Token(*b"a token of tests");
        let server = prepare_server(workload, address, token)?;
        let client = prepare_client(workload, address, server.ports(), token, LIMIT)?;
        Ok((client, server))
    }

    /// Runs two prepared ends.
    fn run_prepared((client, server): (ClientEnd, ServerEnd)) -> [EndReport; 2] {
        let (sender, done) = channel();
        let server = server.start(Box::new(|| ()));
        let client = client.start(Box::new(move || sender.send(()).unwrap()));
        done.recv_timeout(LIMIT).expect("the client is done");
        server.finish();
        [client.join().unwrap(), server.join().unwrap()]
    }

    fn run(workload: &Workload) -> [EndReport; 2] {
        run_prepared(prepare(workload).unwrap())
    }

    /// Whether this process may send echo requests. Prints the reason when it may not.
    fn is_allowed() -> bool {
        match IcmpSocket::connect(Ipv4Addr::LOCALHOST.into(), &LocalBind::ANY) {
            Ok(_) => true,
            Err(error) => {
                skip(format!("no ICMP socket is allowed here: {error}"));
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
            let mut responses = 0;
            for wait in [Wait::Block, Wait::Spin] {
                for (rate, outstanding, size) in [(None, 1, 16), (None, 7, 1400), (Some(1000), 1, 64)] {
                    let what = format!("{family} {wait:?} {rate:?} {size}");
                    let [client, server] = run(&workload(family, wait, rate, outstanding, size));
                    let trips = client.round_trips.unwrap();
                    responses += trips.responses;
                    assert_eq!((trips.requests, trips.timeouts), (trips.responses, 0), "{what}");
                    assert_eq!(trips.histogram.count, trips.responses, "{what}");
                    assert_eq!(trips.pacing_error.map(|record| record.count), rate.map(|_| 200), "{what}");
                    assert_eq!((&client.errors, &server.errors), (&vec![], &vec![]), "{what}");
                    assert!(server.round_trips.is_none() && server.received.is_none(), "{what}");
                }
            }
            // One of these short tests may wait for a core until it is over, but not each of them.
            assert!(responses > 0, "{family}");
        }
    }

    /// Runs `body` in a new network namespace after the shell commands `prepare`, in a user namespace and without some capabilities.
    fn in_namespace(test: &str, prepare: &str, without: &str, body: impl FnOnce()) {
        let wrapper =
            if without.is_empty() { String::new() } else { format!("setpriv --bounding-set={without}") };
        let prepare = format!("ip link set lo up; {prepare}");
        NewNamespace { prepare: &prepare, wrapper: &wrapper, always_user: true }
            .run(&format!("{MODULE}::{test}"), body);
    }

    /// Whether this process gets a raw ICMP socket.
    fn gets_raw_socket() -> bool {
        IcmpSocket::connect(Ipv4Addr::LOCALHOST.into(), &LocalBind::ANY).unwrap().is_raw()
    }

    #[test]
    fn group_in_the_range_needs_no_capability() {
        in_namespace("group_in_the_range_needs_no_capability", OPEN, "-net_raw", || {
            assert!(!gets_raw_socket());
            for family in [Family::Ipv4, Family::Ipv6] {
                let [client, _] = run(&workload(family, Wait::Block, None, 1, 64));
                assert!(client.round_trips.unwrap().responses > 0);
            }
        });
    }

    #[test]
    fn raw_sockets_of_a_closed_range_ignore_replies_to_others() {
        in_namespace("raw_sockets_of_a_closed_range_ignore_replies_to_others", CLOSED, "", || {
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
                let trips = client.round_trips.unwrap();
                assert_eq!((trips.requests, trips.responses, client.errors), (200, 200, vec![]), "{family}");
            }
        });
    }

    #[test]
    fn client_without_permission_is_refused_before_the_start() {
        in_namespace("client_without_permission_is_refused_before_the_start", CLOSED, "-net_raw", || {
            let Err(error) = prepare(&workload(Family::Ipv4, Wait::Block, None, 1, 64)) else {
                panic!("an ICMP socket was opened")
            };
            let error = error.to_string();
            for part in ["net.ipv4.ping_group_range is \"", "CAP_NET_RAW", "sysctl -w"] {
                assert!(error.contains(part), "{error}");
            }
        });
    }

    #[test]
    fn server_whose_kernel_ignores_echo_requests_is_refused_before_the_start() {
        in_namespace(
            "server_whose_kernel_ignores_echo_requests_is_refused_before_the_start",
            "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all",
            "",
            || {
                let Err(error) = prepare(&workload(Family::Ipv4, Wait::Block, None, 1, 64)) else {
                    panic!("the server was prepared")
                };
                let error = error.to_string();
                assert!(error.contains("net.ipv4.icmp_echo_ignore_all is 1"), "{error}");
            },
        );
    }

    /// Runs trials whose requests are answered with an ICMP error by rules of nftables that are added after the start of the ends.
    fn check_icmp_errors(addresses: [IpAddr; 2], rules: &str) {
        for (family, address) in [Family::Ipv4, Family::Ipv6].into_iter().zip(addresses) {
            let ends = prepare_at(&workload(family, Wait::Block, None, 1, 64), address).unwrap();
            let output = Command::new("nft").arg(rules).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let [client, _] = run_prepared(ends);
            assert!(Command::new("nft").args(["delete", "table", "inet", "t"]).status().unwrap().success());
            let trips = client.round_trips.unwrap();
            assert!(trips.requests > 0, "{family}");
            assert_eq!((trips.responses, trips.timeouts), (0, trips.requests), "{family}");
            let unreachable = client.errors.iter().filter(|count| count.error.starts_with("EHOSTUNREACH"));
            assert!(unreachable.map(|count| count.count).sum::<u64>() > 0, "{family}: {:?}", client.errors);
        }
    }

    fn check_rejected() {
        check_icmp_errors(
            [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            "add table inet t\nadd chain inet t in { type filter hook input priority 0; }\n\
             add rule inet t in icmp type echo-request reject with icmp type host-unreachable\n\
             add rule inet t in icmpv6 type echo-request reject with icmpv6 type addr-unreachable",
        );
    }

    #[test]
    fn icmp_errors_are_counted_on_datagram_sockets() {
        let prepare = format!("nft --version; {OPEN}");
        in_namespace("icmp_errors_are_counted_on_datagram_sockets", &prepare, "", || {
            assert!(!gets_raw_socket());
            check_rejected();
        });
    }

    #[test]
    fn icmp_errors_are_counted_on_raw_sockets() {
        in_namespace("icmp_errors_are_counted_on_raw_sockets", "nft --version", "", || {
            assert!(gets_raw_socket());
            check_rejected();
        });
    }

    /// A router in a second namespace, to which policy routing sends what has mark 1, also what is for this machine.
    const ROUTER: &str = "nft --version; mount -t tmpfs none /run; ip netns add r
        ip link add va type veth peer name vb netns r
        ip addr add 10.9.0.1/24 dev va; ip addr add fd09::1/64 dev va nodad; ip link set va up
        ip -n r addr add 10.9.0.2/24 dev vb; ip -n r addr add fd09::2/64 dev vb nodad; ip -n r link set vb up
        nsenter --net=/run/netns/r sh -ec 'cd /proc/sys/net; echo 1 > ipv4/ip_forward; echo 1 > ipv6/conf/all/forwarding'
        ip -4 route add default via 10.9.0.2 table 100; ip -6 route add default via fd09::2 table 100
        for version in 4 6; do
            ip -$version rule add pref 5 fwmark 1 lookup 100
            ip -$version rule add pref 10 lookup local
            ip -$version rule del pref 0
        done";

    /// Waits until the router answers, so that no request waits for an address of the link layer.
    fn wait_for_router(router: IpAddr) {
        let socket = IcmpSocket::connect(router, &LocalBind::ANY).unwrap();
        socket::limit_receive_wait(&socket, Duration::from_millis(100)).unwrap();
        let mut message = vec![0; HEADER];
        socket.write_header(&mut message, 1);
        let deadline = clock::monotonic_ns() + LIMIT.as_nanos() as u64;
        let is_answered = || {
            let sent = socket::send(&socket, &message, Waiting::Block);
            sent.and_then(|_| socket::receive(&socket, &mut [0; 256], Waiting::Block)).is_ok()
        };
        while !is_answered() {
            assert!(clock::monotonic_ns() < deadline, "{router} does not answer");
        }
    }

    fn check_expired() {
        for router in ["10.9.0.2", "fd09::2"] {
            wait_for_router(router.parse().unwrap());
        }
        check_icmp_errors(
            ["10.9.0.1".parse().unwrap(), "fd09::1".parse().unwrap()],
            "add table inet t\nadd chain inet t out { type route hook output priority 0; }\n\
             add rule inet t out icmp type echo-request ip ttl set 1 meta mark set 1\n\
             add rule inet t out icmpv6 type echo-request ip6 hoplimit set 1 meta mark set 1",
        );
    }

    #[test]
    fn exceeded_time_to_live_is_counted_on_datagram_sockets() {
        let prepare = format!("{ROUTER}\n{OPEN}");
        in_namespace("exceeded_time_to_live_is_counted_on_datagram_sockets", &prepare, "", || {
            assert!(!gets_raw_socket());
            check_expired();
        });
    }

    #[test]
    fn exceeded_time_to_live_is_counted_on_raw_sockets() {
        in_namespace("exceeded_time_to_live_is_counted_on_raw_sockets", ROUTER, "", || {
            assert!(gets_raw_socket());
            check_expired();
        });
    }
}
