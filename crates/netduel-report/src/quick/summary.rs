//! The summary of a quick test: transfer of each stream, values of the steady window, CPU cost, packets, and the bottleneck.
use std::fmt::Write as _;

use netduel_model::metric::Metric;

use netduel_model::trial::{Trial, TrialEnd, Validity};
use netduel_model::units::{Bytes, human_nanos, human_si, plural, three_digits};
use netduel_model::workload::{Direction, Role, Wire, WorkUnit, Workload};
use netduel_stats::histogram::Histogram;

use crate::analysis::{self, DatagramDirection, Expected, Limit, Lost, value_of};
use crate::document::block::{Block, FactGroup};
use crate::document::stamps;
use crate::total::Total;

use super::{jitter, packets, streams, whole_test};
use crate::{terminal, words};

/// Retransmission timeout of a SYN, nanoseconds (RFC 6298, section 2.1).
const SYN_RETRY_NS: u64 = 1_000_000_000;

/// Input of a summary.
#[derive(Debug, Clone, Copy)]
pub struct SummaryInput<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The records of both ends.
    pub trial: &'a Trial,
    /// Whether both hosts are one machine.
    pub shared_machine: bool,
    /// The known rate limit of the sender.
    pub expected: Option<&'a Expected>,
    /// MTU of the interface with the most bytes at client and server, bytes; absent where it is not known.
    pub mtus: [Option<u32>; 2],
}

/// The summary as text of `width` columns. A trial that failed has none.
pub fn summary(input: SummaryInput<'_>, width: usize) -> String {
    terminal::blocks(&blocks(input), width, false)
}

fn blocks(input: SummaryInput<'_>) -> Vec<Block> {
    let (Some(client), Some(server)) = (&input.trial.client, &input.trial.server) else {
        return Vec::new();
    };
    let mut blocks = search(input);
    if input.workload.traffic.facts().is_stream() && blocks.is_empty() {
        blocks.push(Block::Heading(streams::title(input.trial)));
        blocks.push(Block::Table(streams::table(input.workload, client, server)));
    }
    blocks.push(facts(rows(input, client, server)));
    blocks.extend(analysis::stamps_of(input.trial).as_ref().map(stamps::of_trial).unwrap_or_default());
    blocks
}

fn facts(rows: Vec<(impl Into<String>, String)>) -> Block {
    let rows = rows.into_iter().map(|(title, text)| (title.into(), text)).collect();
    Block::Facts(vec![FactGroup { rows, ..FactGroup::default() }])
}

/// The results of a search; the rest of the summary is about one of its steps. Empty for other tests.
fn search(input: SummaryInput<'_>) -> Vec<Block> {
    let facts = input.workload.traffic.facts();
    let Some((search, report)) = facts.search().zip(input.trial.search.as_ref()) else {
        return Vec::new();
    };
    let mut blocks = vec![self::facts(words::search::of_trial(search, report))];
    if let Some(step) = report.stored_step.and_then(|index| report.steps.get(index as usize)) {
        blocks.push(Block::Heading(format!("Trial at {}", words::search::load(step))));
    }
    blocks
}

fn rows(input: SummaryInput<'_>, client: &TrialEnd, server: &TrialEnd) -> Vec<(&'static str, String)> {
    let SummaryInput { workload, trial, shared_machine, expected, mtus } = input;
    let mut rows = headlines(input);
    if let Some(words) = tail(workload, trial) {
        rows.push(("latency", words));
    }
    rows.extend(requests(workload, trial).map(|words| ("requests", words)));
    rows.extend(parts(trial));
    rows.extend(congestion(workload, client).map(|name| ("congestion", name)));
    rows.extend(datagrams(input));
    rows.extend(tcp(workload, client, server).into_iter().map(|words| ("TCP", words)));
    if workload.traffic.facts().wire == Wire::Segments {
        rows.extend(connections(client).map(|words| ("connections", words)));
    }
    for end in [client, server] {
        rows.extend(fairness(workload, end).map(|words| ("fairness", words)));
    }
    for (name, end) in [("client", client), ("server", server)] {
        rows.extend(
            end.report.zero_copy.map(|report| ("zero copy", format!("{name}: {}", words::zero_copy(report)))),
        );
    }
    if let Some(words) = cpu(input, client, server) {
        rows.push(("CPU", words));
    }
    for (role, share) in analysis::busy_hosts(workload, trial, shared_machine) {
        let whose = if shared_machine { "one machine's".to_owned() } else { format!("the {role}'s") };
        let words = format!(
            "CPU contention from other processes: {} of {whose} CPU time; CPU costs are overstated",
            words::percent(share)
        );
        rows.push(("contention", words));
    }
    for (name, end) in [("client", client), ("server", server)] {
        let placement = end.observation.placement.as_ref().map(words::placement);
        rows.extend(placement.map(|cores| ("cores", format!("{name}: {}", words::plain(&cores)))));
    }
    let packets = packets::words([("client", client, mtus[0]), ("server", server, mtus[1])]);
    rows.extend(packets.into_iter().map(|words| ("packets", words)));
    for (name, end) in [("client", client), ("server", server)] {
        for error in &end.report.errors {
            rows.push(("errors", format!("{name}: {} {} times: {}", error.call, error.count, error.error)));
        }
    }
    let others = server.observation.concurrent_tests;
    if others > 0 {
        let tests = if others == 1 { "1 other test".to_owned() } else { format!("{others} other tests") };
        let words =
            format!("up to {tests} ran on the server at the same time and shared the path and its cores");
        rows.push(("other tests", words));
    }
    if let Validity::WrongPath { reason } = &trial.validity {
        rows.push(("path changed", format!("{}; the values cover more than one path", words::plain(reason))));
    }
    if let Validity::PathUnproven { reason } = &trial.validity {
        rows.push(("path", words::plain(reason)));
    }
    let rate = value_of(Metric::Throughput, workload, trial, shared_machine);
    rows.extend(expected.zip(rate).map(|(expected, rate)| ("limit share", expected.share_words(rate))));
    if let Some(Limit { cause, evidence }) = analysis::limit_of(workload, trial, shared_machine, expected) {
        let evidence =
            if evidence.is_empty() { String::new() } else { format!(" ({})", evidence.join("; ")) };
        rows.push(("bottleneck", format!("{}{evidence}", cause.words())));
    }
    rows
}

/// The figures of the steady window.
fn headlines(input: SummaryInput<'_>) -> Vec<(&'static str, String)> {
    let SummaryInput { workload, trial, shared_machine, .. } = input;
    let figure = |metric: Metric| {
        let bound = analysis::bound_of(metric, workload, trial, shared_machine);
        value_of(metric, workload, trial, shared_machine)
            .map(|value| words::metric_value_or_bound(metric, workload.traffic.facts().unit, value, bound))
    };
    let mut rows = Vec::new();
    let facts = workload.traffic.facts();
    // Packets are counted, their bytes are of little interest.
    let (first, others): (Vec<&Metric>, Vec<&Metric>) = facts
        .possible_metrics
        .iter()
        .partition(|metric| facts.is_of_packets() && **metric == Metric::DatagramRate);
    for metric in first.into_iter().chain(others) {
        if let Some(words) =
            headline(*metric, input).and_then(|words| Some(format!("{} {words}", figure(*metric)?)))
        {
            rows.push((label(*metric, input), words));
            rows.extend(by_direction(*metric, input));
        }
    }
    if figure(Metric::Throughput).is_none() {
        rows.extend(no_throughput(input).map(|words| ("throughput", words)));
    }
    rows.extend(jitter::reason(input).map(|words| ("jitter", words)));
    rows.extend(whole_test::deviations(workload, trial).into_iter().map(|words| ("warning", words)));
    rows.extend(analysis::missed_rate(workload, trial).map(|words| ("rate missed", words)));
    rows.extend(analysis::missed_schedule(workload, trial).map(|words| ("schedule missed", words)));
    rows
}

/// Why a test of bulk data has no throughput.
fn no_throughput(input: SummaryInput<'_>) -> Option<String> {
    let facts = input.workload.traffic.facts();
    let over = analysis::volume_over_ns(input.workload, input.trial)
        .filter(|over| *over <= input.workload.timing.warmup.0);
    if let Some(over) = over {
        let over = human_nanos(over as f64);
        return Some(format!(
            "none: the test ended after {over}, within the warm-up; the table above covers the whole test"
        ));
    }
    let is_of_bytes = facts.possible_metrics.contains(&Metric::Throughput) && !facts.is_of_packets();
    is_of_bytes.then(|| {
        "none: no data arrived in the steady window; raise the rate or the duration of the test".to_owned()
    })
}

/// The steady window, and what it excludes: `in the steady 8.00 s (2.00 s warm-up excluded)`.
fn window(input: SummaryInput<'_>) -> String {
    let timing = &input.workload.timing;
    let steady_end = timing.duration.0.saturating_sub(timing.cooldown.0);
    let by_volume = analysis::volume_over_ns(input.workload, input.trial).filter(|over| *over < steady_end);
    let length = by_volume.unwrap_or(steady_end).saturating_sub(timing.warmup.0);
    let cooldown = if by_volume.is_some() { 0 } else { timing.cooldown.0 };
    let excluded: Vec<String> = [(timing.warmup.0, "warm-up"), (cooldown, "cool-down")]
        .into_iter()
        .filter(|(ns, _)| *ns > 0)
        .map(|(ns, what)| format!("{} {what}", human_nanos(ns as f64)))
        .collect();
    let mut notes = vec![match excluded.as_slice() {
        [] => "no warm-up".to_owned(),
        some => format!("{} excluded", some.join(", ")),
    }];
    notes.extend(by_volume.map(|_| "the volume ended the test".to_owned()));
    format!("in the steady {} ({})", human_nanos(length as f64), notes.join("; "))
}

/// The metrics that have a row, with their explanation.
fn headline(metric: Metric, input: SummaryInput<'_>) -> Option<String> {
    let window = window(input);
    let ways = match input.workload.traffic.facts().bulk {
        Some(Direction::Both) => ", both directions together,",
        _ => "",
    };
    match metric {
        Metric::Throughput => Some(format!("of payload received{ways} {window}")),
        Metric::DatagramRate if input.workload.traffic.facts().is_of_packets() => {
            Some(format!("received{ways} {window}"))
        }
        Metric::DatagramRate => Some(format!("of datagrams received{ways} {window}")),
        Metric::RoundTripRate => Some(window),
        Metric::Jitter => {
            jitter::burst(input).is_none().then(|| "at the end of the test (RFC 3550)".to_owned())
        }
        _ => None,
    }
}

fn human(metric: Metric, input: SummaryInput<'_>, value: f64) -> String {
    words::metric_value(metric, unit(input), value)
}

/// The rate of each direction, when both have data.
fn by_direction(metric: Metric, input: SummaryInput<'_>) -> Vec<(&'static str, String)> {
    let titles = [(Role::Server, "  to server"), (Role::Client, "  to client")];
    let rates = titles.map(|(role, title)| {
        let value = analysis::rate_received_by(role, metric, input.workload, input.trial)?;
        Some((title, human(metric, input, value)))
    });
    // One direction alone is the headline itself.
    rates.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn unit(input: SummaryInput<'_>) -> WorkUnit {
    input.workload.traffic.facts().unit
}

fn label(metric: Metric, input: SummaryInput<'_>) -> &'static str {
    match metric {
        Metric::DatagramRate => "delivered",
        _ => metric.title_in(unit(input)),
    }
}

/// The distribution of round trips in one line.
fn tail(workload: &Workload, trial: &Trial) -> Option<String> {
    let histogram = analysis::round_trip_histogram(trial)?;
    let mut words = format!(
        "{}  max {}  (min {}, n {})",
        percentiles(&histogram, &[50.0, 90.0, 99.0, 99.9]),
        human_nanos(histogram.max()? as f64),
        human_nanos(histogram.min()? as f64),
        histogram.count()
    );
    if workload.traffic.facts().request_rate().is_some() {
        words.push_str(", measured from the scheduled time");
    }
    Some(words)
}

/// Requests without a response; in datagrams, which a path may lose, also when there are none.
fn requests(workload: &Workload, trial: &Trial) -> Option<String> {
    let count = analysis::requests_of(&workload.traffic, trial)?;
    let share = words::percent(count.share()?);
    let is_of_datagrams = matches!(workload.traffic.facts().wire, Wire::Datagrams { .. });
    (is_of_datagrams || count.lost > 0)
        .then(|| format!("{} of {} without a response ({share})", count.lost, count.sent))
}

/// `p50 25 us  p90 31 us`: those of the percentiles that the samples resolve.
fn percentiles(histogram: &Histogram, percentiles: &[f64]) -> String {
    let known = percentiles.iter().filter_map(|p| Some((p, histogram.resolved_percentile(*p)?)));
    let words: Vec<String> = known.map(|(p, value)| format!("p{p} {}", human_nanos(value as f64))).collect();
    words.join("  ")
}

/// The parts of transactions on new connections, and failed transactions.
fn parts(trial: &Trial) -> Vec<(&'static str, String)> {
    let report = trial.client.as_ref().and_then(|end| end.report.round_trips.as_ref());
    let Some(parts) = report.and_then(|report| report.parts.as_ref()) else { return Vec::new() };
    let words = |record| {
        let histogram = analysis::histogram_of(record)?;
        (histogram.count() > 0).then(|| percentiles(&histogram, &[50.0, 90.0, 99.0]))
    };
    let mut rows = Vec::new();
    rows.extend(words(&parts.connect).map(|words| ("connect", words)));
    rows.extend(words(&parts.exchange).map(|words| ("exchange", format!("{words}  (request to response)"))));
    if parts.failed > 0 {
        rows.push(("failed", format!("{} of {} transactions", parts.failed, parts.attempted)));
    }
    rows
}

/// The congestion control that the client's connections of a request-response test used.
fn congestion(workload: &Workload, client: &TrialEnd) -> Option<String> {
    workload.traffic.facts().requests.filter(|requests| !requests.are_probes)?;
    let lasting = client.report.streams.first().and_then(|stream| stream.tcp.as_ref());
    let parts = client.report.round_trips.as_ref().and_then(|report| report.parts.as_ref());
    let lasting = lasting.and_then(|tcp| tcp.congestion.clone());
    lasting.or_else(|| parts.and_then(|parts| parts.congestion.clone()))
}

/// The smallest granted receive buffer of the flows; absent in records of earlier versions and without sockets.
fn receive_buffer(trial: &Trial) -> Option<String> {
    let reports =
        [&trial.client, &trial.server].into_iter().flatten().filter_map(|end| end.report.datagrams.as_ref());
    let least =
        reports.flat_map(|report| &report.flows).filter_map(|flow| flow.receive_buffer_bytes).min()?;
    Some(format!(" (receive buffer {})", Bytes(least)))
}

/// Exact loss by location, and the packets per datagram when these differ.
fn datagrams(input: SummaryInput<'_>) -> Vec<(&'static str, String)> {
    let ways = analysis::datagrams_of(input.workload, input.trial, input.shared_machine);
    let sum = |of: fn(&DatagramDirection) -> u64| -> u64 { ways.iter().map(of).total() };
    let sent = sum(|way| way.sent);
    if sent == 0 {
        return Vec::new();
    }
    let part = |of: fn(Lost) -> u64| -> u64 { ways.iter().filter_map(|way| way.lost).map(of).total() };
    let lost = part(|lost| lost.all);
    let mut words = format!("{sent} sent, {lost} lost ({})", words::percent(lost as f64 / sent as f64));
    if lost > 0 {
        let _ = write!(
            words,
            ": {} at the receiver's socket{}, {} at an interface or qdisc of the two hosts, {} elsewhere",
            part(|lost| lost.at_socket),
            receive_buffer(input.trial).filter(|_| part(|lost| lost.at_socket) > 0).unwrap_or_default(),
            part(|lost| lost.at_interface),
            part(Lost::elsewhere)
        );
    }
    let (duplicate, reordered) = (sum(|way| way.duplicates), sum(|way| way.reordered));
    let _ = write!(words, "; {duplicate} duplicate, {reordered} reordered");
    let refused = sum(|way| way.refused.unwrap_or(0));
    if refused > 0 {
        let _ = write!(words, "; {refused} send calls refused, which are neither sent nor lost");
    }
    let mut rows =
        vec![(if input.workload.traffic.facts().is_of_packets() { "loss" } else { "datagrams" }, words)];
    match analysis::not_packets(&ways) {
        Some(ratio) if ratio > 1.0 => rows.push((
            "packet ratio",
            format!(
                "{} datagrams per packet: no device on this path segments GSO packets; `--offload none` sends one packet per datagram",
                three_digits(ratio)
            ),
        )),
        Some(ratio) => rows.push((
            "packet ratio",
            format!("{} packets per datagram: datagrams exceed the MTU", three_digits(ratio.recip())),
        )),
        None => {}
    }
    rows
}

/// The connections of each sending end; both ends have a name when both send.
fn tcp(workload: &Workload, client: &TrialEnd, server: &TrialEnd) -> Vec<String> {
    let facts = workload.traffic.facts();
    let is_bidirectional = facts.is_stream() && facts.bulk == Some(Direction::Both);
    let rows = [("client", client), ("server", server)].into_iter();
    rows.filter(|(_, end)| end.report.sent.is_some() && (is_bidirectional || end.report.received.is_none()))
        .filter_map(|(name, end)| {
            let words = tcp_of(end)?;
            Some(if is_bidirectional { format!("{name}: {words}") } else { words })
        })
        .collect()
}

/// The connections of a sending end.
fn tcp_of(sender: &TrialEnd) -> Option<String> {
    let connections: Vec<_> = sender.report.streams.iter().filter_map(|stream| stream.tcp.as_ref()).collect();
    let first = connections.first()?;
    let retransmits: u64 = connections.iter().map(|tcp| u64::from(tcp.retransmits.unwrap_or(0))).sum();
    let mut words = plural(retransmits, "retransmit");
    let spurious: u64 = connections.iter().map(|tcp| u64::from(tcp.dsack_dups.unwrap_or(0))).sum();
    if spurious > 0 {
        let _ = write!(words, " ({spurious} spurious by DSACK)");
    }
    if let Some(rtt) = first.rtt_us {
        let _ = write!(words, ", rtt {}", human_nanos(f64::from(rtt) * 1e3));
    }
    let windows = sender.report.streams.iter().filter_map(|stream| {
        let tcp = stream.tcp.as_ref()?;
        Some(f64::from(tcp.snd_cwnd?) * f64::from(tcp.snd_mss?) * f64::from(stream.members))
    });
    let total = if connections.len() > 1 { "total cwnd" } else { "cwnd" };
    if let (Some(cwnd), Some(mss)) = (windows.reduce(|a, b| a + b), first.snd_mss) {
        let _ = write!(words, ", {total} {}, mss {mss} B", human_si(cwnd, "B"));
    }
    if let Some(congestion) = &first.congestion {
        let _ = write!(words, ", {congestion}");
    }
    Some(words)
}

/// TCP connect time.
fn connections(client: &TrialEnd) -> Option<String> {
    let report = client.report.connections.as_ref()?;
    let histogram = analysis::histogram_of(&report.connect)?;
    let longest = human_nanos(histogram.max()? as f64);
    if histogram.count() == 1 {
        return Some(format!("connected in {longest}"));
    }
    let rate = histogram.count() as f64 / (report.elapsed_ns.max(1) as f64 / 1e9);
    let late: u64 =
        report.connect.pairs.iter().filter(|(ns, _)| *ns >= SYN_RETRY_NS).map(|(_, count)| count).total();
    let late = match late {
        0 => String::new(),
        late => format!("; {late} took 1 s or more: a SYN was lost, or the accept queue was full"),
    };
    Some(format!(
        "{} in {} ({}, {} at a time); connect time {}  max {longest}{late}",
        histogram.count(),
        human_nanos(report.elapsed_ns as f64),
        human_si(rate, "/s"),
        report.concurrency,
        percentiles(&histogram, &[50.0, 99.0]),
    ))
}

/// Distribution of bytes over the streams of a sending end.
fn fairness(workload: &Workload, end: &TrialEnd) -> Option<String> {
    end.report.sent.as_ref()?;
    let spread = end.report.fairness.as_ref()?;
    let bytes = |bytes: u64| human_si(bytes as f64, "B");
    Some(format!(
        "bytes per {} sent by the {}: min {}, median {}, max {}; Jain's fairness index {:.3}",
        if workload.traffic.facts().is_datagram_stream() { "flow" } else { "stream" },
        end.report.role,
        bytes(spread.min_bytes),
        bytes(spread.median_bytes),
        bytes(spread.max_bytes),
        spread.jain_index?
    ))
}

/// CPU cost: cores used on each host, and time per unit of work.
fn cpu(input: SummaryInput<'_>, client: &TrialEnd, server: &TrialEnd) -> Option<String> {
    if ![client, server].into_iter().all(|end| analysis::has_cpu_time(&end.observation)) {
        return Some(
            "none: the test is shorter than 100 ms, and the kernel counts CPU time in steps of 10 ms"
                .to_owned(),
        );
    }
    let used = |end: &TrialEnd| {
        let busy = end.observation.busy_ns();
        let cores = end.observation.cores.len();
        (cores > 0).then(|| {
            let used = busy as f64 / end.observation.wall_ns.max(1) as f64;
            // The counters of the cores and the clock are read one after the other.
            format!("{} of {cores} cores", three_digits(used.min(cores as f64)))
        })
    };
    let mut text = if input.shared_machine {
        format!("{} of one machine", used(server)?)
    } else {
        format!("client {}, server {}", used(client)?, used(server)?)
    };
    let per = [Metric::CpuPerGigabyte, Metric::CpuPerDatagram, Metric::CpuPerRoundTrip];
    let possible = input.workload.traffic.facts().possible_metrics;
    let is_shown = |metric: &Metric| {
        possible.contains(metric)
            && !(input.workload.traffic.facts().is_of_packets() && *metric == Metric::CpuPerGigabyte)
    };
    for metric in per.into_iter().filter(is_shown) {
        if let Some(value) = value_of(metric, input.workload, input.trial, input.shared_machine) {
            let title = metric.title_in(unit(input));
            let _ = write!(text, "; {} ({title})", human(metric, input, value));
        }
    }
    Some(text)
}
