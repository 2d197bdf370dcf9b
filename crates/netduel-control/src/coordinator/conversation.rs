//! The coordinator's conversation with its agents: starting them, requests, answers, deadlines, and abandoning them.
//!
//! Long because: one type knows the state of every host, and every failure of a host is decided beside it.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use netduel_model::event::Event;
use netduel_model::ids::{HostName, RunId};
use netduel_model::plan::{Launch, ResolvedPlan};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::warning::Warning;

use super::commands_in_force::CommandsInForce;
use super::error::{PlanFault, RunError, TrialError};
use super::host::{EndWords, HostLink};
use super::restarts::Loss;
use super::restoring::NotRestored;
use super::surroundings::{Clock, Launcher, Listener};
use super::timing::restore_timeout_ns;
use super::unread::drop_old_figures;
use crate::launcher::{AgentId, Agents, Arrival};
use crate::peer::{AgentEvent, PeerError};
use crate::protocol::{
    DESCRIBE_TIMEOUT_NS, FailureKind, FromAgent, LOCK_TIMEOUT_NS, Limits, Recovery, ToAgent,
};

/// Timeout of stopping and undoing everything at the end, nanoseconds.
const BYE_TIMEOUT_NS: u64 = 30_000_000_000;
/// Pieces of output that are processed before deadlines are checked.
const ARRIVALS_MAX: usize = 256;
/// The coordinator counts as absent when it did not listen for longer than this, nanoseconds.
const ABSENCE_NS: u64 = 1_000_000_000;
/// An interrupt is checked for at least this often, nanoseconds.
const INTERRUPT_INTERVAL_NS: u64 = 100_000_000;

/// The agents of a plan's hosts.
pub(super) struct Hosts<'a> {
    pub(super) plan: &'a ResolvedPlan,
    pub(super) clock: &'a dyn Clock,
    launcher: &'a mut Launcher<'a>,
    pub(super) listener: &'a mut Listener<'a>,
    agents: Box<dyn Agents + 'a>,
    links: BTreeMap<HostName, HostLink>,
    last_id: AgentId,
    /// Unread messages of agents.
    events: VecDeque<(HostName, AgentEvent)>,
    /// Warnings for the next [`Self::take_warnings`].
    warnings: Vec<Warning>,
    pub(super) not_restored: NotRestored,
    pub(super) commands: CommandsInForce,
    /// Why each host lost its agent last, unless [`Self::take_loss`] has taken it.
    losses: BTreeMap<HostName, Loss>,
    /// When agents abandon their coordinator.
    limits: Limits,
    /// The hosts whose agents hold the locks of their network stacks, each with the run.
    locks: BTreeMap<HostName, RunId>,
    /// Killed agents whose guards may still run.
    killed: BTreeMap<HostName, AgentId>,
    /// When the coordinator last listened, nanoseconds.
    listened_ns: u64,
    /// Set while a trial is stopped and undone: interrupts are ignored meanwhile.
    pub(super) stopping: bool,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(
        plan: &'a ResolvedPlan,
        agents: Box<dyn Agents + 'a>,
        (clock, launcher, listener): (&'a dyn Clock, &'a mut Launcher<'a>, &'a mut Listener<'a>),
        limits: Limits,
    ) -> Self {
        Self {
            plan,
            clock,
            launcher,
            listener,
            agents,
            links: BTreeMap::new(),
            last_id: 0,
            events: VecDeque::new(),
            warnings: Vec::new(),
            not_restored: NotRestored::default(),
            commands: CommandsInForce::default(),
            losses: BTreeMap::new(),
            limits,
            locks: BTreeMap::new(),
            killed: BTreeMap::new(),
            listened_ns: 0,
            stopping: false,
        }
    }

    /// Starts the agents of some hosts, all at once because a remote shell is slow, and requests a description of each host.
    pub(super) fn open(
        &mut self,
        hosts: &BTreeSet<HostName>,
    ) -> Result<BTreeMap<HostName, HostSnapshot>, TrialError> {
        for host in hosts {
            self.launch(host)?;
        }
        let mut snapshots = BTreeMap::new();
        for host in hosts {
            self.answer(host)?;
            let answer =
                self.ask(host, &ToAgent::Describe { without_metadata: false }, DESCRIBE_TIMEOUT_NS)?;
            let snapshot = self.described(host, answer)?;
            (self.listener)(Event::HostReady { host: host.clone() });
            snapshots.insert(host.clone(), snapshot);
        }
        Ok(snapshots)
    }

    /// Starts new agents for hosts that lost theirs, and locks the network stacks that those had locked. The first loss of an agent meanwhile, of
    /// one of these hosts or of another, is returned; the agents of the others are ready nevertheless.
    ///
    /// # Errors
    /// A refusal, an interrupt, and a guard that does not end: it would undo the changes of the next agent of its host.
    pub(super) fn restart(&mut self, gone: &BTreeSet<HostName>) -> Result<Option<TrialError>, TrialError> {
        for host in gone {
            self.wait_for_guard(host)?;
        }
        let plan = self.plan;
        let hosts: Vec<_> = gone.iter().filter_map(|name| Some((name, plan.hosts.get(name)?))).collect();
        self.agents.prepare(&hosts);
        let mut lost = None;
        for host in gone {
            let launched = self.launch(host);
            keep_loss(launched, &mut lost)?;
        }
        for host in gone {
            // It has no agent when its start has failed, or when that was lost while another one answered.
            if self.is_running(host) {
                let ready = self.make_ready(host, &mut lost);
                keep_loss(ready, &mut lost)?;
            }
        }
        Ok(lost)
    }

    /// Waits for a started agent, describes its host, and locks what the former agent had locked. The first loss of the agent of another host
    /// meanwhile is put into `other`.
    fn make_ready(&mut self, host: &HostName, other: &mut Option<TrialError>) -> Result<(), TrialError> {
        let hello = self.answer(host);
        self.of_this_host(host, hello, other)?;
        let answer = self.ask(host, &ToAgent::Describe { without_metadata: false }, DESCRIBE_TIMEOUT_NS);
        let answer = self.of_this_host(host, answer, other)?;
        self.described(host, answer)?;
        (self.listener)(Event::HostReady { host: host.clone() });
        if let Some(run) = self.locks.get(host).cloned() {
            let locked = self.ask(host, &ToAgent::LockHost { run }, LOCK_TIMEOUT_NS);
            let locked = self.of_this_host(host, locked, other)?;
            not_busy(host, locked)?;
        }
        self.losses.remove(host);
        Ok(())
    }

    /// Waits until all processes of the killed agent of a host have ended: its guard would undo the changes of the next agent.
    fn wait_for_guard(&mut self, host: &HostName) -> Result<(), TrialError> {
        let Some(id) = self.killed.remove(host) else { return Ok(()) };
        let patience = Duration::from_nanos(restore_timeout_ns(self.plan));
        if self.agents.is_over(id, patience) {
            return Ok(());
        }
        let host = host.clone();
        let error = RunError::NotOver { host: host.clone(), seconds: patience.as_secs() };
        Err(TrialError::Lost { host, error: Box::new(error) })
    }

    /// The description of a host, from the answer of its agent.
    pub(super) fn described(
        &mut self,
        host: &HostName,
        answer: FromAgent,
    ) -> Result<HostSnapshot, TrialError> {
        match answer {
            FromAgent::Described { snapshot, recovery } => {
                let left = self.commands.described(host, snapshot.boot_id.as_deref());
                self.recovered(host, recovery);
                self.not_undone(host, left);
                Ok(*snapshot)
            }
            other => Err(self.unexpected(host, &other, &ToAgent::Describe { without_metadata: false })),
        }
    }

    /// Keeps the warnings about settings that an earlier agent left changed, until a run exists that can store them.
    fn recovered(&mut self, host: &HostName, recovery: Recovery) {
        let Recovery { restored, problems } = recovery;
        if !restored.is_empty() {
            let (host, settings) = (host.clone(), restored);
            self.warnings.push(Warning::SettingsRestored { host, settings });
        }
        self.not_undone(host, problems);
    }

    /// Notes changes of a host that could not be undone, and keeps the warnings.
    pub(super) fn not_undone(&mut self, host: &HostName, problems: Vec<String>) {
        let not_restored = &mut self.not_restored;
        self.warnings.extend(problems.into_iter().filter_map(|detail| not_restored.note(host, detail)));
    }

    /// The warnings since the last call.
    pub(super) fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Drops unread messages: they are about an earlier trial.
    pub(super) fn forget_messages(&mut self) {
        self.events.clear();
    }

    /// Whether the agent of a host runs.
    pub(super) fn is_running(&self, host: &HostName) -> bool {
        self.links.contains_key(host)
    }

    pub(super) fn launch(&mut self, name: &HostName) -> Result<(), TrialError> {
        let host = self.plan.hosts.get(name).ok_or_else(|| PlanFault::NoHost { host: name.clone() })?;
        let argv = match (self.launcher)(name, host) {
            Ok(argv) => argv,
            Err(reason) => return Err(self.lost(name, RunError::NoLauncher { host: name.clone(), reason })),
        };
        self.last_id += 1;
        if let Err(error) = self.agents.start(self.last_id, name.as_str(), &argv) {
            return Err(self.lost(name, RunError::Launch(error)));
        }
        let now_ns = self.clock.now_ns();
        let (link, line) = HostLink::open(name, self.last_id, self.limits, now_ns);
        self.agents.send(link.id, &line);
        self.links.insert(name.clone(), link);
        Ok(())
    }

    fn link(&self, host: &HostName) -> Result<&HostLink, TrialError> {
        self.links.get(host).ok_or_else(|| not_running(host))
    }

    /// Sends a request; its answer is awaited for `timeout_ns` from now.
    pub(super) fn request(
        &mut self,
        host: &HostName,
        message: &ToAgent,
        timeout_ns: u64,
    ) -> Result<(), TrialError> {
        let now_ns = self.clock.now_ns();
        let link = self.links.get_mut(host).ok_or_else(|| not_running(host))?;
        let line = link.request(message, now_ns, timeout_ns);
        self.agents.send(link.id, &line);
        Ok(())
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(
        &mut self,
        host: &HostName,
        message: &ToAgent,
        timeout_ns: u64,
    ) -> Result<FromAgent, TrialError> {
        // An unread failure of an earlier request would be taken for this answer.
        self.events.retain(|(from, event)| {
            from != host || !matches!(event, AgentEvent::Answer(_) | AgentEvent::Failed { .. })
        });
        self.request(host, message, timeout_ns)?;
        self.answer(host)
    }

    /// Starts the traffic of one end; its result is awaited from then on.
    pub(super) fn start(
        &mut self,
        host: &HostName,
        timeout_ns: u64,
        done_timeout_ns: u64,
    ) -> Result<(), TrialError> {
        let now_ns = self.clock.now_ns();
        let link = self.links.get_mut(host).ok_or_else(|| not_running(host))?;
        let line = link.start(now_ns, timeout_ns, done_timeout_ns);
        self.agents.send(link.id, &line);
        self.answer(host).map(drop)
    }

    /// Locks the network stack of a host against other runs.
    pub(super) fn lock_host(&mut self, host: &HostName, run: &RunId) -> Result<(), TrialError> {
        self.locks.insert(host.clone(), run.clone());
        let answer = self.ask(host, &ToAgent::LockHost { run: run.clone() }, LOCK_TIMEOUT_NS)?;
        not_busy(host, answer)
    }

    /// Stops all agents in parallel: each stops traffic, undoes its changes and ends. A change that it could not undo becomes a warning.
    pub(super) fn end_all(&mut self) {
        self.stopping = true;
        self.events.clear();
        // A process that never sent `hello` has changed nothing and would not answer `bye`.
        let strangers: Vec<HostName> =
            self.links.iter().filter(|(_, link)| !link.is_greeted()).map(|(host, _)| host.clone()).collect();
        for host in &strangers {
            self.end_agent(host);
        }
        let hosts: Vec<HostName> = self.links.keys().cloned().collect();
        let bye_timeout_ns = restore_timeout_ns(self.plan).max(BYE_TIMEOUT_NS);
        for host in &hosts {
            // All of them are running, so none of these requests fails.
            drop(self.request(host, &ToAgent::Bye, bye_timeout_ns));
        }
        for host in &hosts {
            loop {
                match self.answer(host) {
                    Ok(FromAgent::Bye { problems }) => {
                        self.undone(host, problems);
                        break;
                    }
                    // An agent ends after its `bye`: this one, whose `bye` is already queued, or another.
                    Err(TrialError::Lost { .. }) => {}
                    // It ended without a `bye`; its guard undoes its changes.
                    Err(_) if !self.is_running(host) => break,
                    // It is abandoned, and the next answer is that it does not run.
                    Ok(other) => {
                        let error = self.unexpected(host, &other, &ToAgent::Bye);
                        self.not_undone(host, vec![error.to_string()]);
                    }
                    Err(error) => {
                        self.not_undone(host, vec![error.to_string()]);
                        break;
                    }
                }
            }
        }
        for host in &hosts {
            self.end_agent(host);
        }
        // The next run must find its hosts restored, or a warning says that they may not be.
        for host in self.killed.keys().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.wait_for_guard(&host) {
                self.not_undone(&host, vec![error.to_string()]);
            }
        }
    }

    /// The commands that were in force on hosts whose agents were lost and not started again, each as a sentence for the user. A host behind a network
    /// may have rebooted. One on this machine has not: its guard has ended.
    pub(super) fn lost_commands(&self) -> Vec<String> {
        let may_have_rebooted =
            |host: &HostName| self.plan.hosts.get(host).is_some_and(|host| host.launch.uses_network());
        let lost = self.commands.lost().filter(|lost| may_have_rebooted(lost.0));
        lost.map(|(host, words)| format!("host {host}: {words}")).collect()
    }

    /// Ends the agent of a host, if it runs: closes its input, waits for its end, and kills it after a timeout. Returns its exit status and
    /// its last output.
    pub(super) fn end_agent(&mut self, host: &HostName) -> EndWords {
        let Some(link) = self.links.remove(host) else { return EndWords::default() };
        let ended = self.agents.end(link.id, link.patience());
        if !ended.is_over {
            self.killed.insert(host.clone(), link.id);
        }
        link.end_words(&ended)
    }

    /// The agent of a host has undone its changes, but for these.
    pub(super) fn undone(&mut self, host: &HostName, problems: Vec<String>) {
        self.commands.undone(host);
        self.not_undone(host, problems);
    }

    /// As [`Hosts::ask`], but the loss of another host's agent does not end the wait for this answer; otherwise this answer would be taken for
    /// the answer to the next request. That loss is the returned error; what the answer says of changes that are left is noted before.
    pub(super) fn ask_despite_other_losses(
        &mut self,
        host: &HostName,
        message: &ToAgent,
        timeout_ns: u64,
    ) -> Result<FromAgent, TrialError> {
        let answer = self.ask(host, message, timeout_ns);
        let mut other = None;
        let answer = self.of_this_host(host, answer, &mut other);
        let Some(other) = other else { return answer };
        match answer {
            Ok(FromAgent::Undone { problems }) => self.undone(host, problems),
            Ok(described @ FromAgent::Described { .. }) => drop(self.described(host, described)),
            _ => {}
        }
        Err(other)
    }

    /// The answer of a host. Agents of other hosts may be lost during the wait; the first such loss is put into `other`.
    fn of_this_host(
        &mut self,
        host: &HostName,
        mut answer: Result<FromAgent, TrialError>,
        other: &mut Option<TrialError>,
    ) -> Result<FromAgent, TrialError> {
        while let Err(TrialError::Lost { host: lost, error }) = answer {
            if lost == *host {
                return Err(TrialError::Lost { host: lost, error });
            }
            other.get_or_insert(TrialError::Lost { host: lost, error });
            answer = self.answer(host);
        }
        answer
    }

    /// Waits for the answer of one host. Messages of other hosts are queued: one may be the result of a short trial.
    pub(super) fn answer(&mut self, host: &HostName) -> Result<FromAgent, TrialError> {
        loop {
            let own = self.events.iter().position(|(from, event)| {
                from == host && matches!(event, AgentEvent::Answer(_) | AgentEvent::Failed { .. })
            });
            match own.and_then(|index| self.events.remove(index)) {
                Some((_, AgentEvent::Answer(answer))) => return Ok(answer),
                Some((from, AgentEvent::Failed { kind, message })) => {
                    return Err(TrialError::Refused { host: from, kind, message });
                }
                _ => {
                    self.link(host)?;
                    // Until the answer is there, nothing else is read.
                    drop_old_figures(&mut self.events);
                    self.listen()?;
                }
            }
        }
    }

    /// The next message of any agent; `None` when only time passed.
    pub(super) fn next_event(&mut self) -> Result<Option<(HostName, AgentEvent)>, TrialError> {
        if self.events.is_empty() {
            self.listen()?;
        }
        Ok(self.events.pop_front())
    }

    /// Waits for output of an agent, a deadline, or the next check for an interrupt.
    fn listen(&mut self) -> Result<(), TrialError> {
        if !self.stopping && self.clock.interrupted() {
            return Err(TrialError::Interrupted);
        }
        self.extend_deadlines();
        let deadlines = self.links.values().filter_map(HostLink::deadline_ns);
        let wait_ns = deadlines.min().map_or(INTERRUPT_INTERVAL_NS, |at| at.saturating_sub(self.listened_ns));
        let wait_ns = wait_ns.min(INTERRUPT_INTERVAL_NS);
        let first = self.agents.next_arrival(Duration::from_nanos(wait_ns));
        self.listened_ns = self.clock.now_ns().min(self.listened_ns + wait_ns);
        if let Some((id, arrival)) = first {
            self.arrived(id, arrival)?;
            for _ in 1..ARRIVALS_MAX {
                let Some((id, arrival)) = self.agents.next_arrival(Duration::ZERO) else { break };
                self.arrived(id, arrival)?;
            }
        }
        self.extend_deadlines();
        // Deadlines are checked after output, too: an agent that sends continuously must not hide the silence of another.
        self.tick()
    }

    /// Extends all deadlines by a time in which the coordinator did not listen: it was stopped (Ctrl-Z), waited for a disk, or for the
    /// end of another agent. It sent nothing in that time, so an end of a trial may still wait for its `finish`.
    fn extend_deadlines(&mut self) {
        let now_ns = self.clock.now_ns();
        if now_ns.saturating_sub(self.listened_ns) > ABSENCE_NS {
            for link in self.links.values_mut() {
                link.postpone(self.listened_ns, now_ns);
            }
        }
        self.listened_ns = now_ns;
    }

    fn arrived(&mut self, id: AgentId, arrival: Arrival) -> Result<(), TrialError> {
        let now_ns = self.clock.now_ns();
        // Output of an abandoned agent may still arrive.
        let Some(link) = self.links.values_mut().find(|link| link.id == id) else { return Ok(()) };
        let host = link.name.clone();
        match arrival {
            Arrival::Bytes(bytes) => match link.input(&bytes, now_ns) {
                Ok(events) => {
                    self.events.extend(events.into_iter().map(|event| (host.clone(), event)));
                    Ok(())
                }
                Err(source) => Err(self.lose(&host, Some(source))),
            },
            Arrival::End => Err(self.lose(&host, None)),
        }
    }

    /// Abandons an agent whose answer does not belong to the request.
    pub(super) fn unexpected(
        &mut self,
        host: &HostName,
        answer: &FromAgent,
        request: &ToAgent,
    ) -> TrialError {
        self.lose(host, Some(PeerError::unexpected(answer, request)))
    }

    fn tick(&mut self) -> Result<(), TrialError> {
        let now_ns = self.clock.now_ns();
        let silent = self.links.values_mut().find_map(|link| {
            let error = link.tick(now_ns).err()?;
            Some((link.name.clone(), error))
        });
        silent.map_or(Ok(()), |(host, error)| Err(self.lose(&host, Some(error))))
    }

    /// Abandons an agent after a protocol error, silence, or the end of its process. Its queued messages are dropped, because they would be
    /// taken for those of the agent that replaces it. A queued `bye` is kept, and a queued failure is the reason for the end.
    fn lose(&mut self, host: &HostName, error: Option<PeerError>) -> TrialError {
        let was_started = self.links.get(host).is_some_and(HostLink::is_greeted);
        let EndWords { how, mut last_words, own_reason } = self.end_agent(host);
        let failure = self.events.iter().find_map(|(from, event)| match event {
            AgentEvent::Failed { message, .. } if from == host => Some(format!("; it reported: {message}")),
            _ => None,
        });
        // No agent runs on this machine for a paired server: the process is its connection, and its message is the reason.
        let is_paired =
            self.plan.hosts.get(host).is_some_and(|it| matches!(it.launch, Launch::Paired { .. }));
        let own_reason = own_reason.filter(|_| is_paired && failure.is_none());
        last_words = failure.unwrap_or(last_words);
        self.events.retain(|(from, event)| {
            from != host || matches!(event, AgentEvent::Answer(FromAgent::Bye { .. }))
        });
        let name = host.clone();
        let error = match (error, own_reason) {
            (Some(source), _) => RunError::Peer { host: name, source, last_words },
            (None, Some(reason)) => RunError::Disconnected { host: name, reason },
            (None, None) if was_started => RunError::Vanished { host: name, how, last_words },
            (None, None) => RunError::NotStarted { host: name, how, last_words },
        };
        self.lost(host, error)
    }

    /// Notes that a host has no agent, and returns the reason as an error.
    fn lost(&mut self, host: &HostName, error: RunError) -> TrialError {
        let error = TrialError::Lost { host: host.clone(), error: Box::new(error) };
        self.losses.insert(host.clone(), Loss::of(&error));
        error
    }

    /// Why a host lost its agent last; `None` when that was taken, or when the coordinator ended the agent.
    pub(super) fn take_loss(&mut self, host: &HostName) -> Option<Loss> {
        self.losses.remove(host)
    }
}

/// Keeps the first loss of an agent; any other error is returned.
fn keep_loss(result: Result<(), TrialError>, lost: &mut Option<TrialError>) -> Result<(), TrialError> {
    match result {
        Err(error @ TrialError::Lost { .. }) => {
            lost.get_or_insert(error);
            Ok(())
        }
        other => other,
    }
}

fn not_running(host: &HostName) -> TrialError {
    RunError::NotRunning { host: host.clone() }.into()
}

fn not_busy(host: &HostName, answer: FromAgent) -> Result<(), TrialError> {
    match answer {
        FromAgent::HostBusy { by } => {
            Err(TrialError::Refused { host: host.clone(), kind: FailureKind::Busy, message: by })
        }
        _ => Ok(()),
    }
}
