//! All numbers that causes are made of, and the order in which causes are looked for.
use netduel_model::sample::TcpInfo;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::units::{human_nanos, human_si};
use netduel_model::workload::{Role, Traffic, Workload};

use super::super::expected::Expected;
use super::super::{datagrams, figures, series};
use super::asked::{RATE_REACHED, asked_rate, asked_requests};
use super::{Cause, percent};

/// From this share of the busy time on, a window or a buffer is what held the sender up.
pub(super) const HELD_UP: f64 = 0.30;

/// A cause that was found, and the number that led to it.
pub(super) type Finding = (Cause, String);

/// What a sender's connections say of themselves, all together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connections {
    /// Time with data under way, over the time that they could have had some.
    pub busy: f64,
    /// Of the busy time, shares: receive window, send buffer.
    pub window: f64,
    pub buffer: f64,
    /// Segments sent again, and those of them that the receiver did not have, as a share of all.
    pub resent: u64,
    pub lost: f64,
    /// Bytes sent again.
    pub resent_bytes: f64,
    /// Smoothed round trip and smallest, microseconds, means.
    pub rtt_us: Option<f64>,
    pub min_rtt_us: Option<f64>,
    /// Congestion window and send buffer at the end, bytes, medians over connections.
    pub congestion_window: Option<f64>,
    pub send_buffer: Option<f64>,
}

/// All that findings are made of.
pub(super) struct Evidence<'a> {
    pub sender: &'a TrialEnd,
    pub receiver: &'a TrialEnd,
    pub workload: &'a Workload,
    pub shared_machine: bool,
    pub expected: Option<&'a Expected>,
    /// Payload rate in the steady window, bit/s.
    pub rate_bps: Option<f64>,
    /// Its course.
    pub course: Vec<f64>,
    pub tcp: Option<Connections>,
    /// Datagrams sent, and what became of those that were lost.
    pub sent: u64,
    pub lost: datagrams::Lost,
    asked: Option<(f64, f64)>,
    asked_requests: Option<(f64, f64)>,
    /// Round trips under way in a closed loop.
    outstanding: Option<u32>,
}

impl<'a> Evidence<'a> {
    pub fn gather(
        workload: &'a Workload,
        trial: &'a Trial,
        [client, server]: [&'a TrialEnd; 2],
        shared_machine: bool,
        expected: Option<&'a Expected>,
    ) -> Self {
        let (sender, receiver) =
            if client.report.sent.is_some() { (client, server) } else { (server, client) };
        let ways = datagrams::of_trial(workload, trial, shared_machine);
        let lost = ways.iter().filter_map(|way| way.lost).fold(datagrams::Lost::default(), |sum, lost| {
            datagrams::Lost {
                all: sum.all + lost.all,
                at_socket: sum.at_socket + lost.at_socket,
                at_interface: sum.at_interface + lost.at_interface,
            }
        });
        let rate = netduel_model::metric::Metric::Throughput;
        Self {
            sender,
            receiver,
            workload,
            shared_machine,
            expected,
            rate_bps: figures::value_of(rate, workload, trial, shared_machine),
            course: series::steady(workload, trial),
            tcp: connections(sender, workload),
            sent: ways.iter().map(|way| way.sent).sum(),
            lost,
            asked: asked_rate(workload, trial),
            asked_requests: asked_requests(workload, trial),
            outstanding: outstanding(&workload.traffic),
        }
    }

    /// What was found, the cause first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = self.reached();
        found.extend(self.not_taken());
        // testpmd has no socket, but counts what it did not take in time.
        let at_receiver = self.lost.at_socket.max(self.ring_drops());
        let at_socket = (at_receiver > 0).then(|| {
            self.ring_full().unwrap_or_else(|| {
                let words =
                    format!("{} {} dropped at the receiver's socket", self.lost.at_socket, self.noun());
                (Cause::ReceiverSocket, words)
            })
        });
        // Where more are lost before the socket, that is what comes first.
        let (socket_first, socket_later) = if at_receiver * 2 >= self.lost.all && self.is_worth(at_receiver) {
            (at_socket, None)
        } else {
            (None, at_socket)
        };
        // Few packets that were lost there limit nothing; the table of both ends tells of them.
        let socket_later = socket_later.filter(|_| self.is_worth(at_receiver));
        found.extend(socket_first);
        if let Some(outstanding) = self.outstanding {
            let plural = if outstanding == 1 { "request" } else { "requests" };
            found.push((Cause::RoundTrip, format!("{outstanding} outstanding {plural}")));
        }
        found.extend(self.single_queue());
        found.extend(self.told_cap());
        // Datagrams that were lost on their way say that the sender had time for more than the path took.
        let on_the_way = self.datagrams_lost();
        if !on_the_way.is_empty() {
            found.extend(on_the_way);
            found.extend(socket_later);
            return found;
        }
        found.extend(socket_later);
        let window = self.window();
        // A small window that was never open explains the rate, however busy the cores were.
        let (window_first, window) = if self.is_shut() { (window, Vec::new()) } else { (Vec::new(), window) };
        found.extend(window_first);
        found.extend(self.back_pressure());
        found.extend(self.generator());
        found.extend(self.threads());
        found.extend(self.full_core());
        found.extend(self.queue_held_back());
        // A cap fills a queue, and a queue that grows fills the window in the end: then the cap is the cause.
        let shape = self.shape();
        found.extend(shape);
        found.extend(window);
        found.extend(self.segments_lost());
        found.extend(self.buffer_and_program());
        found.extend(self.all_cores());
        found
    }

    fn reached(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let is_reached = |(asked, reached): &(f64, f64)| *reached >= asked * RATE_REACHED;
        if let Some((asked, reached)) = self.asked.filter(is_reached) {
            let words = format!("{} of the configured {}", self.human_rate(reached), self.human_rate(asked));
            found.push((Cause::AskedRate, words));
        }
        if let Some((asked, reached)) = self.asked_requests.filter(is_reached) {
            let words = format!("{} of the configured {}", human_si(reached, "/s"), human_si(asked, "/s"));
            found.push((Cause::AskedRate, words));
        }
        found
    }

    /// The numbers that led to no cause.
    pub fn background(&self) -> Vec<String> {
        let mut words = self.core_words();
        if let Some(tcp) = &self.tcp {
            words.push(format!(
                "window full {}, send buffer full {} of the time",
                percent(tcp.window),
                percent(tcp.buffer)
            ));
            if let (Some(rtt), Some(least)) = (tcp.rtt_us, tcp.min_rtt_us) {
                words.push(format!(
                    "round trip {}, min {}",
                    human_nanos(rtt * 1e3),
                    human_nanos(least * 1e3)
                ));
            }
            words.push(format!("{} retransmits", tcp.resent));
        }
        words
    }

    /// The two ends with their names, the sender first; a shared machine once.
    pub fn ends(&self) -> Vec<(&'a TrialEnd, &'static str)> {
        let named = |end: &'a TrialEnd| (end, name_of(end.report.role));
        if self.shared_machine {
            vec![named(self.sender)]
        } else {
            vec![named(self.sender), named(self.receiver)]
        }
    }
}

fn outstanding(traffic: &Traffic) -> Option<u32> {
    let requests = traffic.facts().requests?;
    requests.rate.is_none().then_some(requests.outstanding)
}

pub(super) fn name_of(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

/// Sums over connections; absent when the kernel did not say.
fn sum(connections: &[&TcpInfo], field: impl Fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
    let sum = connections.iter().map(|tcp| field(tcp)).reduce(|a, b| Some(a? + b?)).flatten()?;
    Some(sum as f64)
}

fn connections(sender: &TrialEnd, workload: &Workload) -> Option<Connections> {
    let reports = || sender.report.streams.iter().filter(|stream| stream.tcp.is_some());
    let all: Vec<&TcpInfo> = reports().filter_map(|stream| stream.tcp.as_ref()).collect();
    let count: u32 = reports().map(|stream| stream.members).sum();
    let busy = sum(&all, |tcp| tcp.busy_us).filter(|busy| *busy > 0.0)?;
    let of_busy = |field: fn(&TcpInfo) -> Option<u64>| sum(&all, field).map_or(0.0, |time| time / busy);
    let resent = sum(&all, |tcp| tcp.retransmits.map(u64::from)).unwrap_or(0.0);
    let spurious = sum(&all, |tcp| Some(tcp.dsack_dups.map_or(0, u64::from))).unwrap_or(0.0);
    let segments = sum(&all, |tcp| tcp.segs_out.map(u64::from)).filter(|sent| *sent > 0.0);
    let mean = |field: fn(&TcpInfo) -> Option<u32>| {
        let told: Vec<f64> = all.iter().filter_map(|tcp| field(tcp)).map(f64::from).collect();
        netduel_stats::summary::median(&told)
    };
    let mss = mean(|tcp| tcp.snd_mss).unwrap_or(0.0);
    let could_ns = workload.timing.duration.0.max(1) as f64 * f64::from(count.max(1));
    Some(Connections {
        busy: busy * 1e3 / could_ns,
        window: of_busy(|tcp| tcp.rwnd_limited_us),
        buffer: of_busy(|tcp| tcp.sndbuf_limited_us),
        resent: resent as u64,
        lost: segments.map_or(0.0, |segments| (resent - spurious).max(0.0) / segments),
        resent_bytes: resent * mss,
        rtt_us: mean(|tcp| tcp.rtt_us),
        min_rtt_us: mean(|tcp| tcp.min_rtt_us),
        congestion_window: mean(|tcp| tcp.snd_cwnd).map(|segments| segments * mss),
        send_buffer: mean(|tcp| tcp.sndbuf.and_then(|bytes| u32::try_from(bytes).ok())),
    })
}
