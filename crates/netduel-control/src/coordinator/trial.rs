//! One trial with two agents: treatments, sockets, start, the two results, and the undoing of all changes.
use netduel_model::event::Event;
use netduel_model::ids::Token;
use netduel_model::link_event::LinkEvent;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};
use netduel_model::trial::{OwnTraffic, PathFailure, PathProof, Slot, Trial, TrialEnd, Validity};
use netduel_model::units::Nanos;
use netduel_model::workload::{Family, Role, Workload};

use super::conductor::Conductor;
use super::error::{PlanFault, RunError, TrialError};
use super::timing::{CONNECT_TIMEOUT_NS, DONE_MARGIN_NS, return_ns, treatment_timeout_ns};
use super::{failover, validity};
use crate::peer::AgentEvent;
use crate::protocol::{FailureKind, FromAgent, STEP_TIMEOUT_NS, ToAgent};

impl Conductor<'_> {
    /// Runs the trial of a slot. A failure of the trial is part of its result; a failure of a host is returned as well.
    pub(super) fn trial(
        &mut self,
        arm: &Arm,
        workload: &Workload,
        slot: Slot,
        attempt: u32,
    ) -> (Trial, Option<TrialError>) {
        self.tell(Event::TrialStarted { slot: slot.clone(), duration_ns: workload.timing.duration.0 });
        let mut trial = self.blank(slot, attempt);
        // Unread messages are about an earlier trial that failed.
        self.hosts.forget_messages();
        let mut result = self.perform(arm, workload, &mut trial);
        self.hosts.stopping = true;
        // A program of kernel bypass on one end of a veth pair takes offloads of the other end, and is detached before either end is
        // restored.
        if result.is_err() || bypasses_kernel(workload) {
            self.stop(arm, workload);
        }
        match self.lab.end_events() {
            Ok(events) => trial.lab_events = events,
            Err(detail) => result = result.and(Err(RunError::Lab(detail).into())),
        }
        let mut undone = self.undo(arm, workload, result.is_err());
        self.hosts.stopping = false;
        if undone.is_ok() {
            result = result.and_then(|ends| self.confirm_guests(arm, workload).map(|()| ends));
        } else if result.is_ok() && !self.shown_by_guests(arm, workload).is_empty() {
            // Without its agent a guest is not read again.
            result = std::mem::replace(&mut undone, Ok(())).and(result);
        }
        if let Err(TrialError::Refused { host, kind: FailureKind::NotRestored, message }) = &result {
            self.hosts.not_undone(host, vec![message.clone()]);
        }
        self.warn();
        match result {
            Ok([client, server]) => {
                if workload.traffic.facts().events.is_empty() {
                    judge_path(self.hosts.plan, arm, workload, &mut trial, [&client, &server]);
                } else {
                    failover::judge(self.hosts.plan, arm, workload, &mut trial, [&client, &server]);
                }
                validity::judge_packets(workload, &mut trial, [&client, &server]);
                validity::judge_round_trips(&mut trial, &client);
                validity::judge_streams(workload, &mut trial, [&client, &server]);
                trial.client = Some(client);
                trial.server = Some(server);
                // The loss of an agent while it undoes changes does not invalidate the results.
                (trial, undone.err())
            }
            Err(error) => {
                trial.validity = Validity::Failed { reason: error.to_string() };
                let (kind, host) = error.kind();
                self.policy.trial_failed(kind, host);
                (trial, Some(error))
            }
        }
    }

    /// A trial without results.
    pub(super) fn blank(&self, slot: Slot, attempt: u32) -> Trial {
        Trial::new(slot, attempt, self.hosts.clock.unix_ms())
    }

    fn perform(
        &mut self,
        arm: &Arm,
        workload: &Workload,
        trial: &mut Trial,
    ) -> Result<[TrialEnd; 2], TrialError> {
        self.treat(arm, trial.slot.block)?;
        match workload.traffic.facts().search() {
            Some(search) => self.search(arm, workload, search, trial),
            None => self.once(arm, workload),
        }
    }

    /// The traffic of a workload, once.
    pub(super) fn once(&mut self, arm: &Arm, workload: &Workload) -> Result<[TrialEnd; 2], TrialError> {
        let token = (self.tokens)().map_err(RunError::Token)?;
        self.prepare(arm, workload, token)?;
        self.traffic(arm, workload)
    }

    fn treat(&mut self, arm: &Arm, block: u32) -> Result<(), TrialError> {
        self.settle(arm, block)?;
        for treatment in &arm.treatments {
            if let TreatmentAction::Path { path } = &treatment.action {
                self.lab.set_path(*path).map_err(RunError::Lab)?;
            }
        }
        for role in Role::ALL {
            let treatments = arm.agent_treatments(role);
            if !treatments.is_empty() {
                let timeout_ns = treatment_timeout_ns(&treatments);
                self.hosts.commands.note_treatments(arm.pair.host(role), &treatments);
                let applied = self.hosts.ask(arm.pair.host(role), &ToAgent::Apply { treatments }, timeout_ns);
                applied.map_err(|error| match error {
                    refused @ TrialError::Refused { .. } => TrialError::NotTreated(Box::new(refused)),
                    other => other,
                })?;
            }
        }
        Ok(())
    }

    /// Undoes the treatments at both ends, even when one of them fails, and returns the first error. `is_aborted`: an end may have been
    /// stopped while its own interfaces were changed, which it reports here, as does one that bypasses the kernel.
    fn undo(&mut self, arm: &Arm, workload: &Workload, is_aborted: bool) -> Result<(), TrialError> {
        let mut undone = Ok(());
        for role in Role::ALL {
            let host = arm.pair.host(role).clone();
            let treatments = arm.agent_treatments(role);
            let has_changes = is_aborted || bypasses_kernel(workload) || !treatments.is_empty();
            if !self.hosts.is_running(&host) {
                continue;
            }
            if !has_changes {
                // The result of an end comes after the undo of its events.
                self.hosts.commands.undone(&host);
                continue;
            }
            match self.hosts.ask_despite_other_losses(
                &host,
                &ToAgent::Undo,
                treatment_timeout_ns(&treatments),
            ) {
                Ok(FromAgent::Undone { problems }) => self.hosts.undone(&host, problems),
                Ok(_) => {}
                Err(error) => undone = undone.and(Err(error)),
            }
        }
        undone
    }

    fn prepare(&mut self, arm: &Arm, workload: &Workload, token: Token) -> Result<(), TrialError> {
        let (client, server) = (&arm.pair.client, &arm.pair.server);
        let address = address(self.hosts.plan, arm, workload.family)?;
        self.trial_number += 1;
        let trial = self.trial_number;
        let ports = self.hosts.plan.hosts.get(server).and_then(|host| host.data_ports);
        let message =
            ToAgent::PrepareServer { trial, workload: workload.clone(), bind: address, ports, token };
        let ports = match self.hosts.ask(server, &message, STEP_TIMEOUT_NS)? {
            FromAgent::Prepared { ports } => ports,
            other => return Err(self.hosts.unexpected(server, &other, &message)),
        };
        let deadline = Nanos(CONNECT_TIMEOUT_NS);
        let workload = workload.clone();
        let message = ToAgent::PrepareClient { trial, workload, peer: address, ports, token, deadline };
        self.hosts.ask(client, &message, CONNECT_TIMEOUT_NS + STEP_TIMEOUT_NS)?;
        Ok(())
    }

    fn traffic(&mut self, arm: &Arm, workload: &Workload) -> Result<[TrialEnd; 2], TrialError> {
        let host = |role: Role| arm.pair.host(role).clone();
        let timeout_ns =
            workload.timing.duration.0.saturating_add(DONE_MARGIN_NS + return_ns(&workload.traffic));
        let facts = workload.traffic.facts();
        // The first end waits for traffic until the other has started, which may take its own time.
        for (role, other_ns) in starting_order(facts.starts_first).into_iter().zip([STEP_TIMEOUT_NS, 0]) {
            self.hosts.commands.note_events(&host(role), role, facts.events);
            self.hosts.start(&host(role), STEP_TIMEOUT_NS, timeout_ns.saturating_add(other_ns))?;
        }
        if !facts.events.is_empty() && failover::is_in_lab(self.hosts.plan, &arm.pair) {
            self.lab.begin_events(&arm.pair, facts.events).map_err(RunError::Lab)?;
        }
        let deciders = facts.deciders;
        let mut ends: [Option<TrialEnd>; 2] = [None, None];
        let mut is_finish_sent = false;
        loop {
            if let [Some(_), Some(_)] = &ends {
                return Ok(ends.map(|end| end.expect("both ends were just seen to be there")));
            }
            if !is_finish_sent && deciders.iter().all(|role| ends[*role as usize].is_some()) {
                is_finish_sent = true;
                for role in Role::ALL.into_iter().filter(|role| ends[*role as usize].is_none()) {
                    self.hosts.request(&host(role), &ToAgent::Finish, DONE_MARGIN_NS)?;
                }
            }
            let Some((from, event)) = self.hosts.next_event()? else { continue };
            let Some(role) = Role::ALL.into_iter().find(|role| *arm.pair.host(*role) == from) else {
                continue;
            };
            match event {
                AgentEvent::Done(end) => ends[role as usize] = Some(*end),
                AgentEvent::Progress(figures) => self.tell(Event::TrialProgress { role, figures }),
                AgentEvent::Failed { kind, message } => {
                    return Err(TrialError::Refused { host: from, kind, message });
                }
                AgentEvent::Answer(_) => {}
            }
        }
    }

    /// Stops what still runs at both ends: traffic, and the programs of kernel bypass.
    fn stop(&mut self, arm: &Arm, workload: &Workload) {
        let timeout_ns = STEP_TIMEOUT_NS + return_ns(&workload.traffic);
        for role in Role::ALL {
            let host = arm.pair.host(role).clone();
            if self.hosts.is_running(&host) {
                // The trial has its result; an agent that does not stop is abandoned.
                drop(self.hosts.ask_despite_other_losses(&host, &ToAgent::Abort, timeout_ns));
            }
        }
    }
}

/// Whether an end sends or receives packets past the kernel's network stack.
pub(super) fn bypasses_kernel(workload: &Workload) -> bool {
    let packets = workload.traffic.facts().packets;
    packets.is_some_and(|packets| Role::ALL.iter().any(|role| packets.is_raw(*role)))
}

/// The address at which the server of an arm listens.
pub(super) fn address(plan: &ResolvedPlan, arm: &Arm, family: Family) -> Result<std::net::IpAddr, PlanFault> {
    let host = &arm.pair.server;
    plan.server_address(arm, family).ok_or_else(|| PlanFault::NoAddress { host: host.clone(), family })
}

/// Both ends, beginning with `first`.
fn starting_order(first: Role) -> [Role; 2] {
    match first {
        Role::Client => [Role::Client, Role::Server],
        Role::Server => [Role::Server, Role::Client],
    }
}

/// Proves the path at each end for which the arm names an interface or a kind of path, and checks for changes of the links that carried
/// the bytes. A trial without proof, or with a path that changed, is invalid. No interface counts the packets of testpmd on a device of
/// its own, so that end has no proof.
fn judge_path(plan: &ResolvedPlan, arm: &Arm, workload: &Workload, trial: &mut Trial, ends: [&TrialEnd; 2]) {
    let (proofs, failures) = path_of(plan, arm, workload, ends);
    trial.proofs.extend(proofs);
    if !failures.is_empty() {
        trial.validity = Validity::of_path(&failures);
    }
}

/// The proofs of the path of two ends, and the failures.
pub(super) fn path_of(
    plan: &ResolvedPlan,
    arm: &Arm,
    workload: &Workload,
    ends: [&TrialEnd; 2],
) -> (Vec<PathProof>, Vec<PathFailure>) {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    let own = OwnTraffic::of(&workload.traffic.facts(), ends.map(|end| &end.report));
    let seen = |role: &Role| {
        let dpdk = workload.traffic.facts().packets.and_then(|packets| packets.dpdk(*role));
        dpdk.is_none_or(|dpdk| dpdk.device.is_counted_by_the_interface())
    };
    for (role, end) in Role::ALL.into_iter().zip(ends).filter(|(role, _)| seen(role)) {
        let observation = &end.observation;
        let host = plan.hosts.get(arm.pair.host(role));
        let is_remote = host.is_some_and(|host| host.launch.uses_network());
        let own = own.map(|own| own.beside(observation.control.filter(|_| is_remote)));
        let mut proofs = Vec::new();
        if let Some(expected) = arm.expected(role) {
            proofs.push(PathProof::from_interfaces(role, expected, &observation.interfaces, own));
        }
        if let Some(kind) = arm.expect_path {
            proofs.push(PathProof::from_kinds(role, kind, observation, own));
        }
        failures.extend(proofs.iter().filter_map(PathProof::failure));
        all.extend(proofs);
        let events = observation.link_events_on_path(arm.expected(role));
        if !events.is_empty() {
            let words: Vec<String> = events.into_iter().map(LinkEvent::words).collect();
            failures.push(PathFailure::WrongPath(format!(
                "at the {role} the path changed during the trial: {}",
                shortened(&words)
            )));
        }
    }
    (all, failures)
}

/// The first events, and the number of the others.
fn shortened(events: &[String]) -> String {
    const MOST: usize = 4;
    let first = events.get(..MOST).unwrap_or(events).join(", ");
    match events.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first}, and {more} more"),
    }
}
