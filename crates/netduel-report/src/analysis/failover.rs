//! Outage, loss, latency and throughput around each event of a failover, from the arrivals of all probes.
//!
//! Times are nanoseconds on the receiver's axis. The window of an event ends with the next event. The no-event baseline is
//! reported beside each event, because on a busy host a receiver is late by milliseconds even without an event.
use std::collections::BTreeSet;

use netduel_model::failover::{FailoverReport, PathEvent, PathEventRecord, ProbeArrival};
use netduel_model::trial::Trial;
use netduel_model::units::PerSecond;
use netduel_model::workload::{Facts, Role, Workload};

use super::clocks::Clocks;
pub use super::dip::Dip;
use super::dip::dip;
use super::direction::{DirectionFigures, Seen};
use super::machine::Machines;
use crate::total::{self, Total};

/// Maximum time between the end of an event and the start of an outage that belongs to it.
const REACH_NS: i64 = 500_000_000;
/// Length of the windows before and after an event that its figures are compared with.
pub(super) const AROUND_NS: i64 = 500_000_000;
/// A probe sent this long before an event may still be lost to it.
const IN_FLIGHT_NS: i64 = 20_000_000;
/// Maximum number of points of a chart line.
const POINTS_MAX: i64 = 300;
/// Minimum interval of a chart line.
const POINT_NS: i64 = 10_000_000;

/// Effects of the events of an arm, over its valid trials.
#[derive(Debug, Clone)]
pub struct ArmFailover {
    /// The events of the plan, in order.
    pub events: Vec<EventFigures>,
    /// Probes sent and lost, total of all trials: client to server, then server to client.
    pub probes: [(u64, u64); 2],
    /// Maximum error of one-way delays, nanoseconds: 0 when both hosts share a clock. Of the trials where it is known.
    pub clock_error_ns: f64,
    /// Trials in which nothing limits that error, because no probe arrived in one direction: they have no one-way delays.
    pub clock_unknown: u32,
    /// Interfaces that carried the bytes of each lab guest between the events.
    pub moved: Vec<super::Moved>,
    /// Time series of each trial.
    pub lines: Vec<Line>,
}

/// An event over all trials.
#[derive(Debug, Clone)]
pub struct EventFigures {
    /// The event in the plan.
    pub event: PathEvent,
    /// Start, seconds on the client's axis, by trial.
    pub began_s: Vec<f64>,
    /// Duration of the calls to the kernel, nanoseconds, by trial.
    pub took_ns: Vec<f64>,
    /// Client to server, then server to client.
    pub ways: [DirectionFigures; 2],
}

/// Time series of a trial: seconds on the client's axis, and a value.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// Longest gap between probes that ended in the interval, minus the probe interval, nanoseconds, by direction.
    pub gap_ns: [Vec<(f64, f64)>; 2],
    /// Maximum one-way delay, nanoseconds, by direction.
    pub delay_ns: [Vec<(f64, f64)>; 2],
    /// Received rate, bit/s, by direction.
    pub rate_bps: [Vec<(f64, f64)>; 2],
}

/// The time window of an event on an end's axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub began: i64,
    pub ended: i64,
    /// End of all earlier events, one of which may last longer than those after it, or start of the traffic.
    pub from: i64,
    /// Start of the next event, or end of the traffic.
    pub until: i64,
    pub traffic_end: i64,
}

impl Span {
    /// An outage that begins before this time belongs to the event.
    pub(super) fn reach(self) -> i64 {
        self.ended.saturating_add(REACH_NS).min(self.until)
    }
}

/// An event on the client's clock.
struct Timed<'a> {
    record: &'a PathEventRecord,
    began: i64,
    ended: i64,
}

impl<'a> Timed<'a> {
    /// `ahead_ns`: offset of the clock of the record to the client's clock.
    fn new(record: &'a PathEventRecord, ahead_ns: i64) -> Self {
        let at = |time: u64| time.cast_signed().wrapping_sub(ahead_ns);
        Self { record, began: at(record.began_ns), ended: at(record.ended_ns) }
    }
}

/// One direction of one trial.
struct Probes<'a> {
    rate: PerSecond,
    sent: u64,
    receiver: &'a FailoverReport,
    /// Offset of the receiver's clock to the sender's clock; absent when nothing limits its error.
    lead_ns: Option<i64>,
    /// Offset of the receiver's axis to the client's axis.
    shift_ns: i64,
    /// First arrivals in order, and whether each is reordered.
    firsts: Vec<(ProbeArrival, bool)>,
    /// Arrival times of duplicates.
    copies: Vec<i64>,
    spans: Vec<(Span, &'a PathEventRecord)>,
}

/// A gap between probes, on the receiver's axis.
#[derive(Debug, Clone, Copy)]
struct Gap {
    began: i64,
    ended: i64,
    /// Length minus the probe interval and the lateness of the sender.
    excess: i64,
    /// Whether a probe followed; otherwise the length is a lower bound.
    is_over: bool,
}

/// Both directions of a trial, and the maximum error of the clocks as in [`Clocks`]; absent when its records are incomplete.
fn ways<'a>(
    workload: &'a Workload,
    trial: &'a Trial,
    shared: bool,
) -> Option<([Probes<'a>; 2], Option<f64>)> {
    let Facts { probes: Some(rate), events: planned, .. } = workload.traffic.facts() else { return None };
    let report = |role: Role| trial.end(role)?.report.failover.as_ref();
    let (client, server) = (report(Role::Client)?, report(Role::Server)?);
    let shared = shared || trial.lab_events.is_some();
    let Clocks { lead_ns: lead, error_ns: error } = Clocks::of(client, server, shared);
    // Offset of a clock to the client's clock.
    let ahead = |role: Role| if role == Role::Server { lead } else { 0 };
    let mut events: Vec<Timed<'_>> =
        trial.lab_events.iter().flat_map(|lab| &lab.events).map(|event| Timed::new(event, 0)).collect();
    for role in [Role::Client, Role::Server] {
        events.extend(report(role)?.events.iter().map(|event| Timed::new(event, ahead(role))));
    }
    // A host or a run file may record any number of events: each is compared with all arrivals.
    events.retain(|event| event.record.error.is_none() && (event.record.index as usize) < planned.len());
    events.sort_by_key(|event| (event.record.index, event.began));
    // An event at both ends lasts from the first start to the last end.
    events.dedup_by(|later, first| {
        let is_same = later.record.index == first.record.index;
        if is_same {
            first.ended = first.ended.max(later.ended);
        }
        is_same
    });
    let way = |receiver: Role, sent: u64| {
        let report = if receiver == Role::Server { server } else { client };
        let on_axis =
            |time: i64| time.wrapping_add(ahead(receiver)).wrapping_sub(report.started_ns.cast_signed());
        let duration = workload.timing.duration.0.cast_signed();
        let times: Vec<(i64, i64)> =
            events.iter().map(|event| (on_axis(event.began), on_axis(event.ended))).collect();
        let mut earlier_ended = 0;
        let spans = events.iter().enumerate().map(|(index, event)| {
            let (began, ended) = times[index];
            let from = earlier_ended;
            earlier_ended = earlier_ended.max(ended);
            let until = times.get(index + 1).map_or(duration, |next| next.0);
            (Span { began, ended, from, until, traffic_end: duration }, event.record)
        });
        let shift_ns = report
            .started_ns
            .cast_signed()
            .wrapping_sub(ahead(receiver))
            .wrapping_sub(client.started_ns.cast_signed());
        let lead_ns = error.map(|_| if receiver == Role::Server { lead } else { lead.wrapping_neg() });
        let (firsts, copies) = first_and_duplicate_arrivals(report);
        Probes { rate, sent, receiver: report, lead_ns, shift_ns, firsts, copies, spans: spans.collect() }
    };
    Some(([way(Role::Server, client.probes_sent), way(Role::Client, server.probes_sent)], error))
}

/// First arrivals, and arrival times of duplicates.
fn first_and_duplicate_arrivals(report: &FailoverReport) -> (Vec<(ProbeArrival, bool)>, Vec<i64>) {
    let (mut seen, mut highest) = (BTreeSet::new(), None);
    let (mut firsts, mut copies) = (Vec::with_capacity(report.arrivals.len()), Vec::new());
    for arrival in report.arrivals.iter() {
        if !seen.insert(arrival.number) {
            copies.push(arrival.arrived_ns);
            continue;
        }
        firsts.push((arrival, highest.is_some_and(|highest| arrival.number < highest)));
        highest = highest.max(Some(arrival.number));
    }
    (firsts, copies)
}

impl Probes<'_> {
    fn pace_ns(&self) -> i64 {
        (1_000_000_000 / self.rate.0.max(1)).cast_signed()
    }

    /// The one-way delay of a probe, nanoseconds; absent when nothing limits the error of the clocks.
    fn delay(&self, arrival: &ProbeArrival) -> Option<f64> {
        Some(arrival.delay_ns.saturating_sub(self.lead_ns?).max(0) as f64)
    }

    /// The gap between two neighbours minus the probe interval and the sender's lateness between the two.
    fn excess(&self, before: &ProbeArrival, next: &ProbeArrival) -> i64 {
        let gap = next.arrived_ns.saturating_sub(before.arrived_ns);
        let sent = gap.saturating_sub(next.delay_ns.saturating_sub(before.delay_ns));
        let steps = i64::try_from(next.number.saturating_sub(before.number)).unwrap_or(i64::MAX);
        let late = sent.saturating_sub(self.pace_ns().saturating_mul(steps.max(1))).max(0);
        gap.saturating_sub(self.pace_ns()).saturating_sub(late).max(0)
    }

    /// Gaps longer than the probe interval: between neighbours, and at the end when the last probes were lost.
    fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        let pairs = self.firsts.windows(2).map(|pair| (&pair[0].0, &pair[1].0)).map(|(before, next)| Gap {
            began: before.arrived_ns,
            ended: next.arrived_ns,
            excess: self.excess(before, next),
            is_over: true,
        });
        let highest =
            self.firsts.iter().map(|(arrival, _)| arrival.number.saturating_add(1)).max().unwrap_or(0);
        let began = self.firsts.last().map_or(0, |(arrival, _)| arrival.arrived_ns);
        let rest = i64::try_from(self.sent.saturating_sub(highest)).unwrap_or(i64::MAX);
        let excess = rest.saturating_mul(self.pace_ns());
        let open = Gap {
            began,
            ended: began.saturating_add(self.pace_ns()).saturating_add(excess),
            excess,
            is_over: false,
        };
        pairs.chain((rest > 0).then_some(open))
    }

    /// The longest gap in `from..until`; a gap that began earlier counts from `from`.
    fn longest(&self, from: i64, until: i64) -> Gap {
        let own = |gap: Gap| {
            let excess = if gap.began < from.saturating_sub(IN_FLIGHT_NS) {
                gap.excess.min(gap.ended.saturating_sub(from))
            } else {
                gap.excess
            };
            Gap { excess, ..gap }
        };
        let nothing = Gap { began: from, ended: from, excess: 0, is_over: true };
        let here = self.gaps().filter(|gap| gap.ended > from && gap.began < until);
        here.map(own).max_by_key(|gap| gap.excess).unwrap_or(nothing)
    }

    /// Sequences of lost probes: estimated arrival of the first one, and their number.
    fn missing(&self) -> Vec<(i64, u64)> {
        let mut arrived: Vec<&ProbeArrival> = self.firsts.iter().map(|(arrival, _)| arrival).collect();
        arrived.sort_by_key(|arrival| arrival.number);
        let (mut runs, mut next, mut last_ns) = (Vec::new(), 0, 0);
        for arrival in arrived {
            if arrival.number > next {
                runs.push((last_ns, arrival.number - next));
            }
            next = arrival.number.saturating_add(1);
            last_ns = arrival.arrived_ns.saturating_add(self.pace_ns());
        }
        if self.sent > next {
            runs.push((last_ns, self.sent - next));
        }
        runs
    }

    /// Probes sent and never received.
    fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.firsts.len() as u64)
    }

    fn at(&self, index: usize, span: Span) -> Seen {
        let outage = self.longest(span.began, span.reach());
        let early = |(span, _): &(Span, _)| span.began.saturating_sub(IN_FLIGHT_NS);
        let starts = |index: usize| self.spans.get(index).map_or(i64::MAX, early);
        let here = starts(index)..starts(index + 1);
        let lost =
            self.missing().iter().filter(|(when, _)| here.contains(when)).map(|(_, count)| count).total();
        let (from, to) = (span.began.saturating_sub(AROUND_NS).max(span.from), span.began);
        let baseline =
            self.gaps().filter(|gap| gap.began >= from && gap.ended <= to).map(|gap| gap.excess).max();
        let over = if outage.excess > 0 { outage.ended } else { span.ended };
        let recovered = over.max(span.ended);
        let within = |from: i64, until: i64| move |time: &i64| (from..until).contains(time);
        let (before, after) = (
            span.began.saturating_sub(AROUND_NS).max(span.from),
            recovered.saturating_add(AROUND_NS).min(span.until),
        );
        let delays = [
            (before, span.began),
            (span.began, recovered.saturating_add(1)),
            (recovered.saturating_add(1), after),
        ]
        .map(|(from, until)| {
            let inside = self.firsts.iter().filter(|(arrival, _)| within(from, until)(&arrival.arrived_ns));
            inside.filter_map(|(arrival, _)| self.delay(arrival)).collect()
        });
        let around = within(span.began, span.until);
        Seen {
            outage: outage.excess as f64,
            is_over: outage.is_over,
            baseline: baseline.unwrap_or(0) as f64,
            lost,
            duplicated: self.copies.iter().filter(|time| around(time)).count(),
            reordered: self.firsts.iter().filter(|(first, late)| *late && around(&first.arrived_ns)).count(),
            delays,
            dip: dip(&self.receiver.series, span),
        }
    }
}

/// The longest outage of a trial, nanoseconds, and whether all outages ended; otherwise it is a lower bound.
pub(super) fn outage(workload: &Workload, trial: &Trial, shared: bool) -> Option<(f64, bool)> {
    let (ways, _) = ways(workload, trial, shared)?;
    let seen = ways
        .iter()
        .flat_map(|way| way.spans.iter().enumerate().map(|(index, (span, _))| way.at(index, *span)));
    seen.fold(None, |longest: Option<(f64, bool)>, seen| {
        let (most, all_known) = longest.unwrap_or((0.0, true));
        Some((most.max(seen.outage), all_known && seen.is_over))
    })
}

/// Lost probes of a trial.
pub(super) fn lost(workload: &Workload, trial: &Trial, shared: bool) -> Option<f64> {
    Some(ways(workload, trial, shared)?.0.iter().map(Probes::lost).total() as f64)
}

/// The longest recovery of a trial, nanoseconds, and whether the streams recovered before the next event or the end; otherwise it
/// is a lower bound. An event whose rates are not known counts as one without a recovery.
pub(super) fn recovery(workload: &Workload, trial: &Trial, shared: bool) -> Option<(f64, bool)> {
    let (ways, _) = ways(workload, trial, shared)?;
    let spans = ways.iter().flat_map(|way| way.spans.iter().map(move |(span, _)| (way, span)));
    let recoveries = spans.filter_map(|(way, span)| {
        let dip = dip(&way.receiver.series, *span)?;
        Some(match dip.recovery_ns {
            Some(took) => (took, true),
            None => (span.until.saturating_sub(span.began).max(0) as f64, false),
        })
    });
    recoveries.fold(None, |longest, (took, known)| match longest {
        Some((most, all_known)) => Some((took.max(most), known && all_known)),
        None => Some((took, known)),
    })
}

/// The effects of the events of an arm.
pub(super) fn of_arm(workload: &Workload, trials: &[&Trial], machines: &Machines) -> Option<ArmFailover> {
    let Facts { probes: Some(_), events, .. } = workload.traffic.facts() else { return None };
    let figures = |event: &PathEvent| EventFigures {
        event: event.clone(),
        began_s: Vec::new(),
        took_ns: Vec::new(),
        ways: Default::default(),
    };
    let mut arm = ArmFailover {
        events: events.iter().map(figures).collect(),
        probes: [(0, 0); 2],
        clock_error_ns: 0.0,
        clock_unknown: 0,
        moved: Vec::new(),
        lines: Vec::new(),
    };
    for trial in trials {
        let Some((ways, error)) = ways(workload, trial, machines.shared(trial)) else { continue };
        match error {
            Some(error) => arm.clock_error_ns = arm.clock_error_ns.max(error),
            None => arm.clock_unknown += 1,
        }
        let mut line = Line::default();
        for (number, way) in ways.iter().enumerate() {
            total::add(&mut arm.probes[number].0, way.sent);
            total::add(&mut arm.probes[number].1, way.lost());
            for (index, (span, record)) in way.spans.iter().enumerate() {
                let Some(event) = arm.events.get_mut(record.index as usize) else { continue };
                if number == 0 {
                    event.began_s.push(span.began.saturating_add(way.shift_ns) as f64 / 1e9);
                    event.took_ns.push(span.ended.saturating_sub(span.began) as f64);
                }
                event.ways[number].take(way.at(index, *span));
            }
            draw(&mut line, number, way, workload.timing.duration.0.cast_signed());
        }
        arm.lines.push(line);
    }
    for way in arm.events.iter_mut().flat_map(|event| &mut event.ways) {
        for delays in &mut way.delay_ns {
            delays.sort_by(f64::total_cmp);
        }
    }
    Some(arm)
}

/// Adds a direction to the time series of a trial.
fn draw(line: &mut Line, number: usize, way: &Probes<'_>, duration: i64) {
    let width = (duration / POINTS_MAX).max(POINT_NS);
    let bins = (duration / width).max(1) as usize;
    let bin =
        |time: i64| usize::try_from(time.saturating_add(way.shift_ns) / width).ok().filter(|bin| *bin < bins);
    let mut gaps = vec![None::<f64>; bins];
    let mut delays = vec![None::<f64>; bins];
    let raise = |bins: &mut [Option<f64>], bin: Option<usize>, value: f64| {
        if let Some(old) = bin.and_then(|bin| bins.get_mut(bin)) {
            *old = Some(old.map_or(value, |old| old.max(value)));
        }
    };
    for gap in way.gaps() {
        // A gap without an end is drawn at the end of the traffic.
        let at = if gap.is_over { bin(gap.ended) } else { Some(bins - 1) };
        raise(&mut gaps, at, gap.excess as f64);
    }
    for (next, _) in way.firsts.iter().skip(1) {
        if let Some(delay) = way.delay(next) {
            raise(&mut delays, bin(next.arrived_ns), delay);
        }
    }
    let (mut bytes, mut lengths) = (vec![0.0; bins], vec![0.0; bins]);
    for sample in &way.receiver.series {
        let middle = (sample.end_ns - sample.length_ns.min(sample.end_ns) / 2).cast_signed();
        if let Some(bin) = bin(middle) {
            bytes[bin] += sample.bytes as f64;
            lengths[bin] += sample.length_ns as f64;
        }
    }
    let time = |bin: usize| (bin as f64 + 0.5) * width as f64 / 1e9;
    let known = |values: Vec<Option<f64>>| -> Vec<(f64, f64)> {
        values.into_iter().enumerate().filter_map(|(bin, value)| Some((time(bin), value?))).collect()
    };
    line.gap_ns[number] = known(gaps);
    line.delay_ns[number] = known(delays);
    let rates =
        bytes.iter().zip(&lengths).map(|(bytes, length)| (*length > 0.0).then(|| bytes * 8e9 / length));
    line.rate_bps[number] = known(rates.collect());
}
