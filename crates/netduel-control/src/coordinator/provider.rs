//! Changes of the provider's resources before a trial: made while the machine runs, verified in its guest, and made again with the machine
//! stopped where the guest does not show them. After the trial the guests are read again. The provider itself is behind
//! [`Provider`](super::surroundings::Provider).
use std::collections::BTreeSet;

use netduel_model::event::Event;
use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan, Treatment, TreatmentAction};
use netduel_model::units::Nanos;
use netduel_model::workload::Workload;

use super::conductor::Conductor;
use super::error::{RunError, TrialError};
use super::surroundings::{GuestCheck, HostChange, ProviderError};
use super::trial::bypasses_kernel;
use crate::protocol::{DESCRIBE_TIMEOUT_NS, FailureKind, ToAgent};

/// Time between two looks at a guest, or two attempts to reach it.
const INTERVAL: Nanos = Nanos(1_000_000_000);

impl Conductor<'_> {
    /// Brings the provider's resources into the state that an arm wants in a block, and waits until the guests show it.
    pub(super) fn settle(&mut self, arm: &Arm, block: u32) -> Result<(), TrialError> {
        if !self.hosts.plan.has_provider_treatments() {
            return Ok(());
        }
        let pending = self.provider.pending(&wanted(self.hosts.plan, arm, block));
        let everything = || "the hosts".to_owned();
        for change in pending.map_err(|error| failed(everything(), error))? {
            self.tell(Event::ResourcesChanging { host: change.host.clone(), change: change.words.clone() });
            if change.needs_stop || self.stops.contains(&change.host) {
                self.change_stopped(&change)?;
            } else {
                self.change_running(&change)?;
            }
        }
        Ok(())
    }

    fn change_running(&mut self, change: &HostChange) -> Result<(), TrialError> {
        let why = match self.provider.change(change) {
            Ok(checks) => match self.await_guest(&change.host, &checks)? {
                None => return Ok(()),
                Some(missing) => missing,
            },
            Err(ProviderError::WhileRunning(reason)) => reason,
            Err(error) => return Err(failed(change.host.to_string(), error)),
        };
        if !self.provider.may_stop() {
            let reason = format!(
                "{}: {why}; to stop the machine, make the change and start it, add --allow-deallocate",
                change.words
            );
            return Err(failed(change.host.to_string(), ProviderError::Failed(reason)));
        }
        self.stops.insert(change.host.clone());
        self.change_stopped(change)
    }

    /// Stops the machine, and its agent before it: the guest must not lose it in the midst of a request.
    fn change_stopped(&mut self, change: &HostChange) -> Result<(), TrialError> {
        let host = &change.host;
        self.hosts.end_agent(host);
        let checks = self.provider.change_stopped(change).map_err(|error| match error {
            ProviderError::WhileRunning(reason) => failed_although_stopped(change, &reason),
            error => failed(host.to_string(), error),
        })?;
        self.reach_again(host)?;
        match self.await_guest(host, &checks)? {
            None => Ok(()),
            Some(missing) => Err(failed_although_stopped(change, &missing)),
        }
    }

    /// Starts the agent of a host whose machine starts.
    fn reach_again(&mut self, host: &HostName) -> Result<(), TrialError> {
        let (_, start) = self.provider.patience();
        let deadline_ns = self.hosts.clock.now_ns().saturating_add(start.0);
        let gone = BTreeSet::from([host.clone()]);
        loop {
            let error = match self.hosts.restart(&gone) {
                Ok(None) => return Ok(()),
                Ok(Some(error)) | Err(error) => error,
            };
            // ssh finds no server yet.
            let is_own = matches!(&error, TrialError::Lost { host: lost, .. } if lost == host);
            if !is_own || self.hosts.clock.now_ns() >= deadline_ns {
                return Err(error);
            }
            self.pause()?;
        }
    }

    /// Waits until a guest shows what the provider claims. Returns what it does not show in time.
    fn await_guest(&mut self, host: &HostName, checks: &[GuestCheck]) -> Result<Option<String>, TrialError> {
        let (guest, _) = self.provider.patience();
        let deadline_ns = self.hosts.clock.now_ns().saturating_add(guest.0);
        loop {
            let request = ToAgent::Describe { without_metadata: true };
            // In a crossover the host may be of another arm, to whose agent the end of this trial sends no `abort`.
            let answer = self.hosts.ask_despite_other_losses(host, &request, DESCRIBE_TIMEOUT_NS)?;
            let snapshot = self.hosts.described(host, answer)?;
            let missing = checks.iter().find_map(|check| check.difference(&snapshot));
            if missing.is_none() || self.hosts.clock.now_ns() >= deadline_ns {
                return Ok(missing);
            }
            self.pause()?;
        }
    }

    /// What the guests of an arm must show of their NICs after a trial. Trials that take virtual functions away themselves are judged by their
    /// events and counters.
    pub(super) fn shown_by_guests(&self, arm: &Arm, workload: &Workload) -> Vec<(HostName, GuestCheck)> {
        let moves = |treatment: &Treatment| treatment.action.takes_function();
        let has_events = !workload.traffic.facts().events.is_empty();
        if has_events || bypasses_kernel(workload) || arm.treatments.iter().any(moves) {
            return Vec::new();
        }
        let mut present = self.provider.present();
        present.retain(|(host, _)| [&arm.pair.client, &arm.pair.server].contains(&host));
        present
    }

    /// Reads the NICs of an arm again after a trial, in its guests: a call of the provider takes seconds, and a guest shows in a moment whether
    /// another program has switched a NIC.
    pub(super) fn confirm_guests(&mut self, arm: &Arm, workload: &Workload) -> Result<(), TrialError> {
        let present = self.shown_by_guests(arm, workload);
        let hosts: BTreeSet<&HostName> = present.iter().map(|(host, _)| host).collect();
        for host in hosts {
            let request = ToAgent::Describe { without_metadata: true };
            let answer = self.hosts.ask_despite_other_losses(host, &request, DESCRIBE_TIMEOUT_NS)?;
            let snapshot = self.hosts.described(host, answer)?;
            let mut checks = present.iter().filter(|(of, _)| of == host);
            if let Some(missing) = checks.find_map(|(_, check)| check.difference(&snapshot)) {
                let message = format!("the treatment was not in force until the end of the trial: {missing}");
                let kind = FailureKind::Environment;
                return Err(TrialError::Refused { host: host.clone(), kind, message });
            }
        }
        Ok(())
    }

    /// Waits before the next look or attempt.
    pub(super) fn pause(&mut self) -> Result<(), TrialError> {
        self.hosts.clock.wait(INTERVAL);
        if self.hosts.clock.interrupted() { Err(TrialError::Interrupted) } else { Ok(()) }
    }
}

/// What the resources of the provider have to be for the trials of an arm in a block. Arms of a crossover are on hosts of their own in each
/// block: those of the other arms keep their states meanwhile, so that nothing is switched between two trials of a block.
fn wanted(plan: &ResolvedPlan, arm: &Arm, block: u32) -> Vec<(HostName, TreatmentAction)> {
    let mut wanted = arm.provider_treatments();
    if plan.design.crossover {
        for other in &plan.arms {
            for (host, action) in plan.arm_in(other, block).provider_treatments() {
                let is_other = |(_, known): &(HostName, TreatmentAction)| !known.is_of_the_same_nic(&action);
                if wanted.iter().all(is_other) {
                    wanted.push((host, action));
                }
            }
        }
    }
    wanted
}

/// A change that was not made, or that the guest does not show, with its machine stopped. The reason may end with a remedy.
fn failed_although_stopped(change: &HostChange, reason: &str) -> TrialError {
    let reason = format!("{}, although its machine was stopped for the change: {reason}", change.words);
    failed(change.host.to_string(), ProviderError::Failed(reason))
}

fn failed(host: String, error: ProviderError) -> TrialError {
    match error {
        ProviderError::Interrupted => TrialError::Interrupted,
        ProviderError::WhileRunning(reason) | ProviderError::Failed(reason) => {
            RunError::Provider { host, reason }.into()
        }
    }
}
