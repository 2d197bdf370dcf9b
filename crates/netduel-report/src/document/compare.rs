//! The document of a comparison of runs: the runs, what differs between them, the verdicts, and what is not compared.
use netduel_model::ids::ArmName;
use netduel_model::publication::Publication;
use netduel_model::units::plural;
use netduel_model::word::word;
use serde_json::{Value, json};

use super::block::{Block, Document, FactGroup, Scope, Section, Style, Text, list, titled_list};
use super::chart::{Chart, Figure};
use super::table::{Cell, Column, Table};
use super::verdicts::{Effect, Sides, VerdictCell, VerdictGroup, VerdictRow, Verdicts};
use super::{failover, front, latency_plots, levels, metric_plots, reader, search, sweep, workload};
use crate::analysis::compare::{Difference, RunComparison, RunVerdict, Subject, sweeps_of_subjects};
use crate::analysis::{MetricAnalysis, Sweep};
use crate::words::compare as texts;
use crate::words::{self, Tone};

/// The comparison of several runs with the words of its author.
pub fn of_runs(comparison: &RunComparison<'_>, author: &Publication) -> Document {
    let numbers = texts::difference_numbers(comparison);
    let mut sections: Vec<Section> = summary(comparison).into_iter().collect();
    sections.push(section("runs", "Runs", Scope::Result, vec![Block::Table(runs(comparison))]));
    sections.extend(reader::purpose(author));
    if comparison.is_of_runs() {
        let differences = differences(comparison, &numbers);
        sections.push(section("differences", "Differences between the runs", Scope::Result, differences));
        // Other settings of a plan are differences, too.
        sections.extend(not_compared(comparison));
        sections.push(section("verdicts", "Verdicts", Scope::Result, verdicts(comparison, &numbers)));
    }
    if !comparison.published.is_empty() {
        sections.push(section("published", "Published figures", Scope::Result, published(comparison)));
    }
    sections.push(section("warnings", "Warnings", Scope::Detail, warnings(comparison)));
    sections.extend(reader::own_commentary(author));
    sections.extend(sweeps(comparison));
    sections.extend(
        comparison.subjects.iter().enumerate().filter_map(|(place, one)| figures(comparison, place, one)),
    );
    sections.push(section("counted", "Method", Scope::Reference, method(comparison)));
    let runs = comparison.runs.iter().map(|one| format!("{} {}", one.label, one.header.id));
    Document {
        cover: front::of_comparison(comparison, author),
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

/// Arms and workloads that a run lacks or that have other settings, with both values; absent without any.
fn not_compared(comparison: &RunComparison<'_>) -> Option<Section> {
    let reasons = comparison.unmatched.iter().map(|one| texts::unmatched(comparison, one));
    let reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() {
        return None;
    }
    Some(section("not-compared", "Not compared", Scope::Result, vec![list(reasons)]))
}

/// Three sentences and one picture for readers who read nothing else; absent without a value that is compared. What differs between the runs
/// comes before the outcomes.
fn summary(comparison: &RunComparison<'_>) -> Option<Section> {
    let labels = labels(comparison);
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let (first, others) = labels.split_first()?;
    let picture = levels::of_subjects(&labels, &comparison.subjects)?;
    let was = if others.len() == 1 { "was" } else { "were" };
    let each = |of: fn(&Subject) -> &str| {
        let mut names: Vec<&str> = Vec::new();
        for name in comparison.subjects.iter().map(of) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        words::listed(&names)
    };
    let compared = format!(
        "{} {was} compared with {first}: {} on {}; ",
        words::listed(others),
        each(|subject| subject.workload.name.as_str()),
        each(|subject| subject.arm.as_str())
    );
    let outcomes: Vec<String> = (0..labels.len()).filter_map(|run| outcome(comparison, run)).collect();
    if outcomes.is_empty() {
        return None;
    }
    let count = comparison.differences.len() as u32;
    let differences = match comparison.explaining().len() {
        _ if count == 0 => "no stored fact differs between the runs".to_owned(),
        0 => format!("the runs differ in {}", plural(count, "stored fact")),
        some => {
            format!(
                "{some} of {} between the runs may be the cause of a verdict",
                plural(count, "difference")
            )
        }
    };
    let mut text = Text::from(compared).and(differences, Style::Link("differences"));
    let unmatched = match comparison.unmatched.len() {
        0 => None,
        1 => Some("1 arm or workload is not compared".to_owned()),
        some => Some(format!("{some} arms or workloads are not compared")),
    };
    if let Some(unmatched) = unmatched {
        text = text.and("; ", Style::Plain).and(unmatched, Style::Link("not-compared"));
    }
    let found = format!(". {}. {}.", outcomes.join("; "), texts::error_rates(comparison));
    let text = text.and(found, Style::Plain);
    let blocks = vec![Block::Paragraph(text), Block::Figure(Box::new(picture))];
    Some(section("summary", "Summary", Scope::Reference, blocks))
}

/// The verdicts of a run by their outcome; absent without a verdict.
fn outcome(comparison: &RunComparison<'_>, run: usize) -> Option<String> {
    let verdicts = comparison.subjects.iter().flat_map(|subject| &subject.verdicts);
    let tones: Vec<Tone> = verdicts
        .filter(|verdict| verdict.run == run)
        .map(|verdict| words::tone(verdict.metric, Some(&verdict.judged)))
        .collect();
    (!tones.is_empty()).then(|| format!("{} {}", comparison.label(run), reader::outcomes(&tones)))
}

/// The runs behind the labels.
fn runs(comparison: &RunComparison<'_>) -> Table {
    let mut table = Table::new(vec![
        Column::key("run"),
        Column::text("name").with_runs(),
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
        let number = texts::difference_number(numbers, place);
        let mark = number.map_or(Cell::Absent, |number| words::marks(&[number]).into());
        let head: [Cell; 2] = [one.subject().into(), word(&one.aspect).into()];
        // A run without any of the values keeps its column: it is one of those that differ.
        let values = (0..one.values.len()).map(|run| Cell::from(one.value(run)));
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
        title: subject.title(),
        settings: words::workload_of_arms(&subject.workload),
        bottleneck: String::new(),
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
        legend_brief: texts::VERDICT_LEGEND_BRIEF.to_owned(),
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
        let estimated = verdict.estimated();
        let effect = words::shown_effect(metric.metric, estimated, verdict.has_bounds, Sides::Runs);
        // A verdict with a result contains the estimate.
        let is_stated = effect == Effect::Unknown || matches!(tone, Tone::Better | Tone::Worse);
        let detail = if is_stated { String::new() } else { format!("estimate {}", effect.words()) };
        let cell = VerdictCell { text: texts::verdict(comparison, verdict), detail };
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

/// The sweeps of the first run with all runs that have them in one picture; absent without one.
fn sweeps(comparison: &RunComparison<'_>) -> Option<Section> {
    let plan = &comparison.runs.first()?.header.plan;
    let labels = labels(comparison);
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let figure = |(arm, one): &(Option<ArmName>, Sweep)| {
        Block::Figure(Box::new(sweep::of_runs(one, arm.as_ref(), &labels)))
    };
    let blocks: Vec<Block> = sweeps_of_subjects(plan, &comparison.subjects).iter().map(figure).collect();
    (!blocks.is_empty()).then(|| section("packets", "Packets per second", Scope::Reference, blocks))
}

/// The pictures of a subject: bars by run, and plots with all runs that have it. Absent when only one run has it.
fn figures(comparison: &RunComparison<'_>, place: usize, subject: &Subject) -> Option<Section> {
    if subject.runs.len() < 2 {
        return None;
    }
    let labels = labels(comparison);
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let by_block = |metric| metric_plots::by_block(&subject.workload, metric, Sides::Runs);
    let by_block = subject.workload.judged.iter().filter_map(by_block);
    let plots = by_block
        .chain(workload::over_trials(&subject.workload, Sides::Runs))
        .chain(latency_plots::parts(&subject.workload))
        .chain(search::loss_of_runs(&subject.workload))
        .chain(failover::throughput_of_runs(&subject.workload))
        .map(|figure| with_runs_for_arms(figure, &subject.runs, comparison.runs.len()));
    let figures = levels::of_subject(&labels, subject).into_iter().chain(plots);
    let blocks: Vec<Block> = figures.map(|figure| Block::Figure(Box::new(figure))).collect();
    let anchor = format!("subject-{}", place + 1);
    (!blocks.is_empty()).then(|| section(&anchor, &subject.title(), Scope::Reference, blocks))
}

/// A figure in which runs stand in the place of arms: its table names them so, and its plot knows them by their places in the comparison.
fn with_runs_for_arms(mut figure: Figure, runs: &[usize], count: usize) -> Figure {
    if let Chart::Plot(plot) = &mut figure.chart {
        move_to_runs(&mut plot.data, runs, count);
    }
    for column in figure.data.iter_mut().flat_map(|table| &mut table.columns) {
        if column.title.eq_ignore_ascii_case(Sides::Arms.noun()) {
            Sides::Runs.noun().clone_into(&mut column.title);
        }
    }
    figure
}

/// Keys in the data of a plot whose list has an entry for each arm.
const BY_ARM: [&str; 6] = ["arms", "medians", "median_bounds", "tail", "density", "cumulative"];

/// Moves the values of each run to its place among all runs, which gives it colour and name. A run without values gets those of an arm without a
/// valid trial.
fn move_to_runs(data: &mut Value, runs: &[usize], count: usize) {
    if let Some(items) = data.as_array_mut() {
        for one in items {
            move_to_runs(one, runs, count);
        }
        return;
    }
    for (key, value) in data.as_object_mut().into_iter().flatten() {
        if BY_ARM.contains(&key.as_str())
            && let Some(own) = value.as_array_mut()
        {
            let is_value = matches!(key.as_str(), "medians" | "median_bounds");
            let nothing = if is_value { Value::Null } else { json!([]) };
            let mut all = vec![nothing; count];
            for (run, one) in runs.iter().zip(std::mem::take(own)) {
                if let Some(place) = all.get_mut(*run) {
                    *place = one;
                }
            }
            *own = all;
        } else if key == "arm" {
            let place = value.as_u64().and_then(|arm| runs.get(usize::try_from(arm).ok()?));
            if let Some(place) = place {
                *value = (*place).into();
            }
        } else {
            move_to_runs(value, runs, count);
        }
    }
}

/// The rules of counting.
fn method(comparison: &RunComparison<'_>) -> Vec<Block> {
    let rows = texts::rules(comparison).into_iter().map(|(name, rule)| (name.to_owned(), rule));
    vec![Block::Facts(vec![FactGroup { rows: rows.collect(), ..FactGroup::default() }])]
}
