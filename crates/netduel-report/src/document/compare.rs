//! The document of a comparison of runs: the runs, what differs between them, the verdicts, and what is not compared.
use super::block::{Block, Document, FactGroup, Scope, Section, list, titled_list};
use super::chart::Figure;
use super::cover::Cover;
use super::table::{Cell, Column, Table};
use super::verdicts::{Effect, Sides, VerdictCell, VerdictGroup, VerdictRow, Verdicts};
use super::{metric_plots, workload};
use crate::analysis::MetricAnalysis;
use crate::analysis::compare::{Difference, RunComparison, RunVerdict, Subject};
use crate::words::compare as texts;
use crate::words::{self, Tone};

/// The comparison of several runs.
pub fn of_runs(comparison: &RunComparison<'_>) -> Document {
    let numbers = texts::difference_numbers(comparison);
    let mut sections = vec![section("runs", "Runs", Scope::Result, vec![Block::Table(runs(comparison))])];
    if comparison.is_of_runs() {
        let differences = differences(comparison, &numbers);
        sections.push(section("differences", "Differences between the runs", Scope::Result, differences));
        sections.push(section("verdicts", "Verdicts", Scope::Result, verdicts(comparison, &numbers)));
    }
    if !comparison.published.is_empty() {
        sections.push(section("published", "Published figures", Scope::Result, published(comparison)));
    }
    let unmatched = comparison.unmatched.iter().map(|one| texts::unmatched(comparison, one));
    let unmatched: Vec<String> = unmatched.collect();
    if !unmatched.is_empty() {
        sections.push(section("not-compared", "Not compared", Scope::Result, vec![list(unmatched)]));
    }
    sections.push(section("warnings", "Warnings", Scope::Detail, warnings(comparison)));
    sections.extend(
        comparison.subjects.iter().enumerate().filter_map(|(place, one)| figures(comparison, place, one)),
    );
    sections.push(section("counted", "Method", Scope::Reference, method(comparison)));
    let runs = comparison.runs.iter().map(|one| format!("{} {}", one.label, one.header.id));
    Document {
        cover: Cover::default(),
        title: texts::title(comparison),
        source: runs.chain([netduel_model::PROGRAM.to_owned()]).collect(),
        basis: texts::basis(comparison),
        arms: labels(comparison),
        sections,
    }
}

fn section(anchor: &str, title: &str, scope: Scope, blocks: Vec<Block>) -> Section {
    Section { anchor: anchor.to_owned(), title: title.to_owned(), scope, blocks }
}

fn labels(comparison: &RunComparison<'_>) -> Vec<String> {
    comparison.runs.iter().map(|one| one.label.to_string()).collect()
}

/// The runs behind the labels.
fn runs(comparison: &RunComparison<'_>) -> Table {
    let mut table = Table::new(vec![
        Column::key("run"),
        Column::text("name"),
        Column::text("title"),
        Column::text("started"),
        Column::number("blocks"),
        Column::number("valid trials"),
        Column::number("excluded"),
    ]);
    for one in &comparison.runs {
        let (header, analysis) = (one.header, one.analysis);
        table.rows.push(vec![
            one.label.as_str().into(),
            header.id.as_str().into(),
            header.annotations.title.clone().map_or(Cell::Absent, Cell::Text),
            words::date(header.started_unix_ms).into(),
            Cell::Count(u64::from(analysis.blocks)),
            Cell::Count(u64::from(analysis.trials_valid)),
            Cell::Count(u64::from(analysis.trials_excluded)),
        ]);
    }
    table.without_empty_columns()
}

/// Every fact that differs, with its value in each run.
fn differences(comparison: &RunComparison<'_>, numbers: &[(usize, usize)]) -> Vec<Block> {
    if comparison.differences.is_empty() {
        return vec![Block::Paragraph("None of the stored facts differs.".into())];
    }
    let mut columns = vec![Column::key("fact"), Column::text("kind")];
    columns.extend(labels(comparison).into_iter().map(Column::titled));
    columns.push(Column::text("mark"));
    let mut table = Table::new(columns);
    let row = |(place, one): (usize, &Difference)| {
        let number = numbers.iter().find(|(own, _)| *own == place).map(|(_, number)| *number);
        let mark = number.map_or(Cell::Absent, |number| words::marks(&[number]).into());
        let head: [Cell; 2] = [texts::difference(one).into(), texts::aspect(one.aspect).into()];
        let values = one.values.iter().map(|value| value.clone().map_or(Cell::Absent, Cell::Text));
        head.into_iter().chain(values).chain([mark]).collect::<Vec<Cell>>()
    };
    table.rows = comparison.differences.iter().enumerate().map(row).collect();
    let mut blocks = Vec::new();
    if !numbers.is_empty() {
        let text = "A difference with a mark (*1) may be the cause of the verdicts with the same mark.";
        blocks.push(Block::Reading(text.to_owned()));
    }
    blocks.push(Block::Table(table.without_empty_columns()));
    blocks
}

fn verdicts(comparison: &RunComparison<'_>, numbers: &[(usize, usize)]) -> Vec<Block> {
    if comparison.subjects.is_empty() {
        let text = "No arm and workload has the same settings in two of the runs.";
        return vec![Block::Paragraph(text.into())];
    }
    let labels = labels(comparison);
    let (baseline, others) =
        labels.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
    let group = |subject: &Subject| VerdictGroup {
        title: format!("{}, {}", subject.workload.name, subject.arm),
        settings: words::workload_of_arms(&subject.workload),
        rows: subject
            .workload
            .judged
            .iter()
            .flat_map(|metric| rows(comparison, numbers, subject, metric))
            .collect(),
    };
    vec![Block::Verdicts(Verdicts {
        sides: Sides::Runs,
        baseline: baseline.to_owned(),
        other: if let [other] = others { other.clone() } else { Sides::Runs.noun().to_owned() },
        equivalence: comparison.equivalence,
        legend: texts::verdict_legend(comparison),
        legend_brief: texts::VERDICT_LEGEND_BRIEF,
        columns: Verdicts::columns(Sides::Runs, baseline, others),
        groups: comparison.subjects.iter().map(group).collect(),
    })]
}

/// The figures of publications with the values of the runs beside them.
fn published(comparison: &RunComparison<'_>) -> Vec<Block> {
    let mut table = Table::new(vec![
        Column::key("published for"),
        Column::key("figure"),
        Column::titled("published"),
        Column::text("run"),
        Column::text("arm"),
        Column::titled("value of the run"),
        Column::text("verdict"),
        Column::text("conditions of the published figure"),
    ]);
    for one in &comparison.published {
        let figure = &one.figure;
        let row = |cells: [Cell; 4]| -> Vec<Cell> {
            let head = [
                words::published_for(figure),
                words::published_title(figure),
                words::published_value(figure),
            ];
            let conditions = Cell::from(figure.conditions().to_owned());
            head.map(Cell::from).into_iter().chain(cells).chain([conditions]).collect()
        };
        if one.values.is_empty() {
            let text = "no value: no arm of a run has this path, traffic and figure";
            table.rows.push(row([Cell::Absent, Cell::Absent, Cell::Absent, text.into()]));
        }
        table.rows.extend(one.values.iter().map(|value| {
            row([
                comparison.label(value.run).into(),
                format!("{}, {}", value.workload, value.arm).into(),
                words::beside_published(value).into(),
                words::published_verdict(figure, value).into(),
            ])
        }));
    }
    let mut sources: Vec<String> = Vec::new();
    for source in comparison.published.iter().map(|one| one.figure.publication().source()) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    table.notes.push(format!("Sources: {}.", sources.join("; ")));
    let sizes = words::other_sizes(comparison);
    let mut blocks = if sizes.is_empty() { Vec::new() } else { vec![list(sizes)] };
    blocks.push(Block::Reading(words::published_legend(comparison)));
    blocks.push(Block::Table(table.without_empty_columns()));
    blocks
}

/// A row for each verdict of a metric.
fn rows(
    comparison: &RunComparison<'_>,
    numbers: &[(usize, usize)],
    subject: &Subject,
    metric: &MetricAnalysis,
) -> Vec<VerdictRow> {
    let row = |(index, verdict): (usize, &RunVerdict)| {
        let place = subject.runs.iter().position(|run| *run == verdict.run)?;
        let [first, own] = [metric.arms.first()?, metric.arms.get(place)?];
        let tone = words::tone(metric.metric, Some(&verdict.judged));
        let effect = words::shown_effect(metric.metric, Some(&verdict.judged), Sides::Runs);
        // A verdict with a result contains the estimate.
        let is_stated = effect == Effect::Unknown || matches!(tone, Tone::Better | Tone::Worse);
        let detail = if is_stated { String::new() } else { format!("estimate {}", effect.words()) };
        let cell = VerdictCell { text: texts::verdict(verdict), detail };
        let [first, own] = [first, own].map(|values| VerdictCell::from(&words::measure(metric, values)));
        let run = (comparison.runs.len() > 2).then(|| VerdictCell::from(comparison.label(verdict.run)));
        let head = [VerdictCell::from(metric.title()), first];
        Some(VerdictRow {
            cells: head.into_iter().chain(run).chain([own, cell]).collect(),
            repeated: if index == 0 { 0 } else { 2 },
            tone,
            mark: texts::verdict_mark(numbers, verdict),
            effect,
        })
    };
    let own = subject.verdicts.iter().filter(|verdict| verdict.metric == metric.metric);
    own.enumerate().filter_map(row).collect()
}

/// Differences that may be the cause of verdicts, and the warnings of each run.
fn warnings(comparison: &RunComparison<'_>) -> Vec<Block> {
    let mut blocks =
        titled_list("Differences that may be the cause of verdicts", texts::explanations(comparison));
    for (label, sentences) in texts::run_warnings(comparison) {
        blocks.extend(titled_list(&format!("Warnings of {label}"), sentences));
    }
    if blocks.is_empty() { vec![Block::Paragraph("None.".into())] } else { blocks }
}

/// The pictures of a subject with all runs in one plot. Absent when not every run has it, because a picture knows a run by its place.
fn figures(comparison: &RunComparison<'_>, place: usize, subject: &Subject) -> Option<Section> {
    let by_block = subject.workload.judged.iter().filter(|metric| metric_plots::is_shown(metric));
    let by_block = by_block.map(|metric| metric_plots::by_block_of_runs(&subject.workload, metric));
    let figures = by_block.chain(workload::over_trials(&subject.workload)).map(with_runs_for_arms);
    let blocks: Vec<Block> = figures.map(|figure| Block::Figure(Box::new(figure))).collect();
    let title = format!("{}, {}", subject.workload.name, subject.arm);
    let is_whole = subject.runs.len() == comparison.runs.len() && !blocks.is_empty();
    is_whole.then(|| section(&format!("subject-{}", place + 1), &title, Scope::Reference, blocks))
}

/// A figure whose table names its rows as what they are: runs stand in the place of arms.
fn with_runs_for_arms(mut figure: Figure) -> Figure {
    for column in figure.data.iter_mut().flat_map(|table| &mut table.columns) {
        if column.title == Sides::Arms.noun() {
            Sides::Runs.noun().clone_into(&mut column.title);
        }
    }
    figure
}

/// The rules of counting.
fn method(comparison: &RunComparison<'_>) -> Vec<Block> {
    let rows = texts::rules(comparison).into_iter().map(|(name, rule)| (name.to_owned(), rule));
    vec![Block::Facts(vec![FactGroup { rows: rows.collect(), ..FactGroup::default() }])]
}
