//! Texts about a run as a whole: workloads, path, how it ended, the rules of counting.
use std::fmt::Write as _;

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::{Metric, Scale};
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::{QUICK_TEST, Run, RunEnd};
use netduel_model::sample::ZeroCopyReport;
use netduel_model::trial::PATH_SHARE_MIN;
use netduel_model::units::{human_nanos, plural};
use netduel_model::warning::Warning;
use netduel_model::workload::{Facts, Role, RoundTrip, TcpEngine, Workload};

use super::method::{compared_as, paired_within};
use super::text::{end_and_host, listed, percent, percent_at_least, plain};
use crate::analysis::{
    Analysis, ArmAnalysis, MetricAnalysis, PathShares, RequestCount, WorkloadAnalysis, added_by_load,
};

/// From this share on [`percent`] has a decimal.
const NINES_FROM: f64 = 0.999;

/// The settings of a workload over its arms, in one line: common settings first, then the differences of each arm.
pub fn workload_of_arms(workload: &WorkloadAnalysis) -> String {
    let arms: Vec<(String, Vec<String>)> = workload
        .arms
        .iter()
        .map(|arm| {
            (arm.arm.to_string(), self::workload(&arm.workload).split(", ").map(str::to_owned).collect())
        })
        .collect();
    let Some((_, first)) = arms.first() else { return String::new() };
    let is_common = |part: &String| arms.iter().all(|(_, parts)| parts.contains(part));
    let common: Vec<&str> = first.iter().filter(|part| is_common(part)).map(String::as_str).collect();
    let mut words = common.join(", ");
    for (arm, parts) in &arms {
        let own: Vec<&str> = parts.iter().filter(|part| !is_common(part)).map(String::as_str).collect();
        if !own.is_empty() {
            let _ = write!(words, "; {arm}: {}", own.join(", "));
        }
    }
    words
}

/// The settings of a workload, in one line.
pub fn workload(workload: &Workload) -> String {
    let mut parts = vec![workload.traffic.kind().word().to_owned()];
    parts.extend(workload.traffic.words().iter().map(|words| plain(words)));
    parts.push(workload.family.to_string());
    let is_search = workload.traffic.facts().search().is_some();
    let most = if is_search { "at most " } else { "" };
    let steady = if is_search { String::new() } else { steady(workload) };
    parts.push(format!("{most}{}{steady}", workload.timing.duration));
    if let Some(dscp) = workload.dscp {
        parts.push(format!("DSCP {dscp}"));
    }
    let ends = [
        ("client", &workload.pin_client, workload.pin_auto.client),
        ("server", &workload.pin_server, workload.pin_auto.server),
    ];
    for (end, cores, auto) in ends {
        // No space after the commas: a comma with a space separates parts.
        let list = cores.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        if auto {
            parts.push(format!("{end} on cores that it chooses"));
        } else if !list.is_empty() {
            parts.push(format!("{end} on {} {list}", if cores.len() == 1 { "core" } else { "cores" }));
        }
    }
    parts.join(", ")
}

/// The steady window where it is a part of the trial: ` (steady 0.2 s to 0.95 s)`.
fn steady(workload: &Workload) -> String {
    let window = workload.steady_window();
    if window.start == 0 && window.end == workload.timing.duration.0 {
        return String::new();
    }
    let [from, to] = [window.start, window.end].map(|ns| (ns as f64 / 1e6).round() / 1e3);
    format!(" (steady {from} s to {to} s)")
}

/// The number of zero-copy sends that the kernel copied.
pub fn zero_copy(report: ZeroCopyReport) -> String {
    let ZeroCopyReport { sends, completions, copied, deferred } = report;
    let mut words = match copied {
        0 => format!("0 of {completions} sends were copied by the kernel"),
        copied => format!(
            "{copied} of {completions} sends were copied by the kernel{}",
            if copied == completions {
                " (this path does not support zero copy: veth, loopback)"
            } else {
                ""
            }
        ),
    };
    if completions < sends {
        let _ = write!(words, "; {} sends have no completion", sends - completions);
    }
    if deferred > 0 {
        let _ = write!(
            words,
            "; the limit of sends in flight was reached {deferred} times (net.core.optmem_max, ulimit -l)"
        );
    }
    words
}

/// Heading of the table of parts.
pub fn parts_title(workload: &WorkloadAnalysis) -> &'static str {
    if is_loaded(workload) {
        "Latency, idle and under load"
    } else if workload.has_connect_time() {
        "TCP connect time"
    } else {
        "Round-trip parts"
    }
}

/// Whether its round trips are probes on a path that is loaded after a while.
fn is_loaded(workload: &WorkloadAnalysis) -> bool {
    workload.arms.first().is_some_and(|first| first.workload.traffic.facts().load_begins.is_some())
}

/// Latency that load adds in each arm, and lost probes; empty for workloads without load.
pub fn load_effects(workload: &WorkloadAnalysis) -> Vec<String> {
    let mut sentences = Vec::new();
    let signed = |ns: f64| format!("{}{}", if ns < 0.0 { "-" } else { "+" }, human_nanos(ns.abs()));
    let added: Vec<String> = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let at = |percentile| Some(signed(added_by_load(&arm.parts, percentile)?));
            Some(format!("{} p50 {}, p99 {}", arm.arm, at(50.0)?, at(99.0)?))
        })
        .collect();
    if !added.is_empty() {
        sentences.push(format!("added by load: {}", added.join("; ")));
    }
    let lost: Vec<String> = arms_with_loss(workload)
        .map(|(arm, RequestCount { sent, lost })| format!("{} {lost} of {sent}", arm.arm))
        .collect();
    if is_loaded(workload) && !lost.is_empty() {
        sentences.push(format!("probes without a response: {}", lost.join("; ")));
    }
    sentences
}

/// The arms with requests without a response, and the counts.
fn arms_with_loss(workload: &WorkloadAnalysis) -> impl Iterator<Item = (&ArmAnalysis, RequestCount)> {
    workload.arms.iter().filter_map(|arm| Some((arm, arm.requests.filter(|count| count.lost > 0)?)))
}

/// What is in no figure of round trips: trials of each arm that had none in the steady window, and requests without a response.
pub fn not_included(workload: &WorkloadAnalysis) -> Vec<String> {
    let stalled = |arm: &ArmAnalysis| {
        let (stalled, trials) = (arm.stalled.len(), arm.trials);
        (stalled > 0).then(|| {
            format!(
                "{stalled} of {trials} trials of {}, which had no round trip in the steady window",
                arm.arm
            )
        })
    };
    let mut sentences: Vec<String> = workload.arms.iter().filter_map(stalled).collect();
    // Those of a loaded path are named with the latency that load adds.
    if !is_loaded(workload) {
        sentences.extend(arms_with_loss(workload).map(|(arm, RequestCount { sent, lost })| {
            format!("{lost} of {sent} requests of {} in the whole trials, which had no response", arm.arm)
        }));
    }
    sentences
}

/// Why the blocks of a plan cannot yield a verdict for any difference; absent when they can.
pub fn too_few_blocks(plan: &ResolvedPlan) -> Option<String> {
    let (verdicts, needed) = plan.too_few_blocks()?;
    let verdicts =
        if verdicts == 1 { "1 verdict needs".to_owned() } else { format!("{verdicts} verdicts need") };
    Some(format!(
        "{verdicts} at least {needed} blocks before even a difference in every block is significant, and the plan allows {}: raise \
         blocks_max, or list fewer metrics",
        plan.design.blocks_max
    ))
}

/// How a run ended, as a sentence.
fn end(end: Option<&RunEnd>) -> String {
    let fragment = end.map_or_else(
        || "no end recorded: the run is in progress, or its coordinator was killed".to_owned(),
        ended,
    );
    let mut chars = fragment.chars();
    let sentence = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>());
    format!("{}.", sentence.unwrap_or_default().trim_end_matches('.'))
}

/// How a run ended, as a sentence, and whether it ended before the precision that its plan asks for.
pub fn end_of(analysis: &Analysis) -> String {
    let design = &analysis.plan.design;
    let at_limit = matches!(analysis.end, Some(RunEnd::BlockLimitReached | RunEnd::BudgetReached));
    let mut judged = analysis.workloads.iter().flat_map(|workload| &workload.judged);
    let is_compared = judged.any(|metric| !metric.comparisons.is_empty());
    let sentence = match analysis.end {
        _ if at_limit && design.blocks_max == 1 => "Complete.".to_owned(),
        Some(RunEnd::PrecisionReached) => {
            format!("Stopped: precision of {} reached.", design.precision)
        }
        _ => end(analysis.end.as_ref()),
    };
    if at_limit && is_compared && design.may_stop_early() && !analysis.precise_enough(|_| false) {
        return format!("{sentence}{}", missed(analysis));
    }
    sentence
}

/// The metrics that missed the precision of the plan, and those that have none, as sentences.
fn missed(analysis: &Analysis) -> String {
    let (wide, lacking) = (analysis.imprecise_metrics(), analysis.metrics_without_precision());
    let more = match analysis.end {
        Some(RunEnd::BudgetReached) => "More time (`budget`) narrows",
        _ => "More blocks (`blocks_max`) narrow",
    };
    let is_ratio = |metric: &MetricAnalysis| metric.metric.scale() == Scale::Ratio;
    let of = if wide.iter().all(|(_, metric)| is_ratio(metric)) { " of the ratio" } else { "" };
    let names = of_metrics(analysis, &wide);
    let of_wide = (!wide.is_empty() || lacking.is_empty()).then(|| {
        format!(
            " The precision of {}{of} was not reached{names}: intervals are wider, and the verdicts hold. {more} them.",
            analysis.plan.design.precision
        )
    });
    let names = of_metrics(analysis, &lacking);
    let of_lacking =
        (!lacking.is_empty()).then(|| format!(" No precision{names}, because valid trials have no value."));
    of_wide.into_iter().chain(of_lacking).collect()
}

/// Metrics with their workloads: ` for throughput of bulk and round trip p99 of rr`; empty without one.
fn of_metrics(analysis: &Analysis, metrics: &[(&WorkloadName, &MetricAnalysis)]) -> String {
    const NAMED_MAX: usize = 3;
    let judged = analysis.workloads.iter().map(|workload| workload.judged.len()).sum::<usize>();
    let names: Vec<String> =
        metrics.iter().map(|(workload, metric)| format!("{} of {workload}", metric.title())).collect();
    match names.len() {
        0 => String::new(),
        1..=NAMED_MAX => {
            format!(" for {}", listed(&names.iter().map(String::as_str).collect::<Vec<_>>()))
        }
        many => format!(" for {many} of {judged} metrics"),
    }
}

/// How a run ended, as a fragment.
pub fn ended(end: &RunEnd) -> String {
    match end {
        RunEnd::PrecisionReached => "stopped: requested precision reached".to_owned(),
        RunEnd::BlockLimitReached => "stopped: block limit reached".to_owned(),
        RunEnd::BudgetReached => "stopped: time budget used".to_owned(),
        RunEnd::Interrupted => "interrupted: finished trials are kept".to_owned(),
        RunEnd::Failed { detail } => format!("failed: {detail}"),
    }
}

/// Number of blocks and trials behind the verdicts.
pub fn trials(analysis: &Analysis) -> String {
    let is_incomplete = |warning: &Warning| matches!(warning, Warning::BlockIncomplete { .. });
    let blocks = match analysis.blocks {
        0 if analysis.warnings.iter().any(is_incomplete) => "0 complete blocks".to_owned(),
        blocks => plural(blocks, "block"),
    };
    let valid = plural(analysis.trials_valid, "valid trial");
    format!("{blocks}, {valid}, {} excluded", analysis.trials_excluded)
}

/// Proof of the path of each arm at each end by interface counters, over all workloads.
pub fn proofs(analysis: &Analysis) -> Vec<String> {
    let mut sentences = Vec::new();
    for arm in &analysis.plan.arms {
        let ends: Vec<(String, String)> = [Role::Client, Role::Server]
            .into_iter()
            .filter_map(|role| proof(analysis, &arm.name, role))
            .collect();
        match ends.as_slice() {
            [(_, client), (_, server)] if client == server => {
                sentences.push(format!("{}: at both ends {client}", arm.name));
            }
            _ => sentences.extend(ends.iter().map(|(end, proof)| format!("{}: at {end} {proof}", arm.name))),
        }
    }
    sentences
}

/// Proof of the path at one end of an arm over all workloads.
fn proof(analysis: &Analysis, arm: &ArmName, role: Role) -> Option<(String, String)> {
    let paths: Vec<&PathShares> = analysis
        .workloads
        .iter()
        .flat_map(|workload| &workload.arms)
        .filter(|figures| figures.arm == *arm)
        .flat_map(|figures| &figures.paths)
        .filter(|path| path.role == role)
        .collect();
    let PathShares { host, expected, .. } = paths.first()?;
    // If an arm expects an interface and a kind of path, only the interface counts: each trial appears once.
    let paths: Vec<&PathShares> = paths.iter().copied().filter(|path| path.expected == *expected).collect();
    let proven: u32 = paths.iter().map(|path| path.proven).sum();
    let trials: u32 = paths.iter().map(|path| path.trials).sum();
    let expected = plain(expected);
    let proof = match paths.iter().filter_map(|path| path.share_min).reduce(f64::min) {
        Some(share) if share >= 1.0 => {
            format!("{expected} carried all bytes of each valid trial ({proven} of {trials} trials proven)")
        }
        Some(share) => format!(
            "{expected} carried {} of the bytes of each valid trial ({} is required; {proven} of {trials} trials proven)",
            least_share(share),
            percent(PATH_SHARE_MIN)
        ),
        None => format!("{expected} is not proven to have carried the bytes of any valid trial"),
    };
    Some((end_and_host(role, host), proof))
}

/// The least of some shares: `more than 99.99 %`, `at least 99.4 %`. From 99.9 % on [`percent`] rounds down. Below, the charts have no decimal,
/// but without one a measured share would read like the share that is required.
fn least_share(share: f64) -> String {
    let text = match share {
        share if share < PATH_SHARE_MIN => percent_at_least(share),
        share if share < NINES_FROM => format!("{:.1} %", (share * 1000.0).floor() / 10.0),
        share => percent(share),
    };
    if text.starts_with("more than") { text } else { format!("at least {text}") }
}

/// Whether a run was made from a plan file. A quick test was not.
pub fn has_plan_file(run: &Run) -> bool {
    let text = &run.header.plan_text;
    !text.starts_with(QUICK_TEST) && has_keys(text)
}

/// A quick test as the plan file that was stored with it; absent for other runs, and for quick tests of earlier versions.
pub fn quick_test_as_plan(run: &Run) -> Option<&str> {
    let text = run.header.plan_text.strip_prefix(QUICK_TEST).filter(|text| has_keys(text))?;
    // The line of the command and an empty one precede it.
    text.split_once("\n\n").map(|(_, plan)| plan)
}

/// Whether the text of a plan is more than comments.
fn has_keys(text: &str) -> bool {
    text.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

/// The question of a run: that of the plan, or that of an A/A run.
pub fn question(plan: &ResolvedPlan) -> String {
    match plan.arms.first().filter(|_| plan.design.aa) {
        Some(arm) => format!("A/A run of arm {}: are two identical arms equal?", arm.name),
        None => plan.question.clone(),
    }
}

/// The rules of counting that concern a run.
pub fn rules(plan: &ResolvedPlan) -> Vec<(&'static str, String)> {
    let design = &plan.design;
    let has = |test: &dyn Fn(&Facts<'_>) -> bool| {
        plan.arms.iter().flat_map(|arm| &arm.workloads).any(|workload| test(&workload.traffic.facts()))
    };
    let can_yield = |metrics: &[Metric]| {
        has(&|facts| metrics.iter().any(|metric| facts.possible_metrics.contains(metric)))
    };
    let mut rules = Vec::new();
    if can_yield(&[Metric::Throughput, Metric::DatagramRate]) {
        rules.push(("Rates", "Payload received in the steady window (without warm-up and cool-down), all streams; with traffic in both \
          directions the sum. Payload bits, SI prefixes (1 G = 10^9).".to_owned()));
    }
    if has(&|facts| facts.tcp.engine == Some(TcpEngine::Lean)) {
        rules.push(("Engine lean", "Neither end copies or reads the payload, so the result is that of the path. A program that does, as \
          iperf3 and most applications do, can be slower: the engine copy measures that.".to_owned()));
    }
    rules.extend(loss(plan));
    if can_yield(&[Metric::PacketRate]) {
        rules.push(("Packets", "Packets that the receiver's interface counted over the whole trial, per second between the first and the last \
          arrival. With segmentation offload a packet can contain many datagrams.".to_owned()));
    }
    if has(&|facts| facts.has_round_trips) {
        rules.push(("Latency", "Full round trips at the client that began in the steady window, in a histogram with three significant \
          digits. One that ends after the window, or after the trial, counts. In an open loop its time begins at the scheduled time. A transaction of tcp-crr is complete when its connection was made, its \
          response read, and the end of the stream received. Time-stamped round trips have a separate histogram.".to_owned()));
    }
    rules.extend([
        ("CPU", "Busy time of all cores of both hosts over the whole trial (a shared machine counts once), divided by the amount \
          received in the whole trial. It includes unaccounted time: busy time that the kernel assigned to no class.".to_owned()),
        ("Kernel counters", "Softirq: work that the kernel defers from interrupts and system calls, with network traffic mainly the \
          processing of packets. time_squeeze: rounds of packet reception that ended at their limit of packets or time while packets were \
          waiting. Interrupts: all of /proc/interrupts, also those of timers and between cores. Spurious retransmits (DSACK): the receiver \
          reported data that it already had, so the first copy was not lost.".to_owned()),
    ]);
    if plan.compares() {
        let [same, blocks] = paired_within(plan);
        rules.extend([
            ("Comparison", format!("Each arm against the baseline of {same}. Hodges-Lehmann estimate of {}, with its Wilcoxon \
              signed-rank interval.", compared_as(plan))),
            ("Verdict", format!("All comparisons of the run are one family (Holm's procedure). The interval in brackets decided the \
              verdict. \"No difference beyond\" is an equivalence test at {}.", design.equivalence)),
            ("Values", format!("The value of an arm is the median of its valid trials, with the quartiles in brackets and the number of \
              trials. The ratio of two medians can differ from the estimate of the verdict, which pairs the arms within {blocks}.")),
        ]);
    }
    rules.push(("Excluded", "Failed trials, trials whose treatment was no longer in force after the traffic, and trials that did not \
          meet a path, link or device setting that the plan expects. No trial is excluded for its value.".to_owned()));
    if has(&|facts| facts.possible_metrics.contains(&Metric::Responsiveness)) {
        rules.push((
            "Responsiveness",
            "Round trips per minute under load after draft-ietf-ippm-responsiveness-06, case without TLS: the mean of 60 s / ((connect \
             + request to response on new connections) / 2) and 60 s / (round trip in the data of a loaded connection), each a mean \
             of the lowest 95 %. Unlike in the draft there is no HTTP, and the number of streams is fixed."
                .to_owned(),
        ));
    }
    if has(&|facts| facts.is_of_packets()) {
        rules.push(("Packets of pps", super::packets::RULE.to_owned()));
    }
    if has(&|facts| !facts.events.is_empty()) {
        rules.push(("Outage", super::failover::rule()));
    }
    if has(&|facts| facts.search().is_some()) {
        rules.push(("Search", super::search::rule()));
    }
    rules
}

/// How loss is counted, of datagrams and of requests in datagrams.
fn loss(plan: &ResolvedPlan) -> Vec<(&'static str, String)> {
    let workloads = plan.arms.iter().flat_map(|arm| &arm.workloads).map(|workload| workload.traffic.facts());
    let (of_requests, of_datagrams): (Vec<bool>, Vec<bool>) = workloads
        .filter(|facts| facts.possible_metrics.contains(&Metric::Loss))
        .map(|facts| facts.has_round_trips)
        .partition(|is_of_requests| *is_of_requests);
    let mut rules = Vec::new();
    if !of_datagrams.is_empty() {
        rules.push(("Loss", "1 - unique datagrams received / datagrams sent, over the whole trial and all directions, from exact counts of both \
          ends. Datagrams dropped at the receiver's socket arrived while its program, netduel, was too slow: they were not lost on the path. Drops that an interface or qdisc of the two hosts counts are a \
          limit of the host. The rest was lost on the path or is not accounted for.".to_owned()));
    }
    if !of_requests.is_empty() {
        rules.push((
            "Loss of requests",
            format!(
                "Requests without a response / requests sent, over the whole trial, as the client counted them. In a closed loop a response counts \
                 until {timeout} after its request, in an open loop until {timeout} after the last request. The request or the response was lost, or \
                 late. It is in no percentile, because its time is not known.",
                timeout = RoundTrip::TIMEOUT
            ),
        ));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_share_differs_from_the_required_one_and_is_never_rounded_up() {
        let shares = [0.999_999_99, 0.999_5, 0.998_5, 0.99, 0.987_6].map(least_share);
        let words =
            ["more than 99.99 %", "at least 99.9 %", "at least 99.8 %", "at least 99.0 %", "at least 98 %"];
        assert_eq!(shares, words);
    }
}
