//! The policy of a quick test where it differs from a run: the interval of progress messages, and permission for concurrent
//! tests.
use std::collections::BTreeMap;

use netduel_control::coordinator::{Policy, RunErrorKind};
use netduel_model::ids::HostName;
use netduel_model::plan::ResolvedPlan;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::units::Nanos;

use crate::exit::Kind;
use crate::run::host_problems;

/// The policy of a quick test.
pub struct QuickPolicy<'a> {
    /// The test as a plan.
    pub plan: &'a ResolvedPlan,
    /// Interval between the progress messages of its ends.
    pub progress: Nanos,
    /// Why the trial failed, for the exit code.
    pub failure: Option<Kind>,
}

impl Policy for QuickPolicy<'_> {
    fn progress_interval(&self) -> Nanos {
        self.progress
    }

    fn locks_hosts(&self) -> bool {
        false
    }

    fn restarts_agents(&self) -> bool {
        false
    }

    fn trial_failed(&mut self, kind: RunErrorKind, _host: Option<&HostName>) {
        self.failure = Some(kind.into());
    }

    fn problems(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Vec<String> {
        host_problems(self.plan, hosts)
    }
}
