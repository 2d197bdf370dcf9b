//! Arms that exchange their hosts: what a host adds is in no verdict, and no warning calls the exchange a fault of the run.
use netduel_model::ids::HostName;
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::trial::Validity;
use netduel_model::warning::Warning;
use netduel_report::analysis::{Analysis, ArmAnalysis, Cause};
use netduel_report::{analyse_run, document, markdown, words};
use netduel_stats::verdict::{Forecast, Verdict};

use crate::builder::{Recipe, build};

pub const BLOCKS: u32 = 16;

/// A run whose second arm begins on the hosts c and d, which are twice as fast as a and b.
pub fn run(effect: f64, blocks: u32, is_crossover: bool) -> Run {
    let recipe = Recipe { effect, noise: 0.004, workloads: vec!["bulk"], blocks, ..Recipe::default() };
    let mut run = build(&recipe);
    let plan = &mut run.header.plan;
    for (name, like) in [("c", "a"), ("d", "b")] {
        let host = plan.hosts[&like.parse().unwrap()].clone();
        plan.hosts.insert(name.parse().unwrap(), host);
        let facts = run.header.hosts[&like.parse().unwrap()].clone();
        run.header.hosts.insert(name.parse().unwrap(), facts);
    }
    plan.arms[1].pair.client = "c".parse().unwrap();
    plan.arms[1].pair.server = "d".parse().unwrap();
    (plan.design.blocks_min, plan.design.blocks_max) = (BLOCKS, BLOCKS);
    plan.design.crossover = is_crossover;
    for trial in &mut run.trials {
        let is_second_arm = trial.slot.arm.as_str() == "accelerated";
        let is_crossed = is_crossover && trial.slot.block >= BLOCKS / 2;
        if is_second_arm != is_crossed {
            let flow = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
            flow.series.iter_mut().for_each(|sample| sample.bytes *= 2);
        }
    }
    run
}

fn throughput(analysis: &Analysis) -> (usize, usize, Verdict) {
    let metric = analysis.workloads[0].judged.iter().find(|metric| metric.metric == Metric::Throughput);
    let comparison = &metric.unwrap().comparisons[0];
    (comparison.pairs.len(), comparison.blocks, comparison.judged.as_ref().unwrap().verdict)
}

#[test]
fn difference_between_hosts_is_in_no_verdict_of_a_crossover() {
    // Without it the faster hosts look like a better arm.
    let (pairs, _, verdict) = throughput(&analyse_run(&run(1.0, BLOCKS, false)));
    let Verdict::Higher { estimate } = verdict else { panic!("{verdict:?}") };
    assert_eq!(pairs, 16);
    assert!((estimate.centre - 2.0).abs() < 0.05, "{estimate:?}");

    let (pairs, blocks, verdict) = throughput(&analyse_run(&run(1.0, BLOCKS, true)));
    assert_eq!((pairs, blocks), (8, 8));
    assert!(matches!(verdict, Verdict::NoDifference { .. }), "{verdict:?}");

    let analysis = analyse_run(&run(1.25, BLOCKS, true));
    let (_, _, verdict) = throughput(&analysis);
    let Verdict::Higher { estimate } = verdict else { panic!("{verdict:?}") };
    assert!((estimate.centre - 1.25).abs() < 0.02, "{estimate:?}");
    let of_exchange = |warning: &&Warning| {
        matches!(
            warning,
            Warning::Drift { .. }
                | Warning::Bimodal { .. }
                | Warning::OutlierBlock { .. }
                | Warning::PlacementChanged { .. }
        )
    };
    assert_eq!(analysis.warnings.iter().find(of_exchange), None);
}

#[test]
fn blocks_without_their_other_half_are_no_pairs_and_forecasts_are_in_blocks() {
    let (pairs, blocks, _) = throughput(&analyse_run(&run(1.25, BLOCKS / 2, true)));
    assert_eq!((pairs, blocks), (0, 0));
    let (pairs, blocks, verdict) = throughput(&analyse_run(&run(1.25, BLOCKS / 2 + 3, true)));
    assert_eq!((pairs, blocks), (3, 3));
    let Verdict::Inconclusive { more: Some(more), .. } = verdict else { panic!("{verdict:?}") };
    // Two verdicts of a run with a fixed number of blocks need seven pairs.
    assert_eq!(more, Forecast::AtLeast(8), "{verdict:?}");
}

/// The words of the verdicts of a run.
fn verdicts(run: &Run) -> Vec<String> {
    let analysis = analyse_run(run);
    let judged = &analysis.workloads[0].judged;
    judged.iter().map(|metric| words::verdict(metric.metric, &metric.comparisons[0])).collect()
}

#[test]
fn words_of_a_verdict_count_pairs_of_blocks() {
    let mut run = run(1.25, BLOCKS, true);
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.block < 5) {
        trial.validity = Validity::Failed { reason: "no answer".to_owned() };
    }
    let verdict = "inconclusive: 3 of 8 pairs of blocks have values, at least 7 needed";
    assert_eq!(verdicts(&run)[0], verdict);
}

#[test]
fn other_processes_in_the_second_half_concern_the_pairs_of_their_blocks() {
    let of = |contended: std::ops::Range<u32>| {
        let mut run = run(1.25, BLOCKS, true);
        for trial in run.trials.iter_mut().filter(|trial| contended.contains(&trial.slot.block)) {
            for end in [trial.client.as_mut().unwrap(), trial.server.as_mut().unwrap()] {
                for core in &mut end.observation.cores {
                    core.user_ns += core.idle_ns / 2;
                    core.idle_ns /= 2;
                }
            }
        }
        verdicts(&run)
    };
    let is_withheld = |verdicts: &[String]| verdicts[1].starts_with("not comparable: other processes used");
    // Two of eight pairs are too few, three too many.
    assert!(!is_withheld(&of(8..10)), "{:?}", of(8..10));
    assert!(is_withheld(&of(8..11)), "{:?}", of(8..11));
    assert!(is_withheld(&of(0..3)), "{:?}", of(0..3));
}

#[test]
fn report_names_the_exchange_and_both_hosts_of_an_arm() {
    let run = run(1.25, BLOCKS, true);
    let page = markdown::page(&document(&run));
    assert!(page.contains("Arms exchange their hosts after block 8: synthetic and accelerated."), "{page}");
    assert!(page.contains("a, then c") && page.contains("d, then b"), "{page}");
    assert!(page.contains("baseline of the same two blocks, one of each half."), "{page}");
}

fn host(name: &str) -> HostName {
    name.parse().unwrap()
}

#[test]
fn machine_that_the_hosts_of_one_half_share_is_in_no_verdict() {
    let of = |boot_of_d: Option<&str>| {
        let mut run = run(1.0, BLOCKS, true);
        if let Some(boot) = boot_of_d {
            run.header.hosts.get_mut(&host("d")).unwrap().boot_id = Some(boot.to_owned());
        }
        for end in run.trials.iter_mut().flat_map(|trial| [&mut trial.client, &mut trial.server]).flatten() {
            // Each agent used all CPU time of the programs on its machine.
            let process = &mut end.observation.process;
            (process.user_ns, process.system_ns) = (process.user_ns * 2, process.system_ns * 2);
        }
        analyse_run(&run)
    };
    let cost = |analysis: &Analysis| {
        let judged = &analysis.workloads[0].judged;
        let metric = judged.iter().find(|metric| metric.metric == Metric::CpuPerGigabyte).unwrap();
        let estimate = metric.comparisons[0].judged.as_ref().unwrap().estimate.as_ref().unwrap().centre;
        (estimate, metric.arms[0].numbers())
    };
    let (one, two) = (of(None), of(Some("another")));
    let (estimate_of_one, _) = cost(&one);
    let (estimate, values) = cost(&two);
    assert!((estimate / estimate_of_one - 1.0).abs() < 0.05, "{estimate} and {estimate_of_one}");
    // Two machines in the second half, each with as much work as the one of the first half.
    let [first, .., last] = values.as_slice() else { panic!("{values:?}") };
    assert!((last / first - 2.0).abs() < 0.2, "{values:?}");
    // The times of one machine and of two have no sum.
    let has_machines = |analysis: &Analysis| !analysis.workloads[0].arms[0].machines.is_empty();
    assert_eq!([has_machines(&one), has_machines(&two)], [true, false]);
}

#[test]
fn limit_of_a_host_is_that_of_its_trials_only() {
    let mut run = run(1.0, BLOCKS, true);
    // The trials on a and b move about 6.1 Gbit/s, those on c and d twice as much.
    for (name, mbps) in [("a", 6_200), ("c", 60_000)] {
        run.header.plan.hosts.get_mut(&host(name)).unwrap().expect_mbps = Some(mbps);
    }
    let capped = |arm: &ArmAnalysis| -> u32 {
        let limit = arm.limit.as_ref().unwrap();
        let own = (limit.cause == Some(Cause::RateCap)).then_some(limit.trials);
        let others = limit.others.iter().filter(|(cause, _)| *cause == Cause::RateCap);
        own.into_iter().chain(others.map(|(_, trials)| *trials)).sum()
    };
    let analysis = analyse_run(&run);
    let arms = &analysis.workloads[0].arms;
    assert_eq!(arms.iter().map(capped).collect::<Vec<_>>(), [8, 8]);
    assert!(arms.iter().all(|arm| arm.expected.is_none()), "neither limit is that of all trials");
}

#[test]
fn counts_that_disagree_are_those_of_the_host_of_their_trial() {
    let mut run = run(1.0, BLOCKS, true);
    let mut last = run.trials.iter_mut().filter(|trial| trial.slot.block == BLOCKS - 1);
    let trial = last.find(|trial| trial.slot.arm.as_str() == "synthetic").unwrap();
    let interface = &mut trial.client.as_mut().unwrap().observation.interfaces[1];
    assert_eq!(interface.name, "syn0");
    interface.tx_bytes *= 2;
    let analysis = analyse_run(&run);
    let named = analysis.warnings.iter().filter_map(|warning| match warning {
        Warning::CountsDisagree { host, trials, .. } => Some((host.as_str(), *trials)),
        _ => None,
    });
    assert_eq!(named.collect::<Vec<_>>(), [("c", 1)]);
}
