//! Bottlenecks of arms: which trial their evidence is from, and what they advise.
use netduel_model::observation::CoreTime;
use netduel_model::plan::Lab;
use netduel_model::run::Run;
use netduel_model::sample::ThreadUse;
use netduel_model::trial::Trial;
use netduel_report::analysis::{Cause, limit_of, value_of};
use netduel_report::{analyse_run, document, markdown, terminal, words};
use netduel_stats::histogram::Histogram;

use crate::builder::{Recipe, build};

#[test]
fn evidence_of_two_of_three_trials_is_that_of_the_lower_one_and_names_how_many_it_is_of() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 3, effect: 1.0, ..Recipe::default() });
    let is_capped = |trial: &Trial| trial.slot.arm.as_str() == "synthetic" && trial.slot.block < 2;
    for trial in run.trials.iter_mut().filter(|trial| is_capped(trial)) {
        for interface in &mut trial.client.as_mut().unwrap().observation.interfaces {
            interface.qdisc_overlimits = Some(interface.tx_packets);
        }
    }
    let workload = run.header.plan.arms[0].workloads[0].clone();
    let value = |trial: &Trial| value_of(workload.metrics[0], &workload, trial, false).unwrap();
    let capped = run.trials.iter().filter(|trial| is_capped(trial));
    let lower = capped.min_by(|one, other| value(one).total_cmp(&value(other))).unwrap().slot.block;
    let analysis = analyse_run(&run);
    let limit = analysis.workloads[0].arms[0].limit.as_ref().unwrap();
    assert_eq!((limit.trials, limit.of, limit.evidence_block), (2, 3, lower), "{limit:?}");
    let page = markdown::page(&document(&run)).replace('\\', "");
    let words = format!("lower median by throughput of the 2 trials with this cause (block {}): ", lower + 1);
    assert!(page.contains(&words), "{page}");
}

#[test]
fn saturated_thread_that_moves_between_cores_is_the_bottleneck_although_no_core_is_full() {
    let evidence = |ran_percent: u64, pinned: Option<u16>| {
        let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
        let workload = run.header.plan.arms[0].workloads[0].clone();
        let trial = run.trials.iter_mut().find(|trial| trial.slot.arm.as_str() == "synthetic").unwrap();
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            let part = end.observation.wall_ns / 100;
            end.report.streams.iter_mut().for_each(|stream| stream.core = pinned);
            for core in &mut end.observation.cores {
                let (user_ns, idle_ns) = (part * 88, part * 12);
                *core = CoreTime { core: core.core, user_ns, idle_ns, ..CoreTime::default() };
            }
        }
        let client = trial.client.as_mut().unwrap();
        let run_ns = client.observation.wall_ns / 100 * ran_percent;
        client.report.thread_use = Some(ThreadUse { threads: 1, run_ns, run_delay_ns: 0 });
        limit_of(&workload, trial, false, None).unwrap()
    };
    let moved = evidence(94, None);
    assert_eq!(moved.cause, Cause::SenderCore, "{moved:?}");
    let words = "the client's thread ran 94 % of the time (on changing cores, so that no core was as busy)";
    assert_eq!(moved.evidence[0], words);
    for (ran_percent, pinned) in [(86, None), (94, Some(1))] {
        let stayed = evidence(ran_percent, pinned);
        let words = format!("the client's thread ran {ran_percent} % of the time");
        assert_eq!(stayed.evidence[0], words, "one core can have been as busy");
    }
}

#[test]
fn summary_states_the_bottlenecks_and_the_page_the_switch_of_a_lab() {
    let mut run = build(&Recipe::default());
    let page = |run: &Run| markdown::page(&document(run)).replace('\\', "");
    let bottlenecks = "; bottleneck: in bulk softirq processing on one core (synthetic), the receive window (accelerated); in rr latency-bound; \
                       in udp the receiver's program: its socket overflows (synthetic), unknown (accelerated)";
    let stated = format!("{bottlenecks}.\n\nOf many repetitions of this run, at most 5 %");
    assert!(page(&run).contains(&stated), "{}", page(&run));
    run.header.plan.lab = Some(Lab { rules: 600, cap: None, mtu: Lab::MTU, queues: Lab::QUEUES });
    let switches = "softirq of synthetic contains the two software switches of the lab, each of which evaluates 600 rules per packet (per GSO \
                    packet with offload on)";
    let in_lab = page(&run);
    // Below the bottlenecks whose evidence is softirq, those of bulk and udp, and where only the CPU time differs by softirq, that of rr.
    assert_eq!(in_lab.matches(&format!("- {switches}\n")).count(), 3, "{in_lab}");
    let warning = "and CPU time is counted once; the CPU time of synthetic contains the work of the lab's software switches";
    assert!(in_lab.contains(warning), "{in_lab}");
    assert!(!page(&build(&Recipe::default())).contains("software switches of the lab"));
}

#[test]
fn summary_and_closing_lines_of_a_lab_state_the_switches_that_make_the_difference() {
    let mut run = build(&Recipe::default());
    let texts = |run: &Run| {
        let document = document(run);
        (markdown::page(&document).replace('\\', ""), terminal::summary(&document, 400, false))
    };
    let (page, lines) = texts(&run);
    assert!(!page.contains("rules each") && !lines.contains("In the lab"), "a plan without a lab: {page}");
    run.header.plan.lab = Some(Lab { rules: 600, cap: None, mtu: Lab::MTU, queues: Lab::QUEUES });
    let passed = "packets of synthetic pass two software switches with 600 rules each";
    let (page, lines) = texts(&run);
    let place = format!(" without a physical NIC ({passed}); synthetic is the baseline.\n");
    assert!(page.contains(&place), "{page}");
    let difference = format!(
        "In the lab {passed}, and the CPU time of synthetic contains their work. The number of rules (`rules` of the plan) largely \
         determines the size of the difference.\n"
    );
    assert!(page.contains(&difference) && lines.contains(&difference), "{lines}");
    // Without rules they add little, and arms that all pass them do not differ by them.
    run.header.plan.lab = Some(Lab { rules: 0, cap: None, mtu: Lab::MTU, queues: Lab::QUEUES });
    let (_, lines) = texts(&run);
    assert!(lines.contains("two software switches without rules, "), "{lines}");
    assert!(!lines.contains("determines"), "{lines}");
    for arm in &mut run.header.plan.arms {
        arm.treatments.clear();
    }
    let (_, lines) = texts(&run);
    assert!(!lines.contains("In the lab"), "{lines}");
}

/// An open loop whose requests were 300 ms late, on hosts with half of their CPU time idle. `waited_permille`: how long its threads waited for
/// cores; `others`: whether other processes used the other half.
fn late(waited_permille: u64, others: bool) -> Run {
    let mut run = build(&Recipe { workloads: vec!["open"], blocks: 2, ..Recipe::default() });
    let mut pacing = Histogram::new();
    pacing.record(300_000_000);
    for trial in &mut run.trials {
        let client = trial.client.as_mut().unwrap();
        client.report.round_trips.as_mut().unwrap().pacing_error = Some(pacing.to_record());
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            let part = end.observation.wall_ns / 1000;
            end.report.thread_use =
                Some(ThreadUse { threads: 2, run_ns: part * 40, run_delay_ns: part * waited_permille });
            end.report.streams.iter_mut().for_each(|stream| stream.core = None);
            let cores = &mut end.observation.cores;
            for core in cores.iter_mut() {
                let (user_ns, idle_ns) = (part * 500, part * 500);
                *core = CoreTime { core: core.core, user_ns, idle_ns, ..CoreTime::default() };
            }
            let all_ns = part * 500 * cores.len() as u64;
            end.observation.process.system_ns = 0;
            end.observation.process.user_ns = if others { 0 } else { all_ns };
        }
    }
    run
}

#[test]
fn late_requests_of_a_client_that_waits_beside_other_processes_are_cpu_contention() {
    let limit = |waited_permille: u64, others: bool| {
        let run = late(waited_permille, others);
        let workload = &run.header.plan.arms[0].workloads[0];
        limit_of(workload, &run.trials[0], false, None).unwrap()
    };
    let contended = limit(100, true);
    assert_eq!(contended.cause, Cause::CpuContention, "{contended:?}");
    assert!(
        contended.evidence[0].starts_with("other processes used 50 % of the CPU time of "),
        "{contended:?}"
    );
    let words =
        "requests sent 300 ms late (p99), the client's threads runnable but not scheduled 5.0 % of the time";
    assert!(contended.evidence.iter().any(|evidence| evidence == words), "{contended:?}");
    assert_eq!(limit(100, false).cause, Cause::LateRequests);
    assert_eq!(limit(5, true).cause, Cause::LateRequests, "the waits are too short for 1 % of the requests");
}

#[test]
fn missed_schedule_beside_other_processes_advises_to_stop_them() {
    let warning = |others: bool| {
        let warnings = words::warnings(&analyse_run(&late(100, others)));
        warnings.into_iter().find(|warning| warning.starts_with("schedule missed: ")).unwrap()
    };
    let contended = warning(true);
    assert!(contended.ends_with("; stop the other processes"), "{contended}");
    assert!(!contended.contains("request_rate"), "{contended}");
    assert!(warning(false).contains("set a lower `request_rate`"));
}
