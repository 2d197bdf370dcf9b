//! Conditions under which a pipeline fails: `throughput of bulk on accelerated < -5 %` holds where an interval proves such a regression.
//!
//! A condition is applied to the verdicts that it covers; where one does not exist, it names what is missing. This module makes no estimate
//! of its own, and does not decide about exit codes.
pub(crate) mod missing;
mod names;

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::{Better, Metric, Quantity, Scale};
use netduel_model::plain_text::check_shown;
use netduel_model::plan::ResolvedPlan;
use netduel_model::units::{Nanos, Percent};
use netduel_stats::verdict::{Judged, Verdict};

use crate::analysis::compare::{RunComparison, RunVerdict, Subject};
use crate::analysis::{Analysis, Comparison, MetricAnalysis, WorkloadAnalysis};
use crate::document::verdicts::Sides;
use crate::words::{self, Tone};

use missing::Missing;

/// A regression that a gate does not accept: `METRIC [of WORKLOAD] [on ARM] < -5 %`, or `> 5 %` where lower is better.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As written.
    text: String,
    metric: Metric,
    /// Absent for all workloads.
    workload: Option<WorkloadName>,
    /// Absent for all arms.
    arm: Option<ArmName>,
    /// The limit on the scale of the metric: a ratio, or a difference in its unit. The side beyond it is the worse one.
    limit: f64,
}

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError(String);

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConditionError {}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What an interval shows about a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The whole interval is beyond the limit, and the verdict is "worse".
    Worse,
    /// No part of the interval is beyond the limit.
    NotWorse,
    /// Neither is shown.
    Open,
    /// The comparison has no data, or does not exist because a run lacks the arm or the workload, or has another one of this name.
    NoData,
}

/// A comparison that a condition is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What is compared: `throughput of bulk on accelerated`.
    pub subject: String,
    /// Its verdict, in the words of the report.
    pub verdict: String,
    /// What it shows about the condition.
    pub standing: Standing,
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let error =
            |why: String| ConditionError(format!("{why}; write for example 'throughput of bulk < -5 %'"));
        let text = text.trim();
        // Reports show it as it is written.
        check_shown(text).map_err(|hidden| error(format!("it {hidden}")))?;
        let sign = text.find(['<', '>']).ok_or_else(|| error("it has neither `<` nor `>`".to_owned()))?;
        let (subject, rest) = text.split_at(sign);
        let mut words = subject.split_whitespace();
        let key = words.next().unwrap_or_default();
        let metric = Metric::ALL.into_iter().find(|metric| metric.key() == key).ok_or_else(|| {
            let keys: Vec<&str> = Metric::ALL.into_iter().map(Metric::key).collect();
            error(format!("`{key}` is no metric (metrics: {})", keys.join(", ")))
        })?;
        let (mut workload, mut arm) = (None, None);
        while let Some(word) = words.next() {
            let name = words.next().unwrap_or_default();
            match word {
                "of" if workload.is_none() => {
                    workload = Some(name.parse().map_err(|wrong| error(format!("after `of`: {wrong}")))?);
                }
                "on" if arm.is_none() => {
                    arm = Some(name.parse().map_err(|wrong| error(format!("after `on`: {wrong}")))?);
                }
                _ => {
                    return Err(error(format!(
                        "`{word}` after the metric: it takes `of WORKLOAD` and `on ARM`"
                    )));
                }
            }
        }
        let limit = limit(metric, rest).map_err(ConditionError)?;
        Ok(Self { text: text.to_owned(), metric, workload, arm, limit })
    }
}

/// The limit behind `<` or `>`, on the scale of the metric.
fn limit(metric: Metric, text: &str) -> Result<f64, String> {
    let (key, example) = (metric.key(), example_limit(metric));
    let (sign, worse, minus) = match metric.better() {
        Better::Higher => ('<', "lower", "-"),
        Better::Lower => ('>', "higher", ""),
    };
    let wrong_side = || format!("{key} is worse when it is {worse}: write for example `{key} {example}`");
    let amount = text.strip_prefix(sign).ok_or_else(wrong_side)?.trim();
    let amount = amount.strip_prefix(minus).ok_or_else(wrong_side)?.trim();
    let amount = amount.strip_prefix('+').filter(|_| minus.is_empty()).unwrap_or(amount);
    let wrong = |why: &dyn fmt::Display| format!("{why}; write for example `{key} {example}`");
    let count = |unit: &str| match amount.strip_suffix(unit).map(|number| number.trim().parse::<f64>()) {
        Some(Ok(count)) if count.is_finite() && count >= 0.0 => Ok(count),
        _ if unit.is_empty() => Err(wrong(&"it takes a number")),
        _ => Err(wrong(&format!("it takes a number and the unit {unit}"))),
    };
    let size = match (metric.scale(), metric.quantity()) {
        (Scale::Ratio, _) => amount.parse::<Percent>().map_err(|error| wrong(&error))?.fraction(),
        (Scale::Difference, Quantity::Share) => count("points")? / 100.0,
        (Scale::Difference, Quantity::Length) => {
            amount.parse::<Nanos>().map_err(|error| wrong(&error))?.0 as f64
        }
        (Scale::Difference, _) => count("")?,
    };
    match (metric.scale(), metric.better()) {
        (Scale::Ratio, Better::Higher) if size >= 1.0 => Err(wrong(&"a rate cannot fall by 100 % or more")),
        (Scale::Ratio, Better::Higher) => Ok(1.0 - size),
        (Scale::Ratio, Better::Lower) => Ok(1.0 + size),
        (Scale::Difference, Better::Higher) => Ok(-size),
        (Scale::Difference, Better::Lower) => Ok(size),
    }
}

/// A limit of the metric, for errors and completions: `< -5 %`, `> 0.5 points`.
pub fn example_limit(metric: Metric) -> &'static str {
    match (metric.scale(), metric.better(), metric.quantity()) {
        (Scale::Ratio, Better::Higher, _) => "< -5 %",
        (Scale::Ratio, Better::Lower, _) => "> 5 %",
        (Scale::Difference, _, Quantity::Share) => "> 0.5 points",
        (Scale::Difference, _, Quantity::Length) => "> 50 ms",
        (Scale::Difference, _, _) => "> 10",
    }
}

impl Condition {
    /// Whether a run of the plan compares what the condition is about: a further arm with the baseline, or each arm with that of another
    /// run.
    pub fn is_about(&self, plan: &ResolvedPlan, sides: Sides) -> bool {
        let arms = names::compared_arms(plan, sides).filter(|arm| self.has_arm(&arm.name));
        let mut workloads = arms.flat_map(|arm| &arm.workloads);
        workloads.any(|workload| self.has_workload(&workload.name) && workload.metrics.contains(&self.metric))
    }

    /// What a plan does not have of a condition that [`Self::is_about`] nothing of it, beside what it has: `the plan has no arm x (arms: a, b)`.
    pub fn lack(&self, plan: &ResolvedPlan, sides: Sides) -> String {
        names::lack(plan, sides, self.metric, self.workload.as_ref(), self.arm.as_ref())
    }

    /// The condition about the same runs with other names of arms and workloads: each has that of its place in the second of two plans. `text`:
    /// the condition in the words of these runs.
    #[must_use]
    pub fn renamed(&self, [own, shown]: [&ResolvedPlan; 2], text: String) -> Self {
        let arms = own.arms.iter().zip(&shown.arms).map(|(own, shown)| (&own.name, &shown.name));
        let workloads = own.workloads.iter().zip(&shown.workloads);
        Self {
            text,
            workload: self.workload.as_ref().map(|name| counterpart(name, workloads)),
            arm: self.arm.as_ref().map(|name| counterpart(name, arms)),
            ..self.clone()
        }
    }

    /// Why a command fails by what a comparison shows: ``failed by `throughput < -5 %`: it is worse``. Absent where it does not fail.
    pub fn failure(&self, standing: Standing, is_strict: bool) -> Option<String> {
        let why = match standing {
            Standing::Worse => "it is worse",
            Standing::Open if is_strict => "it may be worse (--strict)",
            Standing::Open | Standing::NotWorse | Standing::NoData => return None,
        };
        Some(format!("failed by `{self}`: {why}"))
    }

    /// The comparisons of a run's arms that it is about.
    pub fn of_run(&self, analysis: &Analysis) -> Vec<Checked> {
        let mut checked = Vec::new();
        for workload in &analysis.workloads {
            for metric in &workload.judged {
                let of_comparison = |comparison: &Comparison| {
                    let standing = self.about_arms(workload, metric, comparison)?;
                    Some(Checked {
                        subject: format!("{} of {} on {}", metric.title(), workload.name, comparison.arm),
                        verdict: words::verdict(self.metric, comparison),
                        standing,
                    })
                };
                checked.extend(metric.comparisons.iter().filter_map(of_comparison));
            }
        }
        checked
    }

    /// The comparisons between runs that it is about. It covers what the first run judges: what a further run is not compared in has no data.
    pub fn of_runs(&self, comparison: &RunComparison<'_>) -> Vec<Checked> {
        let mut checked = Vec::new();
        for subject in &comparison.subjects {
            for metric in &subject.workload.judged {
                let of_verdict = |verdict: &RunVerdict| {
                    let standing = self.about_runs(subject, verdict)?;
                    let of_subject = (metric, &subject.workload.name, &subject.arm);
                    Some(Checked {
                        subject: between(comparison, of_subject, verdict.run),
                        verdict: words::compare::verdict(comparison, verdict),
                        standing,
                    })
                };
                let own = subject.verdicts.iter().filter(|verdict| verdict.metric == metric.metric);
                checked.extend(own.filter_map(of_verdict));
            }
        }
        let missing = missing::of(comparison).into_iter().filter(|one| self.is_about_missing(one));
        checked.extend(missing.map(|one| Checked {
            subject: between(comparison, (one.metric, one.workload, one.arm), one.run),
            verdict: one.reason(comparison),
            standing: Standing::NoData,
        }));
        checked
    }

    /// Whether it is about a comparison between runs that does not exist.
    pub(crate) fn is_about_missing(&self, one: &Missing<'_>) -> bool {
        one.metric.metric == self.metric && self.has_workload(one.workload) && self.has_arm(one.arm)
    }

    fn has_arm(&self, arm: &ArmName) -> bool {
        self.arm.as_ref().is_none_or(|own| own == arm)
    }

    fn has_workload(&self, workload: &WorkloadName) -> bool {
        self.workload.as_ref().is_none_or(|own| own == workload)
    }

    /// What a comparison of arms shows about it; absent when it is about another one.
    pub fn about_arms(
        &self,
        workload: &WorkloadAnalysis,
        metric: &MetricAnalysis,
        comparison: &Comparison,
    ) -> Option<Standing> {
        let is_it = metric.metric == self.metric
            && self.has_workload(&workload.name)
            && self.has_arm(&comparison.arm);
        let judged = comparison.judged.as_ref().filter(|_| comparison.withheld.is_none());
        is_it.then(|| match comparison.pairs.as_slice() {
            [] => Standing::NoData,
            _ => self.standing(judged, comparison.has_bounds()),
        })
    }

    /// What a comparison of two runs shows about it; absent when it is about another one.
    pub fn about_runs(&self, subject: &Subject, verdict: &RunVerdict) -> Option<Standing> {
        let is_it = verdict.metric == self.metric
            && self.has_workload(&subject.workload.name)
            && self.has_arm(&subject.arm);
        let judged = Some(&verdict.judged).filter(|_| verdict.withheld.is_none());
        is_it.then(|| match verdict.sizes {
            [0, _] | [_, 0] => Standing::NoData,
            _ => self.standing(judged, verdict.has_bounds),
        })
    }

    /// What a verdict shows. With bounds a difference is at least so large: that limits an improvement, and no regression.
    fn standing(&self, judged: Option<&Judged>, has_bounds: bool) -> Standing {
        let Some((verdict, estimate)) = judged.and_then(|judged| Some((judged.verdict, judged.estimate?)))
        else {
            return Standing::Open;
        };
        let (is_beyond, is_within) = match self.metric.better() {
            Better::Higher => (
                estimate.high < self.limit && matches!(verdict, Verdict::Lower { .. }),
                estimate.low >= self.limit,
            ),
            Better::Lower => (
                estimate.low > self.limit && matches!(verdict, Verdict::Higher { .. }),
                estimate.high <= self.limit,
            ),
        };
        let is_limited = !has_bounds || words::tone(self.metric, judged) == Tone::Better;
        match (is_beyond, is_within && is_limited) {
            (true, _) => Standing::Worse,
            (false, true) => Standing::NotWorse,
            (false, false) => Standing::Open,
        }
    }
}

/// The second name of the pair with this first one; the name itself without such a pair.
fn counterpart<'n, N: Clone + PartialEq + 'n>(
    name: &'n N,
    mut pairs: impl Iterator<Item = (&'n N, &'n N)>,
) -> N {
    pairs.find(|(own, _)| *own == name).map_or(name, |(_, shown)| shown).clone()
}

/// What is compared between a run and the first one: `throughput of bulk on accelerated, B against A`.
fn between(
    comparison: &RunComparison<'_>,
    (metric, workload, arm): (&MetricAnalysis, &WorkloadName, &ArmName),
    run: usize,
) -> String {
    let [own, first] = [run, 0].map(|run| comparison.label(run));
    format!("{} of {workload} on {arm}, {own} against {first}", metric.title())
}

/// Why a run decides no condition: it did not end by a rule of its plan, so that trials are missing. Absent for a complete run.
pub fn unfinished(analysis: &Analysis) -> Option<String> {
    match &analysis.end {
        Some(end) if end.is_regular() => None,
        Some(end) => Some(words::ended(end)),
        None => Some("it is in progress, or was killed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use netduel_stats::paired::Estimate;

    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn judged(verdict: fn(Estimate) -> Verdict, low: f64, high: f64) -> Judged {
        let estimate =
            Estimate { n: 8, centre: f64::midpoint(low, high), low, high, confidence: 0.95, p_value: 0.01 };
        Judged { verdict: verdict(estimate), estimate: Some(estimate), adjusted_p: None }
    }

    fn lower(estimate: Estimate) -> Verdict {
        Verdict::Lower { estimate }
    }

    fn higher(estimate: Estimate) -> Verdict {
        Verdict::Higher { estimate }
    }

    fn same(estimate: Estimate) -> Verdict {
        Verdict::NoDifference { estimate, larger_than: 0.05 }
    }

    fn open(estimate: Estimate) -> Verdict {
        Verdict::Inconclusive { estimate: Some(estimate), more: None }
    }

    #[test]
    fn condition_names_metric_workload_arm_and_limit() {
        let whole = condition(" throughput of bulk on accelerated < -5 % ");
        assert_eq!(whole.to_string(), "throughput of bulk on accelerated < -5 %");
        assert_eq!(whole.metric, Metric::Throughput);
        assert_eq!(whole.workload.as_ref().map(WorkloadName::as_str), Some("bulk"));
        assert_eq!(whole.arm.as_ref().map(ArmName::as_str), Some("accelerated"));
        for (text, metric, limit) in [
            ("throughput<-5%", Metric::Throughput, 0.95),
            ("throughput < -0 %", Metric::Throughput, 1.0),
            ("latency-p99 on of of on > 10%", Metric::LatencyP99, 1.1),
            ("cpu-per-gigabyte > +25 %", Metric::CpuPerGigabyte, 1.25),
            ("loss > 0.5 points", Metric::Loss, 0.005),
            ("outage > 50 ms", Metric::Outage, 5e7),
            ("lost-in-outage > 10", Metric::LostInOutage, 10.0),
        ] {
            let seen = condition(text);
            assert!(seen.metric == metric && (seen.limit - limit).abs() < 1e-12, "{seen:?}");
        }
    }

    #[test]
    fn text_without_a_meaning_is_refused_with_what_to_write() {
        for (text, why) in [
            ("", "neither `<` nor `>`"),
            ("throughput\n< -5%", "it contains the character U+000A"),
            ("throughput of\u{1680}bulk\t< -5%", "it contains the character U+0009"),
            ("throughput -5%", "neither `<` nor `>`"),
            ("speed < -5%", "`speed` is no metric (metrics: throughput, "),
            ("throughput in bulk < -5%", "`in` after the metric"),
            ("throughput of < -5%", "after `of`"),
            ("throughput of a of b < -5%", "`of` after the metric"),
            (
                "throughput > 5%",
                "throughput is worse when it is lower: write for example `throughput < -5 %`",
            ),
            ("throughput < 5%", "write for example `throughput < -5 %`"),
            (
                "latency-p50 < -5%",
                "latency-p50 is worse when it is higher: write for example `latency-p50 > 5 %`",
            ),
            ("latency-p50 > -5%", "`latency-p50 > 5 %`"),
            ("throughput < -5", "a number without a unit"),
            ("throughput < -100%", "a rate cannot fall by 100 % or more"),
            ("throughput < -1 Gbit/s", "`throughput < -5 %`"),
            ("loss > 5 %", "the unit points; write for example `loss > 0.5 points`"),
            ("outage > 50", "`outage > 50 ms`"),
            ("retransmits-per-gigabyte > many", "it takes a number"),
            ("retransmits-per-gigabyte > -3", "it takes a number"),
        ] {
            let error = text.parse::<Condition>().expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn only_a_whole_interval_beyond_the_limit_is_a_proven_loss() {
        use Standing::{NotWorse, Open, Worse};
        let rate = condition("throughput < -5 %");
        let delay = condition("latency-p50 > 10 %");
        for (condition, judged, expected) in [
            (&rate, judged(lower, 0.80, 0.94), Worse),
            (&rate, judged(lower, 0.80, 0.95), Open),
            (&rate, judged(lower, 0.90, 0.99), Open),
            (&rate, judged(lower, 0.95, 0.99), NotWorse),
            (&rate, judged(same, 0.96, 1.04), NotWorse),
            (&rate, judged(open, 0.94, 1.20), Open),
            (&rate, judged(open, 0.96, 1.20), NotWorse),
            (&rate, judged(open, 0.0, f64::INFINITY), Open),
            (&rate, judged(higher, 1.2, 1.4), NotWorse),
            (&delay, judged(higher, 1.11, 1.3), Worse),
            (&delay, judged(higher, 1.05, 1.3), Open),
            (&delay, judged(higher, 1.02, 1.1), NotWorse),
            (&delay, judged(lower, 0.5, 0.6), NotWorse),
        ] {
            assert_eq!(condition.standing(Some(&judged), false), expected, "{condition}: {judged:?}");
        }
        assert_eq!(rate.standing(None, false), Open);
    }

    #[test]
    fn bounds_do_not_limit_a_regression() {
        use Standing::{NotWorse, Open, Worse};
        let rate = condition("throughput < -5 %");
        let delay = condition("latency-p50 > 10 %");
        for (condition, judged, expected) in [
            (&rate, judged(lower, 0.80, 0.94), Worse),
            (&rate, judged(lower, 0.95, 0.99), Open),
            (&rate, judged(open, 0.96, 1.2), Open),
            (&rate, judged(higher, 1.2, 1.4), NotWorse),
            (&delay, judged(higher, 1.11, 1.3), Worse),
            (&delay, judged(higher, 1.02, 1.08), Open),
            (&delay, judged(lower, 0.5, 0.6), NotWorse),
        ] {
            assert_eq!(condition.standing(Some(&judged), true), expected, "{condition}: {judged:?}");
        }
    }
}
