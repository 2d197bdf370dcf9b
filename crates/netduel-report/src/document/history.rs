//! The document of a history: changes of level, an overview with a small line for each series, and each series with its picture.
use netduel_model::units::plural;
use serde_json::json;

use super::block::{Block, Document, FactGroup, Scope, Section, list, titled_list};
use super::chart::{Chart, Figure, Plot};
use super::cover::Cover;
use super::metric_plots::BOUNDS;
use super::scale::{Scaled, number, scaled, scaled_packets};
use super::table::{Cell, Column, Table};
use crate::analysis::Bound;
use crate::history::{History, LEVEL, LevelChange, PastRun, Point, Series};
use crate::words;
use crate::words::text::percent_exact;

/// Steps of the small line of a series.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Most values of the small line: the newest ones.
const STEPS_MAX: usize = 40;
/// A smaller p value has no digit in its column.
const P_MIN: f64 = 0.0001;

/// The history of a plan.
pub fn of_history(history: &History) -> Document {
    let mut sections: Vec<Section> = Vec::new();
    let left_out = left_out(history);
    if !left_out.is_empty() {
        sections.push(section("left-out", "Trials left out", Scope::Result, vec![list(left_out)]));
    }
    sections.extend([
        section("changes", "Changes", Scope::Result, changes(history)),
        section("overview", "Overview", Scope::Result, vec![Block::Table(overview(history))]),
    ]);
    let each = history.series.iter().enumerate();
    sections.extend(each.map(|(place, one)| {
        let figure = Block::Figure(Box::new(figure(history, one)));
        section(&format!("series-{}", place + 1), &title(one), Scope::Detail, vec![figure])
    }));
    sections.push(section("counted", "Method", Scope::Reference, method()));
    Document {
        title: format!("History of {}: {}", history.plan, history.question),
        source: vec![netduel_model::PROGRAM.to_owned()],
        cover: Cover::default(),
        basis: basis(history),
        arms: Vec::new(),
        sections,
    }
}

fn section(anchor: &str, title: &str, scope: Scope, blocks: Vec<Block>) -> Section {
    Section { anchor: anchor.to_owned(), title: title.to_owned(), scope, blocks }
}

/// `throughput of bulk on accelerated`.
fn title(series: &Series) -> String {
    format!("{} of {} on {}", series.metric.title(), series.workload, series.arm)
}

fn basis(history: &History) -> String {
    let count = plural(history.runs.len() as u32, "run");
    let changes: usize = history.series.iter().map(|series| series.changes.len()).sum();
    let dates = [history.runs.first(), history.runs.last()]
        .map(|run| run.map(|run| words::date(run.started_unix_ms)));
    let [Some(first), Some(last)] = dates else { return count };
    format!("{count} from {first} to {last}. {}.", plural(changes as u32, "change"))
}

/// Why the values of runs lack trials, or runs have no value, each with its run.
fn left_out(history: &History) -> Vec<String> {
    let of_run = |run: &PastRun| -> Vec<String> {
        run.left_out.iter().map(|what| format!("{}: {what}", run.id)).collect()
    };
    history.runs.iter().flat_map(of_run).collect()
}

/// Every change of level with its possible causes.
fn changes(history: &History) -> Vec<Block> {
    let mut table = Table::new(vec![
        Column::key("metric"),
        Column::text("first run after").with_runs(),
        Column::text("started"),
        Column::text("level before and after"),
        Column::number("p"),
    ]);
    let mut causes = Vec::new();
    for series in &history.series {
        for change in &series.changes {
            let Some(run) = run_after(history, series, change) else { continue };
            table.rows.push(vec![
                title(series).into(),
                run.id.as_str().into(),
                words::date(run.started_unix_ms).into(),
                change.words(series).into(),
                Cell::Number(p_value(change.p_value)),
            ]);
            let before =
                series.points.get(change.at.wrapping_sub(1)).and_then(|point| history.runs.get(point.run));
            let from = before.map_or("", |run| run.id.as_str());
            let own = change.causes.iter().map(|cause| format!("{from} to {}: {cause}", run.id));
            causes.extend(own);
        }
    }
    if table.rows.is_empty() {
        let known = history.series.iter().map(|series| series.points.len()).max().unwrap_or_default();
        let needed = history.runs_needed();
        let text = if known < needed {
            format!("None. A change can be shown from {needed} runs on.")
        } else {
            "None.".to_owned()
        };
        return vec![Block::Paragraph(text.into())];
    }
    let mut blocks = vec![Block::Table(table)];
    let mut shown: Vec<String> = Vec::new();
    for cause in causes {
        if !shown.contains(&cause) {
            shown.push(cause);
        }
    }
    blocks.extend(titled_list("Differences that may be the cause", shown));
    blocks
}

/// A p value with four decimals: `0.0286`, `<0.0001`.
fn p_value(p: f64) -> String {
    if p < P_MIN { format!("<{P_MIN}") } else { format!("{p:.4}") }
}

fn run_after<'a>(history: &'a History, series: &Series, change: &LevelChange) -> Option<&'a PastRun> {
    history.runs.get(series.points.get(change.at)?.run)
}

/// A line for each series.
fn overview(history: &History) -> Table {
    let mut table = Table::new(vec![
        Column::key("metric"),
        Column::number("runs"),
        Column::text("trend"),
        Column::number("median of all runs"),
        Column::number("newest run"),
        Column::text("remark"),
    ]);
    for series in &history.series {
        let human = |points: &[Point]| {
            Cell::number(series.median(points).map(|(value, bound)| series.human(value, bound)))
        };
        let newest = series.points.last().filter(|point| point.run.saturating_add(1) == history.runs.len());
        table.rows.push(vec![
            title(series).into(),
            Cell::Count(series.points.len() as u64),
            trend(series).into(),
            human(&series.points),
            human(newest.map(std::slice::from_ref).unwrap_or_default()),
            remark(&series.points).map_or(Cell::Absent, Into::into),
        ]);
    }
    if history.series.iter().all(|series| remark(&series.points).is_none()) {
        table.columns.pop();
        for row in &mut table.rows {
            row.pop();
        }
    }
    table.notes.push(format!(
        "Trend: the runs from left to right, at most the last {STEPS_MAX}, between their lowest and highest value; `|` is a change of level."
    ));
    table
}

/// How many of some values contain CPU time of other processes, in the words of a comparison; absent where none does.
fn remark(points: &[Point]) -> Option<String> {
    let shares: Vec<f64> = points.iter().filter_map(|point| point.contention).collect();
    let share_max = shares.iter().copied().reduce(f64::max)?;
    Some(format!(
        "{} in {} of {}",
        words::not_comparable(share_max),
        shares.len(),
        plural(points.len() as u32, "run")
    ))
}

/// The values as steps between the lowest and the highest one, with a mark before the first run after a change.
pub fn trend(series: &Series) -> String {
    let first = series.points.len().saturating_sub(STEPS_MAX);
    let shown = &series.points[first..];
    let low = shown.iter().map(|point| point.median).fold(f64::INFINITY, f64::min);
    let high = shown.iter().map(|point| point.median).fold(f64::NEG_INFINITY, f64::max);
    let mut line = String::new();
    for (place, point) in (first..).zip(shown) {
        if series.changes.iter().any(|change| change.at == place) {
            line.push('|');
        }
        let share = if high > low { (point.median - low) / (high - low) } else { 0.5 };
        line.push(STEPS[((share * STEPS.len() as f64) as usize).min(STEPS.len() - 1)]);
    }
    line
}

fn figure(history: &History, series: &Series) -> Figure {
    let values = || series.points.iter().map(|point| point.median);
    let metric = &series.metric;
    let scale =
        if metric.is_packet_rate() { scaled_packets(values()) } else { scaled(metric.metric, values()) };
    let name = |point: &Point| {
        history
            .runs
            .get(point.run)
            .map_or_else(String::new, |run| format!("{}, {}", run.id, words::date(run.started_unix_ms)))
    };
    let points: Vec<_> = (1..)
        .zip(&series.points)
        .map(|(number, point): (u32, _)| {
            let [low, high] = point.quartiles.map(|value| scale.plotted(value));
            let bound = point.median_bound().map(|bound| bound.sign().trim_end());
            json!([number, scale.plotted(point.median), low, high, name(point), bound])
        })
        .collect();
    let changes = series.changes.iter().map(|change| {
        json!([
            change.at + 1,
            scale.plotted(change.before),
            scale.plotted(change.after),
            change.words(series)
        ])
    });
    let changes: Vec<_> = changes.collect();
    let in_words: Vec<String> = series.changes.iter().map(|change| change.words(series)).collect();
    let in_words = if in_words.is_empty() { "no change of level".to_owned() } else { in_words.join("; ") };
    let has_bounds = series.points.iter().any(|point| point.median_bound().is_some());
    let bounds = if has_bounds { BOUNDS } else { "" };
    Figure {
        title: "Value by run".to_owned(),
        reading: format!(
            "Dot: median of the valid trials of a run; line: its quartiles. Horizontal: the level between changes. Dashed: a change.{bounds}"
        ),
        alternative: format!("{} by run: {in_words}", title(series)),
        chart: Chart::Plot(Plot::new(
            "history",
            json!({ "unit": scale.unit, "points": points, "changes": changes }),
        )),
        data: Some(table(history, series, scale)),
        in_text: true,
    }
}

fn table(history: &History, series: &Series, scale: Scaled) -> Table {
    let mut table = Table::new(vec![
        Column::key("run").with_runs(),
        Column::text("started"),
        Column::of("median", scale.unit),
        Column::of("first quartile", scale.unit),
        Column::of("third quartile", scale.unit),
        Column::number("trials"),
        Column::text("remark"),
        Column::text("notes"),
        Column::text("change"),
    ]);
    for (place, point) in series.points.iter().enumerate() {
        let Some(run) = history.runs.get(point.run) else { continue };
        let title = run.annotations.title.iter().cloned();
        let notes = run.annotations.notes.iter().map(|(key, value)| format!("{key}={value}"));
        let notes: Vec<String> = title.chain(notes).collect();
        let change = series.changes.iter().find(|change| change.at == place);
        let shown = |value: f64, bound: Option<Bound>| {
            let sign = bound.map_or("", Bound::sign);
            Cell::Number(format!("{sign}{}", number(Some(value), scale).text()))
        };
        let ([low, high], [of_low, of_median, of_high]) = (point.quartiles, point.bounds);
        table.rows.push(vec![
            run.id.as_str().into(),
            words::date(run.started_unix_ms).into(),
            shown(point.median, of_median),
            shown(low, of_low),
            shown(high, of_high),
            Cell::Count(point.n as u64),
            point.contention.map_or(Cell::Absent, |share| words::not_comparable(share).into()),
            if notes.is_empty() { Cell::Absent } else { notes.join(", ").into() },
            change.map_or(Cell::Absent, |change| change.words(series).into()),
        ]);
    }
    let mut table = table.without_empty_columns();
    if series.other_runs > 0 {
        table.notes.push(format!(
            "{} of the plan not shown: without the workload, without any value, or with other settings.",
            plural(series.other_runs as u32, "run")
        ));
    }
    table
}

/// The rules of counting.
fn method() -> Vec<Block> {
    let rows = [
        (
            "Runs",
            "Runs of the plan of this name, in the order of their start. A series has the runs with the settings that the newest run has: hosts, \
             treatments, traffic, timing, family and DSCP."
                .to_owned(),
        ),
        (
            "Change",
            format!(
                "Between two runs, where the medians of the runs before differ from those after more clearly than in random orders of the same \
                 values: the largest standardised rank sum over all points, at least two runs on each side. The probability of any change in \
                 a history without one is at most {} over all series. Both sides of a change are searched again. A level is a median, so \
                 values that are mostly equal on both sides have no change.",
                percent_exact(LEVEL)
            ),
        ),
        (
            "Limits",
            "A slow trend is shown as steps. The runs do not show why a level changed: a fact that differs may be the cause, or none that is stored."
                .to_owned(),
        ),
    ];
    let rows = rows.into_iter().map(|(name, rule)| (name.to_owned(), rule));
    vec![Block::Facts(vec![FactGroup { rows: rows.collect(), ..FactGroup::default() }])]
}
