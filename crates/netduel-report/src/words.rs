//! The words of a report: verdicts, values, workloads, ends. Every format takes them from here, so all say the same.
use std::fmt::Write as _;

use netduel_model::ids::ArmName;
use netduel_model::metric::{Better, Metric, Scale};
use netduel_model::plan::{ResolvedPlan, Treatment, TreatmentAction};
use netduel_model::run::{Run, RunEnd};
use netduel_model::units::three_digits;
use netduel_model::workload::{Direction, Role, TcpEngine, Traffic, Wait, Workload};
use netduel_stats::paired::Estimate;
use netduel_stats::summary;
use netduel_stats::verdict::{Judged, Verdict};

use crate::analysis::{Analysis, ArmValues, Comparison, MetricAnalysis, PathShares, WorkloadAnalysis};

/// What a verdict means for the person who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The arm is better than the baseline.
    Better,
    /// The arm is worse.
    Worse,
    /// They do not differ by an amount that matters.
    Same,
    /// Nothing can be said yet.
    Open,
}

impl Tone {
    /// One word, also the name of the style.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Open => "open",
        }
    }

    /// A mark that tells the tones apart without colour.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Better => "+",
            Self::Worse => "-",
            Self::Same => "=",
            Self::Open => "?",
        }
    }
}

/// Whether a verdict is good news in its metric.
pub fn tone(metric: Metric, judged: Option<&Judged>) -> Tone {
    let Some(judged) = judged else { return Tone::Open };
    match (judged.verdict, metric.better()) {
        (Verdict::Higher { .. }, Better::Higher) | (Verdict::Lower { .. }, Better::Lower) => Tone::Better,
        (Verdict::Higher { .. }, Better::Lower) | (Verdict::Lower { .. }, Better::Higher) => Tone::Worse,
        (Verdict::NoDifference { .. }, _) => Tone::Same,
        (Verdict::NotEnough { .. }, _) => Tone::Open,
    }
}

/// A verdict, for example `faster by 220 % [190, 250] (3.2x)`.
pub fn verdict(metric: Metric, judged: Option<&Judged>) -> String {
    let Some(judged) = judged else { return "not judged".to_owned() };
    match judged.verdict {
        Verdict::Higher { estimate } => {
            format!("{} by {}", direction(metric, true), effect(metric, &estimate))
        }
        Verdict::Lower { estimate } => {
            format!("{} by {}", direction(metric, false), effect(metric, &estimate))
        }
        Verdict::NoDifference { larger_than, .. } => {
            format!("no difference larger than {}", amount(metric, larger_than))
        }
        Verdict::NotEnough { more: Some(1), .. } => "not enough trials: 1 more block would do".to_owned(),
        Verdict::NotEnough { more: Some(more), .. } => {
            format!("not enough trials: {more} more blocks would do")
        }
        Verdict::NotEnough { estimate: None, .. } => "not enough trials: no block has both arms".to_owned(),
        Verdict::NotEnough { more: None, .. } => "not enough trials: the spread is not known yet".to_owned(),
    }
}

/// Rates and round trips are faster or slower; costs, losses and jitter are higher or lower.
fn direction(metric: Metric, higher: bool) -> &'static str {
    match (metric, higher) {
        (Metric::Throughput | Metric::DatagramRate | Metric::RoundTripRate, true)
        | (Metric::LatencyP50 | Metric::LatencyP99 | Metric::LatencyP999, false) => "faster",
        (Metric::Throughput | Metric::DatagramRate | Metric::RoundTripRate, false)
        | (Metric::LatencyP50 | Metric::LatencyP99 | Metric::LatencyP999, true) => "slower",
        (_, true) => "higher",
        (_, false) => "lower",
    }
}

/// `220 % [190, 250] (3.2x)` for a ratio, `1.2 percentage points [1.0, 1.4]` for a loss. The interval is given in the
/// direction of the verdict, smaller end first.
fn effect(metric: Metric, estimate: &Estimate) -> String {
    let sides = |centre: f64, low: f64, high: f64| {
        let (a, b) = (centre.signum() * low, centre.signum() * high);
        (centre.abs(), a.min(b), a.max(b))
    };
    match metric.scale() {
        Scale::Ratio => {
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let (centre, low, high) =
                sides(percent(estimate.centre), percent(estimate.low), percent(estimate.high));
            format!("{} %{} ({})", figure(centre), bracket(low, high), times(estimate.centre))
        }
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            let (centre, low, high) =
                sides(estimate.centre * factor, estimate.low * factor, estimate.high * factor);
            format!("{} {unit}{}", figure(centre), bracket(low, high))
        }
    }
}

fn bracket(low: f64, high: f64) -> String {
    if low.is_finite() && high.is_finite() {
        format!(" [{}, {}]", figure(low), figure(high))
    } else {
        String::new()
    }
}

/// A margin in words: `5 %`, `0.10 percentage points`.
fn amount(metric: Metric, margin: f64) -> String {
    match metric.scale() {
        Scale::Ratio => percent_exact(margin),
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            format!("{} {unit}", figure(margin * factor))
        }
    }
}

fn difference_unit(metric: Metric) -> (f64, &'static str) {
    match metric {
        Metric::Loss => (100.0, "percentage points"),
        _ => (1.0, metric.unit()),
    }
}

/// Two or three digits that say no more than an interval of few blocks can know.
fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 9.95 => format!("{value:.0}"),
        v if v >= 0.95 => format!("{value:.1}"),
        v if v >= 0.095 => format!("{value:.2}"),
        v if v < 0.0005 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

/// A ratio for people: `3.2x`, `0.31x`, `12x`.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 9.95 => format!("{r:.0}x"),
        r if r >= 1.095 => format!("{r:.1}x"),
        r if r >= 0.0095 => format!("{r:.2}x"),
        r => format!("{r:.4}x"),
    }
}

/// A share for people: `99.98 %`, `64 %`, `0.3 %`. Never rounds a share up to 100 % or down to 0 %.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p >= 100.0 => "100 %".to_owned(),
        p if p > 99.99 => "more than 99.99 %".to_owned(),
        p if p > 99.0 => format!("{:.2} %", (p * 100.0).floor() / 100.0),
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.095 => format!("{p:.1} %"),
        p if p >= 0.001 => format!("{p:.3} %"),
        _ => "less than 0.001 %".to_owned(),
    }
}

/// A share rounded down to two decimals, for "at least": `99.98 %`.
fn percent_at_least(share: f64) -> String {
    format!("{:.2} %", (share * 1e4).floor() / 100.0)
}

/// A round percentage as a plan gives it: `5 %`, `2.5 %`.
pub fn percent_exact(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// The interval of a comparison as ratios or differences: `3.2 [2.9, 3.5]`; absent when there is no estimate.
pub fn interval(metric: Metric, estimate: &Estimate) -> String {
    let (factor, unit) = match metric.scale() {
        Scale::Ratio => (1.0, "x".to_owned()),
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            (factor, format!(" {unit}"))
        }
    };
    let (centre, low, high) = (estimate.centre * factor, estimate.low * factor, estimate.high * factor);
    if low.is_finite() && high.is_finite() {
        format!("{}{unit} [{}, {}]", three_digits(centre), three_digits(low), three_digits(high))
    } else {
        format!("{}{unit}, too few blocks for an interval", three_digits(centre))
    }
}

/// A mean with its standard error and number of trials: `6.12 Gbit/s ± 41.0 Mbit/s (n 8)`.
pub fn value(metric: Metric, values: &ArmValues) -> String {
    let numbers = values.numbers();
    let n = numbers.len();
    let Some(mean) = summary::mean(&numbers) else { return "no valid trial".to_owned() };
    match mean.standard_error {
        Some(error) => format!("{} ± {} (n {n})", metric.human(mean.mean), metric.human(error)),
        None => format!("{} (n {n})", metric.human(mean.mean)),
    }
}

/// What a workload sends, in a line.
pub fn workload(workload: &Workload) -> String {
    let mut parts = vec![workload.traffic.type_name().to_owned()];
    let plural =
        |count: u32, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let way = |direction: Direction| match direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
        Direction::Both => "both ways",
    };
    match &workload.traffic {
        Traffic::TcpStream { streams, direction, block, engine, congestion } => {
            parts.push(plural(*streams, "stream"));
            parts.push(way(*direction).to_owned());
            parts.push(match engine {
                TcpEngine::Lean => "lean engine".to_owned(),
                TcpEngine::Copy => "copy engine".to_owned(),
            });
            parts.push(format!("{block} a call"));
            parts.extend(congestion.iter().cloned());
        }
        Traffic::UdpStream { flows, direction, size, rate } => {
            parts.push(plural(*flows, "flow"));
            parts.push(way(*direction).to_owned());
            parts.push(format!("{size} datagrams"));
            parts.push(rate.map_or("as fast as it can".to_owned(), |rate| format!("at {rate}")));
        }
        Traffic::TcpRr(round_trip) | Traffic::UdpRr(round_trip) => {
            parts.push(format!("{} messages", round_trip.size));
            parts.push(match round_trip.rate {
                Some(rate) => format!("open loop at {rate}"),
                None => format!("closed loop, {} outstanding", round_trip.outstanding),
            });
            parts.push(match round_trip.wait {
                Wait::Block => "blocking".to_owned(),
                Wait::Spin => "spinning".to_owned(),
            });
        }
    }
    parts.push(workload.family.to_string());
    parts.push(workload.timing.duration.to_string());
    parts.join(", ")
}

/// One arm in the change it makes: `path = accelerated on both`.
pub fn treatment(treatment: &Treatment) -> String {
    let on = format!("{:?}", treatment.on).to_lowercase();
    match &treatment.action {
        TreatmentAction::Path { path } => format!("lab path {}", format!("{path:?}").to_lowercase()),
        TreatmentAction::Offload { interface, feature, enabled } => {
            format!("{feature} {} on {interface} ({on})", if *enabled { "on" } else { "off" })
        }
        TreatmentAction::Mtu { interface, mtu } => format!("MTU {mtu} B on {interface} ({on})"),
        TreatmentAction::Sysctl { name, value } => format!("{name} = {value} ({on})"),
        TreatmentAction::Command { command, .. } => format!("`{}` ({on})", command.join(" ")),
    }
}

/// How a run ended.
pub fn end(end: Option<&RunEnd>) -> String {
    match end {
        None => "The run has no end: it goes on, or its coordinator was killed.".to_owned(),
        Some(RunEnd::PrecisionReached) => {
            "Ended because every interval is as narrow as the plan asks.".to_owned()
        }
        Some(RunEnd::BlocksDone) => "Ended after the most blocks that the plan allows.".to_owned(),
        Some(RunEnd::BudgetUsed) => "Ended because the time budget was used up.".to_owned(),
        Some(RunEnd::Interrupted) => "Interrupted; it can be resumed with `netduel run --resume`.".to_owned(),
        Some(RunEnd::Failed { detail }) => {
            format!("Failed, and can be resumed when the cause is removed: {detail}")
        }
    }
}

/// How many blocks and trials stand behind the verdicts.
pub fn trials(analysis: &Analysis) -> String {
    let left_out = match analysis.trials_left_out {
        0 => "none left out".to_owned(),
        count => format!("{count} left out"),
    };
    let blocks =
        if analysis.blocks == 1 { "1 block".to_owned() } else { format!("{} blocks", analysis.blocks) };
    format!("{blocks}, {} valid trials, {left_out}", analysis.trials_valid)
}

/// One metric's part of an answer: `is`, `faster by 220 % [190, 250] (3.2x)`, `in throughput`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The verb before the verdict.
    pub verb: &'static str,
    /// The verdict.
    pub verdict: String,
    /// The metric.
    pub metric: &'static str,
    /// Whether it is good news.
    pub tone: Tone,
}

/// What is said of one arm in one workload, a clause for each judged metric.
pub fn clauses(workload: &WorkloadAnalysis, arm: &ArmName) -> Vec<Clause> {
    comparisons(workload, arm)
        .map(|(metric, comparison)| {
            let tone = tone(metric, comparison.judged.as_ref());
            let verb = match tone {
                Tone::Better | Tone::Worse => "is",
                Tone::Same => "shows",
                Tone::Open => "has",
            };
            Clause {
                verb,
                verdict: verdict(metric, comparison.judged.as_ref()),
                metric: metric.title(),
                tone,
            }
        })
        .collect()
}

/// What stands between the clauses of an answer: before clause `index` of `count`.
pub fn joint(index: usize, count: usize) -> &'static str {
    match index {
        0 => " ",
        _ if index + 1 == count => ", and ",
        _ => ", ",
    }
}

/// The answer for one arm in one workload, a sentence: all judged metrics against the baseline.
pub fn answer(workload: &WorkloadAnalysis, arm: &ArmName) -> Option<String> {
    let clauses = clauses(workload, arm);
    let mut sentence = arm.to_string();
    for (index, Clause { verb, verdict, metric, .. }) in clauses.iter().enumerate() {
        let joint = joint(index, clauses.len());
        let _ = write!(sentence, "{joint}{verb} {verdict} in {metric}");
    }
    (!clauses.is_empty()).then(|| sentence + ".")
}

/// Every judged metric of a workload with the comparison of one arm.
pub fn comparisons<'a>(
    workload: &'a WorkloadAnalysis,
    arm: &'a ArmName,
) -> impl Iterator<Item = (Metric, &'a Comparison)> {
    workload.judged.iter().filter_map(move |metric: &MetricAnalysis| {
        Some((metric.metric, metric.comparisons.iter().find(|comparison| &comparison.arm == arm)?))
    })
}

/// What the counters prove of the path of each arm at each end, all workloads together.
pub fn proofs(analysis: &Analysis) -> Vec<String> {
    let mut sentences = Vec::new();
    for arm in &analysis.plan.arms {
        for role in [Role::Client, Role::Server] {
            let paths: Vec<&PathShares> = analysis
                .workloads
                .iter()
                .flat_map(|workload| &workload.arms)
                .filter(|figures| figures.arm == arm.name)
                .flat_map(|figures| &figures.paths)
                .filter(|path| path.role == role)
                .collect();
            sentences.extend(proof(&arm.name, role, &paths));
        }
    }
    sentences
}

fn proof(arm: &ArmName, role: Role, paths: &[&PathShares]) -> Option<String> {
    let PathShares { host, expected, .. } = paths.first()?;
    let proven: u32 = paths.iter().map(|path| path.proven).sum();
    let trials: u32 = paths.iter().map(|path| path.trials).sum();
    let expected = plain(expected);
    Some(match paths.iter().filter_map(|path| path.share_min).reduce(f64::min) {
        Some(share) => format!(
            "{arm}: {expected} at {role} {host} carried at least {} of the bytes of each valid trial ({proven} of {trials} \
             trials proven)",
            percent_at_least(share)
        ),
        None => format!("{arm}: no valid trial proves that {expected} at {role} {host} carried the bytes"),
    })
}

/// A text without characters that would steer a terminal or turn the direction of writing: plans, host names and error
/// texts come from elsewhere. Line breaks become spaces.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() => '\u{fffd}',
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The commands that run the same again, one a line: the seed makes the order the same too. Every line is one line, whatever
/// the plan's name is, since people paste them into a shell.
pub fn commands(run: &Run) -> Vec<String> {
    let plan = format!("{}.toml", run.header.plan.name);
    let mut lines = vec![format!("# save the plan below as {plan}")];
    if run.header.plan.design.seed != Some(run.header.seed) {
        lines.push(format!("# for the same order write seed = {} under [design]", run.header.seed));
    }
    lines.push(format!("netduel run {}", shell_word(&plan)));
    lines.push(format!(
        "# this run was: {}",
        run.header.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    ));
    lines.iter().map(|line| plain(line)).collect()
}

/// A moment for people: `2026-11-21 10:30 UTC`.
pub fn date(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    // Days to the civil calendar by eras of 400 years that begin on a first of March, so that the leap day is the last.
    let days = minutes / 1440 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// A word as a shell takes it back.
fn shell_word(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The rules by which everything was counted, for people who check.
pub fn rules(plan: &ResolvedPlan) -> Vec<(&'static str, String)> {
    let design = &plan.design;
    let (confidence, equivalence) = (design.confidence, design.equivalence);
    vec![
        ("Rates", "The receiver's payload in the steady window (warm-up and cool-down cut off), all streams; with traffic both \
          ways the sum. Payload bits, SI prefixes (1 G = 10^9).".to_owned()),
        ("Loss", "1 - unique datagrams received / datagrams sent, over the whole trial, to the datagram, from both ends."
            .to_owned()),
        ("Latency", "Full round trips at the client, every one of the steady window in a histogram with three significant \
          digits; in an open loop from the scheduled time.".to_owned()),
        ("CPU", "Busy time of all cores of both hosts, each machine once, over the whole trial, divided by what was received in \
          the whole trial.".to_owned()),
        ("Comparison", "Within blocks: each arm against the baseline of the same block. Ratio (difference for loss and \
          retransmits) by Hodges and Lehmann with its Wilcoxon signed-rank interval.".to_owned()),
        ("Verdict", format!("All comparisons of the run are one family at {confidence} confidence by Holm's procedure: an \
          interval in brackets is the one that decided its verdict. `No difference larger than` is an equivalence test at \
          {equivalence}.")),
        ("Means", "A mean stands with its standard error and number of trials. It is for the eye; verdicts use the blocks."
            .to_owned()),
        ("Left out", "Trials that failed or whose bytes took another path than the arm's. Nothing else is ever left out, \
          outliers included.".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_340, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds * 1000), text);
        }
    }

    #[test]
    fn a_share_is_never_rounded_to_all_or_nothing() {
        for (share, text) in [
            (1.0, "100 %"),
            (0.999_999_9, "more than 99.99 %"),
            (0.999_87, "99.98 %"),
            (0.42, "42 %"),
            (0.004, "0.4 %"),
            (1e-9, "less than 0.001 %"),
            (0.0, "0 %"),
        ] {
            assert_eq!(percent(share), text);
        }
        assert_eq!(percent_at_least(0.999_999), "99.99 %");
    }

    fn estimate(centre: f64, low: f64, high: f64) -> Estimate {
        Estimate { n: 8, centre, low, high, confidence: 0.95, p_value: 0.01 }
    }

    fn judged(verdict: Verdict) -> Judged {
        Judged { verdict, estimate: verdict.estimate(), adjusted_p: None }
    }

    #[test]
    fn verdicts_have_their_words() {
        let more = |more| Verdict::NotEnough { estimate: None, more };
        for (metric, given, words) in [
            (
                Metric::Throughput,
                Verdict::Higher { estimate: estimate(3.2, 2.9, 3.5) },
                "faster by 220 % [190, 250] (3.2x)",
            ),
            (
                Metric::Throughput,
                Verdict::Lower { estimate: estimate(0.9, 0.88, 0.95) },
                "slower by 10 % [5.0, 12] (0.90x)",
            ),
            (
                Metric::LatencyP99,
                Verdict::Lower { estimate: estimate(0.31, 0.29, 0.34) },
                "faster by 69 % [66, 71] (0.31x)",
            ),
            (
                Metric::LatencyP50,
                Verdict::Higher { estimate: estimate(12.0, 11.0, 13.0) },
                "slower by 1100 % [1000, 1200] (12x)",
            ),
            (
                Metric::CpuPerGigabyte,
                Verdict::Lower { estimate: estimate(0.5, 0.4, 0.6) },
                "lower by 50 % [40, 60] (0.50x)",
            ),
            (
                Metric::Jitter,
                Verdict::Higher { estimate: estimate(1.02, 1.01, 1.03) },
                "higher by 2.0 % [1.0, 3.0] (1.02x)",
            ),
            (
                Metric::Loss,
                Verdict::Lower { estimate: estimate(-0.012, -0.014, -0.01) },
                "lower by 1.2 percentage points [1.0, 1.4]",
            ),
            (
                Metric::RetransmitsPerGigabyte,
                Verdict::Higher { estimate: estimate(40.0, 30.0, 50.0) },
                "higher by 40 segments/GB [30, 50]",
            ),
            (
                Metric::Throughput,
                Verdict::NoDifference { estimate: estimate(1.0, 0.99, 1.01), larger_than: 0.05 },
                "no difference larger than 5 %",
            ),
            (
                Metric::Loss,
                Verdict::NoDifference { estimate: estimate(0.0, 0.0, 0.0), larger_than: 0.001 },
                "no difference larger than 0.10 percentage points",
            ),
            (Metric::Loss, more(Some(12)), "not enough trials: 12 more blocks would do"),
            (Metric::Loss, more(Some(1)), "not enough trials: 1 more block would do"),
            (Metric::Loss, more(None), "not enough trials: no block has both arms"),
        ] {
            assert_eq!(verdict(metric, Some(&judged(given))), words);
        }
    }

    #[test]
    fn an_interval_without_ends_is_not_printed_as_one() {
        let endless = estimate(2.0, 0.0, f64::INFINITY);
        assert_eq!(interval(Metric::Throughput, &endless), "2.00x, too few blocks for an interval");
        assert_eq!(effect(Metric::Throughput, &endless), "100 % (2.0x)");
    }

    #[test]
    fn a_word_for_the_shell_is_one_word() {
        assert_eq!(shell_word("a/b-c.toml"), "a/b-c.toml");
        assert_eq!(shell_word("it's; rm"), "'it'\\''s; rm'");
        assert_eq!(shell_word(""), "''");
    }
}
