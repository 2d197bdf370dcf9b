//! The section "Published figures": what others published for the machine size of the run, or in the publication that the plan repeats,
//! beside the values of this run. It judges nothing.
use netduel_model::bed::RunBed;
use netduel_model::published::{Figure, Measure, Packets, figures, packets};
use netduel_model::run::Run;

use super::block::{Block, Scope, Section};
use super::table::{Cell, Column, Table};
use crate::analysis::published::is_about;
use crate::analysis::{Analysis, ArmAnalysis, Bound, WorkloadAnalysis, common_size};
use crate::words;

/// The column of shares.
const SHARE: usize = 4;

/// The figures of the size of the hosts and those of the publication that the plan names, and its packet rates.
fn shown(analysis: &Analysis, size: Option<&str>) -> (Vec<&'static Figure>, Vec<&'static Packets>) {
    let named = analysis.plan.published.as_deref();
    let is_shown =
        |own: &str, id: &str| named == Some(id) || size.is_some_and(|size| own.eq_ignore_ascii_case(size));
    let figures = figures().iter().filter(|figure| is_shown(&figure.size, &figure.publication.id));
    let rates = packets().iter().filter(|rate| named == Some(rate.publication.id.as_str()));
    (figures.collect(), rates.collect())
}

/// The publications of the figures that the section shows, each once.
pub(super) fn sources(analysis: &Analysis) -> Vec<String> {
    let (figures, rates) = shown(analysis, common_size(analysis).as_deref());
    let publications =
        figures.iter().map(|figure| figure.publication).chain(rates.iter().map(|rate| rate.publication));
    let mut sources: Vec<String> = Vec::new();
    for source in publications.map(netduel_model::published::Publication::source) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources
}

/// The figures; absent when none is known for the size or named by the plan.
pub fn section(run: &Run, analysis: &Analysis) -> Option<Section> {
    let size = common_size(analysis);
    let (figures, rates) = shown(analysis, size.as_deref());
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
    let own = match &size {
        Some(size) => format!("The hosts of this run have the size {size}."),
        None => "The size of the hosts of this run is unknown, or differs.".to_owned(),
    };
    table.notes.push(format!("Sources: {}.", sources(analysis).join("; ")));
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
            let Some((value, bound, words)) = value(figure, workload, arm) else { continue };
            let share = (is_same_size && figure.is_comparable).then(|| share(value, bound, figure));
            table.rows.push(vec![
                Cell::from(words::published::place(figure)),
                Cell::from(words::published::title(figure)),
                Cell::from(words::published::range(figure)),
                Cell::from(format!("{words} ({} of {})", workload.name, arm.arm)),
                share.map_or(Cell::Absent, Cell::from),
                Cell::from(figure.conditions.clone()),
            ]);
        }
    }
    if table.rows.len() == before {
        table.rows.push(vec![
            Cell::from(words::published::place(figure)),
            Cell::from(words::published::title(figure)),
            Cell::from(words::published::range(figure)),
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

/// The median of an arm in the metric of a figure, what it bounds, and both in words.
fn value(
    figure: &Figure,
    workload: &WorkloadAnalysis,
    arm: &ArmAnalysis,
) -> Option<(f64, Option<Bound>, String)> {
    let Measure::Metric(wanted) = figure.measure else { return None };
    let metric = workload.judged.iter().chain(&workload.unjudged).find(|metric| metric.metric == wanted)?;
    let values = metric.arms.iter().find(|values| values.arm == arm.arm)?;
    let (median, bound) = values.quantile(wanted, 0.5)?;
    Some((median, bound, words::metric_value_or_bound(wanted, metric.unit, median, bound)))
}

/// The share of the published range: of its nearer end; `within the range` inside. That of a bound is of the end beyond which it may lie.
fn share(value: f64, bound: Option<Bound>, figure: &Figure) -> String {
    let is_within = (figure.low..=figure.high).contains(&value);
    let sign = bound.map_or("", Bound::sign);
    match bound {
        None if is_within && figure.low < figure.high => "within the range".to_owned(),
        _ if value < figure.low => format!("{sign}{}", words::percent(value / figure.low)),
        _ if is_within => format!("{sign}{}", words::percent(1.0)),
        _ => format!("{sign}{}", words::percent(value / figure.high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_has_the_sign_of_a_bound_and_may_exceed_the_published_value() {
        let range = figures().iter().find(|figure| figure.low < figure.high).unwrap();
        let value = figures().iter().find(|figure| figure.low >= figure.high).unwrap();
        let middle = f64::midpoint(range.low, range.high);
        let bound = Some(Bound::LessThan);
        for (value, bound, figure, words) in [
            (value.low, None, value, "100 %"),
            (value.low * 1.5, None, value, "150 %"),
            (value.low * 0.64, None, value, "64 %"),
            (value.low * 0.64, bound, value, "< 64 %"),
            (middle, None, range, "within the range"),
            (middle, bound, range, "< 100 %"),
            (range.high * 2.0, None, range, "200 %"),
        ] {
            assert_eq!(share(value, bound, figure), words);
        }
    }
}
