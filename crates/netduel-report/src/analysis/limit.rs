//! What limited a trial, from what both ends recorded of it: the cause, and the numbers that led to it. Where they do not
//! lead to one cause the answer is "unknown", with the numbers.
//!
//! The order of the questions matters: a rate that was asked for is no limit of the path; a thread that had no time left
//! explains a closed window or an empty send buffer; these explain a path that is not full.
use netduel_model::observation::Observation;
use netduel_model::sample::TcpInfo;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::{Direction, Role, Traffic, Workload};
use serde::Serialize;

use super::{datagrams, figures};

/// From this share of its time on, a thread had none left for more traffic.
const THREAD_FULL: f64 = 0.85;
/// From this share on, a core had no time left.
const CORE_FULL: f64 = 0.90;
/// From this share of the busy time on, a window or a buffer is what held the sender up.
const HELD_UP: f64 = 0.30;
/// From this share of the rate that was asked for on, it was reached.
const RATE_REACHED: f64 = 0.98;
/// From this share of segments sent again on, loss is what kept the congestion window small.
const LOSSY: f64 = 0.001;
/// What a paced stream sends at a time at most, bytes.
const PACED_BYTES: f64 = 65_536.0;

/// What held the traffic back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The rate that was asked for was reached.
    AskedRate,
    /// The sending thread had no CPU time left.
    SenderCore,
    /// The receiving thread had no CPU time left.
    ReceiverCore,
    /// The kernel's packet processing had no time left on one core.
    SoftirqCore,
    /// All cores of a machine were busy.
    AllCores,
    /// The receiver's window was full.
    ReceiveWindow,
    /// The send buffer was too small for what was under way.
    SendBuffer,
    /// Segments were lost, and TCP sent less.
    Loss,
    /// The receiver's program did not take datagrams as fast as they came.
    ReceiverSocket,
    /// Each request waited for the response before it: a closed loop is as fast as its round trip.
    RoundTrip,
    /// The evidence points to no single cause.
    Unknown,
}

impl Cause {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::AskedRate => "the rate that was asked for",
            Self::SenderCore => "the sender's core",
            Self::ReceiverCore => "the receiver's core",
            Self::SoftirqCore => "one core's packet processing (softirq)",
            Self::AllCores => "all cores of one machine",
            Self::ReceiveWindow => "the receive window",
            Self::SendBuffer => "the send buffer",
            Self::Loss => "loss: TCP held back",
            Self::ReceiverSocket => "the receiver's program: its socket overflowed",
            Self::RoundTrip => "the round trip: a closed loop waits for each response",
            Self::Unknown => "unknown",
        }
    }
}

/// A cause with what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// What held the traffic back.
    pub cause: Cause,
    /// The numbers, each in words; the one that decided is first.
    pub evidence: Vec<String>,
}

/// What limited a trial; absent when an end is missing. `shared_machine`: both hosts are one machine, with the same cores.
pub fn limit_of(workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<Limit> {
    let (client, server) = (trial.client.as_ref()?, trial.server.as_ref()?);
    let evidence = Evidence::gather(workload, trial, client, server, shared_machine);
    let mut found = evidence.findings();
    let cause = found.first().map_or(Cause::Unknown, |(cause, _)| *cause);
    let mut words: Vec<String> = found.drain(..).map(|(_, words)| words).collect();
    if cause == Cause::Unknown {
        words = evidence.background();
    }
    Some(Limit { cause, evidence: words })
}

/// How full a core was.
#[derive(Debug, Clone, Copy)]
struct Core {
    number: u16,
    busy: f64,
    softirq: f64,
}

/// One end in shares.
struct End {
    name: &'static str,
    /// Share of a thread's time that the program used, per thread.
    threads: f64,
    busiest: Option<Core>,
    all: f64,
    stolen: f64,
}

impl End {
    fn of(end: &TrialEnd, threads: usize, name: &'static str) -> Self {
        let observation = &end.observation;
        let wall = observation.wall_ns.max(1) as f64;
        let (user, system) = end.report.process_cpu_ns;
        Self {
            name,
            threads: (user + system) as f64 / wall / threads.max(1) as f64,
            busiest: busiest(observation, wall),
            all: share_of_all(observation, wall, netduel_model::observation::CoreTime::busy_ns),
            stolen: share_of_all(observation, wall, |core| core.steal_ns),
        }
    }
}

fn busiest(observation: &Observation, wall: f64) -> Option<Core> {
    let shares = observation.cores.iter().map(|core| Core {
        number: core.core,
        busy: core.busy_ns() as f64 / wall,
        softirq: (core.softirq_ns + core.irq_ns) as f64 / wall,
    });
    shares.max_by(|a, b| a.busy.total_cmp(&b.busy))
}

fn share_of_all(
    observation: &Observation,
    wall: f64,
    part: impl Fn(&netduel_model::observation::CoreTime) -> u64,
) -> f64 {
    let sum: u64 = observation.cores.iter().map(part).sum();
    sum as f64 / wall / observation.cores.len().max(1) as f64
}

/// All that the findings are made of.
struct Evidence {
    sender: End,
    receiver: End,
    shared_machine: bool,
    /// Payload rate asked for and reached, bit/s.
    rate: Option<(f64, f64)>,
    /// The same of requests a second.
    requests: Option<(f64, f64)>,
    /// Shares of the busy time: receive window, send buffer.
    held_up: Option<(f64, f64)>,
    /// Segments sent again, and share of all.
    resent: Option<(u64, f64)>,
    socket_drops: u64,
    /// Round trips under way in a closed loop.
    outstanding: Option<u32>,
}

impl Evidence {
    fn gather(
        workload: &Workload,
        trial: &Trial,
        client: &TrialEnd,
        server: &TrialEnd,
        shared_machine: bool,
    ) -> Self {
        let sends = client.report.sent.is_some();
        let (sender, receiver) = if sends { (client, server) } else { (server, client) };
        let threads = |end: &TrialEnd| end.report.streams.len().min(end.observation.cores.len().max(1));
        let ways = datagrams::of_trial(workload, trial, shared_machine);
        Self {
            sender: End::of(sender, threads(sender), name_of(sender.report.role)),
            receiver: End::of(receiver, threads(receiver), name_of(receiver.report.role)),
            shared_machine,
            rate: asked_rate(workload, trial),
            requests: asked_requests(workload, trial),
            held_up: held_up(sender),
            resent: resent(sender),
            socket_drops: ways.iter().filter_map(|way| way.lost).map(|lost| lost.at_socket).sum(),
            outstanding: match &workload.traffic {
                Traffic::TcpRr(settings) | Traffic::UdpRr(settings) if settings.rate.is_none() => {
                    Some(settings.outstanding)
                }
                Traffic::TcpCrr(settings) if settings.rate.is_none() => Some(settings.outstanding),
                _ => None,
            },
        }
    }

    /// What was found, the cause first.
    fn findings(&self) -> Vec<(Cause, String)> {
        let mut found = Vec::new();
        if let Some((asked, reached)) =
            self.rate.filter(|(asked, reached)| reached >= &(asked * RATE_REACHED))
        {
            let words =
                format!("{} of the {} that were asked for", human_bit_rate(reached), human_bit_rate(asked));
            found.push((Cause::AskedRate, words));
        }
        if let Some((asked, reached)) =
            self.requests.filter(|(asked, reached)| reached >= &(asked * RATE_REACHED))
        {
            let words =
                format!("{} of the {} that were asked for", human_si(reached, "/s"), human_si(asked, "/s"));
            found.push((Cause::AskedRate, words));
        }
        if self.socket_drops > 0 {
            let words = format!("{} datagrams dropped at the receiver's socket", self.socket_drops);
            found.push((Cause::ReceiverSocket, words));
        }
        if let Some(outstanding) = self.outstanding {
            let plural = if outstanding == 1 { "request" } else { "requests" };
            found.push((Cause::RoundTrip, format!("{outstanding} {plural} under way at a time")));
        }
        found.extend(self.cores());
        let (window, buffer) = self.held_up.unwrap_or_default();
        if window >= HELD_UP {
            found
                .push((Cause::ReceiveWindow, format!("the window was full {} of the time", percent(window))));
        }
        if let Some((count, share)) = self.resent.filter(|(_, share)| *share >= LOSSY) {
            let words = format!("{} segments sent again, {} of all", count, percent(share));
            found.push((Cause::Loss, words));
        }
        if buffer >= HELD_UP {
            found.push((
                Cause::SendBuffer,
                format!("the send buffer was the limit {} of the time", percent(buffer)),
            ));
        }
        found
    }

    /// Threads and cores without time left. A sender that is full decides before a receiver that is: the receiver may be
    /// full because it asks again and again.
    fn cores(&self) -> Vec<(Cause, String)> {
        let mut found = Vec::new();
        for (end, cause) in [(&self.sender, Cause::SenderCore), (&self.receiver, Cause::ReceiverCore)] {
            if end.threads >= THREAD_FULL {
                let words = format!("the {}'s threads used {} of their time", end.name, percent(end.threads));
                found.push((cause, words));
            }
        }
        for (end, cause) in [(&self.sender, Cause::SenderCore), (&self.receiver, Cause::ReceiverCore)] {
            let Some(core) = end.busiest.filter(|core| core.busy >= CORE_FULL) else { continue };
            let whose =
                if self.shared_machine { "this machine".to_owned() } else { format!("the {}", end.name) };
            let words = format!(
                "core {} of {whose} was {} busy, {} of it in softirq",
                core.number,
                percent(core.busy),
                percent(core.softirq / core.busy)
            );
            let cause = if core.softirq >= core.busy / 2.0 { Cause::SoftirqCore } else { cause };
            // On one machine a full core belongs to both ends; only its softirq share says whose work it was.
            if !self.shared_machine || cause == Cause::SoftirqCore || end.all >= CORE_FULL {
                let all = self.shared_machine && cause != Cause::SoftirqCore;
                found.push((if all { Cause::AllCores } else { cause }, words));
            }
            if self.shared_machine {
                break;
            }
        }
        found
    }

    /// The numbers that led to no cause.
    fn background(&self) -> Vec<String> {
        let mut words = Vec::new();
        let ends = [&self.sender, &self.receiver];
        for end in ends.into_iter().take(if self.shared_machine { 1 } else { 2 }) {
            if let Some(core) = end.busiest {
                let whose = if self.shared_machine { "this machine" } else { end.name };
                words.push(format!("busiest core of {whose} {}", percent(core.busy)));
            }
            if end.stolen >= 0.01 {
                words.push(format!(
                    "{} of the {}'s CPU time stolen by its hypervisor",
                    percent(end.stolen),
                    end.name
                ));
            }
        }
        if let Some((window, buffer)) = self.held_up {
            words.push(format!(
                "window full {}, send buffer full {} of the time",
                percent(window),
                percent(buffer)
            ));
        }
        if let Some((count, _)) = self.resent {
            words.push(format!("{count} segments sent again"));
        }
        words
    }
}

fn name_of(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

/// The rate that the workload asks for and what arrived of it in the steady window. So low a rate that less than one message
/// was due is reached by sending nothing.
fn asked_rate(workload: &Workload, trial: &Trial) -> Option<(f64, f64)> {
    let (rate, message) = match &workload.traffic {
        Traffic::UdpStream { rate, size, .. } => ((*rate)?, size.0 as f64),
        // A stream that is paced sends some bytes at a time.
        Traffic::TcpStream { rate, .. } => ((*rate)?, PACED_BYTES),
        _ => return None,
    };
    let asked = rate.0 as f64 * ways(&workload.traffic);
    let due = asked / 8.0 * workload.timing.duration.0 as f64 / 1e9;
    let reached = figures::value_of(netduel_model::metric::Metric::Throughput, workload, trial, false);
    Some((asked, reached.unwrap_or(if due < message { asked } else { 0.0 })))
}

/// The requests a second that the workload asks for, and the round trips a second that began in the steady window.
fn asked_requests(workload: &Workload, trial: &Trial) -> Option<(f64, f64)> {
    let asked = match &workload.traffic {
        Traffic::LoadedLatency(_) => return None,
        traffic => traffic.request_rate()?.0 as f64,
    };
    let reached = figures::value_of(netduel_model::metric::Metric::RoundTripRate, workload, trial, false)?;
    Some((asked, reached))
}

/// What was asked for and not reached, in words; absent when nothing was asked for, or it was reached.
pub fn missed_rate(workload: &Workload, trial: &Trial) -> Option<String> {
    let missed = |(asked, reached): &(f64, f64)| *reached < asked * RATE_REACHED;
    let told = |asked: String, reached: String| format!("{reached} of the {asked} that were asked for");
    let bits = asked_rate(workload, trial).filter(missed);
    let requests = asked_requests(workload, trial).filter(missed);
    bits.map(|(asked, reached)| told(human_bit_rate(asked), human_bit_rate(reached)))
        .or_else(|| requests.map(|(asked, reached)| told(human_si(asked, "/s"), human_si(reached, "/s"))))
}

/// In how many directions traffic goes at once.
fn ways(traffic: &Traffic) -> f64 {
    match traffic {
        Traffic::TcpStream { direction: Direction::Both, .. }
        | Traffic::UdpStream { direction: Direction::Both, .. } => 2.0,
        _ => 1.0,
    }
}

/// Sums over a sender's connections; absent when the kernel did not say.
fn over_connections(end: &TrialEnd, field: impl Fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    let connections = end.report.streams.iter().filter_map(|stream| stream.tcp.as_ref());
    connections.map(field).reduce(|a, b| Some(a? + b?)).flatten()
}

fn held_up(sender: &TrialEnd) -> Option<(f64, f64)> {
    let busy = over_connections(sender, |tcp| tcp.busy_us).filter(|busy| *busy > 0)? as f64;
    let window = over_connections(sender, |tcp| tcp.rwnd_limited_us)? as f64;
    let buffer = over_connections(sender, |tcp| tcp.sndbuf_limited_us)? as f64;
    Some((window / busy, buffer / busy))
}

fn resent(sender: &TrialEnd) -> Option<(u64, f64)> {
    let resent = over_connections(sender, |tcp| tcp.retransmits.map(u64::from))?;
    let spurious = over_connections(sender, |tcp| Some(tcp.dsack_dups.map_or(0, u64::from)))?;
    let segments = over_connections(sender, |tcp| tcp.segs_out.map(u64::from)).filter(|sent| *sent > 0)?;
    let lost = resent.saturating_sub(spurious);
    Some((resent, lost as f64 / segments as f64))
}

fn percent(share: f64) -> String {
    crate::words::percent(share)
}
