//! Blocks that a run began and did not finish: no figure contains their trials, and every output says so.
use netduel_model::run::{Run, RunEnd};
use netduel_model::warning::Warning;
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::history::PastRun;
use netduel_report::{analyse_run, csv, document, html, influx, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::compare_document::document_of;
use crate::json;

const STATED: &str = "block 9 was not finished, so its 3 trials are in no value, verdict or count";

/// A run that was stopped in its ninth block, in which one arm lost its advantage, as when another program turns its offloads off.
fn stopped(end: Option<RunEnd>) -> Run {
    let recipe = Recipe { workloads: vec!["bulk", "rr"], blocks: 9, end, ..Recipe::default() };
    let changed = build(&Recipe { effect: 0.3, ..recipe.clone() });
    let mut run = build(&recipe);
    run.trials.retain(|trial| trial.slot.block < 8);
    run.trials.extend(changed.trials.into_iter().filter(|trial| trial.slot.block == 8).take(3));
    run
}

/// Ends after which the hosts were not compared.
fn irregular_ends() -> [Option<RunEnd>; 3] {
    let failed = RunEnd::Failed { detail: "host b has other settings".to_owned() };
    [None, Some(RunEnd::Interrupted), Some(failed)]
}

/// All values and verdicts, and the numbers of blocks, valid and excluded trials.
fn figures(run: &Run) -> (String, [u32; 3]) {
    let analysis = analyse_run(run);
    let workloads = analysis.workloads.iter();
    let metrics = workloads.flat_map(|workload| workload.judged.iter().chain(&workload.unjudged));
    let figures: Vec<String> =
        metrics.map(|metric| format!("{:?} {:?}", metric.arms, metric.comparisons)).collect();
    (figures.join("\n"), [analysis.blocks, analysis.trials_valid, analysis.trials_excluded])
}

/// A text with single spaces and without the escapes of Markdown.
fn unbroken(text: &str) -> String {
    text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn shift_in_an_unfinished_block_changes_no_value_verdict_or_count() {
    for end in irregular_ends() {
        let run = stopped(end);
        let mut finished = run.clone();
        finished.trials.retain(|trial| trial.slot.block < 8);
        assert_eq!(figures(&run), figures(&finished), "{:?}", run.end);
        assert_eq!(figures(&run).1, [8, 32, 0], "{:?}", run.end);
    }
    // No rule of a plan ends a run within a block: this one lost a record.
    let regular = stopped(Some(RunEnd::BlockLimitReached));
    assert_eq!(figures(&regular).1, [9, 35, 0]);
    assert!(!analyse_run(&regular).warnings.iter().any(Warning::leaves_trials_out));
}

#[test]
fn warning_of_a_block_promises_no_resumed_run() {
    // The run may be in progress, or `--resume` may refuse its file.
    let words = Warning::BlockIncomplete { block: 8, trials: 3 }.to_string();
    let (stated, condition) = words.rsplit_once("; ").unwrap();
    assert!(stated.contains(STATED), "{words}");
    assert_eq!(condition, "let the run finish the block, or repeat it with `netduel run --resume`");
}

#[test]
fn two_unfinished_blocks_have_a_warning_each() {
    let mut run = stopped(Some(RunEnd::Interrupted));
    let mut finished = run.clone();
    // The fourth block lost a record, and the resumed run ended while it repeated it.
    let mut repeated = run.trials.iter().find(|trial| trial.slot.block == 3).unwrap().clone();
    repeated.attempt = 1;
    run.trials.push(repeated);
    finished.trials.retain(|trial| !matches!(trial.slot.block, 3 | 8));
    assert_eq!(figures(&run), figures(&finished));
    let analysis = analyse_run(&run);
    let left_out: Vec<&Warning> =
        analysis.warnings.iter().filter(|warning| warning.leaves_trials_out()).collect();
    let [fourth, ninth] = [(3, 4), (8, 3)].map(|(block, trials)| Warning::BlockIncomplete { block, trials });
    assert_eq!(left_out, [&fourth, &ninth]);
    let table = csv::trials(&run);
    let valid = |block: &str| {
        table.lines().filter(|row| row.split(',').nth(1) == Some(block) && row.contains(",true,")).count()
    };
    assert_eq!((valid("4"), valid("9")), (0, 0), "{table}");
    assert!(valid("5") > 0, "{table}");
}

#[test]
fn unfinished_block_is_stated_in_every_output() {
    for end in irregular_ends() {
        let run = stopped(end);
        let analysis = analyse_run(&run);
        assert!(analysis.warnings.contains(&Warning::BlockIncomplete { block: 8, trials: 3 }));
        let page = document(&run);
        let whole = build(&Recipe::default());
        let analysis_of_whole = analyse_run(&whole);
        let sides = [Side::of(&whole, &analysis_of_whole), Side::of(&run, &analysis)];
        let compared = document_of(&compare(&sides, &[]));
        for (format, text) in [
            ("text", terminal::report(&page, 120, false)),
            ("summary", terminal::summary(&page, 120, false)),
            ("html", html::page(&page)),
            ("md", markdown::page(&page)),
            ("json", json::report(&run).to_string()),
            ("comparison", markdown::page(&compared)),
            ("history", PastRun::of(&run, &analysis).left_out.concat()),
        ] {
            assert!(unbroken(&text).contains(STATED), "{format} of {:?}: {text}", run.end);
        }
        let table = csv::trials(&run);
        let rows: Vec<&str> = table.lines().filter(|row| row.split(',').nth(1) == Some("9")).collect();
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|row| row.contains(",false,") && row.contains(STATED)), "{rows:?}");
        let lines = influx::lines(&run);
        let lines: Vec<&str> = lines.lines().filter(|line| line.contains("block=9i")).collect();
        assert!(!lines.is_empty());
        assert!(lines.iter().all(|line| line.contains("valid=false") && line.contains(STATED)), "{lines:?}");
    }
}

#[test]
fn run_without_a_finished_block_has_no_values_and_says_so() {
    let recipe =
        Recipe { workloads: vec!["bulk"], blocks: 1, end: Some(RunEnd::Interrupted), ..Recipe::default() };
    let mut run = build(&recipe);
    run.trials.truncate(1);
    assert_eq!(figures(&run).1, [0, 0, 0]);
    let page = document(&run);
    for text in [terminal::report(&page, 120, false), html::page(&page), markdown::page(&page)] {
        let text = unbroken(&text);
        assert!(text.contains("0 complete blocks, 0 valid trials, 0 excluded."), "{text}");
        assert!(text.contains("block 1 was not finished, so its 1 trial is in no value"), "{text}");
    }
}
