//! The report of a run: its sections in their order, and those about the run as a whole.
use netduel_model::ids::ArmName;
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::{Run, RunEnd};
use netduel_model::units::plural;

use super::block::{Block, Document, FactGroup, Headline, Scope, Section, Style, Text, list};
use super::table::{Cell, Column, Table};
use super::verdicts::{Effect, Sides, VerdictCell, VerdictGroup, VerdictRow, Verdicts};
use super::{
    bed, counters, environment, front, hosts, packets, path, price, published, reader, reproduction, workload,
};
use crate::analysis::{Analysis, Comparison, MetricAnalysis, WorkloadAnalysis};
use crate::findings::Severity;
use crate::words::{self, Tone};

/// Number of summaries without any result from which on they are folded.
const FOLDED_FROM: usize = 3;

/// The report of a run.
pub fn of_run(run: &Run, analysis: &Analysis) -> Document {
    let header = &run.header;
    let author = header.publication();
    // A single trial is its own summary.
    let is_single = is_single_trial(&analysis.plan);
    let summary = reader::summary(analysis, noted(analysis)).filter(|_| !is_single);
    let mut sections: Vec<Section> = summary.into_iter().collect();
    sections.push(result(analysis));
    sections.extend(reader::purpose(&author));
    sections.extend(packets::page(analysis));
    let numbered = analysis.workloads.iter().enumerate();
    sections.extend(numbered.filter_map(|(number, one)| workload::section(analysis, number, one)));
    sections.extend(published::section(run, analysis));
    sections.extend(treatments(analysis));
    sections.push(path::section(run, analysis));
    sections.push(warnings(analysis, words::has_plan_file(run)));
    sections.extend(bed::section(run, analysis));
    sections.extend(price::section(run, analysis));
    sections.extend(reader::commentary(analysis, &author));
    sections.extend(environment::section(run, analysis));
    sections.push(hosts::section(run, &analysis.inspection));
    sections.push(method(analysis));
    sections.push(reproduction::reproduction(run));
    sections.extend(reader::references(analysis));
    sections.push(reproduction::appendix(run, analysis));
    let when = words::date(header.started_unix_ms);
    let source =
        header.annotations.title.iter().cloned().chain([header.id.to_string(), when, header.program.clone()]);
    let source = source.collect();
    Document {
        cover: front::cover(run, analysis, &author),
        title: words::question(&analysis.plan),
        source,
        basis: basis(run, analysis),
        arms: analysis.plan.arms.iter().map(|arm| arm.name.to_string()).collect(),
        sections,
    }
}

/// Number of trials behind the result, how the run ended, and the settings that it did not take from its plan: a reader has to know them before
/// the first verdict. A single trial has no blocks and no rule that stopped it.
fn basis(run: &Run, analysis: &Analysis) -> String {
    let is_complete = matches!(analysis.end, Some(RunEnd::BlockLimitReached | RunEnd::PrecisionReached));
    let trials = if is_single_trial(&analysis.plan) && is_complete && analysis.trials_excluded == 0 {
        "1 trial.".to_owned()
    } else {
        format!("{}. {}", words::trials(analysis), words::end_of(analysis))
    };
    match run.header.annotations.overrides.as_slice() {
        [] => trials,
        settings => format!("{trials} Settings in place of those of the plan: {}.", settings.join("; ")),
    }
}

/// Whether a plan has one trial, as a quick test has.
fn is_single_trial(plan: &ResolvedPlan) -> bool {
    let workloads: usize = plan.arms.iter().map(|arm| arm.workloads.len()).sum();
    plan.design.blocks_max == 1 && workloads == 1
}

fn section(anchor: &str, title: &str, scope: Scope, blocks: Vec<Block>) -> Section {
    Section { anchor: anchor.to_owned(), title: title.to_owned(), scope, blocks }
}

/// Summary, verdicts, and each kind of warning in a line.
fn result(analysis: &Analysis) -> Section {
    // A single arm has values and no verdict.
    let is_compared = analysis.plan.compares();
    let mut blocks = if is_compared {
        vec![Block::Headlines(headlines(analysis)), Block::Verdicts(verdicts(analysis))]
    } else {
        values(analysis)
    };
    blocks.extend(words::lab_difference(&analysis.plan).map(|text| Block::Paragraph(text.into())));
    if let Some(reason) = words::too_few_blocks(&analysis.plan) {
        blocks.insert(0, Block::Paragraph(format!("Too few blocks: {reason}.").into()));
    }
    for missing in words::without_value(analysis) {
        blocks.insert(0, Block::Paragraph(format!("No value: {missing}.").into()));
    }
    if let Some(attention) = attention(analysis) {
        let found = analysis.inspection.lines(Severity::Warning);
        let found = found.iter().map(|line| line.split(';').next().unwrap_or_default().to_owned());
        blocks.push(Block::Paragraph(attention));
        blocks.push(list(words::warning_heads(analysis).into_iter().chain(found)));
    }
    section("verdicts", if is_compared { "Verdicts" } else { "Results" }, Scope::Result, blocks)
}

/// The summary of each arm in each workload. From [`FOLDED_FROM`] summaries without any result on, arms that lack a result in the
/// same workloads share one line: the table below has the number of missing blocks of each metric.
fn headlines(analysis: &Analysis) -> Vec<Headline> {
    let arms = || analysis.plan.arms.iter().skip(1).map(|arm| &arm.name);
    let open_in = |arm: &ArmName| -> Vec<&WorkloadAnalysis> {
        analysis.workloads.iter().filter(|workload| words::is_inconclusive(workload, arm)).collect()
    };
    let is_folded = arms().map(|arm| open_in(arm).len()).sum::<usize>() >= FOLDED_FROM;
    let mut headlines = Vec::new();
    for workload in &analysis.workloads {
        for arm in arms().filter(|arm| !(is_folded && words::is_inconclusive(workload, arm))) {
            headlines.extend(
                words::answer(workload, arm).map(|text| Headline { title: workload.name.to_string(), text }),
            );
        }
    }
    if is_folded {
        headlines.extend(folded(analysis, arms().map(|arm| (arm, open_in(arm)))));
    }
    headlines
}

/// One summary for the arms that lack a result in the same workloads, with the metrics.
fn folded<'a>(
    analysis: &Analysis,
    arms: impl Iterator<Item = (&'a ArmName, Vec<&'a WorkloadAnalysis>)>,
) -> Vec<Headline> {
    let is_withheld = |workload: &&WorkloadAnalysis| {
        let comparisons = workload.judged.iter().flat_map(|metric| &metric.comparisons);
        comparisons.into_iter().any(|comparison| comparison.contention.is_some())
    };
    let mut groups: Vec<(String, Vec<&str>, Vec<&str>, bool)> = Vec::new();
    for (arm, open) in arms.filter(|(_, open)| !open.is_empty()) {
        let title = open.iter().map(|workload| workload.name.to_string()).collect::<Vec<_>>().join(", ");
        let mut metrics: Vec<&str> = Vec::new();
        for metric in open.iter().flat_map(|workload| &workload.judged).map(MetricAnalysis::title) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        match groups.iter_mut().find(|(other, ..)| *other == title) {
            Some((_, names, ..)) => names.push(arm.as_str()),
            None => groups.push((title, vec![arm.as_str()], metrics, open.iter().any(is_withheld))),
        }
    }
    let baseline = &analysis.plan.arms[0].name;
    let few = match analysis.plan.too_few_blocks() {
        Some((_, needed)) => format!(": the plan allows too few blocks, at least {needed} are needed"),
        None => String::new(),
    };
    let headline = |(title, arms, metrics, is_withheld): (String, Vec<&str>, Vec<&str>, bool)| {
        let word = if is_withheld { "inconclusive or not comparable" } else { "inconclusive" };
        let text = Text::from(format!("{} against {baseline}: ", words::listed(&arms)))
            .and(word, Style::Tone(Tone::Open))
            .and(format!(" for all metrics ({}){few}.", words::listed(&metrics)), Style::Plain);
        Headline { title, text }
    };
    groups.into_iter().map(headline).collect()
}

/// The number of warnings, and of their kinds where some are alike, and of findings with links; absent without any.
fn noted(analysis: &Analysis) -> Option<Text> {
    let count = words::warning_sentences(analysis).len();
    let kinds = words::warning_heads(analysis).len();
    let problems = analysis.inspection.lines(Severity::Warning).len();
    let of_kinds = if kinds < count { format!(" of {}", plural(kinds, "kind")) } else { String::new() };
    let warnings = (count > 0).then(|| (plural(count, "warning") + &of_kinds, "warnings"));
    let findings = (problems > 0).then(|| (plural(problems, "finding") + " on the hosts", "hosts"));
    let parts: Vec<(String, &'static str)> = warnings.into_iter().chain(findings).collect();
    let mut text = Text::default();
    for (index, (words, anchor)) in parts.iter().enumerate() {
        text = text
            .and(if index == 0 { "" } else { ", " }, Style::Plain)
            .and(words.clone(), Style::Link(anchor));
    }
    (!parts.is_empty()).then_some(text)
}

/// What readers of the result must not miss; absent without a warning or finding.
fn attention(analysis: &Analysis) -> Option<Text> {
    let is_marked = words::warning_sentences(analysis).iter().any(|sentence| sentence.number.is_some());
    let what = if analysis.plan.compares() { "verdicts" } else { "values" };
    let legend =
        if is_marked { format!(" (*N marks the {what} that warning *N concerns):") } else { ":".to_owned() };
    noted(analysis).map(|text| text.and(legend, Style::Plain))
}

/// The values of a run of one arm: a table for each workload, with the marks of the warnings about each.
fn values(analysis: &Analysis) -> Vec<Block> {
    let is_single = is_single_trial(&analysis.plan);
    let warnings = words::warning_sentences(analysis);
    let mut blocks = Vec::new();
    if !is_single {
        blocks.push(Block::Reading(words::verdict_legend(&analysis.plan)));
    }
    for workload in &analysis.workloads {
        let arm = analysis.plan.arms.first().map_or("", |arm| arm.name.as_str());
        let columns = vec![Column::key("metric"), Column::number(arm), Column::text("warnings")];
        let mut table = Table::new(columns);
        let row = |metric: &MetricAnalysis| {
            let arm = metric.arms.first()?;
            let value = words::measure(metric, arm);
            let value = value.median.clone().filter(|_| is_single).unwrap_or_else(|| value.words());
            let mark = mark(analysis, &warnings, workload, metric, &arm.arm);
            let mark = if mark.is_empty() { Cell::Absent } else { mark.into() };
            Some(vec![metric.title().into(), Cell::Number(value), mark])
        };
        table.rows = workload.judged.iter().filter_map(row).collect();
        blocks.push(Block::Heading(workload.name.to_string()));
        blocks.push(Block::Reading(words::workload_of_arms(workload)));
        blocks.push(Block::Table(table.without_empty_columns()));
    }
    blocks
}

/// The mark of the warnings about an arm's value or verdict.
fn mark(
    analysis: &Analysis,
    warnings: &[words::Sentence],
    workload: &WorkloadAnalysis,
    metric: &MetricAnalysis,
    arm: &ArmName,
) -> String {
    words::marks(&words::warning_numbers(analysis, warnings, workload, metric.metric, arm))
}

fn verdicts(analysis: &Analysis) -> Verdicts {
    let warnings = words::warning_sentences(analysis);
    let names: Vec<String> = analysis.plan.arms.iter().map(|arm| arm.name.to_string()).collect();
    let (baseline, others) = names.split_first().map_or(("", &[][..]), |(first, others)| (first, others));
    let groups = analysis.workloads.iter().map(|workload| {
        let rows = |metric| rows(analysis, &warnings, workload, metric);
        VerdictGroup {
            title: workload.name.to_string(),
            settings: words::workload_of_arms(workload),
            bottleneck: words::bottleneck(workload).unwrap_or_default(),
            rows: workload.judged.iter().flat_map(rows).collect(),
        }
    });
    Verdicts {
        sides: Sides::Arms,
        baseline: baseline.to_owned(),
        other: if let [other] = others { other.clone() } else { Sides::Arms.noun().to_owned() },
        equivalence: analysis.plan.design.equivalence.fraction(),
        legend: words::verdict_legend(&analysis.plan),
        legend_brief: words::verdict_legend_brief(&analysis.plan),
        columns: Verdicts::columns(Sides::Arms, baseline, others),
        groups: groups.collect(),
    }
}

/// A row for each comparison of a metric.
fn rows(
    analysis: &Analysis,
    warnings: &[words::Sentence],
    workload: &WorkloadAnalysis,
    metric: &MetricAnalysis,
) -> Vec<VerdictRow> {
    let Some((baseline, others)) = metric.arms.split_first() else { return Vec::new() };
    let row = |(index, comparison): (usize, &Comparison)| {
        let own = others.iter().find(|arm| arm.arm == comparison.arm)?;
        let judged = comparison.judged.as_ref();
        let tone = words::tone(metric.metric, judged);
        let has_bounds = comparison.has_bounds();
        let effect = words::shown_effect(metric.metric, comparison.estimated(), has_bounds, Sides::Arms);
        // A verdict with a result contains the estimate.
        let is_stated = effect == Effect::Unknown || matches!(tone, Tone::Better | Tone::Worse);
        let verdict = VerdictCell {
            text: words::verdict(metric.metric, comparison),
            detail: if is_stated { String::new() } else { format!("estimate {}", effect.words()) },
        };
        let [baseline, value] = [baseline, own].map(|arm| VerdictCell::from(&words::measure(metric, arm)));
        let arm = (analysis.plan.arms.len() > 2).then(|| VerdictCell::from(comparison.arm.as_str()));
        let cells = [VerdictCell::from(metric.title()), baseline].into_iter().chain(arm);
        Some(VerdictRow {
            cells: cells.chain([value, verdict]).collect(),
            repeated: if index == 0 { 0 } else { 2 },
            tone,
            mark: mark(analysis, warnings, workload, metric, &comparison.arm),
            effect,
        })
    };
    metric.comparisons.iter().enumerate().filter_map(row).collect()
}

/// The treatments of each arm; absent when arms differ only in the path of the lab.
fn treatments(analysis: &Analysis) -> Option<Section> {
    let changes = words::changes(&analysis.plan);
    let reading = Block::Reading("Applied before each trial of the arm and restored after it.".to_owned());
    (!changes.is_empty()).then(|| {
        section("treatments", "Treatments", Scope::Detail, vec![reading, counters::headed_list(changes)])
    })
}

/// All warnings, and findings at warning severity.
fn warnings(analysis: &Analysis, has_plan_file: bool) -> Section {
    let sentences = words::warning_sentences(analysis);
    let mut blocks = if sentences.is_empty() { vec![Block::Paragraph("None.".into())] } else { Vec::new() };
    if sentences.iter().any(|sentence| sentence.number.is_some()) {
        let what = if analysis.plan.compares() { "verdicts" } else { "values" };
        blocks.push(Block::Reading(format!(
            "A warning with a mark (*1) concerns the {what} with that mark. Without a mark it is not about single {what}."
        )));
    }
    if !has_plan_file && sentences.iter().any(|sentence| sentence.text.contains('`')) {
        let text = "Settings in a warning are keys of a plan. A quick test has options for most of them, which its --help lists.";
        blocks.push(Block::Reading(text.to_owned()));
    }
    if !sentences.is_empty() {
        blocks.push(counters::headed_list(sentences.iter().map(words::Sentence::marked).collect()));
    }
    let found = analysis.inspection.lines(Severity::Warning);
    if !found.is_empty() {
        blocks.extend([Block::Heading("Findings on the hosts".to_owned()), list(found)]);
    }
    section("warnings", "Warnings", Scope::Detail, blocks)
}

/// The rules of counting.
fn method(analysis: &Analysis) -> Section {
    let rows = words::rules(&analysis.plan).into_iter().map(|(name, rule)| (name.to_owned(), rule));
    let facts = FactGroup { rows: rows.collect(), ..FactGroup::default() };
    let rules = Block::Facts(vec![facts]);
    let blocks = if is_single_trial(&analysis.plan) {
        vec![rules]
    } else {
        let paragraphs = words::method(&analysis.plan).into_iter().map(|text| Block::Paragraph(text.into()));
        paragraphs.chain([Block::Heading("Rules of counting".to_owned()), rules]).collect()
    };
    section("counted", "Method", Scope::Reference, blocks)
}
