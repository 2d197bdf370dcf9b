//! The section "Published figures": what others published for the machine size of the run, or in the publication that the plan repeats,
//! beside the values of this run. It judges nothing.
use netduel_model::bed::RunBed;
use netduel_model::plan::spec::PathKind;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::published::{Figure, Measure, Packets, figures, packets};
use netduel_model::run::Run;
use netduel_model::workload::{Traffic, Workload};
use netduel_stats::summary;

use super::block::{Block, Scope, Section};
use super::table::{Cell, Column, Table};
use crate::analysis::{Analysis, ArmAnalysis, WorkloadAnalysis};
use crate::words;

/// The column of shares.
const SHARE: usize = 4;

/// The figures; absent when none is known for the size or named by the plan.
pub fn section(run: &Run, analysis: &Analysis) -> Option<Section> {
    let size = words::common_size(analysis);
    let named = analysis.plan.published.as_deref();
    let is_shown = |own: &str, id: &str| {
        named == Some(id) || size.as_deref().is_some_and(|size| own.eq_ignore_ascii_case(size))
    };
    let figures: Vec<&Figure> =
        figures().iter().filter(|figure| is_shown(&figure.size, &figure.publication.id)).collect();
    let rates: Vec<&Packets> =
        packets().iter().filter(|rate| named == Some(rate.publication.id.as_str())).collect();
    let mut table = Table::new(vec![
        Column::key("published for"),
        Column::key("figure"),
        Column::titled("published"),
        Column::titled("this run"),
        Column::titled("share"),
        Column::text("conditions of the published figure"),
    ]);
    for figure in &figures {
        rows(&mut table, figure, (analysis, run.header.bed.as_ref()), size.as_deref());
    }
    table.rows.extend(rates.iter().map(|rate| of_packets(rate)));
    if table.rows.is_empty() {
        return None;
    }
    let mut sources: Vec<String> = Vec::new();
    let publications =
        figures.iter().map(|figure| figure.publication).chain(rates.iter().map(|rate| rate.publication));
    for source in publications.map(netduel_model::published::Publication::source) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let own = match &size {
        Some(size) => format!("The hosts of this run have the size {size}."),
        None => "The size of the hosts of this run is unknown, or differs.".to_owned(),
    };
    table.notes.push(format!("Sources: {}.", sources.join("; ")));
    if table.rows.iter().any(|row| !matches!(row.get(SHARE), None | Some(Cell::Absent))) {
        let when =
            "A share is given where size, path, traffic and definition of the figure are those of this run.";
        table.notes.push(when.to_owned());
    }
    let blocks = vec![Block::Reading(own), Block::Table(table.without_empty_columns())];
    let (anchor, title) = ("published".to_owned(), "Published figures".to_owned());
    Some(Section { anchor, title, scope: Scope::Detail, blocks })
}

/// A row for each workload and arm of the run that the figure is about; one without a value of this run when there is none.
fn rows(
    table: &mut Table,
    figure: &Figure,
    (analysis, bed): (&Analysis, Option<&RunBed>),
    size: Option<&str>,
) {
    let is_same_size = size.is_some_and(|size| figure.is_of(size));
    let before = table.rows.len();
    for workload in &analysis.workloads {
        for arm in workload.arms.iter().filter(|arm| is_about(figure, arm, analysis, bed)) {
            let Some((value, words)) = value(figure, workload, arm) else { continue };
            let share = (is_same_size && figure.is_comparable).then(|| share(value, figure));
            table.rows.push(vec![
                Cell::from(place(figure)),
                Cell::from(title(figure)),
                Cell::from(published(figure)),
                Cell::from(format!("{words} ({} of {})", workload.name, arm.arm)),
                share.map_or(Cell::Absent, Cell::from),
                Cell::from(figure.conditions.clone()),
            ]);
        }
    }
    if table.rows.len() == before {
        table.rows.push(vec![
            Cell::from(place(figure)),
            Cell::from(title(figure)),
            Cell::from(published(figure)),
            Cell::Absent,
            Cell::Absent,
            Cell::from(figure.conditions.clone()),
        ]);
    }
}

fn of_packets(rate: &Packets) -> Vec<Cell> {
    vec![
        Cell::from(rate.size.clone()),
        Cell::from(format!("packets of {} B received", rate.frame)),
        Cell::from(format!(
            "{} (sent {})",
            words::packet_rate(rate.receiver_pps),
            words::packet_rate(rate.sender_pps)
        )),
        Cell::Absent,
        Cell::Absent,
        Cell::from(rate.conditions.clone()),
    ]
}

/// Whether an arm of the run has the path and the traffic of a figure.
fn is_about(figure: &Figure, arm: &ArmAnalysis, analysis: &Analysis, bed: Option<&RunBed>) -> bool {
    let path = analysis.plan.arm(&arm.arm).and_then(|arm| path(arm, &analysis.plan, bed));
    path == Some(figure.path) && has_traffic(figure, &arm.workload)
}

/// The path of an arm: that which it proves, or on a bed that of the client's NIC, as its guest shows it.
fn path(arm: &Arm, plan: &ResolvedPlan, bed: Option<&RunBed>) -> Option<PathKind> {
    let of_nic = || {
        let vm = bed?.vm(plan.hosts.get(&arm.pair.client)?.vm.as_deref()?)?;
        let seen = vm.nic_in(arm.network?)?.seen.as_ref()?;
        Some(if seen.vf.is_some() { PathKind::Vf } else { PathKind::Synthetic })
    };
    arm.expect_path.or_else(of_nic)
}

fn has_traffic(figure: &Figure, workload: &Workload) -> bool {
    let streams = match &workload.traffic {
        Traffic::TcpStream(stream) => Some(stream.streams),
        Traffic::UdpStream(stream) => Some(stream.flows),
        _ => None,
    };
    workload.traffic.kind() == figure.workload
        && figure.family.is_none_or(|family| family == workload.family)
        && figure.streams.is_none_or(|wanted| streams == Some(wanted))
}

/// The median of an arm in the metric of a figure, as a number and in words.
fn value(figure: &Figure, workload: &WorkloadAnalysis, arm: &ArmAnalysis) -> Option<(f64, String)> {
    let Measure::Metric(wanted) = figure.measure else { return None };
    let metric = workload.judged.iter().chain(&workload.unjudged).find(|metric| metric.metric == wanted)?;
    let values = metric.arms.iter().find(|values| values.arm == arm.arm)?;
    let median = summary::quantile(&values.numbers(), 0.5)?;
    Some((median, metric.human(median)))
}

/// The share of the published range: of its nearer end; `within it` inside.
fn share(value: f64, figure: &Figure) -> String {
    if (figure.low..=figure.high).contains(&value) {
        return if figure.low < figure.high { "within the range".to_owned() } else { words::percent(1.0) };
    }
    words::percent(value / if value < figure.low { figure.low } else { figure.high })
}

fn place(figure: &Figure) -> String {
    let path = match figure.path {
        PathKind::Vf => "accelerated",
        PathKind::Synthetic => "synthetic",
    };
    format!("{}, {path}", figure.size)
}

fn title(figure: &Figure) -> String {
    let what = match &figure.measure {
        Measure::Metric(metric) => metric.title().to_owned(),
        Measure::Other { title, .. } => title.clone(),
    };
    let streams = figure.streams.map(|streams| words::plural(streams, "stream"));
    let family = figure.family.map(|family| family.to_string());
    let details: Vec<String> = streams.into_iter().chain(family).collect();
    if details.is_empty() { what } else { format!("{what}, {}", details.join(", ")) }
}

fn published(figure: &Figure) -> String {
    let human = |value: f64| match &figure.measure {
        Measure::Metric(metric) => metric.human(value),
        Measure::Other { unit, .. } => format!("{value} {unit}"),
    };
    if figure.low < figure.high {
        format!("{} to {}", human(figure.low), human(figure.high))
    } else {
        human(figure.low)
    }
}
