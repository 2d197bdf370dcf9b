//! The ledger of a run: checks the promises about events and stored trials at every step, by comparison with the [`Truth`].
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use netduel_control::schedule;
use netduel_model::event::Event;
use netduel_model::ids::ArmName;
use netduel_model::run::RunEnd;
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::warning::Warning;

use crate::random::Random;
use crate::setting::Setting;
use crate::truth::{Serial, Truth};

const SECOND: u64 = 1_000_000_000;
/// Maximum time of a trial beside its traffic, when every step ends just before its deadline, nanoseconds: treatments, sockets, start,
/// result, abort and undo at both ends, the ends and restarts of all agents, and after the last trial of a block their descriptions. Each of two
/// hosts may be started three times in vain, and is then waited for 190 s.
const TRIAL_MARGIN_NS: u64 = 2_000 * SECOND;

/// A trial that has started.
#[derive(Debug)]
struct Current {
    slot: Slot,
    started_ns: u64,
    serials: Vec<Serial>,
    is_stored: bool,
}

/// The ledger.
#[derive(Debug)]
pub struct Ledger {
    setting: Rc<Setting>,
    /// The stored trials of all parts of the run.
    pub stored: Vec<Trial>,
    /// How many of them earlier parts stored.
    stored_before: usize,
    /// Whether the run exists.
    pub is_made: bool,
    /// How the run ended, by its last event.
    pub end: Option<RunEnd>,
    /// How the run ended, as stored.
    pub stored_end: Option<RunEnd>,
    /// Whether this part has opened the run's file.
    pub is_open: bool,
    /// Stored warnings that the user has not seen yet.
    pub unshown: Vec<Warning>,
    /// Arms that this part reported to the user as dropped.
    dropped: BTreeSet<ArmName>,
    /// When the blocks of this part began, nanoseconds.
    pub blocks_started_ns: Option<u64>,
    /// Time at which the user wanted the run to stop.
    pub interrupted_ns: Option<u64>,
    /// Traffic of all parts.
    next_serial: Serial,
    /// The blocks that earlier parts began.
    begun: BTreeMap<u32, Option<u32>>,
    /// The block at whose end a host was not compared, so that this part of the run ends with an error.
    uncompared: Option<u32>,
    upcoming: Vec<Slot>,
    current: Option<Current>,
    started_after_interrupt: u32,
    checked_precision: Option<(usize, bool)>,
    warned_of_machines: BTreeSet<String>,
    events_running: bool,
}

/// The blocks that have a trial, each with the number of its next attempt; `None` for a complete one.
fn begun_blocks(stored: &[Trial], per_block: usize) -> BTreeMap<u32, Option<u32>> {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for trial in stored {
        *counts.entry((trial.slot.block, trial.attempt)).or_default() += 1;
    }
    let mut begun = BTreeMap::new();
    // In the order of the attempts.
    for ((block, attempt), count) in counts {
        begun.insert(block, (count < per_block).then_some(attempt + 1));
    }
    begun
}

/// The valid records: trials of the last attempt at each block.
fn counting(trials: &[Trial]) -> Vec<&Trial> {
    let last =
        |block| trials.iter().filter(|trial| trial.slot.block == block).map(|trial| trial.attempt).max();
    trials.iter().filter(|trial| last(trial.slot.block) == Some(trial.attempt)).collect()
}

impl Ledger {
    /// The record of a run that has not started.
    pub fn new(setting: Rc<Setting>) -> Self {
        Self {
            setting,
            stored: Vec::new(),
            stored_before: 0,
            is_made: false,
            end: None,
            stored_end: None,
            is_open: false,
            unshown: Vec::new(),
            dropped: BTreeSet::new(),
            blocks_started_ns: None,
            interrupted_ns: None,
            next_serial: 1,
            begun: BTreeMap::new(),
            uncompared: None,
            upcoming: Vec::new(),
            current: None,
            started_after_interrupt: 0,
            checked_precision: None,
            warned_of_machines: BTreeSet::new(),
            events_running: false,
        }
    }

    fn per_block(&self) -> usize {
        self.setting.plan.trials_per_block() as usize
    }

    /// Begins a part.
    pub fn begin_part(&mut self) {
        self.stored_before = self.stored.len();
        (self.begun, self.uncompared) = (begun_blocks(&self.stored, self.per_block()), None);
        let complete = self.complete_blocks();
        self.upcoming = (0..self.setting.plan.design.blocks_max)
            .filter(|block| !complete.contains(block))
            .flat_map(|block| schedule::block(&self.setting.plan, self.setting.schedule_seed, block))
            .collect();
        self.upcoming.reverse();
        (self.end, self.blocks_started_ns, self.interrupted_ns) = (None, None, None);
        (self.current, self.started_after_interrupt, self.checked_precision) = (None, 0, None);
        (self.events_running, self.is_open, self.stored_end) = (false, false, None);
        self.unshown.clear();
        self.dropped.clear();
    }

    /// Whether the last three trials of an arm in this part failed, that of the last trial: by the rules of a run this ends it. Three
    /// bearable faults, each at another host or at the coordinator, can do that; a coordinator counts only its own trials.
    pub fn has_failed_in_a_row(&self) -> bool {
        let own = &self.stored[self.stored_before..];
        let Some(last) = own.last() else { return false };
        let of_arm = own.iter().rev().filter(|trial| trial.slot.arm == last.slot.arm);
        of_arm.take(3).filter(|trial| matches!(trial.validity, Validity::Failed { .. })).count() == 3
    }

    /// The record of a trial is damaged between two parts of the run: the next one reads the others.
    pub fn damage(&mut self, random: &mut Random) -> Option<Slot> {
        if self.stored.is_empty() {
            return None;
        }
        let index = random.below(self.stored.len() as u64) as usize;
        Some(self.stored.remove(index).slot)
    }

    /// The record of the last trial of this part is lost.
    pub fn lose_last(&mut self) {
        if self.stored.len() > self.stored_before {
            self.stored.pop();
        }
    }

    /// Blocks that are complete.
    fn complete_blocks(&self) -> BTreeSet<u32> {
        let begun = begun_blocks(&self.stored, self.per_block());
        begun.into_iter().filter(|(_, next)| next.is_none()).map(|(block, _)| block).collect()
    }

    /// Whether a run with these trials is precise enough.
    pub fn is_enough(&self, trials: &[Trial]) -> bool {
        let valid = || counting(trials).into_iter().filter(|trial| trial.is_valid()).count();
        self.setting.enough_trials.is_some_and(|enough| valid() >= enough)
    }

    /// The coordinator checks whether the run is precise enough.
    pub fn check_precision(
        &mut self,
        trials: &[Trial],
        dropped: &BTreeMap<ArmName, String>,
        truth: &mut Truth,
    ) -> bool {
        if !dropped.keys().eq(&self.dropped) {
            truth.broken(format!(
                "{dropped:?} do not count for precision, reported as dropped: {:?}",
                self.dropped
            ));
        }
        let complete = self.complete_blocks();
        let known: Vec<&Trial> =
            counting(&self.stored).into_iter().filter(|trial| complete.contains(&trial.slot.block)).collect();
        if counting(trials) != known {
            truth.broken("precision is judged by other trials than those of all complete blocks".into());
        }
        let is_enough = self.is_enough(trials);
        self.checked_precision = Some((complete.len(), is_enough));
        is_enough
    }

    /// A number for the traffic of the current trial, or for a probe of ports before the first one.
    pub fn serial(&mut self, truth: &mut Truth) -> Serial {
        let serial = self.next_serial;
        self.next_serial += 1;
        match &mut self.current {
            Some(current) if !current.is_stored => {
                current.serials.push(serial);
                let traffic = crate::truth::TrafficTruth { slot: current.slot.clone(), ends: [None, None] };
                truth.traffic.insert(serial, traffic);
            }
            // No trial has this number: one that is prepared with the token of a probe breaks a promise.
            None if self.blocks_started_ns.is_none() => {}
            _ => truth.broken("a token is drawn without a trial".to_owned()),
        }
        serial
    }

    /// The lab's events begin or end.
    pub fn lab_events(&mut self, running: bool, truth: &mut Truth) {
        if running && self.events_running {
            truth.broken("events of the lab start twice".to_owned());
        }
        self.events_running = running;
    }

    /// A trial is stored.
    pub fn store(&mut self, trial: &Trial, now_ns: u64, truth: &mut Truth) {
        match &mut self.current {
            Some(current) if current.slot == trial.slot && !current.is_stored => {
                current.is_stored = true;
                let duration_ns = self
                    .setting
                    .plan
                    .arm(&trial.slot.arm)
                    .and_then(|arm| arm.workload(&trial.slot.workload))
                    .map_or(0, |workload| workload.timing.duration.0);
                let paused_ns: u64 = truth.paused_ns();
                if now_ns - current.started_ns > duration_ns + TRIAL_MARGIN_NS + paused_ns {
                    truth.broken(format!(
                        "the trial {:?} took {} s",
                        trial.slot,
                        (now_ns - current.started_ns) / SECOND
                    ));
                }
                judge(trial, &current.serials, truth);
            }
            _ => truth.broken(format!("{:?} is stored, which is not the trial that ran", trial.slot)),
        }
        self.judge_attempt(trial, truth);
        let is_again = |other: &Trial| (&other.slot, other.attempt) == (&trial.slot, trial.attempt);
        if self.stored.iter().any(is_again) {
            truth.broken(format!("{:?} is stored twice", trial.slot));
        }
        self.stored.push(trial.clone());
    }

    /// Checks the attempt of a stored trial. When the last one of a block is stored, all hosts have been compared.
    fn judge_attempt(&mut self, trial: &Trial, truth: &mut Truth) {
        let attempt = self.begun.get(&trial.slot.block).copied().flatten().unwrap_or(0);
        let is_last = trial.slot.position as usize + 1 == self.per_block() && !self.setting.is_quick;
        let is_failed = matches!(trial.validity, Validity::Failed { .. }) && trial.client.is_none();
        if is_last && is_failed && trial.attempt == attempt + 1 {
            self.uncompared = Some(trial.slot.block);
        } else if trial.attempt != attempt {
            truth.broken(format!("{:?} is stored as attempt {}, not {attempt}", trial.slot, trial.attempt));
        } else if is_last {
            let since_ns = self.current.as_ref().map_or(0, |current| current.started_ns);
            self.uncompared = truth.has_undescribed_host(since_ns).then_some(trial.slot.block);
        }
    }

    /// Checks an event.
    pub fn event(&mut self, event: &Event, now_ns: u64, truth: &mut Truth) {
        if self.end.is_some() {
            truth.broken(format!("after the end of the run comes {event:?}"));
        }
        match event {
            Event::RunStarted { trials_done, trials_max, .. } => {
                self.blocks_started_ns = Some(now_ns);
                let per_block = self.per_block() as u32;
                let complete = self.complete_blocks().len() as u32;
                let expected = (complete * per_block, self.setting.plan.design.blocks_max * per_block);
                if (*trials_done, *trials_max) != expected {
                    truth.broken(format!("the run starts with {trials_done} of {trials_max} trials"));
                }
            }
            Event::TrialStarted { slot, .. } => self.trial_started(slot, now_ns, truth),
            Event::TrialFinished { trial } => {
                let is_stored = self.stored.last() == Some(trial);
                if !is_stored || self.current.take().is_none_or(|current| !current.is_stored) {
                    truth.broken(format!(
                        "{:?} is reported as finished and differs from the stored trial",
                        trial.slot
                    ));
                }
            }
            Event::Warned { warning } => self.warned(warning, truth),
            Event::RunFinished { end } => {
                if self.stored_end.as_ref() != Some(end) || !self.unshown.is_empty() {
                    truth.broken(format!(
                        "the run ends as {end:?}, stored is {:?}, and not shown are {:?}",
                        self.stored_end, self.unshown
                    ));
                }
                if let Some(block) = self.uncompared
                    && !matches!(end, RunEnd::Failed { .. })
                {
                    truth.broken(format!(
                        "the run ends as {end:?}, and a host was not compared after block {block}"
                    ));
                }
                self.end = Some(end.clone());
            }
            _ => {}
        }
    }

    fn trial_started(&mut self, slot: &Slot, now_ns: u64, truth: &mut Truth) {
        let expected = self.upcoming.pop();
        if expected.as_ref() != Some(slot) {
            truth.broken(format!("{slot:?} is run instead of {expected:?}"));
        }
        if let Some(current) = &self.current {
            truth.broken(format!("{:?} was not finished before {slot:?}", current.slot));
        }
        if self.events_running {
            truth.broken(format!("{slot:?} starts while the lab's events go on"));
        }
        if let Some(block) = self.uncompared {
            truth.broken(format!("{slot:?} starts, and a host was not compared after block {block}"));
        }
        let design = &self.setting.plan.design;
        // A block that an earlier part began, or one before it, is run in any case.
        let is_new = self.begun.last_key_value().is_none_or(|(last, _)| slot.block > *last);
        if slot.position == 0 && is_new {
            let checked = self.checked_precision.take();
            let complete = self.complete_blocks().len();
            if slot.block >= design.blocks_min && checked != Some((complete, false)) {
                truth.broken(format!("block {} starts without a check of the precision", slot.block));
            }
            let started_ns = self.blocks_started_ns.unwrap_or(now_ns);
            let has_budget = design.budget.is_none_or(|budget| now_ns - started_ns < budget.0);
            if !has_budget && truth.paused_ns() == 0 {
                truth.broken(format!("block {} starts after the budget", slot.block));
            }
        }
        if self.interrupted_ns.is_some() {
            self.started_after_interrupt += 1;
            if self.started_after_interrupt > 1 {
                truth.broken(format!("{slot:?} starts after an interrupt"));
            }
        }
        self.current =
            Some(Current { slot: slot.clone(), started_ns: now_ns, serials: Vec::new(), is_stored: false });
    }

    fn warned(&mut self, warning: &Warning, truth: &mut Truth) {
        match self.unshown.iter().position(|stored| stored == warning) {
            Some(index) => drop(self.unshown.remove(index)),
            None if self.is_open => truth.broken(format!("{warning:?} is shown and not stored")),
            None => {}
        }
        match warning {
            Warning::UndoFailed { host, .. } => {
                truth.warned.insert(host.clone());
            }
            Warning::ArmDropped { arm, .. } => {
                self.dropped.insert(arm.clone());
            }
            Warning::SharedMachine { client, server }
                if !self.warned_of_machines.insert(format!("{client} {server}")) =>
            {
                truth.broken(format!("{client} and {server} are warned of twice"));
            }
            _ => {}
        }
    }

    /// Checks the stored trials at the end of the run.
    pub fn judge_whole(&self, truth: &mut Truth) {
        let per_block = self.per_block();
        let design = &self.setting.plan.design;
        let complete = self.complete_blocks();
        for block in complete.iter().copied() {
            let of_block: Vec<&Trial> =
                self.stored.iter().filter(|trial| trial.slot.block == block).collect();
            let last = of_block.iter().map(|trial| trial.attempt).max();
            let slots: Vec<&Slot> = of_block
                .iter()
                .filter(|trial| Some(trial.attempt) == last)
                .map(|trial| &trial.slot)
                .collect();
            let schedule = schedule::block(&self.setting.plan, self.setting.schedule_seed, block);
            if slots.len() != per_block || !slots.iter().zip(&schedule).all(|(one, other)| *one == other) {
                truth.broken(format!("block {block} is stored as {slots:?}"));
            }
        }
        // Nor is a block missing between others.
        let has_gap = complete.last().is_some_and(|last| *last as usize + 1 != complete.len());
        let is_stray = |trial: &&Trial| !complete.contains(&trial.slot.block);
        let stray = self.stored.iter().find(is_stray);
        let known: Vec<Trial> = self.stored.iter().filter(|trial| !is_stray(trial)).cloned().collect();
        let count = complete.len() as u32;
        let is_right = match &self.end {
            Some(RunEnd::BlockLimitReached) => count == design.blocks_max && !self.is_enough(&known),
            Some(RunEnd::PrecisionReached) => count >= design.blocks_min && self.is_enough(&known),
            Some(RunEnd::BudgetReached) => design.budget.is_some(),
            _ => false,
        };
        if !is_right || has_gap || stray.is_some() {
            truth.broken(format!(
                "the run ended as {:?} with the complete blocks {complete:?} of {}",
                self.end, design.blocks_max
            ));
        }
    }
}

/// Checks the validity of a trial.
fn judge(trial: &Trial, serials: &[Serial], truth: &mut Truth) {
    match &trial.validity {
        Validity::Valid => {
            if let Some(why) = why_not_valid(trial, serials, truth) {
                truth.broken(format!("{:?} is called valid: {why}", trial.slot));
            }
        }
        Validity::Failed { reason } => {
            truth.failed += 1;
            if truth.failed > truth.hits_of_all_parts + truth.hit.len() {
                truth.broken(format!("{:?} failed without a fault: {reason}", trial.slot));
            }
        }
        Validity::WrongPath { reason } | Validity::PathUnproven { reason } => {
            if !truth.was_on_wrong_path() {
                truth.broken(format!("{:?} is called wrong: {reason}", trial.slot));
            }
        }
    }
}

fn why_not_valid(trial: &Trial, serials: &[Serial], truth: &Truth) -> Option<String> {
    let (Some(client), Some(server)) = (&trial.client, &trial.server) else {
        return Some("an end is missing".to_owned());
    };
    let serial = client.report.process_cpu_ns.0;
    if server.report.process_cpu_ns != (serial, 1) || client.report.process_cpu_ns.1 != 0 {
        return Some("its ends are of different traffic".to_owned());
    }
    if !serials.contains(&serial) {
        return Some("its figures are those of another trial".to_owned());
    }
    let wrong = |end: &netduel_model::trial::TrialEnd| {
        end.observation.interfaces.iter().any(|interface| interface.name != "eth0")
    };
    let is_proven = !trial.proofs.is_empty();
    if is_proven && (wrong(client) || wrong(server)) {
        return Some("its bytes took another path".to_owned());
    }
    let traffic = truth.traffic.get(&serial)?;
    let [Some(client), Some(server)] = &traffic.ends else { return Some("it never ran at both ends".into()) };
    if !client.is_done || !server.is_done {
        return Some("an end did not come to its end".to_owned());
    }
    client.flaw.clone().or_else(|| server.flaw.clone())
}
