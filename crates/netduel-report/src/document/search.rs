//! Rate searches: results, and the steps of one search of each arm.
use netduel_model::search::{SearchGoal, SearchPurpose, SearchReport, SearchStep};

use super::block::{Block, list};
use super::chart::{Chart, Figure, Outcome, Step, Steps};
use super::table::{Cell, Column, Table};
use crate::analysis::{ArmAnalysis, ArmSearch, WorkloadAnalysis};
use crate::words::percent;
use crate::words::search::{TITLE, cost, lost, rate, sentences, tried};

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
        match outcome(step) {
            Outcome::GeneratorTooSlow => "generator too slow".into(),
            Outcome::LossAboveGoal => "loss above goal".into(),
            Outcome::Good => "passed".into(),
        },
    ]
}
