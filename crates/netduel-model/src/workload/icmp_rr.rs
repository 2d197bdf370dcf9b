//! `icmp-rr`: echo requests, which the kernel of the server's host answers.
use super::by_hand::{ByHand, Ping};
use super::facts::{Descriptors, Facts, Sockets, Wire};
use super::given::{Given, Places};
use super::round_trip::{self, REQUEST, RoundTrip};
pub(super) use super::round_trip::{number, resolve, words};
use super::setting::{self, Range, Setting};
use super::terms::{UdpOffload, Wait};
use super::timing::Timing;
use crate::plan::problem::Problems;

/// Requests per second above which the interval is below 2 ms, the shortest that ping(8) allows users other than root.
const PING_RATE_MOST: u64 = 500;

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    setting::DSCP,
    Setting::within("size", Range::bytes(setting::MESSAGE_LEAST, setting::DATAGRAM_MOST))
        .described_by(|| {
            format!("bytes behind the ICMP header of a request and of its response, default {REQUEST}")
        })
        .advise("an echo request begins with the identity of its trial and its number"),
    setting::OUTSTANDING.described(setting::ONE_IN_FLIGHT),
    Setting::free("wait").described("the client, default `block`; not `busy-poll`"),
    setting::REQUEST_RATE.described(setting::EXCLUDES_OUTSTANDING),
];

pub(super) fn facts(settings: &RoundTrip) -> Facts<'_> {
    Facts {
        // The TCP connection carries no payload: its end tells the server that the client has ended.
        sockets: Sockets { tcp: 1, echo: 1, counters: 1, bulk: 1, ..Sockets::default() },
        // The reservation of the identifier of a raw socket.
        descriptors: Descriptors { fixed: 1, shared: (0, 0) },
        // The kernel that answers counts none for the server's end.
        payload: None,
        wire: Wire::Datagrams { size: settings.size, offload: UdpOffload::None },
        possible_metrics: round_trip::DATAGRAM_METRICS,
        ..round_trip::facts(settings)
    }
}

/// Notes an open and a closed loop at once, and a way to wait that it does not have.
pub(super) fn check(
    settings: &RoundTrip,
    given: &Given<'_>,
    places: &Places<'_>,
    problems: &mut Problems<'_>,
) {
    round_trip::check(settings, given, places, problems);
    if settings.wait == Wait::BusyPoll {
        let allowed = "allowed: `block` or `spin`; the kernel does not poll a NIC for ICMP sockets";
        problems.add(&places.at("wait"), "is \"busy-poll\", which icmp-rr does not have", allowed);
    }
}

/// What repeats it by hand. A closed loop is the adaptive mode of ping(8), which is slower for users other than root.
pub(super) fn by_hand(settings: &RoundTrip, timing: &Timing) -> ByHand {
    if settings.rate.is_none() && settings.outstanding > 1 {
        return ByHand::Nothing("ping keeps one request in flight");
    }
    let interval = |per_second: u64| format!("-i {}", 1.0 / per_second.max(1) as f64);
    let options = vec![
        settings.rate.map_or_else(|| "-A".to_owned(), |rate| interval(rate.0)),
        // iputils reads whole seconds.
        format!("-w {}", timing.duration.0.div_ceil(1_000_000_000)),
        format!("-s {}", settings.size.0),
    ];
    ByHand::Ping(Ping { options, needs_root: settings.rate.is_none_or(|rate| rate.0 > PING_RATE_MOST) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;
    use crate::units::Nanos;

    /// A plan of one workload, whose settings follow.
    const PLAN: &str = "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"local\"\n\
        addresses = [\"127.0.0.1\"]\n[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n[design]\naa = true\n\
        [[workloads]]\nname = \"w\"\ntype = \"icmp-rr\"\n";

    /// The one problem of a plan with these settings.
    fn problem(settings: &str) -> String {
        let text = format!("{PLAN}{settings}\n");
        parse(&text, "p").map_or_else(|errors| errors.to_string(), |_| String::new())
    }

    #[test]
    fn deadline_of_ping_is_in_whole_seconds() {
        let plan = parse(PLAN, "p").unwrap();
        let workload = &plan.arms[0].workloads[0];
        for (duration, deadline) in
            [(1, "-w 1"), (500_000_000, "-w 1"), (4_000_000_000, "-w 4"), (4_000_000_001, "-w 5")]
        {
            let timing = Timing { duration: Nanos(duration), ..workload.timing };
            let ByHand::Ping(ping) = workload.traffic.by_hand(&timing) else { panic!("no ping") };
            assert!(ping.options.iter().any(|option| option == deadline), "{:?}", ping.options);
        }
    }

    #[test]
    fn an_open_and_a_closed_loop_and_busy_polling_are_refused() {
        assert_eq!(problem("request_rate = \"100 /s\"\nwait = \"spin\"\nsize = \"16 B\""), "");
        assert!(problem("request_rate = \"100 /s\"\noutstanding = 2").contains("makes a closed loop"));
        assert!(problem("wait = \"busy-poll\"").contains("which icmp-rr does not have"));
        assert!(problem("timestamps = true").contains("is not a setting of icmp-rr"));
    }
}
