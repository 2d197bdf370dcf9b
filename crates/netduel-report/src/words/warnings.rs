//! Warnings as sentences. Outlier blocks of one metric in a workload share a sentence, because a noisy machine has many.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::packet_path::PacketReceiver;
use netduel_model::units::human_nanos;
use netduel_model::warning::{Warning, part_of_loss};
use netduel_model::workload::WorkUnit;

use super::metric::{metric_value, packet_rate};
use super::{arms_through_the_switch, is_in_lab, listed, percent, times};
use crate::analysis::{Analysis, ArmAnalysis, Bound, WorkloadAnalysis, warnings_about};
use crate::total::Total;

/// A warning for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Its number, when it concerns a verdict; the verdict has the same number as its mark. Counted from 1.
    pub number: Option<usize>,
    /// The sentence.
    pub text: String,
    /// Positions of its warnings in [`Analysis::warnings`].
    indices: Vec<usize>,
}

impl Sentence {
    /// The mark and the sentence: `*2 CPU contention: ...`.
    pub fn marked(&self) -> String {
        let mark = marks(&self.number.into_iter().collect::<Vec<_>>());
        if mark.is_empty() { self.text.clone() } else { format!("{mark} {}", self.text) }
    }
}

/// The number of the sentence of each warning that has one, by its position in [`Analysis::warnings`].
pub fn warning_marks(sentences: &[Sentence]) -> BTreeMap<usize, usize> {
    let numbered = sentences.iter().filter_map(|sentence| Some((&sentence.indices, sentence.number?)));
    numbered.flat_map(|(indices, number)| indices.iter().map(move |index| (*index, number))).collect()
}

/// The mark of a verdict that warnings concern: `*2,5`; empty without any.
pub fn marks(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    if numbers.is_empty() { String::new() } else { format!("*{}", numbers.join(",")) }
}

/// The numbers of the warnings that concern a metric of an arm, compared with the baseline.
pub fn warning_numbers(
    analysis: &Analysis,
    sentences: &[Sentence],
    workload: &WorkloadAnalysis,
    metric: Metric,
    arm: &ArmName,
) -> Vec<usize> {
    let about: BTreeSet<usize> = warnings_about(analysis, workload, metric, arm).into_iter().collect();
    let concerns = |sentence: &&Sentence| sentence.indices.iter().any(|index| about.contains(index));
    sentences.iter().filter(concerns).filter_map(|sentence| sentence.number).collect()
}

/// Every warning of a run, one sentence each, in the order in which they are stored and derived.
pub fn warning_sentences(analysis: &Analysis) -> Vec<Sentence> {
    let mut sentences: Vec<(Vec<usize>, String)> = Vec::new();
    let mut done: Vec<(&WorkloadName, Metric)> = Vec::new();
    for (index, warning) in analysis.warnings.iter().enumerate() {
        match warning {
            Warning::OutlierBlock { workload, metric, .. } if done.contains(&(workload, *metric)) => {}
            Warning::OutlierBlock { workload, metric, .. } => {
                done.push((workload, *metric));
                let unit = unit_of(analysis, workload);
                let is_alike = |other: &Warning| matches!(other, Warning::OutlierBlock { workload: of, metric: its, .. } if of == workload && its == metric);
                let all = analysis.warnings.iter().enumerate();
                let indices = all.filter(|(_, other)| is_alike(other)).map(|(index, _)| index).collect();
                sentences.push((indices, outliers(analysis, (workload, *metric), unit)));
            }
            other => sentences.push((vec![index], warning_text(analysis, other))),
        }
    }
    let concerned = concerned(analysis);
    let mut numbers = 1..;
    let numbered = |(indices, text): (Vec<usize>, String)| {
        let is_about_a_verdict = indices.iter().any(|index| concerned.contains(index));
        Sentence { number: if is_about_a_verdict { numbers.next() } else { None }, text, indices }
    };
    sentences.into_iter().map(numbered).collect()
}

/// Every warning of a run, one sentence each.
pub fn warnings(analysis: &Analysis) -> Vec<String> {
    warning_sentences(analysis).into_iter().map(|sentence| sentence.text).collect()
}

/// The warnings that concern at least one judged metric.
fn concerned(analysis: &Analysis) -> BTreeSet<usize> {
    let rows = analysis.workloads.iter().flat_map(|workload| {
        workload
            .judged
            .iter()
            .flat_map(move |metric| workload.arms.iter().map(move |arm| (workload, metric.metric, &arm.arm)))
    });
    rows.flat_map(|(workload, metric, arm)| warnings_about(analysis, workload, metric, arm)).collect()
}

/// Each kind of warning in a line, the first sentence of the worst one without the advice: the closing lines of a run have no room for
/// all. Of several of a kind the line has all marks and their number: `*1 to *4 outlier block (4 warnings), the worst: ...`.
pub fn warning_heads(analysis: &Analysis) -> Vec<String> {
    let mut kinds: Vec<Vec<Sentence>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for sentence in warning_sentences(analysis) {
        let kind = sentence.text.split(':').next().unwrap_or_default().trim_end_matches('s').to_owned();
        let place = *places.entry(kind).or_insert(kinds.len());
        match kinds.get_mut(place) {
            Some(alike) => alike.push(sentence),
            None => kinds.push(vec![sentence]),
        }
    }
    let line = |mut alike: Vec<Sentence>| {
        let size = |sentence: &Sentence| {
            let warnings = sentence.indices.iter().filter_map(|index| analysis.warnings.get(*index));
            warnings.map(size).fold(0.0, f64::max)
        };
        // A stable sort: equal ones keep their order.
        alike.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let worst = alike.first()?;
        let head =
            Sentence { text: worst.text.split(';').next().unwrap_or_default().to_owned(), ..worst.clone() };
        let all = alike.len();
        if all == 1 {
            return Some(head.marked());
        }
        let numbers: BTreeSet<usize> = alike.iter().filter_map(|sentence| sentence.number).collect();
        let marks = marks_in_ranges(&numbers);
        let marks = if marks.is_empty() { marks } else { format!("{marks} ") };
        let which = if size(worst) > 0.0 { "the worst" } else { "for example" };
        let (kind, rest) = head.text.split_once(": ").unwrap_or((head.text.as_str(), ""));
        Some(format!("{marks}{kind} ({all} warnings), {which}: {rest}"))
    };
    kinds.into_iter().filter_map(line).collect()
}

/// The marks of several warnings in a sentence: `*1 to *4, *6`; empty without any.
fn marks_in_ranges(numbers: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let words = |(first, last): (usize, usize)| match last - first {
        0 => marks(&[first]),
        1 => format!("{}, {}", marks(&[first]), marks(&[last])),
        _ => format!("{} to {}", marks(&[first]), marks(&[last])),
    };
    ranges.into_iter().map(words).collect::<Vec<_>>().join(", ")
}

/// How bad a warning is among those of its kind; 0 for kinds without a size.
fn size(warning: &Warning) -> f64 {
    match warning {
        Warning::ScheduleMissed { pacing_error_p99_ns, .. } => *pacing_error_p99_ns as f64,
        Warning::CpuContention { share_max, .. } | Warning::StealTime { share_max, .. } => *share_max,
        Warning::RateMissed { requested_bps, sent_bps, .. } => requested_bps / sent_bps,
        Warning::RequestsLost { lost, requests, .. } => *lost as f64 / (*requests).max(1) as f64,
        Warning::OutlierBlock { ratio_to_median, .. } => ratio_to_median.max(ratio_to_median.recip()),
        _ => 0.0,
    }
}

/// A warning in a sentence; for workloads of packets in terms of packets.
pub fn warning_text(analysis: &Analysis, warning: &Warning) -> String {
    let packet_bytes = |workload| packet_bytes(analysis, workload);
    match warning {
        Warning::ReceiverOverrun { arm, workload, datagrams, lost } if packet_bytes(workload).is_some() => {
            let part = lost.map(|lost| format!(" ({})", part_of_loss(*datagrams, lost)));
            let full = if receives_by_socket(analysis, arm, workload) { "socket" } else { "ring" };
            format!(
                "receiver overrun: the receiver of {arm} in {workload} dropped {datagrams} packets{} because its {full} was full; \
                 the receiver is the bottleneck for them, not the path: use more queues or cores at the receiver, or set a `packet_rate`",
                of_sent(analysis, arm, workload).unwrap_or_default() + &part.unwrap_or_default()
            )
        }
        Warning::Bimodal { arm, workload, metric, low, high } => {
            let unit = unit_of(analysis, workload);
            let advice = match (is_pinned(analysis, workload, arm), is_in_lab(&analysis.plan)) {
                (false, _) => {
                    "the usual cause is the placement of threads on cores: set `pin_client` and `pin_server`"
                }
                // The interfaces of a lab are virtual: no hardware interrupt belongs to a core.
                (true, true) => {
                    "threads are pinned, so look for other load on this machine or its hypervisor, and repeat the run"
                }
                (true, false) => {
                    "threads are pinned, so check interrupt affinity, CPU frequency and other load on the hosts"
                }
            };
            format!(
                "bimodal: {} of {arm} in {workload} falls into two groups, about {} and {}; {advice}",
                metric.title_in(unit),
                metric_value(*metric, unit, *low),
                metric_value(*metric, unit, *high)
            )
        }
        Warning::SharedMachine { .. } => match arms_through_the_switch(&analysis.plan).as_slice() {
            [] => warning.to_string(),
            arms => format!(
                "{warning}; the CPU time of {} contains the work of the lab's software switches, that of VMs in a cloud does not",
                listed(arms)
            ),
        },
        Warning::ScheduleMissed { arm, workload, pacing_error_p99_ns } => {
            match contention(analysis, arm, workload) {
                Some(share_max) => format!(
                    "schedule missed: the open loop of {workload} in {arm} sent requests {} late (p99), and other processes used up to {} \
                     of the CPU time of a host; stop the other processes",
                    human_nanos(*pacing_error_p99_ns as f64),
                    percent(share_max)
                ),
                None => warning.to_string(),
            }
        }
        Warning::NoRoundTrips { arm, workload, .. } => no_round_trips(analysis, warning, arm, workload),
        Warning::RateMissed { arm, workload, requested_bps, sent_bps } => match packet_bytes(workload) {
            Some(bytes) => format!(
                "rate missed: {arm} in {workload} sent {} instead of the configured {} ({} less); the path or a core is the limit, so \
                 the arms are not compared at the same rate",
                packet_rate(sent_bps / 8.0 / bytes),
                packet_rate(requested_bps / 8.0 / bytes),
                percent(1.0 - sent_bps / requested_bps)
            ),
            None => warning.to_string(),
        },
        other => {
            let workload = other.subject().workload;
            other.words(workload.map_or(WorkUnit::Byte, |workload| unit_of(analysis, workload)))
        }
    }
}

/// An arm in a workload; absent when the run has no such workload or arm.
fn arm_in<'a>(analysis: &'a Analysis, arm: &ArmName, workload: &WorkloadName) -> Option<&'a ArmAnalysis> {
    let workload = analysis.workloads.iter().find(|one| one.name == *workload)?;
    workload.arms.iter().find(|one| one.arm == *arm)
}

/// The largest share of the CPU time of a host that other processes used in a trial of an arm, where it is an arm with CPU contention.
fn contention(analysis: &Analysis, arm: &ArmName, workload: &WorkloadName) -> Option<f64> {
    arm_in(analysis, arm, workload)?.contention_max()
}

/// The warning of trials without a round trip, with advice that fits the path and what else used the hosts in these trials.
fn no_round_trips(analysis: &Analysis, warning: &Warning, arm: &ArmName, workload: &WorkloadName) -> String {
    let text = warning.to_string();
    // The advice is behind the last colon.
    let Some((what, _)) = text.rsplit_once(": ") else { return text };
    let arm = arm_in(analysis, arm, workload);
    let of_stalled = |arm: &ArmAnalysis| -> Vec<f64> {
        arm.stalled.iter().filter_map(|block| arm.contended.get(block).copied()).collect()
    };
    let shares = arm.map(of_stalled).unwrap_or_default();
    let others = shares.iter().copied().reduce(f64::max).map(|share_max| {
        format!(
            "stop the other processes, which used up to {} of the CPU time of a host in {} of these trials",
            percent(share_max),
            shares.len()
        )
    });
    // The path of a lab has no firewall, and both ends are on this machine.
    let elsewhere = match (is_in_lab(&analysis.plan), others.is_some()) {
        (true, true) => None,
        (true, false) => Some("look for other load on this machine"),
        (false, true) => Some("look for a stalled path or a firewall"),
        (false, false) => Some("look for a stalled path, a busy host or a firewall"),
    };
    let advice: Vec<String> = others.into_iter().chain(elsewhere.map(str::to_owned)).collect();
    format!("{what}: {}, or set a longer `duration`", advice.join(", "))
}

/// ` of 12000 sent`; absent when the workload has no such arm.
fn of_sent(analysis: &Analysis, arm: &ArmName, workload: &WorkloadName) -> Option<String> {
    let arm = arm_in(analysis, arm, workload)?;
    Some(format!(" of {} sent", arm.datagrams.iter().map(|way| way.sent).total()))
}

/// Whether the packets of an arm arrive at sockets; otherwise at the ring of a kernel bypass.
fn receives_by_socket(analysis: &Analysis, arm: &ArmName, workload: &WorkloadName) -> bool {
    arm_in(analysis, arm, workload)
        .is_some_and(|arm| arm.packets.iter().all(|way| way.path.receiver == PacketReceiver::Socket))
}

/// The unit of work of a workload; that of bulk data when the run has no such workload.
fn unit_of(analysis: &Analysis, name: &WorkloadName) -> WorkUnit {
    let workload = analysis.workloads.iter().find(|workload| workload.name == *name);
    let arm = workload.and_then(|workload| workload.arms.first());
    arm.map_or(WorkUnit::Byte, |arm| arm.workload.traffic.facts().unit)
}

/// Payload of a packet, bytes, of a workload that is about packets.
fn packet_bytes(analysis: &Analysis, name: &WorkloadName) -> Option<f64> {
    let workload = analysis.workloads.iter().find(|workload| workload.name == *name)?;
    super::datagrams::packet_bytes(&workload.arms.first()?.workload.traffic)
}

/// Whether both ends of an arm run on chosen cores in a workload.
fn is_pinned(analysis: &Analysis, workload: &WorkloadName, arm: &ArmName) -> bool {
    let own = analysis.plan.arm(arm).and_then(|arm| arm.workload(workload));
    own.is_some_and(|own| {
        let client = own.pin_auto.client || !own.pin_client.is_empty();
        client && (own.pin_auto.server || !own.pin_server.is_empty())
    })
}

/// What the ratio of a block's value to the median of the other blocks bounds, in words; absent where both are exact, and where both are
/// bounds, so that the ratio is none.
fn bound_of_ratio(
    analysis: &Analysis,
    (workload, metric): (&WorkloadName, Metric),
    arm: &ArmName,
    block: u32,
) -> Option<&'static str> {
    let workload = analysis.workloads.iter().find(|one| one.name == *workload)?;
    let values = workload.judged.iter().chain(&workload.unjudged).find(|one| one.metric == metric)?;
    let values = values.arms.iter().find(|one| one.arm == *arm)?;
    let others = values.values.iter().filter(|(of, _)| *of != block);
    let others: Vec<(f64, bool)> =
        others.map(|(of, value)| (*value, values.bound_in(metric, *of).is_some())).collect();
    match (values.bound_in(metric, block), Bound::of_values(metric).of_quantile(&others, 0.5)) {
        (Some(Bound::AtLeast), None) => Some("at least "),
        (Some(Bound::LessThan), None) => Some("less than "),
        (None, Some(Bound::AtLeast)) => Some("at most "),
        (None, Some(Bound::LessThan)) => Some("more than "),
        (None, None) | (Some(_), Some(_)) => None,
    }
}

/// All outlier blocks of a metric in a workload.
fn outliers(analysis: &Analysis, (workload, metric): (&WorkloadName, Metric), unit: WorkUnit) -> String {
    let own: Vec<(String, String)> = analysis
        .warnings
        .iter()
        .filter_map(|warning| match warning {
            Warning::OutlierBlock { arm, workload: of, metric: its, block, ratio_to_median }
                if of == workload && *its == metric =>
            {
                let bound = bound_of_ratio(analysis, (workload, metric), arm, *block).unwrap_or_default();
                let was = format!(" in {workload} was ");
                let alone = warning.words(unit).replacen(&was, &format!("{was}{bound}"), 1);
                let seen = times(*ratio_to_median);
                Some((alone, format!("{arm} in block {} ({bound}{seen})", block.saturating_add(1))))
            }
            _ => None,
        })
        .collect();
    match own.as_slice() {
        [(one, _)] => one.clone(),
        many => format!(
            "outlier blocks: {} in {workload} was far from the median of the other blocks: {}; they stay in the result: check for other \
             load at that time",
            metric.title_in(unit),
            many.iter().map(|(_, seen)| seen.as_str()).collect::<Vec<_>>().join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_marks_in_sequence_are_a_range() {
        let words = |numbers: &[usize]| marks_in_ranges(&numbers.iter().copied().collect());
        assert_eq!(words(&[]), "");
        assert_eq!(words(&[2]), "*2");
        assert_eq!(words(&[1, 2, 4]), "*1, *2, *4");
        assert_eq!(words(&[1, 2, 3, 4, 6, 8, 9, 10]), "*1 to *4, *6, *8 to *10");
    }
}
