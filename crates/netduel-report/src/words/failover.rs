//! What a failover measured, as a table and in sentences.
use netduel_model::failover::{PathEvent, PathEventKind};
use netduel_model::plan::spec::Side;
use netduel_model::units::{human_bit_rate, human_nanos};
use netduel_model::workload::Failover;

use super::run::{engine_words, plural, way};
use super::text::{percent_at_least, plain};
use crate::analysis::{ArmFailover, EventFigures, Phase, WayFigures, WorkloadAnalysis, quantile};

/// The table of a workload's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTable {
    /// Titles of the columns.
    pub header: Vec<String>,
    /// Rows by arm, event and direction.
    pub rows: Vec<Vec<String>>,
    /// What stands beneath.
    pub notes: Vec<String>,
}

/// The workload as it was set, in parts.
pub(super) fn settings(failover: &Failover) -> Vec<String> {
    let mut parts = vec![format!("probes of {} at {} each way", failover.size, failover.rate)];
    if failover.streams > 0 {
        parts.push(format!("{} {}", plural(failover.streams, "TCP stream"), way(failover.direction)));
        parts.push(engine_words(failover.engine).to_owned());
        parts.extend(failover.congestion.iter().cloned());
    }
    parts.push(failover.events.iter().map(event).collect::<Vec<_>>().join(", "));
    parts
}

/// An event in words, for example `remove at 1 s (client)`.
pub fn event(event: &PathEvent) -> String {
    let on = match event.on {
        Side::Client => "client",
        Side::Server => "server",
        Side::Both => "both",
    };
    let interface = event.interface.as_ref().map(|name| format!(" {}", plain(name))).unwrap_or_default();
    format!("{} at {} ({on}{interface})", event.kind, event.at)
}

/// What an event is.
pub fn meaning(kind: PathEventKind) -> &'static str {
    match kind {
        PathEventKind::Remove => "the virtual function is deleted while it carries traffic",
        PathEventKind::Graceful => "traffic is moved first, then the virtual function is deleted",
        PathEventKind::Carrier => "the far end of the virtual function loses its carrier",
        PathEventKind::Down => "the host sets the interface down",
        PathEventKind::Return => "what was taken is given back",
        PathEventKind::AddNic => "a second network interface is plugged in",
        PathEventKind::RemoveNic => "the second network interface is taken away",
    }
}

/// Interfaces one after the other, each as long as it lasted.
fn route(interfaces: &[String]) -> String {
    let mut names: Vec<String> = interfaces.iter().map(|name| plain(name)).collect();
    names.dedup();
    if names.len() == 1 { format!("{} throughout", names[0]) } else { names.join(", then ") }
}

/// How outages are counted.
pub(super) fn rule() -> String {
    "The longest time between two arrivals of probes that began with an event, less their pace, and less what the sender was late in \
     between by its own schedule, so that a late sender is no outage. Told to the pace of the probes and the receiver's wake-up: what \
     is seen without an event stands beside it. Lost is sent less received, to the probe. Recovery is the time until 50 ms of the \
     streams give 90 % of what they gave before, or of what the path then gives when that is less, and no 10 ms less than half of that."
        .to_owned()
}

/// The table; absent when the workload is no failover or has no valid trial.
pub fn events(workload: &WorkloadAnalysis) -> Option<EventTable> {
    let mut table = EventTable {
        header: [
            "arm",
            "event",
            "way",
            "n",
            "outage p50",
            "p90",
            "max",
            "without",
            "lost",
            "dup",
            "reord",
            "delay p50 before",
            "after",
            "p99 during",
            "rate before",
            "lowest 10 ms",
            "settled",
            "recovery p50",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: Vec::new(),
        notes: Vec::new(),
    };
    for arm in &workload.arms {
        let Some(failover) = &arm.failover else { continue };
        for figures in failover.events.iter().filter(|event| !event.began_s.is_empty()) {
            for (number, way) in figures.ways.iter().enumerate() {
                table.rows.push(row(arm.arm.as_str(), figures, number, way));
            }
        }
        notes(&mut table.notes, arm.arm.as_str(), failover);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What the table does not say of an arm.
fn notes(notes: &mut Vec<String>, arm: &str, failover: &ArmFailover) {
    for figures in &failover.events {
        let took = sorted(&figures.took_ns);
        notes.extend(quantile(&took, 0.5).map(|median| {
            format!(
                "{}: {}: {}; the kernel took {} (median of {})",
                arm,
                event(&figures.event),
                meaning(figures.event.kind),
                human_nanos(median),
                took.len()
            )
        }));
    }
    let [(up, up_lost), (down, down_lost)] = failover.probes;
    if up + down > 0 {
        notes.push(format!(
            "{arm}: {up_lost} of {up} probes lost client to server, {down_lost} of {down} server to client"
        ));
    }
    notes.extend(failover.moved.iter().map(|moved| {
        format!(
            "{}: path of {} {}: the bytes went through {}: {} of each part between events, in the worst of {}",
            arm,
            moved.role,
            moved.host,
            route(&moved.interfaces),
            percent_at_least(moved.share_min),
            plural(moved.trials, "trial")
        )
    }));
    if failover.clock_error_ns > 0.0 {
        notes.push(format!(
                "{}: the hosts' clocks were set against each other by the fastest probes: one-way delays and the place of events are \
                 known to {}",
                arm,
                human_nanos(failover.clock_error_ns)
            ));
    }
}

fn row(arm: &str, figures: &EventFigures, number: usize, way: &WayFigures) -> Vec<String> {
    let outage = sorted(&way.outage_ns);
    let nanos = |value: Option<f64>| value.map_or("-".to_owned(), human_nanos);
    let delay = |phase: Phase, share| nanos(quantile(&way.delay_ns[phase as usize], share));
    let total = |counts: &[f64]| format!("{}", counts.iter().sum::<f64>());
    let rate = |of: fn(&crate::analysis::Dip) -> f64| {
        let rates = sorted(&way.dips.iter().map(of).collect::<Vec<_>>());
        quantile(&rates, 0.5).map_or("-".to_owned(), human_bit_rate)
    };
    let recoveries = sorted(&way.dips.iter().filter_map(|dip| dip.recovery_ns).collect::<Vec<_>>());
    let recovery = match (way.dips.len(), recoveries.len()) {
        (0, _) => "-".to_owned(),
        (_, 0) => "never".to_owned(),
        (all, some) if some < all => format!("{} ({some} of {all})", nanos(quantile(&recoveries, 0.5))),
        _ if quantile(&recoveries, 0.5) == Some(0.0) => "at once".to_owned(),
        _ => nanos(quantile(&recoveries, 0.5)),
    };
    vec![
        plain(arm),
        format!("{} at {}", figures.event.kind, figures.event.at),
        if number == 0 { "up" } else { "down" }.to_owned(),
        outage.len().to_string(),
        nanos(quantile(&outage, 0.5)),
        nanos(quantile(&outage, 0.9)),
        match way.never_over {
            0 => nanos(quantile(&outage, 1.0)),
            count => format!("{}, not over in {count}", nanos(quantile(&outage, 1.0))),
        },
        nanos(quantile(&sorted(&way.without_ns), 0.5)),
        total(&way.lost),
        total(&way.duplicated),
        total(&way.reordered),
        delay(Phase::Before, 0.5),
        delay(Phase::After, 0.5),
        delay(Phase::During, 0.99),
        rate(|dip| dip.before_bps),
        rate(|dip| dip.lowest_bps),
        rate(|dip| dip.settled_bps),
        recovery,
    ]
}

/// The same for a terminal: a heading for each event of each arm, and a sentence for each direction. Notes last.
pub fn sentences(workload: &WorkloadAnalysis) -> Vec<(String, Vec<String>)> {
    let Some(table) = events(workload) else { return Vec::new() };
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for row in &table.rows {
        let [
            arm,
            event,
            way,
            n,
            p50,
            p90,
            max,
            without,
            lost,
            dup,
            late,
            before,
            after,
            during,
            rate,
            lowest,
            settled,
            recovery,
        ] = row.as_slice()
        else {
            continue;
        };
        let streams = match rate.as_str() {
            "-" => String::new(),
            _ => format!("; streams {rate} before, lowest {lowest}, then {settled}, recovery {recovery}"),
        };
        let said = format!(
            "{way}: outage p50 {p50}, p90 {p90}, max {max} of {n} (without an event {without}); {lost} lost, {dup} twice, {late} late; \
             one-way p50 {before} before, {after} after, p99 {during} during{streams}"
        );
        let title = format!("{arm}, {event}");
        match groups.last_mut().filter(|(last, _)| *last == title) {
            Some((_, sentences)) => sentences.push(said),
            None => groups.push((title, vec![said])),
        }
    }
    groups.push((String::new(), table.notes));
    groups
}

/// A time of the axis, without digits that it does not need.
pub fn seconds(value: f64) -> String {
    format!("{} s", (value * 100.0).round() / 100.0)
}

/// The title of what failovers measured.
pub const TITLE: &str = "What each event cost (all valid trials)";

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
