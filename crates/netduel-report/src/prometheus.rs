//! The result of a run in Prometheus' text format, for the textfile collector of the node exporter.
//!
//! Names follow Prometheus' conventions: base units (seconds, bytes, ratios), the unit in the name. Samples have no time stamps, because the
//! collector skips a file with one. The name of the run is the label of one metric only, and so are the settings of its command line: in all of
//! them each run would be a new series.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use netduel_model::metric::{Metric, Scale};
use netduel_model::run::Run;
use netduel_stats::summary;

use crate::analysis::{Analysis, ArmValues, Comparison, MetricAnalysis, WorkloadAnalysis};
use crate::words::{self, Tone, plain};

/// The name of a metric in Prometheus, and the factor from its unit to the unit of the name.
pub fn name(metric: Metric) -> (&'static str, f64) {
    const PER_BIT: f64 = 1.0 / 8.0;
    const PER_NANOSECOND: f64 = 1e-9;
    const PER_GIGABYTE: f64 = 1e-9;
    match metric {
        Metric::Throughput => ("netduel_throughput_bytes_per_second", PER_BIT),
        Metric::DatagramRate => ("netduel_datagrams_delivered_per_second", 1.0),
        Metric::PacketRate => ("netduel_interface_packets_per_second", 1.0),
        Metric::NoDropRate => ("netduel_no_drop_packets_per_second", 1.0),
        Metric::PartialDropRate => ("netduel_partial_drop_packets_per_second", 1.0),
        Metric::RoundTripRate => ("netduel_round_trips_per_second", 1.0),
        Metric::LatencyP50 => ("netduel_latency_p50_seconds", PER_NANOSECOND),
        Metric::LatencyP99 => ("netduel_latency_p99_seconds", PER_NANOSECOND),
        Metric::LatencyP999 => ("netduel_latency_p999_seconds", PER_NANOSECOND),
        Metric::LatencyIdleP50 => ("netduel_latency_idle_p50_seconds", PER_NANOSECOND),
        Metric::LatencyLoadedP50 => ("netduel_latency_loaded_p50_seconds", PER_NANOSECOND),
        Metric::LatencyLoadedP99 => ("netduel_latency_loaded_p99_seconds", PER_NANOSECOND),
        Metric::Responsiveness => ("netduel_loaded_round_trips_per_second", 1.0 / 60.0),
        Metric::Jitter => ("netduel_jitter_seconds", PER_NANOSECOND),
        Metric::Loss => ("netduel_loss_ratio", 1.0),
        Metric::Outage => ("netduel_outage_seconds", PER_NANOSECOND),
        Metric::LostInOutage => ("netduel_outage_lost_probes", 1.0),
        Metric::RecoveryTime => ("netduel_recovery_seconds", PER_NANOSECOND),
        Metric::CpuPerGigabyte => ("netduel_cpu_seconds_per_byte", PER_GIGABYTE),
        Metric::CpuPerDatagram => ("netduel_cpu_seconds_per_datagram", PER_NANOSECOND),
        Metric::CpuPerRoundTrip => ("netduel_cpu_seconds_per_round_trip", PER_NANOSECOND),
        Metric::RetransmitsPerGigabyte => ("netduel_retransmits_per_byte", PER_GIGABYTE),
    }
}

/// The quantiles of a summary.
const QUANTILES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// The states of `netduel_verdict`.
const TONES: [(Tone, &str); 4] = [
    (Tone::Better, "better"),
    (Tone::Worse, "worse"),
    (Tone::Same, "no-difference"),
    (Tone::Open, "inconclusive"),
];

/// The families of a run: HELP, TYPE and all samples of a name stand together.
#[derive(Default)]
struct Families(BTreeMap<String, (String, &'static str, String)>);

type Label<'a> = (&'static str, &'a str);

impl Families {
    /// Adds a sample. `part` is the end of its name, such as `_count`.
    #[expect(clippy::too_many_arguments, reason = "the parts of a sample, each of another type or meaning")]
    fn add(
        &mut self,
        name: &str,
        kind: &'static str,
        help: &str,
        part: &str,
        labels: &[Label<'_>],
        value: f64,
    ) {
        let family = self.0.entry(name.to_owned()).or_insert_with(|| (help.to_owned(), kind, String::new()));
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", label(value))).collect();
        let _ = writeln!(family.2, "{name}{part}{{{}}} {}", labels.join(","), number(value));
    }

    fn text(self) -> String {
        let mut text = String::new();
        for (name, (help, kind, samples)) in self.0 {
            let help = plain(&help).replace('\\', "\\\\");
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
        text
    }
}

/// The file of a run; it ends with a line end.
pub fn page(run: &Run, analysis: &Analysis) -> String {
    let mut families = Families::default();
    let plan = run.header.plan.name.clone();
    about_the_run(run, analysis, &plan, &mut families);
    for workload in &analysis.workloads {
        for arm in &workload.arms {
            let labels =
                [("plan", plan.as_str()), ("workload", workload.name.as_str()), ("arm", arm.arm.as_str())];
            let excluded = arm.blocks.len() as f64 - f64::from(arm.trials);
            for (state, count) in [("valid", f64::from(arm.trials)), ("excluded", excluded)] {
                let labels = [&labels[..], &[("state", state)]].concat();
                families.add(
                    "netduel_trials",
                    "gauge",
                    "Trials that count for their block.",
                    "",
                    &labels,
                    count,
                );
            }
        }
        for metric in workload.judged.iter().chain(&workload.unjudged) {
            for arm in &metric.arms {
                values(&plan, workload, metric, arm, &mut families);
            }
            for comparison in &metric.comparisons {
                verdict(&plan, workload, metric, comparison, &mut families);
            }
        }
    }
    families.text()
}

fn about_the_run(run: &Run, analysis: &Analysis, plan: &str, families: &mut Families) {
    let own = [("plan", plan), ("run", run.header.id.as_str()), ("program", run.header.program.as_str())];
    let settings = words::settings_of_command_line(&run.header);
    let settings = settings.as_deref().map(|settings| ("settings", settings));
    let labels: Vec<Label<'_>> = own.into_iter().chain(settings).collect();
    families.add(
        "netduel_run_info",
        "gauge",
        "The run of all samples of its plan; always 1.",
        "",
        &labels,
        1.0,
    );
    let labels = [("plan", plan)];
    let started_s = run.header.started_unix_ms as f64 / 1e3;
    let help = "Start of the run, seconds since the Unix epoch.";
    families.add("netduel_run_start_time_seconds", "gauge", help, "", &labels, started_s);
    let warnings = analysis.warnings.len() as f64;
    families.add("netduel_warnings", "gauge", "Warnings about the result.", "", &labels, warnings);
}

/// Quantiles over the valid trials; no sample without one. The format has no mark for a bound, so a quantile that is one is left out, and so is one
/// whose true value may be smaller or larger, and a sum that contains a bound. The valid trials that no count contains, because their result was
/// too bad for a value, have a sample of their own.
fn values(
    plan: &str,
    workload: &WorkloadAnalysis,
    metric: &MetricAnalysis,
    arm: &ArmValues,
    families: &mut Families,
) {
    let (name, factor) = name(metric.metric);
    let numbers: Vec<f64> = arm.numbers().iter().map(|value| value * factor).collect();
    let help = format!("{}: quantiles over the valid trials.", metric.metric.title());
    let own = [("plan", plan), ("workload", workload.name.as_str()), ("arm", arm.arm.as_str())];
    if !arm.without.is_empty() {
        let labels = [&own[..], &[("metric", metric.metric.key())]].concat();
        let trials = arm.without.len() as f64;
        let help = "Valid trials whose result was too bad for a value of a metric.";
        families.add("netduel_trials_without_value", "gauge", help, "", &labels, trials);
    }
    for share in QUANTILES {
        let Some(value) = summary::quantile(&numbers, share) else { return };
        if arm.quantile(metric.metric, share).is_none_or(|(_, bound)| bound.is_some()) {
            continue;
        }
        let quantile = share.to_string();
        let labels = [&own[..], &[("quantile", quantile.as_str())]].concat();
        families.add(name, "summary", &help, "", &labels, value);
    }
    if arm.bound(metric.metric).is_none() {
        families.add(name, "summary", &help, "_sum", &own, numbers.iter().sum());
    }
    families.add(name, "summary", &help, "_count", &own, numbers.len() as f64);
}

/// The verdict as one state of four, and the ratio with its interval; nothing for a metric that is not judged. A difference has no base unit of
/// its own in a common name, so metrics that can be 0 have only the state; so have comparisons of values that are bounds.
fn verdict(
    plan: &str,
    workload: &WorkloadAnalysis,
    metric: &MetricAnalysis,
    comparison: &Comparison,
    families: &mut Families,
) {
    let Some(judged) = comparison.judged.as_ref() else { return };
    let baseline = workload.arms.first().map_or("", |arm| arm.arm.as_str());
    let judged = Some(judged).filter(|_| comparison.withheld.is_none());
    let own = [
        ("plan", plan),
        ("workload", workload.name.as_str()),
        ("metric", metric.metric.key()),
        ("arm", comparison.arm.as_str()),
        ("baseline", baseline),
    ];
    let tone = words::tone(metric.metric, judged);
    for (state, word) in TONES {
        let labels = [&own[..], &[("verdict", word)]].concat();
        let help = "The verdict on an arm against the baseline: 1 for the one that applies.";
        families.add("netduel_verdict", "gauge", help, "", &labels, f64::from(u8::from(state == tone)));
    }
    let Some(estimate) = judged.and_then(|judged| judged.estimate) else { return };
    if metric.metric.scale() != Scale::Ratio || comparison.has_bounds() {
        return;
    }
    for (end, value) in [("estimate", estimate.centre), ("low", estimate.low), ("high", estimate.high)] {
        let labels = [&own[..], &[("value", end)]].concat();
        let help = "Ratio of an arm to the baseline: estimate and ends of the interval.";
        families.add("netduel_effect_ratio", "gauge", help, "", &labels, value);
    }
}

/// A sample's value.
fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value => value.to_string(),
    }
}

/// A label's value.
fn label(text: &str) -> String {
    plain(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_own_name_in_base_units() {
        let mut names: Vec<&str> = Metric::ALL.into_iter().map(|metric| name(metric).0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Metric::ALL.len());
        for metric in Metric::ALL {
            let (name, factor) = name(metric);
            // One second, one bit, one segment per gigabyte in the unit of the name.
            let expected = match metric.unit() {
                "ns" | "s/GB" | "segments/GB" => 1e-9,
                "bit/s" => 0.125,
                "/min" => 1.0 / 60.0,
                _ => 1.0,
            };
            assert!((factor - expected).abs() < 1e-15, "{metric:?}");
            assert_eq!(name.contains("seconds"), metric.unit() == "ns" || metric.is_cpu(), "{name}");
        }
    }

    #[test]
    fn label_is_one_quoted_line() {
        assert_eq!(label("a\"b\\c\nd"), "a\\\"b\\\\c d");
    }
}
