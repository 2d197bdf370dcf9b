//! Rate searches from records with numbers that can be checked by hand: values, verdicts, texts, tables, figures.
use netduel_model::metric::Metric;
use netduel_model::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use netduel_model::run::{Run, RunEnd};
use netduel_model::search::{
    Search, SearchEnd, SearchInput, SearchOutput, SearchPreset, SearchPurpose, SearchReport, SearchResult,
    SearchState, SearchStep,
};
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;
use netduel_model::workload::{Pps, Traffic};
use netduel_report::analysis::compare::{RunComparison, Side};
use netduel_report::analysis::{Analysis, Bound, Withheld};
use netduel_report::baseline::Baseline;
use netduel_report::gate::{Condition, Standing};
use netduel_report::{analyse_run, document, html, markdown, prometheus, terminal, words};
use netduel_stats::verdict::Verdict;
use netduel_store::format::{FORMAT, upgrade};

use crate::builder::{Recipe, build};
use crate::{compare, json};

fn step(load: Option<u64>, purpose: SearchPurpose, [sent, received]: [u64; 2]) -> SearchStep {
    let duration_s = 2.0;
    let offered = sent as f64 / duration_s;
    SearchStep {
        input: SearchInput { load, duration: Nanos(2_000_000_000), goal: 0, purpose },
        output: SearchOutput {
            sent,
            received,
            elapsed_ns: 2_000_000_000,
            effective_duration_ns: 2_400_000_000,
            pacing_error_p99_ns: load.map(|_| 40_000),
        },
        load: load.unwrap_or(offered as u64),
        offered_load: offered,
        loss_ratio: (sent - received) as f64 / sent as f64,
        generator_limited: false,
        high_loss: received < sent,
    }
}

/// A search with this result, and an upper bound 1 % above.
fn found(rate: u64, state: SearchState) -> SearchReport {
    let steps = vec![
        step(None, SearchPurpose::Maximum, [6_000_000, 4_000_000]),
        step(Some(rate), SearchPurpose::Confirm, [2 * rate, 2 * rate]),
        step(Some(rate + rate / 100), SearchPurpose::Confirm, [2 * rate, 2 * rate - 7]),
    ];
    let result = SearchResult {
        state,
        lower: Some(rate),
        upper: (state == SearchState::Regular).then_some(rate + rate / 100),
        narrowed_lower: Some(rate),
        narrowed_upper: None,
        conditional_throughput: Some(rate as f64),
        generator_limited: false,
    };
    SearchReport { steps, results: vec![result], end: SearchEnd::Complete, stored_step: Some(1) }
}

/// The baseline finds 1 Mpps, the other arm 3 Mpps; both vary slightly from block to block.
pub fn run(of_arm: [SearchState; 2]) -> Run {
    run_of(8, [1_000_000, 3_000_000], of_arm)
}

/// Each arm finds its rate in each of some blocks.
fn run_of(blocks: u32, rates: [u64; 2], of_arm: [SearchState; 2]) -> Run {
    let recipe = Recipe { workloads: vec!["udp"], blocks, loss: [0.0, 0.0], ..Recipe::default() };
    let mut run = build(&recipe);
    for arm in &mut run.header.plan.arms {
        arm.workloads[0].metrics = vec![Metric::NoDropRate];
        let udp = arm.workloads[0].traffic.facts().flows.expect("it has datagrams").clone();
        let packets = PacketPath {
            busy_poll: false,
            engine: PacketEngine::Socket,
            receiver: PacketReceiver::Socket,
            frame: 64,
            queues: None,
            search: Some(Search { goals: vec![SearchPreset::NoDrop.goal()], trials_max: 150 }),
            client_interface: None,
            server_interface: None,
            dpdk: None,
        };
        arm.workloads[0].traffic = Traffic::Pps(Pps { udp, packets });
    }
    for trial in &mut run.trials {
        let arm = usize::from(trial.slot.arm.as_str() != "synthetic");
        trial.search = Some(found(rates[arm] + u64::from(trial.slot.block) * 1_000, of_arm[arm]));
    }
    run
}

/// A search that found no rate that meets the goal.
fn lose(trial: &mut Trial, state: SearchState) {
    let search = trial.search.as_mut().unwrap();
    let result = SearchResult {
        state,
        lower: None,
        upper: Some(3_000),
        conditional_throughput: None,
        ..search.results[0].clone()
    };
    search.results = vec![result];
}

/// 12 blocks, in whose first six the searches of an arm find no rate that meets the goal.
fn with_lost(arm: &str, rates: [u64; 2], state: SearchState) -> Run {
    let mut run = run_of(12, rates, [SearchState::Regular; 2]);
    let trials = run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == arm);
    trials.filter(|trial| trial.slot.block < 6).for_each(|trial| lose(trial, state));
    run
}

fn verdict(analysis: &Analysis) -> &Verdict {
    let metric = &analysis.workloads[0].judged[0];
    assert_eq!(metric.metric, Metric::NoDropRate);
    &metric.comparisons[0].judged.as_ref().unwrap().verdict
}

#[test]
fn search_result_is_the_throughput_at_the_lower_bound() {
    let analysis = analyse_run(&run([SearchState::Regular; 2]));
    let arms = &analysis.workloads[0].judged[0].arms;
    let figures = [arms[0].numbers()[0], arms[1].numbers()[7]];
    assert_eq!(figures.map(|rate| rate as u64), [1_000_000, 3_007_000]);
    assert!(matches!(verdict(&analysis), Verdict::Higher { .. }), "{:?}", verdict(&analysis));
    assert!(analysis.workloads[0].unjudged.is_empty(), "a search has no other figures");
}

#[test]
fn open_ended_search_results_get_no_verdict() {
    let [regular, reached] = [SearchState::Regular, SearchState::MaxLoadReached];
    // The baseline's value is a lower bound, so the arm is not proven better.
    let analysis = analyse_run(&run([reached, regular]));
    assert!(matches!(verdict(&analysis), Verdict::Inconclusive { .. }), "{:?}", verdict(&analysis));
    let is_lower_bound =
        |warning: &Warning| matches!(warning, Warning::LowerBound { trials: 8, trials_total: 8, .. });
    assert!(analysis.warnings.iter().any(is_lower_bound), "{:?}", analysis.warnings);
    let words = words::warnings(&analysis).join("\n");
    assert!(words.contains("no rate that is too high"), "{words}");
    let sentences = words::search::sentences(&analysis.workloads[0]).join("\n");
    // The goal may allow some loss.
    assert!(sentences.contains("the goal is met at the maximum rate of the generator in 8"), "{sentences}");
    // The arm's value is a lower bound: it is still better than the baseline.
    let analysis = analyse_run(&run([regular, reached]));
    assert!(matches!(verdict(&analysis), Verdict::Higher { .. }), "{:?}", verdict(&analysis));
}

#[test]
fn search_without_a_lower_bound_has_no_value() {
    let mut run = run([SearchState::Regular; 2]);
    let lost = run.trials.iter_mut().filter(|trial| trial.slot.block < 2);
    lost.for_each(|trial| lose(trial, SearchState::MinLoadFails));
    let analysis = analyse_run(&run);
    assert_eq!(analysis.workloads[0].judged[0].arms[0].values.len(), 6);
    let words = words::search::sentences(&analysis.workloads[0]).join("\n");
    assert!(words.contains("loss above the goal even at the lowest rate in 2"), "{words}");
}

#[test]
fn searches_without_a_rate_withhold_each_verdict_that_would_flatter_their_arm() {
    const MPPS: u64 = 1_000_000;
    let condition: Condition = "no-drop-rate < -5 %".parse().unwrap();
    let standings = |analysis: &Analysis| -> Vec<Standing> {
        condition.of_run(analysis).iter().map(|one| one.standing).collect()
    };
    for state in [SearchState::MinLoadFails, SearchState::Unfinished] {
        // Without these trials the arms would be equal, or the arm that fails in half of the blocks better.
        for rates in [[MPPS, MPPS], [MPPS, 3 * MPPS]] {
            let analysis = analyse_run(&with_lost("accelerated", rates, state));
            assert!(matches!(verdict(&analysis), Verdict::Inconclusive { .. }), "{:?}", verdict(&analysis));
            let metric = &analysis.workloads[0].judged[0];
            let comparison = &metric.comparisons[0];
            assert_eq!(comparison.withheld, Some(Withheld::NoValue { trials: [0, 6] }));
            assert_eq!(
                words::verdict(metric.metric, comparison),
                "inconclusive: no value in 6 valid trials of accelerated"
            );
            assert_eq!(standings(&analysis), [Standing::Open]);
            assert!(condition.failure(Standing::Open, true).is_some());
            let (_, bound) = metric.arms[1].quantile(metric.metric, 0.5).unwrap();
            assert_eq!(bound, Some(Bound::LessThan));
            assert_eq!(
                words::without_value(&analysis),
                [
                    "rate without loss of udp in 6 of 12 valid trials of accelerated: the search found no rate that meets the goal"
                ]
            );
        }
        // A verdict against their arm stands: the difference is at least so large.
        for (arm, rates) in [("accelerated", [3 * MPPS, MPPS]), ("synthetic", [MPPS, 3 * MPPS])] {
            let analysis = analyse_run(&with_lost(arm, rates, state));
            let comparison = &analysis.workloads[0].judged[0].comparisons[0];
            let text = words::verdict(Metric::NoDropRate, comparison);
            let (start, standing) = match arm {
                "accelerated" => ("at most 0.33", Standing::Worse),
                _ => ("at least 2.98", Standing::NotWorse),
            };
            assert!(text.starts_with(start) && text.ends_with("(6 of 12 pairs)"), "{text}");
            assert_eq!(comparison.withheld, None, "{text}");
            assert_eq!(standings(&analysis), [standing], "{text}");
        }
    }
}

#[test]
fn median_whose_true_value_may_be_lower_or_higher_is_in_no_format() {
    let mut run = with_lost("accelerated", [1_000_000, 3_000_000], SearchState::MinLoadFails);
    let trials = run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "accelerated");
    for trial in trials.filter(|trial| trial.slot.block >= 6) {
        trial.search = Some(found(3_000_000, SearchState::MaxLoadReached));
    }
    let analysis = analyse_run(&run);
    let metric = &analysis.workloads[0].judged[0];
    let arm = &metric.arms[1];
    assert_eq!((arm.values.len(), arm.at_least.len(), arm.without.len()), (6, 6, 6));
    assert_eq!(words::value(metric, arm), "no value");
    let json = &json::report(&run)["workloads"][0]["metrics"][0]["arms"][1];
    for key in ["median", "median_bound", "quartile_1", "quartile_3", "mean"] {
        assert!(json[key].is_null(), "{key} in {json}");
    }
    let quantiles = prometheus::page(&run, &analysis);
    let mut quantiles = quantiles
        .lines()
        .filter(|line| line.contains("quantile=\"0.5\"") && line.contains("arm=\"accelerated\""));
    assert_eq!(quantiles.find(|line| line.starts_with("netduel_no_drop")), None);
    let page = markdown::page(&document(&run));
    assert!(!page.contains("&lt; 3.00") && !page.contains("< 3.00"), "{page}");
}

#[test]
fn run_is_not_precise_while_a_comparison_lacks_searches_of_some_blocks() {
    let precise = |run: &Run| analyse_run(run).precise_enough(|_| false);
    // The other values are equal: their interval is narrow.
    let equal = run_of(12, [1_000_000; 2], [SearchState::Regular; 2]);
    assert!(precise(&equal));
    for (arm, rates) in [
        // The verdict would favour the arm that fails, or there would be none, or it is against this arm.
        ("accelerated", [1_000_000, 3_000_000]),
        ("accelerated", [1_000_000; 2]),
        ("accelerated", [3_000_000, 1_000_000]),
        ("synthetic", [1_000_000, 3_000_000]),
    ] {
        let mut lost = with_lost(arm, rates, SearchState::MinLoadFails);
        assert!(!precise(&lost), "{arm} {rates:?}");
        (lost.header.plan.design.blocks_max, lost.end) = (12, Some(RunEnd::BlockLimitReached));
        assert_eq!(
            words::end_of(&analyse_run(&lost)),
            "Stopped: block limit reached. No precision for rate without loss of udp, because valid trials have no value."
        );
    }
    // More blocks give an arm no pair in which no search finds a rate: the run does not wait for it.
    let mut third = equal.header.plan.arms[1].clone();
    third.name = "third".parse().unwrap();
    let mut with_third = equal;
    let of_second = with_third.trials.iter().filter(|trial| trial.slot.arm.as_str() == "accelerated");
    let mut lost: Vec<Trial> = of_second.cloned().collect();
    for trial in &mut lost {
        trial.slot.arm = third.name.clone();
        lose(trial, SearchState::MinLoadFails);
    }
    with_third.header.plan.arms.push(third);
    with_third.trials.extend(lost);
    assert!(precise(&with_third));
    with_third.header.plan.arms.remove(1);
    with_third.trials.retain(|trial| trial.slot.arm.as_str() != "accelerated");
    assert!(!precise(&with_third), "nothing else is compared");
}

#[test]
fn searches_without_a_rate_withhold_verdicts_between_runs_and_from_a_baseline_file() {
    let rates = [1_000_000; 2];
    let mut regular = run_of(12, rates, [SearchState::Regular; 2]);
    regular.header.id = "regular".parse().unwrap();
    let lost = with_lost("accelerated", rates, SearchState::MinLoadFails);
    let withheld = |comparison: &RunComparison<'_>, trials: [u32; 2]| {
        let own = compare::verdict(comparison, "accelerated", Metric::NoDropRate, 1);
        assert!(matches!(own.judged.verdict, Verdict::Inconclusive { .. }), "{own:?}");
        assert_eq!(own.withheld, Some(Withheld::NoValue { trials }));
        let equal = compare::verdict(comparison, "synthetic", Metric::NoDropRate, 1);
        assert!(matches!(equal.judged.verdict, Verdict::NoDifference { .. }), "{equal:?}");
    };
    compare::compared(&[regular.clone(), lost.clone()], |comparison| withheld(comparison, [0, 6]));
    compare::compared(&[lost.clone(), regular.clone()], |comparison| withheld(comparison, [6, 0]));
    let file = Baseline::parse(&json::baseline(&lost).to_string(), FORMAT, upgrade).unwrap();
    let analysis = analyse_run(&regular);
    let sides = [file.side(), Side::of(&regular, &analysis)];
    withheld(&netduel_report::analysis::compare::compare(&sides, &[]), [6, 0]);
}

#[test]
fn every_format_shows_bounds_cost_pacing_and_steps_of_a_search() {
    let run = run([SearchState::Regular; 2]);
    let analysis = analyse_run(&run);
    let workload = &analysis.workloads[0];
    assert_eq!(
        words::search::sentences(workload),
        [
            "no-drop: steps of 2 s, 6 s in total per load, no loss in at least 50 % of them; bounds within 1 %",
            "synthetic, no-drop: bounds from 1.00 Mpps to 1.02 Mpps in 8 searches",
            "synthetic: 8 searches, on average 3 steps in 7.20 s; rate error at most 1.0 %, p99 lateness of bursts 40.0 us (median over steps)",
            "accelerated, no-drop: bounds from 3.00 Mpps to 3.04 Mpps in 8 searches",
            "accelerated: 8 searches, on average 3 steps in 7.20 s; rate error at most 1.0 %, p99 lateness of bursts 40.0 us (median over steps)",
            "packets, CPU, paths and bottlenecks are those of one step of each search: the one at the lower bound of its first goal, else its last",
        ]
    );
    let title = "synthetic (block 4 of 8 searches: the median result): 3 steps in 7.20 s";
    let row = "| 3 | no-drop, confirm | 1.01 Mpps | 2 s | 2006000 | 7 | less than 0.001 % | 1.0 % | loss above goal |";
    let markdown = markdown::page(&document(&run));
    assert!(markdown.contains(title) && markdown.contains(row), "{markdown}");
    for (format, text) in
        [("terminal", terminal::report(&document(&run), 100, false)), ("md", markdown::page(&document(&run)))]
    {
        assert!(text.contains("Rate search"), "{format}");
        // Wherever the line breaks.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("search for no-drop"), "{format}");
    }
    let page = html::page(&document(&run));
    assert!(page.contains("figure class=\"chart steps\""));
    // Both arms, three steps each, one of which met the goal.
    assert_eq!(page.matches("<circle class=\"good\"").count(), 2);
    assert_eq!(page.matches("<circle class=\"bad\"").count(), 4);
    assert!(page.contains("trying 1.00 Mpps for 2 s: no loss"), "each mark has its words");
    let json = json::report(&run);
    let search = &json["workloads"][0]["arms"][0]["search"];
    assert_eq!(search["trials"].as_array().unwrap().len(), 8);
    assert_eq!(search["trials"][0]["steps"][1]["received"], 2_000_000);
    assert_eq!(search["goals"][0]["name"], "no-drop");
}

#[test]
fn slow_generator_is_distinguished_from_loss() {
    let mut short = step(Some(5_000_000), SearchPurpose::Confirm, [8_000_000, 8_000_000]);
    (short.generator_limited, short.high_loss, short.loss_ratio) = (true, true, 0.2);
    assert_eq!(
        words::search::tried(&short),
        "trying 5.00 Mpps for 2 s: not reached, the generator sent 4.00 Mpps; no loss"
    );
    let result =
        SearchResult { generator_limited: true, ..found(4_000_000, SearchState::Regular).results[0].clone() };
    let words = words::search::found(&result);
    assert!(words.ends_with("; the generator cannot reach the upper bound"), "{words}");
}
