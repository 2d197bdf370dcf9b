//! What the figures of verdicts mean, in words: brackets, and how often verdicts may be false.
use netduel_model::plan::ResolvedPlan;

use super::text::percent_exact;
use crate::document::verdicts::Sides;

/// What the brackets of values and verdicts hold.
pub fn verdict_legend(plan: &ResolvedPlan) -> String {
    let value = "Value: median [quartiles] (n valid trials).";
    if !plan.compares() {
        return value.to_owned();
    }
    format!(
        "{value} Verdict: paired estimate [interval at the confidence of its own test, so the widths of two intervals are not comparable]. {}.",
        error_rates(plan.design.confidence.fraction(), Sides::Arms)
    )
}

/// The same for a table without quartiles; empty for a plan without a comparison.
pub fn verdict_legend_brief(plan: &ResolvedPlan) -> String {
    let Some(baseline) = plan.arms.first().filter(|_| plan.compares()) else { return String::new() };
    format!(
        "Value: median. Verdict: estimate from the pairs within blocks against {} [interval]; it can differ from the ratio of the medians.",
        baseline.name
    )
}

/// What Holm's procedure bounds: false differences, and by itself false answers of no difference. `confidence`: that of the plan, a fraction.
pub fn error_rates(confidence: f64, sides: Sides) -> String {
    let share = percent_exact(1.0 - confidence);
    let any = format!("state any false difference, and at most {share} any false \"no difference\"");
    match sides {
        Sides::Arms => format!("Of many repetitions of this run, at most {share} {any}"),
        // Trials of one run share its conditions, which no test of two samples separates from the difference.
        Sides::Runs => format!(
            "At most {share} of such comparisons {any}, under the conditions of these runs; what changed between them is not covered"
        ),
    }
}
