//! Rates of false verdicts and of false warnings: 200 comparisons of a path with itself in the lab, with short real trials, judged as in a
//! report. Fails when one of the rates exceeds the level.
//!
//! One long A/A run is split into comparisons with the default number of blocks, each judged separately from its own trials: the
//! same as 200 short runs, without 200 starts. The number of false verdicts is binomial, and its interval is exact (Clopper and
//! Pearson 1934). The warnings are `bimodal` and `outlier block`, which say that values have two levels, or that a block is far from the
//! others: a comparison of a path with itself has neither. They say nothing false where other programs or the hypervisor took its cores, so
//! comparisons with a warning about that do not count for them. `NETDUEL_AA_COMPARISONS=N` makes N comparisons of each workload; fewer than the default show the rates and judge none.
#[path = "support/binomial.rs"]
mod binomial;
mod support;

use binomial::interval;
use netduel_model::ids::WorkloadName;
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::Run;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_report::analysis::{Analysis, analyse};
use netduel_stats::verdict::Verdict;
use support::stored_run;

/// Comparisons of each workload.
const COMPARISONS: u32 = 100;
/// The variable with another number of them.
const COMPARISONS_VARIABLE: &str = "NETDUEL_AA_COMPARISONS";
/// Blocks of a comparison: the default of plans.
const BLOCKS: u32 = 8;
/// The accepted probability of a false verdict at a confidence of 95 %, and the accepted share of comparisons with a false warning.
const LEVEL: f64 = 0.05;

const WORKLOADS: &str = r#"
[[workloads]]
name = "latency"
type = "tcp-rr"
duration = "100 ms"
cooldown = "0 ms"
pin_client = [0]
pin_server = [0]
metrics = ["latency-p50"]
[[workloads]]
name = "stream"
type = "tcp-stream"
duration = "100 ms"
cooldown = "0 ms"
congestion = "cubic"
metrics = ["throughput"]
"#;

/// The verdicts of the comparisons of one workload.
#[derive(Debug, Default)]
struct Answers {
    higher: u64,
    lower: u64,
    no_difference: u64,
    inconclusive: u64,
    /// Comparisons without a warning about contended cores; the following are among them.
    clean: u64,
    /// Comparisons with the warning `bimodal`.
    bimodal: u64,
    /// Comparisons with the warning `outlier block`.
    outlier: u64,
    /// Comparisons with one of them, or both.
    warned: u64,
}

impl Answers {
    /// Whether the comparison has a false warning.
    fn count_warnings(&mut self, warnings: &[Warning]) -> bool {
        let has = |is_it: fn(&Warning) -> bool| warnings.iter().any(is_it);
        if has(|warning| matches!(warning, Warning::CpuContention { .. } | Warning::StealTime { .. })) {
            return false;
        }
        let bimodal = has(|warning| matches!(warning, Warning::Bimodal { .. }));
        let outlier = has(|warning| matches!(warning, Warning::OutlierBlock { .. }));
        self.clean += 1;
        self.bimodal += u64::from(bimodal);
        self.outlier += u64::from(outlier);
        self.warned += u64::from(bimodal || outlier);
        bimodal || outlier
    }
}

fn main() {
    let comparisons = comparisons();
    let run = campaign(comparisons);
    let (mut all, mut clean, mut warned) = ((0, 0), 0, 0);
    for name in &run.header.plan.workloads {
        let answers = judge(&run, name, comparisons);
        let false_ones = answers.higher + answers.lower;
        let total = false_ones + answers.no_difference + answers.inconclusive;
        println!(
            "aa: {name}: verdicts of {total} comparisons: {} higher, {} lower, {} no difference, {} inconclusive",
            answers.higher, answers.lower, answers.no_difference, answers.inconclusive
        );
        println!("figure false-verdicts-{name} {:.2} %", 100.0 * false_ones as f64 / total as f64);
        println!(
            "aa: {name}: {} of {total} comparisons had their cores for themselves; with the warning bimodal: {}, outlier block: {}, \
             either: {}",
            answers.clean, answers.bimodal, answers.outlier, answers.warned
        );
        all = (all.0 + false_ones, all.1 + total);
        clean += answers.clean;
        warned += answers.warned;
    }
    let (false_ones, total) = all;
    let (low, high) = interval(total, false_ones);
    println!(
        "aa: {false_ones} of {total} comparisons of a path with itself have the verdict higher or lower: {:.1} % [{:.1}, {:.1}] (exact \
         binomial interval, 95 %); accepted: {:.0} %",
        100.0 * false_ones as f64 / total as f64,
        low * 100.0,
        high * 100.0,
        LEVEL * 100.0
    );
    println!("figure false-verdicts {:.2} %", 100.0 * false_ones as f64 / total as f64);
    println!("figure false-verdicts-at-least {:.2} %", low * 100.0);
    println!("figure false-verdicts-at-most {:.2} %", high * 100.0);
    assert_eq!(
        total,
        u64::from(comparisons) * run.header.plan.workloads.len() as u64,
        "comparisons are missing"
    );
    let warned_share = show_warnings(warned, clean, total);
    if comparisons < COMPARISONS {
        println!("aa: not judged: fewer than {COMPARISONS} comparisons of each workload");
        return;
    }
    assert!(low <= LEVEL, "more false verdicts than the level allows");
    assert!(
        2 * clean >= total,
        "other programs took the cores in {} of {total} comparisons: repeat it on a quiet machine",
        total - clean
    );
    assert!(warned_share <= LEVEL, "more false warnings than the level allows");
}

/// Shows and returns the share of clean comparisons with a false warning.
fn show_warnings(warned: u64, clean: u64, total: u64) -> f64 {
    // Without a clean comparison there is no share.
    let share = warned as f64 / clean.max(1) as f64;
    let (low, high) = interval(clean, warned);
    println!(
        "aa: {warned} of {clean} clean comparisons (of {total}) have the warning bimodal or outlier block: {:.1} % [{:.1}, {:.1}]; \
         accepted: {:.0} %",
        100.0 * share,
        low * 100.0,
        high * 100.0,
        LEVEL * 100.0
    );
    println!("figure clean-comparisons {clean} comparisons");
    println!("figure false-warnings {:.2} %", 100.0 * share);
    share
}

/// Comparisons of each workload in this run.
fn comparisons() -> u32 {
    let text = std::env::var(COMPARISONS_VARIABLE).ok();
    text.map_or(COMPARISONS, |text| match text.parse() {
        Ok(number @ 1..) => number,
        _ => panic!("{COMPARISONS_VARIABLE} is no number of comparisons: {text}"),
    })
}

/// Runs all trials in the lab, and returns the stored run.
fn campaign(comparisons: u32) -> Run {
    let blocks = comparisons * BLOCKS;
    let text = format!(
        "name = \"aa\"\nquestion = \"Is a path faster than itself?\"\n[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
         [[arms]]\nname = \"path\"\nclient = \"a\"\nserver = \"b\"\n{WORKLOADS}\n\
         [design]\naa = true\nblocks_min = {blocks}\nblocks_max = {blocks}\n"
    );
    stored_run(&text, &[0])
}

/// Splits the run into comparisons of one workload, each judged as a separate run.
fn judge(run: &Run, name: &WorkloadName, comparisons: u32) -> Answers {
    let plan = with_one_workload(&run.header.plan, name);
    let mut answers = Answers::default();
    for comparison in 0..comparisons {
        let blocks = comparison * BLOCKS..(comparison + 1) * BLOCKS;
        let own = |trial: &&Trial| blocks.contains(&trial.slot.block) && &trial.slot.workload == name;
        let trials: Vec<Trial> = run.trials.iter().filter(own).cloned().collect();
        let analysis = analyse(&plan, Some(&run.header), &trials, &[], None);
        if answers.count_warnings(&analysis.warnings) {
            show_values(name, comparison, &analysis);
        }
        let judged = analysis.workloads.iter().flat_map(|workload| &workload.judged);
        for judged in judged.flat_map(|metric| &metric.comparisons).filter_map(|one| one.judged.as_ref()) {
            match judged.verdict {
                Verdict::Higher { .. } => answers.higher += 1,
                Verdict::Lower { .. } => answers.lower += 1,
                Verdict::NoDifference { .. } => answers.no_difference += 1,
                Verdict::Inconclusive { .. } => answers.inconclusive += 1,
            }
        }
    }
    answers
}

/// Shows the values of a comparison with a false warning by block, so that its cause can be found.
fn show_values(name: &WorkloadName, comparison: u32, analysis: &Analysis) {
    let metrics = analysis.workloads.iter().flat_map(|workload| &workload.judged);
    for arm in metrics.flat_map(|metric| &metric.arms) {
        println!(
            "aa: {name}: comparison {comparison}, arm {}, values in the order of blocks: {:?}",
            arm.arm,
            arm.numbers()
        );
    }
}

fn with_one_workload(plan: &ResolvedPlan, name: &WorkloadName) -> ResolvedPlan {
    let mut plan = plan.clone();
    plan.workloads.retain(|other| other == name);
    for arm in &mut plan.arms {
        arm.workloads.retain(|workload| &workload.name == name);
    }
    plan
}
