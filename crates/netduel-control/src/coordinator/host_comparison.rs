//! Comparisons of the hosts with the start of the run: how often and how long it looks at them. What counts as a difference is decided in
//! `conditions`.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::HostName;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_model::workload::Role;

use super::conditions::{self, Differences};
use super::conductor::Conductor;
use super::error::{RunError, TrialError};
use crate::protocol::{DESCRIBE_TIMEOUT_NS, ToAgent};

/// Time between two looks at a host that differs: the command that brings an interface back may not wait for it, and its settings follow.
const LOOK_INTERVAL: Nanos = Nanos(1_000_000_000);
/// Time until a difference counts where an interface of the path moved: a NIC negotiates its link for seconds, a port of a bridge with STP
/// forwards after 30 s, LACP with slow timers sends every 30 s, and then follow the routes of a DHCP client.
const MOVEMENT_PATIENCE: Nanos = Nanos(60_000_000_000);
/// The same elsewhere: a command can return before its effect, but without a movement nothing else sets a value back.
const PATIENCE: Nanos = Nanos(2_000_000_000);
/// Looks at a host at least until a difference counts: an earlier host may have used up the time.
const LOOKS_MIN: u64 = 2;

/// Hosts that differed although their block counts, each with the differences in words.
pub(super) type Doubts = Vec<(HostName, String)>;

/// What the looks at a host showed that ends no run.
#[derive(Debug, Default)]
struct Seen {
    /// Differences that were gone at the last look.
    gone: Vec<String>,
    /// Differences of the last look that are not known to concern the path.
    possible: Vec<String>,
}

impl Conductor<'_> {
    /// Compares the hosts with their descriptions at the start of this process. An agent that is lost meanwhile is restarted. A quick test is
    /// one trial; its reader sees when it ran. `moving`: as of [`Self::moving_hosts`].
    pub(super) fn compare_with_start(&mut self, moving: &BTreeSet<HostName>) -> Result<Doubts, TrialError> {
        let mut doubts = Vec::new();
        if !self.policy.locks_hosts() {
            return Ok(doubts);
        }
        loop {
            match self.compare_hosts(moving, &mut doubts) {
                Err(error @ TrialError::Lost { .. }) => self.restart_lost_agents(error)?,
                other => return other.map(|()| doubts),
            }
        }
    }

    /// The hosts on which a link of the path may have changed in the block of this trial: while traffic ran, or by what the plan does there.
    pub(super) fn moving_hosts(&self, last: &Trial) -> BTreeSet<HostName> {
        let plan = self.hosts.plan;
        let block = last.slot.block;
        let mut moving = BTreeSet::new();
        for trial in self.trials.iter().filter(|trial| trial.slot.block == block).chain([last]) {
            let Some(arm) = plan.arm(&trial.slot.arm) else { continue };
            let arm = plan.arm_in(arm, block);
            for role in [Role::Client, Role::Server] {
                let has_event = trial
                    .end(role)
                    .is_some_and(|end| !end.observation.link_events_on_path(arm.expected(role)).is_empty());
                if has_event || arm.may_move_link(role) {
                    moving.insert(arm.pair.host(role).clone());
                }
            }
        }
        moving
    }

    /// Compares every host, except those without an agent, because the run ends with its loss, and those on a machine with a change of the run
    /// that could not be undone, because their arms are dropped.
    fn compare_hosts(&mut self, moving: &BTreeSet<HostName>, doubts: &mut Doubts) -> Result<(), TrialError> {
        let then = self.snapshots.clone();
        let started_ns = self.hosts.clock.now_ns();
        for host in then.keys() {
            if !self.hosts.is_running(host) || self.unrestored_beside(host).is_some() {
                continue;
            }
            let has_moved = moving.contains(host);
            let Seen { gone, possible } = self.compare_host(host, &then, started_ns, has_moved)?;
            // One that lasts is stated once.
            self.doubted.extend(possible.iter().map(|what| (host.clone(), what.clone())));
            // What the plan moves may take its time to come back.
            let gone = if has_moved { Vec::new() } else { gone };
            let all = [gone, possible].concat();
            if !all.is_empty() {
                doubts.push((host.clone(), all.join(", ")));
            }
        }
        Ok(())
    }

    /// Compares the hosts of a resumed run with those at its start: trials under other settings are not its trials.
    pub(super) fn compare(
        &mut self,
        then: &BTreeMap<HostName, HostSnapshot>,
        now: &BTreeMap<HostName, HostSnapshot>,
    ) -> Result<Doubts, TrialError> {
        let plan = self.hosts.plan;
        let started_ns = self.hosts.clock.now_ns();
        let mut doubts = Vec::new();
        for (host, now) in now {
            let differences = conditions::differences(plan, host, then, now, &self.translated);
            let possible = if differences.all.is_empty() {
                differences.possible
            } else {
                // A guard may have been restoring the host when it was described. The lock waits for it.
                self.compare_host(host, then, started_ns, false)?.possible
            };
            if !possible.is_empty() {
                doubts.push((host.clone(), possible.join(", ")));
            }
        }
        Ok(doubts)
    }

    /// Describes a host again and compares it with its earlier description among all of those. A difference counts when the last look shows it.
    /// `started_ns`: when the comparison of all hosts began.
    fn compare_host(
        &mut self,
        host: &HostName,
        then: &BTreeMap<HostName, HostSnapshot>,
        started_ns: u64,
        has_moved: bool,
    ) -> Result<Seen, TrialError> {
        let plan = self.hosts.plan;
        let request = ToAgent::Describe { without_metadata: true };
        let mut patience = if has_moved { MOVEMENT_PATIENCE } else { PATIENCE };
        let mut seen = Seen::default();
        let mut looks = 0;
        loop {
            let answer = self.hosts.ask_despite_other_losses(host, &request, DESCRIBE_TIMEOUT_NS)?;
            let now = self.hosts.described(host, answer)?;
            looks += 1;
            let Differences { all, possible, has_movement, is_permanent } =
                conditions::differences(plan, host, then, &now, &self.translated);
            let is_new = |what: &String| !self.doubted.contains(&(host.clone(), what.clone()));
            seen.possible = possible.into_iter().filter(is_new).collect();
            if has_movement {
                patience = MOVEMENT_PATIENCE;
            }
            let is_last = is_permanent || self.is_over(started_ns, patience, looks);
            // What is not known to concern the path may still come back where the plan moves links.
            if all.is_empty() && (is_last || !has_moved || seen.possible.is_empty()) {
                seen.gone.retain(|what| !seen.possible.contains(what));
                return Ok(seen);
            }
            if is_last {
                let (host, changes) = (host.clone(), all.join(", "));
                return Err(RunError::HostChanged { host, changes }.into());
            }
            for what in all {
                if !seen.gone.contains(&what) {
                    seen.gone.push(what);
                }
            }
            self.hosts.clock.wait(LOOK_INTERVAL);
        }
    }

    /// Whether a host was looked at often and long enough: since the comparison of all hosts began, or so often that the looks at this one took
    /// as long.
    fn is_over(&self, started_ns: u64, patience: Nanos, looks: u64) -> bool {
        let waited_ns = self.hosts.clock.now_ns().saturating_sub(started_ns);
        looks >= LOOKS_MIN && (waited_ns >= patience.0 || looks > patience.0 / LOOK_INTERVAL.0)
    }
}
