//! Headline charts: the median of each arm, or run, as a bar with its quartiles, a group of bars for each metric.
use netduel_model::metric::Better;

use super::chart::{Chart, Figure, Level, LevelGroup, Levels};
use super::metric_plots::{capital, is_shown};
use super::verdicts::Sides;
use crate::analysis::compare::Subject;
use crate::analysis::{Analysis, ArmValues, Bound, MetricAnalysis, WorkloadAnalysis};
use crate::words;

/// Medians that differ by more than this factor need a logarithmic axis: on a linear one the lower ones are lines at zero.
const FAR: f64 = 20.0;
/// Groups of the one picture of the summary: it stays a picture that is understood at a glance.
const SUMMARY_GROUPS_MAX: usize = 4;
/// Metrics of a run's only workload in the summary: its section has all of them.
const SUMMARY_METRICS_MAX: usize = 2;

const READING: &str = "Bar: median of the valid trials. Line: their quartiles.";
const READING_OF_RUNS: &str = "Bar: median of the valid trials. Box: their quartiles. Line: from min to max.";
/// The remark on a value that contains the CPU time of other processes.
const NOT_COMPARABLE: &str = "not comparable";

/// The metrics with verdicts of a workload; absent when none has a value.
pub(super) fn of_workload(analysis: &Analysis, workload: &WorkloadAnalysis) -> Option<Figure> {
    if workload.arms.len() < 2 {
        // A bar beside no other says nothing.
        return None;
    }
    let names = arms(analysis);
    let groups: Vec<LevelGroup> =
        shown(workload).map(|metric| group(&names, metric, "", Sides::Arms)).collect();
    figure(format!("Results of {}", workload.name), groups, Sides::Arms)
}

/// The same of a workload in several runs, whose labels are `runs`.
pub(super) fn of_subject(runs: &[&str], subject: &Subject) -> Option<Figure> {
    if subject.workload.arms.len() < 2 {
        return None;
    }
    let groups: Vec<LevelGroup> =
        shown(&subject.workload).map(|metric| group(runs, metric, "", Sides::Runs)).collect();
    figure(format!("Results of {}", subject.title()), groups, Sides::Runs)
}

/// The first metric of each workload, for the summary; absent when none has a value.
pub(super) fn of_run(analysis: &Analysis) -> Option<Figure> {
    let workloads: Vec<(&WorkloadAnalysis, String)> =
        analysis.workloads.iter().map(|workload| (workload, workload.name.to_string())).collect();
    headline(&workloads, &arms(analysis), Sides::Arms)
}

/// The same of what is compared in several runs, whose labels are `runs`.
pub(super) fn of_subjects(runs: &[&str], subjects: &[Subject]) -> Option<Figure> {
    let workloads: Vec<(&WorkloadAnalysis, String)> =
        subjects.iter().map(|subject| (&subject.workload, subject.title())).collect();
    headline(&workloads, runs, Sides::Runs)
}

/// The first metric of each workload with this title, or the first metrics of the only one.
fn headline(workloads: &[(&WorkloadAnalysis, String)], names: &[&str], sides: Sides) -> Option<Figure> {
    let groups: Vec<LevelGroup> = if let [(only, _)] = workloads {
        shown(only).take(SUMMARY_METRICS_MAX).map(|metric| group(names, metric, "", sides)).collect()
    } else {
        let first = |(workload, title): &(&WorkloadAnalysis, String)| {
            shown(workload).next().map(|metric| group(names, metric, title, sides))
        };
        workloads.iter().filter_map(first).take(SUMMARY_GROUPS_MAX).collect()
    };
    figure(String::new(), groups, sides)
}

/// The arms of a run in the order of their colours.
fn arms(analysis: &Analysis) -> Vec<&str> {
    analysis.plan.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn shown(workload: &WorkloadAnalysis) -> impl Iterator<Item = &MetricAnalysis> {
    workload.judged.iter().filter(|metric| is_shown(metric))
}

fn figure(title: String, groups: Vec<LevelGroup>, sides: Sides) -> Option<Figure> {
    let groups: Vec<LevelGroup> =
        groups.into_iter().filter(|group| group.bars.iter().any(|bar| bar.value.is_some())).collect();
    let has_logarithmic = groups.iter().any(|group| group.is_logarithmic);
    let logarithmic = if has_logarithmic {
        format!(" Dots in place of bars: {}.", logarithmic_axis(&format!("{}s", sides.noun())))
    } else {
        String::new()
    };
    let is_contended = groups.iter().flat_map(|group| &group.bars).any(|bar| !bar.remark.is_empty());
    let contended = if is_contended {
        format!(" \"{NOT_COMPARABLE}\": the value contains CPU time of other processes.")
    } else {
        String::new()
    };
    let of_bar = |bar: &Level| {
        let parts = [bar.name.as_str(), &bar.label, &bar.detail, &bar.extremes, bar.remark];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let of_group = |group: &LevelGroup| {
        let bars: Vec<String> = group.bars.iter().map(of_bar).collect();
        format!("{}: {}", group.title, bars.join(", "))
    };
    let marks = if sides == Sides::Runs { READING_OF_RUNS } else { READING };
    let alternative = groups.iter().map(of_group).collect::<Vec<_>>().join("; ");
    (!groups.is_empty()).then(|| Figure {
        title,
        reading: format!("{marks}{logarithmic}{contended}"),
        alternative,
        chart: Chart::Levels(Levels { groups }),
        data: None,
        in_text: false,
    })
}

/// A metric with a bar for each arm. The place of an arm among `names` is that of its colour.
fn group(names: &[&str], metric: &MetricAnalysis, workload: &str, sides: Sides) -> LevelGroup {
    let better = match metric.metric.better() {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
    };
    let title = match workload {
        "" => capital(metric.title()),
        workload => format!("{workload}: {}", metric.title()),
    };
    let bars: Vec<Level> = metric.arms.iter().map(|values| level(names, metric, values, sides)).collect();
    let medians: Vec<f64> = bars.iter().filter_map(|bar| bar.value).collect();
    let is_logarithmic = is_far(&medians);
    let group = LevelGroup { title, note: better.to_owned(), is_logarithmic, ticks: Vec::new(), bars };
    LevelGroup { ticks: axis_ticks(metric, &group), ..group }
}

/// Whether medians need a logarithmic axis. A median of 0 has no place on it, so that the axis stays linear.
pub(super) fn is_far(medians: &[f64]) -> bool {
    let (low, high) = medians
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), median| (low.min(*median), high.max(*median)));
    low > 0.0 && low.is_finite() && high > FAR * low
}

/// Why an axis is logarithmic.
pub(super) fn logarithmic_axis(what: &str) -> String {
    format!("logarithmic axis, because the {what} differ by more than a factor of {FAR}")
}

fn level(names: &[&str], metric: &MetricAnalysis, values: &ArmValues, sides: Sides) -> Level {
    let at = |share: f64| values.quantile(metric.metric, share);
    let value = |share: f64| at(share).map(|(value, _)| value);
    let measure = words::measure(metric, values);
    let arm = names.iter().position(|name| *name == values.arm.as_str()).unwrap_or(0);
    let is_several = measure.n > 1;
    // Runs have no pairs: how far their values overlap is what a reader looks for.
    let whiskers = at(0.0).zip(at(1.0)).filter(|_| is_several && sides == Sides::Runs);
    let end = |(value, bound): (f64, Option<Bound>)| {
        words::metric_value_or_bound(metric.metric, metric.unit, value, bound)
    };
    Level {
        arm,
        name: values.arm.to_string(),
        value: value(0.5),
        range: value(0.25).zip(value(0.75)).filter(|_| is_several),
        whiskers: whiskers.map(|((low, _), (high, _))| (low, high)),
        detail: measure.quartiles,
        extremes: whiskers
            .map(|(low, high)| format!("from {} to {}", end(low), end(high)))
            .unwrap_or_default(),
        label: measure.median.unwrap_or_else(|| "no value".to_owned()),
        remark: if is_contended(metric, values) { NOT_COMPARABLE } else { "" },
    }
}

/// Whether CPU time of other processes withholds the verdicts about an arm. The baseline has none of its own: all others rest on it.
fn is_contended(metric: &MetricAnalysis, values: &ArmValues) -> bool {
    let all = &metric.comparisons;
    match all.iter().find(|one| one.arm == values.arm) {
        Some(own) => own.contention.is_some(),
        None => !all.is_empty() && all.iter().all(|one| one.contention.is_some()),
    }
}

/// Round values for the axis of a metric, with their words.
fn axis_ticks(metric: &MetricAnalysis, group: &LevelGroup) -> Vec<(f64, String)> {
    let of_ends = |(low, high)| round_values(low, high, group.is_logarithmic);
    let values = group.ends().map(of_ends).unwrap_or_default();
    let words = |value: f64| if value == 0.0 { "0".to_owned() } else { short(&metric.human(value)) };
    values.into_iter().map(|value| (value, words(value))).collect()
}

/// Zero and at most three round values above it for a linear axis. Powers of ten for a logarithmic one, with steps between them where it
/// would have fewer than two.
fn round_values(low: f64, high: f64, is_logarithmic: bool) -> Vec<f64> {
    if is_logarithmic {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let every = ((last - first) / 4).max(1);
        let powers: Vec<f64> =
            (first..=last).step_by(every as usize).map(|power| 10_f64.powi(power)).collect();
        let within = powers.iter().filter(|power| (low..=high).contains(*power)).count();
        if within > 1 {
            return powers;
        }
        return powers.iter().flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * power)).collect();
    }
    let unit = 10_f64.powf((high / 3.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit).into_iter().find(|step| high / step <= 3.0);
    let step = step.unwrap_or(high);
    (0..=3).map(|count| step * f64::from(count)).take_while(|value| *value <= high * 1.001).collect()
}

/// A round number without the zeros behind its point: `2.00 Gbit/s` is `2 Gbit/s` on an axis.
fn short(words: &str) -> String {
    let Some((number, unit)) = words.split_once(' ') else { return words.to_owned() };
    if !number.contains('.') {
        return words.to_owned();
    }
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use netduel_model::metric::Metric;
    use netduel_model::workload::WorkUnit;

    use super::*;

    #[test]
    fn extremes_that_are_bounds_have_their_sign() {
        let metric = MetricAnalysis {
            metric: Metric::LatencyP50,
            unit: WorkUnit::Byte,
            arms: Vec::new(),
            comparisons: Vec::new(),
        };
        let mut values = ArmValues::new("a".parse().unwrap());
        for (block, value) in [(0, (1e6, None)), (1, (2e6, None)), (2, (3e6, Some(Bound::AtLeast)))] {
            values.insert(block, value);
        }
        let level = level(&["a"], &metric, &values, Sides::Runs);
        assert_eq!(level.extremes, "from 1.00 ms to >= 3.00 ms");
    }

    #[test]
    fn axis_is_logarithmic_from_a_factor_of_20_on() {
        let cases: [(&[f64], bool); 6] = [
            (&[], false),
            (&[5.0], false),
            (&[1.0, 19.0], false),
            (&[21.0, 1.0], true),
            (&[1e9, 15e9, 21e9], true),
            (&[0.0, 21.0], false),
        ];
        for (medians, expected) in cases {
            assert_eq!(is_far(medians), expected, "{medians:?}");
        }
    }

    #[test]
    fn axis_has_at_least_two_ticks_among_its_values() {
        for step in 0..400 {
            // Ten decades, in steps that are no round values.
            let low = 1.07e3 * 1.059_f64.powi(step);
            for (times, is_logarithmic) in
                [(1.0, false), (3.0, false), (19.0, false), (21.0, true), (300.0, true), (1e7, true)]
            {
                let high = low * times;
                let all = round_values(low, high, is_logarithmic);
                let from = if is_logarithmic { low } else { 0.0 };
                let within = all.iter().filter(|value| (from..=high * 1.001).contains(*value)).count();
                assert!(within >= 2, "{low} to {high}: {all:?}");
                assert!(is_logarithmic || all.len() <= 4, "{low} to {high}: {all:?}");
            }
        }
    }

    #[test]
    fn round_numbers_of_an_axis_have_no_zeros_behind_the_point() {
        assert_eq!(short("2.00 Gbit/s"), "2 Gbit/s");
        assert_eq!(short("2.50 Gbit/s"), "2.5 Gbit/s");
        assert_eq!(short("100 us"), "100 us");
        assert_eq!(short("0"), "0");
    }
}
