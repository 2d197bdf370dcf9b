//! Rate searches: results, and the steps of one search of each arm.
use netduel_model::search::{SearchGoal, SearchPurpose, SearchReport, SearchStep};
use serde_json::{Value, json};

use super::block::{Block, list};
use super::chart::{Chart, Figure, Outcome, Plot, Step, Steps};
use super::scale::{number, scaled_packets, short};
use super::table::{Cell, Column, Table};
use crate::analysis::{ArmAnalysis, ArmSearch, WorkloadAnalysis};
use crate::words::percent;
use crate::words::search::{TITLE, cost, found, lost, rate, sentences, tried};

/// The section of a workload; empty when it is no search.
pub(super) fn blocks(workload: &WorkloadAnalysis) -> Vec<Block> {
    let sentences = sentences(workload);
    if sentences.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Heading(TITLE.to_owned()), list(sentences)];
    for (arm, search) in workload.arms.iter().filter_map(|arm| Some((arm, arm.search.as_ref()?))) {
        blocks.extend(figure(arm, search).map(|figure| Block::Figure(Box::new(figure))));
    }
    blocks
}

/// The steps of the search with the median result.
fn figure(arm: &ArmAnalysis, search: &ArmSearch) -> Option<Figure> {
    let (block, report) = search.middle()?;
    let of = match search.trials.len() {
        1 => String::new(),
        count => format!(" (block {} of {count} searches: the median result)", block.saturating_add(1)),
    };
    let title = format!("{}{of}: {}", arm.arm, cost(report));
    let table = steps(report, &search.goals);
    Some(Figure {
        reading: "Rate of each step, logarithmic axis. Large marks: steps of full length. Lines: bounds of the first goal."
            .to_owned(),
        alternative: format!("{title}: the rate of each step; the table of the steps has the numbers"),
        title,
        chart: Chart::Steps(picture(report)),
        data: Some(table),
        in_text: true,
    })
}

fn picture(report: &SearchReport) -> Steps {
    let bound = |load: Option<u64>| load.map(|load| load as f64);
    let step = |step: &SearchStep| Step {
        rate: step.load as f64,
        outcome: outcome(step),
        is_confirming: step.input.purpose == SearchPurpose::Confirm,
        words: tried(step),
    };
    Steps {
        steps: report.steps.iter().map(step).collect(),
        human: rate,
        bounds: report
            .results
            .first()
            .map(|result| [bound(result.lower), bound(result.upper)])
            .unwrap_or_default(),
    }
}

fn outcome(step: &SearchStep) -> Outcome {
    match (step.high_loss, step.generator_limited) {
        (true, true) => Outcome::GeneratorTooSlow,
        (true, false) => Outcome::LossAboveGoal,
        (false, _) => Outcome::Good,
    }
}

fn steps(report: &SearchReport, goals: &[SearchGoal]) -> Table {
    let mut table = Table::new(vec![Column::key("step"), Column::text("purpose")]);
    table.columns.extend(["load", "time", "sent", "lost", "share", "rate error"].map(Column::number));
    table.columns.push(Column::text("result"));
    table.rows = report.steps.iter().enumerate().map(|(index, step)| row(index, step, goals)).collect();
    table
}

fn row(index: usize, step: &SearchStep, goals: &[SearchGoal]) -> Vec<Cell> {
    let goal = goals.get(step.input.goal as usize).map_or("?", |goal| goal.name.as_str());
    let purpose = match step.input.purpose {
        SearchPurpose::Maximum => "maximum".to_owned(),
        SearchPurpose::Narrow => format!("{goal}, narrow"),
        SearchPurpose::Confirm => format!("{goal}, confirm"),
    };
    let (sent, received) = (step.output.sent, step.output.received);
    vec![
        Cell::Text((index + 1).to_string()),
        Cell::Text(purpose),
        Cell::Number(
            step.input.load.map_or(format!("unpaced: {}", rate(step.offered_load)), |load| rate(load as f64)),
        ),
        Cell::Number(step.input.duration.to_string()),
        Cell::Count(sent),
        Cell::Count(sent.saturating_sub(received)),
        Cell::Number(lost(step)),
        Cell::number(step.pacing_error().map(|error| percent(error.abs()))),
        result(step).into(),
    ]
}

fn result(step: &SearchStep) -> &'static str {
    match outcome(step) {
        Outcome::GeneratorTooSlow => "generator too slow",
        Outcome::LossAboveGoal => "loss above goal",
        Outcome::Good => "passed",
    }
}

const LOSS_READING: &str = "Steps of one search of each run, the one with the median result: share of the \
                            packets lost, by the rate that the generator sent. No loss stands at the foot of \
                            the logarithmic axis.";

/// The loss in the steps of one search of each run, which stand in the place of arms, by the rate that was
/// sent. Absent when fewer than two runs have a search.
pub(super) fn loss_of_runs(workload: &WorkloadAnalysis) -> Option<Figure> {
    let runs: Vec<(&ArmAnalysis, Vec<&SearchStep>)> =
        workload.arms.iter().map(|run| (run, by_rate(run))).collect();
    if runs.iter().filter(|(_, steps)| !steps.is_empty()).count() < 2 {
        return None;
    }
    let scale = scaled_packets(runs.iter().flat_map(|(_, steps)| steps).map(|step| step.offered_load));
    let mut table = Table::new(vec![Column::key("arm"), Column::of("sent", scale.unit)]);
    table.columns.extend([Column::number("lost"), Column::text("result")]);
    for (run, steps) in &runs {
        table.rows.extend(steps.iter().map(|step| {
            let sent = number(Some(step.offered_load), scale);
            vec![run.arm.as_str().into(), sent, Cell::Number(lost(step)), result(step).into()]
        }));
    }
    let point = |step: &&SearchStep| {
        let (sent, received) = (step.output.sent, step.output.received);
        let share = sent.saturating_sub(received) as f64 / sent.max(1) as f64;
        json!([scale.plotted(step.offered_load), short(share * 100.0)])
    };
    let points: Vec<Vec<Value>> = runs.iter().map(|(_, steps)| steps.iter().map(point).collect()).collect();
    let words: Vec<String> = workload.arms.iter().filter_map(in_words).collect();
    Some(Figure {
        title: "Loss by rate".to_owned(),
        reading: LOSS_READING.to_owned(),
        alternative: format!("loss by rate of the searches of {}: {}", workload.name, words.join("; ")),
        chart: Chart::Plot(Plot::new("loss", json!({ "unit": scale.unit, "arms": points }))),
        data: Some(table),
        in_text: false,
    })
}

/// The steps of the search with the median result that sent packets, the slowest first.
fn by_rate(arm: &ArmAnalysis) -> Vec<&SearchStep> {
    let Some((_, report)) = arm.search.as_ref().and_then(ArmSearch::middle) else { return Vec::new() };
    let mut steps: Vec<&SearchStep> = report.steps.iter().filter(|step| step.offered_load > 0.0).collect();
    steps.sort_by(|one, other| one.offered_load.total_cmp(&other.offered_load));
    steps
}

/// What the search with the median result found for its first goal.
fn in_words(arm: &ArmAnalysis) -> Option<String> {
    let (_, report) = arm.search.as_ref()?.middle()?;
    let found = report.results.first().map(|result| format!(", {}", found(result))).unwrap_or_default();
    Some(format!("{} {}{found}", arm.arm, cost(report)))
}
