//! What a published report has for its readers: summary, purpose and audience, commentary, references.
use netduel_model::dpdk::DpdkDevice;
use netduel_model::ids::ArmName;
use netduel_model::metric::Metric;
use netduel_model::packet_path::{PacketEngine, PacketReceiver};
use netduel_model::publication::Publication;
use netduel_model::size;
use netduel_model::snapshot::Provider;

use super::block::{Block, Scope, Section, Style, Text, list};
use super::verdicts::Sides;
use super::{levels, markup, published as figures};
use crate::analysis::{Analysis, Comparison, MetricAnalysis, WorkloadAnalysis, sizes};
use crate::findings;
use crate::words::{self, Tone};
use netduel_model::published;

fn section(anchor: &str, title: &str, blocks: Vec<Block>) -> Section {
    Section { anchor: anchor.to_owned(), title: title.to_owned(), scope: Scope::Reference, blocks }
}

/// Three sentences, each a paragraph, and one picture for readers who read nothing else; absent for a run without a value. The second
/// sentence also names the values that cannot be compared, and the bottlenecks of two arms.
pub(super) fn summary(analysis: &Analysis, attention: Option<Text>) -> Option<Section> {
    let picture = levels::of_run(analysis)?;
    let mut found = result(analysis);
    // The result of two arms has the first verdict of each workload.
    let stated = usize::from(analysis.plan.arms.len() == 2);
    for clause in analysis.workloads.iter().filter_map(|workload| not_comparable(workload, stated)) {
        found = found.and("; ", Style::Plain);
        found.0.extend(clause.0);
    }
    if let Some(reason) = words::reason(analysis) {
        found = found.and(format!("; {reason}"), Style::Plain);
    }
    let found = found.and(".", Style::Plain);
    let sentences = [Text::from(compared(analysis)), found, trust(analysis, attention)];
    let mut blocks: Vec<Block> = sentences.into_iter().map(Block::Paragraph).collect();
    blocks.push(Block::Figure(Box::new(picture)));
    Some(section("summary", "Summary", blocks))
}

/// What was compared.
fn compared(analysis: &Analysis) -> String {
    let names: Vec<&str> = analysis.plan.arms.iter().map(|arm| arm.name.as_str()).collect();
    let workloads: Vec<&str> = analysis.workloads.iter().map(|workload| workload.name.as_str()).collect();
    let workloads = words::listed(&workloads);
    let blocks = words::plural(analysis.blocks, "block");
    match names.as_slice() {
        [only] => format!("The arm {only} was measured with {workloads} in {blocks}."),
        [baseline, ..] => {
            let place = if words::is_in_lab(&analysis.plan) {
                let passed = words::switches_passed(&analysis.plan).map(|passed| format!(" ({passed})"));
                format!(", in a lab on one machine without a physical NIC{}", passed.unwrap_or_default())
            } else {
                String::new()
            };
            format!(
                "The arms {} were compared with the same traffic ({workloads}) in {blocks}{place}; {baseline} is the baseline.",
                words::listed(&names)
            )
        }
        [] => String::new(),
    }
}

/// What was found, without the full stop: the first metric of each workload and its cost for two arms, the number of results for more.
fn result(analysis: &Analysis) -> Text {
    let arms: Vec<&ArmName> = analysis.plan.arms.iter().map(|arm| &arm.name).collect();
    match arms.as_slice() {
        [baseline, other] => {
            let clauses = analysis.workloads.iter().filter_map(|workload| clause(workload, other));
            let mut text = Text::from(format!("Result of {other} against {baseline}: "));
            for (index, clause) in clauses.enumerate() {
                text = text.and(if index == 0 { "" } else { "; " }, Style::Plain);
                text.0.extend(clause.0);
            }
            text
        }
        [_, others @ ..] if !others.is_empty() => {
            let lines: Vec<String> =
                others.iter().map(|arm| format!("{arm} {}", counted(analysis, arm))).collect();
            format!("Against the baseline: {}", lines.join("; ")).into()
        }
        _ => {
            let first = |workload: &WorkloadAnalysis| {
                let metric = workload.judged.first()?;
                let value = words::measure(metric, metric.arms.first()?).median?;
                Some(format!("{} of {}: {value}", metric.title(), workload.name))
            };
            let values: Vec<String> = analysis.workloads.iter().filter_map(first).collect();
            format!("Median of the {}", values.join("; ")).into()
        }
    }
}

/// The first verdict of a workload and that of its CPU time, what it costs, when that is known; without their intervals.
fn clause(workload: &WorkloadAnalysis, arm: &ArmName) -> Option<Text> {
    let mut compared = workload.judged.iter().filter(|metric| comparison(metric, arm).is_some());
    let first = compared.next()?;
    let (tone, verdict) = short_verdict(first, arm)?;
    let title = format!("{} of {}{} ", first.title(), workload.name, colon(tone));
    let text = Text::from(title).and(verdict, Style::Tone(tone));
    let cost = compared.find(|metric| metric.metric.is_cpu());
    let Some((metric, (tone, verdict))) = cost
        .and_then(|metric| Some((metric, short_verdict(metric, arm)?)))
        .filter(|(_, (tone, _))| *tone != Tone::Open)
    else {
        return Some(text);
    };
    // `CPU 76 % less per GB`: the verdict names the unit itself.
    let title = match metric.title().split_once(" per ") {
        Some((title, _)) if verdict.contains(" per ") => title,
        _ => metric.title(),
    };
    Some(text.and(format!(", {title}{} ", colon(tone)), Style::Plain).and(verdict, Style::Tone(tone)))
}

/// The judged metrics of a workload, after the `stated` first ones, whose values contain the CPU time of other processes; absent
/// without any.
fn not_comparable(workload: &WorkloadAnalysis, stated: usize) -> Option<Text> {
    let share = |comparison: &Comparison| comparison.contention.unwrap_or_default();
    let worst = |metric: &MetricAnalysis| -> Option<String> {
        let contended = metric.comparisons.iter().filter(|one| one.contention.is_some());
        let worst = contended.max_by(|one, other| share(one).total_cmp(&share(other)))?;
        Some(words::verdict(metric.metric, worst))
    };
    let compared = workload.judged.iter().filter(|metric| !metric.comparisons.is_empty()).skip(stated);
    let found: Vec<(&MetricAnalysis, String)> =
        compared.filter_map(|metric| Some((metric, worst(metric)?))).collect();
    let (metric, verdict) = found.first()?;
    let titles: Vec<&str> = found.iter().map(|(metric, _)| metric.title()).collect();
    let contended = metric.comparisons.iter().filter(|one| one.contention.is_some());
    let arms: Vec<&str> = contended.map(|one| one.arm.as_str()).collect();
    let whose = if arms.len() == metric.comparisons.len() {
        String::new()
    } else {
        format!(" on {}", words::listed(&arms))
    };
    let verb = if titles.len() == 1 { "is" } else { "are" };
    let text = Text::from(format!("{} of {}{whose} {verb} ", words::listed(&titles), workload.name));
    Some(text.and(verdict.clone(), Style::Tone(Tone::Open)))
}

/// The verdict of an arm without its interval.
fn short_verdict(metric: &MetricAnalysis, arm: &ArmName) -> Option<(Tone, String)> {
    let compared = comparison(metric, arm)?;
    let verdict = words::verdict(metric.metric, compared);
    let tone = words::tone(metric.metric, compared.judged.as_ref());
    Some((tone, verdict.split(" [").next().unwrap_or_default().to_owned()))
}

/// A colon precedes a verdict that does not continue the sentence.
fn colon(tone: Tone) -> &'static str {
    if matches!(tone, Tone::Better | Tone::Worse) { "" } else { ":" }
}

fn comparison<'a>(metric: &'a MetricAnalysis, arm: &ArmName) -> Option<&'a Comparison> {
    metric.comparisons.iter().find(|comparison| comparison.arm == *arm)
}

/// The verdicts of an arm by their outcome.
fn counted(analysis: &Analysis, arm: &ArmName) -> String {
    let metrics = analysis.workloads.iter().flat_map(|workload| &workload.judged);
    let tones: Vec<Tone> = metrics
        .filter_map(|metric| Some(words::tone(metric.metric, comparison(metric, arm)?.judged.as_ref())))
        .collect();
    outcomes(&tones)
}

/// Verdicts by their outcome: `is better in 2, worse in 1 and inconclusive in 3 of 6 verdicts`.
pub(super) fn outcomes(tones: &[Tone]) -> String {
    let outcomes = [
        (Tone::Better, "better"),
        (Tone::Worse, "worse"),
        (Tone::Same, "without a difference"),
        (Tone::Open, "inconclusive"),
    ];
    let parts: Vec<String> = outcomes
        .into_iter()
        .map(|(tone, word)| (tones.iter().filter(|one| **one == tone).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{word} in {count}"))
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    format!("is {} of {} verdicts", words::listed(&parts), tones.len())
}

/// How far the result can be trusted.
fn trust(analysis: &Analysis, attention: Option<Text>) -> Text {
    let is_compared = analysis.plan.compares();
    let start = if is_compared {
        words::error_rates(analysis.plan.design.confidence.fraction(), Sides::Arms)
    } else {
        format!("{} counted", words::plural(analysis.trials_valid, "valid trial"))
    };
    match attention {
        None => Text::from(format!("{start}; there are no warnings.")),
        Some(found) => {
            let mut text = Text::from(format!("{start}; take note of "));
            text.0.extend(found.0);
            text.and(".", Style::Plain)
        }
    }
}

/// Purpose and audience in the author's words; absent without any.
pub(super) fn purpose(author: &Publication) -> Option<Section> {
    let paragraphs = |text: &Option<String>| text.as_deref().map(markup::blocks).unwrap_or_default();
    let (purpose, audience) = (paragraphs(&author.purpose), paragraphs(&author.audience));
    match (purpose.is_empty(), audience.is_empty()) {
        (true, true) => None,
        (false, true) => Some(section("purpose", "Purpose", purpose)),
        (true, false) => Some(section("purpose", "Audience", audience)),
        (false, false) => {
            let heading = Block::Heading("Audience".to_owned());
            let blocks = [purpose, vec![heading], audience].concat();
            Some(section("purpose", "Purpose and audience", blocks))
        }
    }
}

/// The author's commentary, and what the counters show beside it; absent without either.
pub(super) fn commentary(analysis: &Analysis, author: &Publication) -> Option<Section> {
    let own = author.commentary.as_deref().map(markup::blocks).unwrap_or_default();
    let mut derived = words::packets_commentary(analysis);
    if !own.is_empty() {
        // The sections of the workloads have the evidence.
        derived.extend(bottlenecks(analysis));
    }
    if own.is_empty() && derived.is_empty() {
        return None;
    }
    if own.is_empty() {
        return Some(section("commentary", "Commentary", vec![list(derived)]));
    }
    let mut blocks = own;
    if !derived.is_empty() {
        blocks.extend([Block::Heading("Derived from the counters by netduel".to_owned()), list(derived)]);
    }
    Some(section("commentary", "Commentary", blocks))
}

/// The author's commentary alone; absent without any.
pub(super) fn own_commentary(author: &Publication) -> Option<Section> {
    let own = author.commentary.as_deref().map(markup::blocks).unwrap_or_default();
    (!own.is_empty()).then(|| section("commentary", "Commentary", own))
}

/// The bottleneck of each workload in a sentence.
fn bottlenecks(analysis: &Analysis) -> Vec<String> {
    let sentence = |workload: &WorkloadAnalysis| {
        Some(format!("Bottleneck of {}: {}.", workload.name, words::bottleneck(workload)?))
    };
    analysis.workloads.iter().filter_map(sentence).collect()
}

/// Sources: published figures of the hosts' sizes, manuals of what carried the packets, and the standards of the methods that the run used;
/// absent without any.
pub(super) fn references(analysis: &Analysis) -> Option<Section> {
    let mut items: Vec<Text> = Vec::new();
    for name in sizes(analysis) {
        items.extend(size::named(&name).map(|size| {
            Text::from(format!("Network bandwidth of {}: ", size.name)).and(size.source(), page(&size.page))
        }));
        let is_of_packets =
            analysis.workloads.iter().flat_map(|workload| &workload.arms).any(|arm| !arm.packets.is_empty());
        let figures = published::packets_of_size(&name).into_iter().filter(|_| is_of_packets);
        items.extend(figures.map(|figure| {
            Text::from(format!(
                "{}: {} sent and {} received with {} B frames on {} ({}).",
                figure.publication.source(),
                words::packet_rate(figure.sender_pps),
                words::packet_rate(figure.receiver_pps),
                figure.frame,
                figure.size,
                figure.conditions
            ))
        }));
    }
    let sources = figures::sources(analysis).into_iter();
    items.extend(sources.map(|source| Text::from(format!("Published figures: {source}."))));
    items.extend(manuals(analysis));
    items.extend(standards(analysis));
    (!items.is_empty()).then(|| section("references", "References", vec![Block::List(items)]))
}

/// The page of a size, from the path in the table.
fn page(path: &str) -> Style {
    Style::Web(format!("https://learn.microsoft.com/en-us/azure/virtual-machines/sizes/{path}"))
}

/// Manuals of the programs, drivers and features that carried the packets.
fn manuals(analysis: &Analysis) -> Vec<Text> {
    let arms = || analysis.workloads.iter().flat_map(|workload| &workload.arms);
    let paths = || arms().filter_map(|arm| arm.workload.traffic.facts().packets);
    let is_accelerated_azure = analysis.inspection.hosts.iter().any(|host| {
        let cloud = host.snapshot.cloud.as_ref();
        cloud.is_some_and(|cloud| cloud.provider == Provider::Azure)
            && !findings::accelerations(&host.snapshot).is_empty()
    });
    let is_on_mana =
        paths().filter_map(|path| path.dpdk.as_ref()).any(|dpdk| dpdk.device == DpdkDevice::Mana);
    let manuals = [
        (
            paths().any(|path| path.engine == PacketEngine::Dpdk || path.receiver == PacketReceiver::Dpdk),
            "DPDK testpmd",
            "https://doc.dpdk.org/guides/testpmd_app_ug/",
        ),
        (is_on_mana, "DPDK driver of MANA", "https://doc.dpdk.org/guides/nics/mana.html"),
        (
            is_on_mana,
            "DPDK on Linux VMs of Azure with MANA",
            "https://learn.microsoft.com/en-us/azure/virtual-network/setup-dpdk-mana",
        ),
        (
            paths().any(|path| path.engine == PacketEngine::Xdp || path.receiver == PacketReceiver::Xdp),
            "AF_XDP of Linux",
            "https://docs.kernel.org/networking/af_xdp.html",
        ),
        (
            is_accelerated_azure,
            "Accelerated networking of Azure",
            "https://learn.microsoft.com/en-us/azure/virtual-network/accelerated-networking-overview",
        ),
    ];
    let used = manuals.into_iter().filter(|(is_used, ..)| *is_used);
    let item =
        |subject: &str, address: &str| Text::from("Manual: ").and(subject, Style::Web(address.to_owned()));
    used.map(|(_, subject, address)| item(subject, address)).collect()
}

/// The sources of the methods of a run.
fn standards(analysis: &Analysis) -> Vec<Text> {
    let arms = || analysis.workloads.iter().flat_map(|workload| &workload.arms);
    let metrics = || {
        analysis
            .workloads
            .iter()
            .flat_map(|workload| workload.judged.iter().chain(&workload.unjudged))
            .map(|metric| metric.metric)
    };
    let rfc = |number: u32, subject: &str| {
        let address = format!("https://www.rfc-editor.org/rfc/rfc{number}");
        Text::from(format!("{subject}: ")).and(format!("RFC {number}"), Style::Web(address))
    };
    let mut items = Vec::new();
    if arms().any(|arm| arm.workload.traffic.facts().is_of_packets()) {
        items.push(rfc(2544, "Frame sizes"));
    }
    if arms().any(|arm| arm.search.is_some()) {
        items.push(rfc(9971, "Search for the highest rate without loss"));
    }
    if metrics().any(|metric| metric == Metric::Jitter) {
        items.push(rfc(3550, "Jitter"));
    }
    if analysis.plan.compares() {
        items.push(Text::from(
            "Estimates: J. L. Hodges, E. L. Lehmann: Estimates of Location Based on Rank Tests, 1963.",
        ));
        items.push(Text::from("Confidence of several verdicts: S. Holm: A Simple Sequentially Rejective Multiple Test Procedure, 1979."));
    }
    items
}
