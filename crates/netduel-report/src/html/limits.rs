//! What limited each arm, beside its verdicts.
use maud::{Markup, html};

use crate::analysis::WorkloadAnalysis;
use crate::words;

/// A list of what limited each arm; nothing where no trial is valid.
pub(super) fn of(workload: &WorkloadAnalysis) -> Markup {
    let said = words::limits(workload);
    html! {
        @if !said.is_empty() {
            h3 { (words::LIMITS_TITLE) }
            ul { @for limit in said { li { (words::plain(&limit)) } } }
        }
    }
}

/// A list of the queues and cores that carried the packets; nothing where nobody tells.
pub(super) fn queues(workload: &WorkloadAnalysis) -> Markup {
    let said = words::queues(workload);
    html! {
        @if !said.is_empty() {
            h3 { (words::QUEUES_TITLE) }
            ul { @for queue in said { li { (words::plain(&queue)) } } }
        }
    }
}
