//! Path events: outages, losses, delays and rates of each event, and a timeline of each arm.
use netduel_model::units::{human_bit_rate, human_nanos, plural};

use super::block::Block;
use super::chart::{Chart, Figure, Panel, Points, Timeline};
use super::levels::{is_far, logarithmic_axis};
use super::table::{Cell, Column, Table};
use crate::analysis::{
    ArmAnalysis, ArmFailover, Bound, Dip, DirectionFigures, EventFigures, Line, Phase, WorkloadAnalysis,
    quantile,
};
use crate::words::failover::{DIRECTIONS, JUDGED, event, meaning, moment};
use crate::words::{end_and_host, largest_drop, percent_at_least};

/// The section of a workload; empty for other workloads.
pub(super) fn blocks(workload: &WorkloadAnalysis) -> Vec<Block> {
    let (mut outages, mut rates, mut events, mut paths) =
        (outage_table(), rate_table(), event_table(), path_table());
    for arm in &workload.arms {
        let Some(failover) = &arm.failover else { continue };
        for figures in failover.events.iter().filter(|event| !event.began_s.is_empty()) {
            for (number, way) in figures.ways.iter().enumerate() {
                let key = key(arm.arm.as_str(), figures, number);
                outages.rows.push(key.iter().cloned().chain(outage_row(way)).collect());
                rates.rows.push(key.into_iter().chain(rate_row(way)).collect());
            }
        }
        event_rows(&mut events, arm.arm.as_str(), failover);
        path_rows(&mut paths, arm.arm.as_str(), failover);
        notes(&mut outages.notes, arm.arm.as_str(), failover);
    }
    if outages.rows.is_empty() {
        return Vec::new();
    }
    outages.notes.push(JUDGED.to_owned());
    let axes = PANELS.map(|(_, of, _, foot)| Axis::of(workload, of, foot));
    let figures = workload.arms.iter().filter_map(|arm| figure(arm, axes));
    let mut blocks = vec![Block::Heading("Event outages".to_owned())];
    blocks.extend(figures.map(|figure| Block::Figure(Box::new(figure))));
    blocks.push(Block::Table(without_zero_columns(outages)));
    blocks.push(Block::Heading("One-way delay and throughput around events".to_owned()));
    blocks.push(Block::Table(rates.without_empty_columns()));
    for (title, table) in [("Events", events), ("Path around events", paths)] {
        if !table.rows.is_empty() {
            blocks.extend([Block::Heading(title.to_owned()), Block::Table(table.without_empty_columns())]);
        }
    }
    blocks
}

fn columns(own: &[&str]) -> Vec<Column> {
    let keys = ["arm", "event", "direction"].map(Column::key);
    keys.into_iter().chain(own.iter().map(|title| Column::number(*title))).collect()
}

fn outage_table() -> Table {
    let own = ["trials", "outage p50", "p90", "max", "no-event baseline", "lost", "duplicate", "reordered"];
    Table::new(columns(&own))
}

/// The table of outages; columns of duplicate and reordered probes only if there are any.
fn without_zero_columns(mut table: Table) -> Table {
    let zero = Cell::Number("0".to_owned());
    let mut dropped = Vec::new();
    for (index, column) in table.columns.iter().enumerate() {
        let is_optional = ["duplicate", "reordered"].contains(&column.title.as_str());
        if is_optional && table.rows.iter().all(|row| row[index] == zero) {
            table.rows.iter_mut().for_each(|row| row[index] = Cell::Absent);
            dropped.push(format!("0 {} probes", column.title));
        }
    }
    if !dropped.is_empty() {
        table.notes.push(format!("around events: {}", dropped.join(", ")));
    }
    table.without_empty_columns()
}

fn rate_table() -> Table {
    Table::new(columns(&[
        "delay p50 before",
        "p99 during outage",
        "p50 after",
        "rate before",
        "min of 10 ms",
        "steady state after",
        "recovery p50",
    ]))
}

fn key(arm: &str, figures: &EventFigures, number: usize) -> Vec<Cell> {
    vec![arm.into(), moment(&figures.event).into(), DIRECTIONS[number].into()]
}

fn nanos(value: Option<f64>) -> Cell {
    Cell::number(value.map(human_nanos))
}

fn outage_row(way: &DirectionFigures) -> Vec<Cell> {
    let trials = way.outage_ns.len();
    let outage = |share: f64| {
        let (value, is_bound) = way.outage(share)?;
        let sign = if is_bound { Bound::AtLeast.sign() } else { "" };
        Some(format!("{sign}{}", human_nanos(value)))
    };
    let total = |counts: &[f64]| Cell::Number(format!("{}", counts.iter().sum::<f64>()));
    let max = outage(1.0).map(|max| match way.open_ended() {
        0 => max,
        count => format!("{max}, until the end in {count}"),
    });
    vec![
        Cell::Count(trials as u64),
        Cell::number(outage(0.5)),
        // The 90th percentile of fewer than 10 is the maximum.
        Cell::number(outage(0.9).filter(|_| trials >= 10)),
        Cell::number(max),
        nanos(quantile(&sorted(&way.baseline_ns), 0.5)),
        total(&way.lost),
        total(&way.duplicated),
        total(&way.reordered),
    ]
}

fn rate_row(way: &DirectionFigures) -> Vec<Cell> {
    let delay = |phase: Phase, share| nanos(quantile(&way.delay_ns[phase as usize], share));
    let rate = |of: fn(&Dip) -> Option<f64>| Cell::number(Dip::median(&way.dips, of).map(human_bit_rate));
    let recovered = way.dips.iter().filter(|dip| dip.recovery_ns.is_some()).count();
    let recovery = way.recovery_p50().map(|median| match (way.dips.len(), recovered) {
        (_, 0) => "never".to_owned(),
        (all, some) if median.is_infinite() => format!("never in {} of {all}", all - some),
        (all, some) if some < all => format!("{} ({some} of {all})", human_nanos(median)),
        _ if median <= 0.0 => "immediate".to_owned(),
        _ => human_nanos(median),
    });
    vec![
        delay(Phase::Before, 0.5),
        delay(Phase::During, 0.99),
        delay(Phase::After, 0.5),
        rate(|dip| dip.before_bps),
        rate(|dip| dip.lowest_bps),
        rate(|dip| dip.settled_bps),
        Cell::number(recovery),
    ]
}

fn event_table() -> Table {
    let mut table = Table::new(vec![Column::key("arm"), Column::key("event")]);
    table.columns.extend([
        Column::number("kernel time, p50"),
        Column::number("trials"),
        Column::text("effect"),
    ]);
    table
}

/// The action of each event, and the duration of the calls to the kernel.
fn event_rows(table: &mut Table, arm: &str, failover: &ArmFailover) {
    for figures in &failover.events {
        let took = sorted(&figures.took_ns);
        if let Some(median) = quantile(&took, 0.5) {
            table.rows.push(vec![
                arm.into(),
                event(&figures.event).into(),
                Cell::Number(human_nanos(median)),
                Cell::Count(took.len() as u64),
                meaning(figures.event.kind).into(),
            ]);
        }
    }
}

fn path_table() -> Table {
    let mut table = Table::new(vec![Column::key("arm"), Column::key("end")]);
    table.columns.extend([Column::number("min share"), Column::number("trials")]);
    table.columns.push(Column::text("interfaces, in order of time"));
    table
}

/// The interfaces that carried the bytes between events, with their minimum share over the trials.
fn path_rows(table: &mut Table, arm: &str, failover: &ArmFailover) {
    table.rows.extend(failover.moved.iter().map(|moved| {
        vec![
            arm.into(),
            Cell::Text(end_and_host(moved.role, &moved.host)),
            Cell::Number(percent_at_least(moved.share_min)),
            Cell::Count(u64::from(moved.trials)),
            Cell::Text(route(&moved.interfaces)),
        ]
    }));
}

/// Totals and errors of an arm.
fn notes(notes: &mut Vec<String>, arm: &str, failover: &ArmFailover) {
    let [(up, up_lost), (down, down_lost)] = failover.probes;
    if up > 0 || down > 0 {
        notes.push(format!(
            "{arm}: {up_lost} of {up} probes lost client to server, {down_lost} of {down} server to client"
        ));
    }
    if failover.clock_error_ns > 0.0 {
        notes.push(format!(
            "{arm}: the offset of the clocks is estimated from the fastest probes; error of one-way delays and event times: {}",
            human_nanos(failover.clock_error_ns)
        ));
    }
    if failover.clock_unknown > 0 {
        notes.push(format!(
            "{arm}: in {} no probe arrived in one direction: the error of the clocks is not known, event times are those of the fastest probe or of \
             the start, and there are no one-way delays",
            plural(failover.clock_unknown, "trial")
        ));
    }
}

/// Interfaces in chronological order.
fn route(interfaces: &[String]) -> String {
    let mut names: Vec<String> = interfaces.to_vec();
    names.dedup();
    if names.len() == 1 { format!("{} (whole trial)", names[0]) } else { names.join(", then ") }
}

type Of = fn(&Line) -> &[Points; 2];
type Human = fn(f64) -> String;

/// The panels of a timeline: title, points, value format, and the lower end of an axis that is always logarithmic.
const PANELS: [(&str, Of, Human, Option<f64>); 3] = [
    ("max gap between probes", |line| &line.gap_ns, human_nanos, Some(1e5)),
    ("max one-way delay", |line| &line.delay_ns, human_nanos, Some(1e4)),
    ("throughput of the streams", |line| &line.rate_bps, human_bit_rate, None),
];
/// The place of the throughput among the panels.
const RATES: usize = 2;
/// The lower end of a logarithmic axis of rates: the lowest median divided by this, down to a power of ten.
const FOOT_BELOW_MEDIAN: f64 = 30.0;

/// The axis of a panel, the same for all arms, so that they can be compared by eye.
#[derive(Debug, Clone, Copy)]
struct Axis {
    /// The lower end of a logarithmic axis; absent for a linear axis from 0.
    foot: Option<f64>,
    top: f64,
    /// Whether the axis is logarithmic because the arms lie far apart.
    is_far: bool,
}

impl Axis {
    fn of(workload: &WorkloadAnalysis, of: Of, foot: Option<f64>) -> Self {
        let values = |arm: &ArmAnalysis| -> Vec<f64> {
            let lines = arm.failover.iter().flat_map(|failover| &failover.lines);
            lines.flat_map(of).flatten().map(|(_, value)| *value).collect()
        };
        let all: Vec<f64> = workload.arms.iter().flat_map(values).collect();
        if foot.is_some() {
            return Self { foot, top: all.into_iter().fold(0.0, f64::max), is_far: false };
        }
        // An arm whose path is down most of the time still has the rate of the rest.
        let median = |arm: &ArmAnalysis| {
            let rates: Vec<f64> = values(arm).into_iter().filter(|rate| *rate > 0.0).collect();
            quantile(&sorted(&rates), 0.5)
        };
        let medians: Vec<f64> = workload.arms.iter().filter_map(median).collect();
        let is_far = is_far(&medians);
        let low = medians.into_iter().fold(f64::INFINITY, f64::min);
        Self {
            foot: is_far.then(|| 10_f64.powf((low / FOOT_BELOW_MEDIAN).log10().floor())),
            // A late reader counts the bytes of several intervals in one: such a peak is not a rate of the path.
            top: quantile(&sorted(&all), 0.99).unwrap_or(0.0) * 1.1,
            is_far,
        }
    }
}

fn figure(arm: &ArmAnalysis, axes: [Axis; 3]) -> Option<Figure> {
    let failover = arm.failover.as_ref()?;
    let seconds = arm.workload.timing.duration.as_secs_f64();
    let shown = axes.iter().enumerate().filter(|(_, axis)| axis.top > 0.0);
    let panels = shown.map(|(place, axis)| panel(PANELS[place].0, place, *axis, failover));
    let trials = failover.lines.len() as u32;
    let counted = plural(trials, "trial");
    let lines = match trials {
        1 => format!("Line: {counted}."),
        _ => format!("Thin lines: {counted}; bold: median."),
    };
    let far = why_logarithmic(axes[RATES], "arms");
    (trials > 0).then(|| Figure {
        title: arm.arm.to_string(),
        reading: format!("{lines} Gaps exclude the probe interval. Dotted lines: the numbered events.{far}"),
        alternative: format!(
            "{}: probes, delay and throughput over {seconds} s of {counted} with the events",
            arm.arm
        ),
        chart: Chart::Timeline(Timeline {
            title: arm.arm.to_string(),
            seconds,
            marks: marks(failover),
            lines: WAYS,
            panels: panels.collect(),
        }),
        data: None,
        in_text: false,
    })
}

/// The throughput of several runs around events, which stand in the place of arms: a panel for each run on common
/// axes. Absent without streams.
pub(super) fn throughput_of_runs(workload: &WorkloadAnalysis) -> Option<Figure> {
    let (_, of, _, foot) = PANELS[RATES];
    let axis = Axis::of(workload, of, foot);
    let runs: Vec<(&ArmAnalysis, &ArmFailover)> =
        workload.arms.iter().filter_map(|run| Some((run, run.failover.as_ref()?))).collect();
    let (first, events) = runs.first().filter(|_| axis.top > 0.0)?;
    let mut table = rate_table();
    for (run, failover) in &runs {
        for figures in failover.events.iter().filter(|event| !event.began_s.is_empty()) {
            let rows = figures.ways.iter().enumerate().map(|(number, way)| {
                key(run.arm.as_str(), figures, number).into_iter().chain(rate_row(way)).collect::<Vec<Cell>>()
            });
            table.rows.extend(rows);
        }
    }
    let words = |(run, _): &(&ArmAnalysis, &ArmFailover)| Some(format!("{} {}", run.arm, largest_drop(run)?));
    let drops: Vec<String> = runs.iter().filter_map(words).collect();
    let panels = runs.iter().map(|(run, failover)| panel(run.arm.as_str(), RATES, axis, failover));
    Some(Figure {
        title: "Throughput around events".to_owned(),
        reading: format!(
            "A panel for each run, on the same axes. Thin lines: trials; bold: median. Dotted lines: the events of {}.{}",
            first.arm,
            why_logarithmic(axis, "runs")
        ),
        alternative: format!("throughput of the streams: {}", drops.join("; ")),
        chart: Chart::Timeline(Timeline {
            title: workload.name.to_string(),
            seconds: first.workload.timing.duration.as_secs_f64(),
            marks: marks(events),
            lines: WAYS,
            panels: panels.collect(),
        }),
        data: Some(table.without_empty_columns()),
        in_text: false,
    })
}

/// The names of the two lines of a panel.
const WAYS: [&str; 2] = ["client to server", "server to client"];

/// A panel of an arm or run.
fn panel(title: &str, place: usize, Axis { foot, top, .. }: Axis, failover: &ArmFailover) -> Panel {
    let (_, of, human, _) = PANELS[place];
    Panel {
        title: title.to_owned(),
        human,
        foot,
        top,
        trials: failover.lines.iter().map(|line| of(line).clone()).collect(),
        median: [0, 1].map(|number| median(failover, of, number)),
    }
}

/// Times and names of the events.
fn marks(failover: &ArmFailover) -> Vec<(f64, String)> {
    let moments = |event: &EventFigures| {
        let began = sorted(&event.began_s);
        Some((quantile(&began, 0.5)?, event.event.kind.to_string()))
    };
    failover.events.iter().filter_map(moments).collect()
}

/// Why the axis of the throughput is logarithmic; empty for a linear one.
fn why_logarithmic(axis: Axis, what: &str) -> String {
    if axis.is_far { format!(" Throughput: {}.", logarithmic_axis(what)) } else { String::new() }
}

/// The median over trials, by time.
fn median(failover: &ArmFailover, of: Of, number: usize) -> Points {
    let mut by_time: std::collections::BTreeMap<u64, Vec<f64>> = std::collections::BTreeMap::new();
    for (x, value) in failover.lines.iter().flat_map(|line| &of(line)[number]) {
        by_time.entry((x * 1e6) as u64).or_default().push(*value);
    }
    by_time
        .into_iter()
        .filter_map(|(x, values)| Some((x as f64 / 1e6, quantile(&sorted(&values), 0.5)?)))
        .collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
