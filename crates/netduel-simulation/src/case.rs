//! One seed: a run with its parts, and the broken promises.
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use netduel_control::coordinator::{RESTARTS_MAX, RunError, RunErrorKind};
use netduel_model::run::RunEnd;

use crate::fault::{
    CoordinatorFault, Fault, HostFault, LocalCall, StartFault, Task, TaskFault, draw, draw_reboots,
    draw_restarts,
};
use crate::ledger::Ledger;
use crate::random::{Random, Stream};
use crate::sabotage::Sabotage;
use crate::setting::{Reach, Setting};
use crate::surroundings::{Endless, Handle, Killed, SimulatedSurroundings};
use crate::world::World;

const SECOND: u64 = 1_000_000_000;
/// Maximum time from an interrupt to the end of a run, nanoseconds: abort and undo at both ends, `bye`, and the ends of all agents.
const STOP_NS_MAX: u64 = 400 * SECOND;

/// A seed with its faults: all that it generates, or fewer.
#[derive(Debug, Clone)]
pub struct Case {
    /// The seed.
    pub seed: u64,
    /// Faults, by parts of the run.
    pub parts: Vec<Vec<Fault>>,
    /// In what way the product is broken.
    pub sabotage: Option<Sabotage>,
}

/// The result of a seed.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The broken promises.
    pub violations: Vec<String>,
    /// How each part ended.
    pub ends: Vec<String>,
    /// Faults that occurred.
    pub hits: usize,
    /// The trace, if requested.
    pub trace: Vec<String>,
}

/// How a part of a run ended.
enum PartEnd {
    Returned(Result<RunEnd, RunError>),
    Killed,
    Broken(String),
}

impl Case {
    /// A seed with all faults that it generates.
    pub fn of(seed: u64) -> Self {
        let setting = Setting::of(seed);
        let mut parts = draw(&mut Random::new(seed, Stream::Faults), &setting);
        draw_restarts(&mut Random::new(seed, Stream::Restarts), &setting, &mut parts);
        draw_reboots(&mut Random::new(seed, Stream::Reboots), &setting, &mut parts);
        Self { seed, parts, sabotage: None }
    }

    /// The same with a broken product.
    pub fn with(self, sabotage: Sabotage) -> Self {
        Self { sabotage: Some(sabotage), ..self }
    }

    /// Plays it.
    pub fn play(&self, traced: bool) -> Verdict {
        self.play_in(Setting::of(self.seed), traced)
    }

    /// Plays it in another setting than that of its seed.
    fn play_in(&self, setting: Setting, traced: bool) -> Verdict {
        let setting = Rc::new(setting);
        let world = World::new(setting.clone(), Random::new(self.seed, Stream::Wire), traced);
        world.truth.borrow_mut().sabotage = self.sabotage;
        let ledger = Ledger::new(setting.clone());
        let outside = Rc::new(RefCell::new(SimulatedSurroundings::new(world, ledger)));
        let mut ends = Vec::new();
        let mut damage = Random::new(self.seed, Stream::Damage);
        // The last part has no faults.
        let parts = self.parts.iter().cloned().chain([Vec::new()]);
        let count = self.parts.len();
        for (part, faults) in parts.enumerate() {
            let is_last = part == count;
            // A quick test locks no host and is never resumed. Of the agents on one network stack only one holds the lock, so an agent that
            // survives because its process is stopped may not block a resumed run.
            if is_last || setting.is_quick || setting.shares_network {
                outside.borrow_mut().world.settle();
            }
            if is_last {
                outside.borrow_mut().world.truth.borrow_mut().restore_by_hand();
            }
            outside.borrow_mut().world.await_guards();
            if part > 0 && damage.once_in(4) {
                let outside = &mut *outside.borrow_mut();
                let slot = outside.ledger.damage(&mut damage);
                outside.world.note(format_args!("the record of {slot:?} is damaged"));
            }
            outside.borrow_mut().begin_part(part as u64, faults);
            let end = play_part(&outside, &setting);
            ends.push(described(&end));
            let is_over = judge_part(&outside, &end, is_last);
            if is_over || !outside.borrow().world.truth.borrow().violations.is_empty() {
                break;
            }
        }
        let mut outside = outside.borrow_mut();
        let outside = &mut *outside;
        if outside.world.truth.borrow().violations.is_empty() {
            outside.ledger.judge_whole(&mut outside.world.truth.borrow_mut());
            outside.world.settle();
            outside.world.judge_rest();
        }
        let truth = outside.world.truth.borrow();
        Verdict {
            violations: truth.violations.clone(),
            ends,
            hits: truth.hits_of_all_parts + truth.hit.len(),
            trace: outside.world.trace.take().unwrap_or_default(),
        }
    }
}

fn play_part(outside: &Rc<RefCell<SimulatedSurroundings>>, setting: &Setting) -> PartEnd {
    let handle = Handle(outside.clone());
    let run = AssertUnwindSafe(|| handle.run(&setting.plan));
    match catch_unwind(run) {
        Ok(result) => PartEnd::Returned(result),
        Err(payload) if payload.is::<Killed>() => PartEnd::Killed,
        Err(payload) if payload.is::<Endless>() => PartEnd::Broken("the run does not end".to_owned()),
        Err(payload) => PartEnd::Broken(format!("the coordinator panics: {}", words_of(payload.as_ref()))),
    }
}

fn words_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn described(end: &PartEnd) -> String {
    match end {
        PartEnd::Returned(Ok(end)) => format!("{end:?}"),
        PartEnd::Returned(Err(error)) => format!("error: {error}"),
        PartEnd::Killed => "killed".to_owned(),
        PartEnd::Broken(what) => what.clone(),
    }
}

/// Judges how a part ended; true when the run has ended.
fn judge_part(outside: &Rc<RefCell<SimulatedSurroundings>>, end: &PartEnd, is_last: bool) -> bool {
    let outside = &mut *outside.borrow_mut();
    outside.world.note(format_args!("this part of the run is over: {}", described(end)));
    let result = match end {
        PartEnd::Killed => {
            outside.world.coordinator_gone(false);
            return false;
        }
        PartEnd::Broken(what) => {
            outside.world.truth.borrow_mut().broken(what.clone());
            return true;
        }
        PartEnd::Returned(result) => result,
    };
    outside.world.coordinator_gone(true);
    let ledger = &outside.ledger;
    let mut truth = outside.world.truth.borrow_mut();
    let returned = match result {
        Ok(end) => end.clone(),
        // The run may be complete although a host stays changed.
        Err(RunError::NotRestored { .. }) => ledger.end.clone().unwrap_or(RunEnd::Interrupted),
        Err(error) => RunEnd::Failed { detail: error.to_string() },
    };
    if ledger.is_made && ledger.end.as_ref() != Some(&returned) && !is_of_making(result) {
        truth.broken(format!("the run ended as {returned:?}, and its last event is {:?}", ledger.end));
    }
    let hits: Vec<Fault> = truth.hit.iter().map(|(_, fault)| fault.clone()).collect();
    let has = |wanted: fn(&Fault) -> bool| hits.iter().any(wanted);
    let is_store = |fault: &Fault| {
        matches!(
            fault,
            Fault::Local { call: LocalCall::Store | LocalCall::Reserve | LocalCall::HostsKnown, .. }
        )
    };
    if let Some(since_ns) = ledger.interrupted_ns
        && outside.world.now_ns - since_ns > STOP_NS_MAX + truth.paused_ns()
    {
        truth.broken(format!("the run took {} s to stop", (outside.world.now_ns - since_ns) / SECOND));
    }
    match result {
        Ok(RunEnd::Interrupted) if ledger.interrupted_ns.is_none() => {
            truth.broken("the run says that it was interrupted".to_owned());
        }
        Ok(RunEnd::Interrupted) => return false,
        Ok(_) => return true,
        Err(error @ RunError::PortsBlocked(_)) => {
            truth.broken(format!("no firewall is simulated, only the loss of agents: {error}"));
        }
        Err(error) if is_last => truth.broken(format!("without a fault the run failed: {error}")),
        Err(error) if (error.kind() == RunErrorKind::Store) != has(is_store) => {
            if error.kind() == RunErrorKind::Store {
                truth.broken(format!("the store is blamed: {error}"));
            }
        }
        Err(error) => {
            if hits.is_empty() && truth.hits_of_all_parts == 0 {
                truth.broken(format!("without a fault the run failed: {error}"));
            }
            if let RunError::NotRestored { host, .. } = error {
                if !truth.warned.contains(host) {
                    truth.broken(format!("without a warning of a change that is left: {error}"));
                }
            } else if is_bearable(&hits, &outside.world.setting)
                && ledger.blocks_started_ns.is_some()
                // Fewer faults than that fail no three trials in a row.
                && (hits.len() < 3 || !ledger.has_failed_in_a_row())
            {
                truth.broken(format!("one fault at a host ended the run: {error}"));
            }
        }
    }
    false
}

/// Whether the run was neither created nor reopened in this part.
fn is_of_making(result: &Result<RunEnd, RunError>) -> bool {
    // Only a run that this coordinator has created or reopened has the event.
    result.is_err() || matches!(result, Ok(RunEnd::Interrupted))
}

/// Whether a run must survive its faults: at most one at each host, and only faults that a restarted agent does not have. Beside it, restarts
/// may fail as long as one is left.
fn is_bearable(hits: &[Fault], setting: &Setting) -> bool {
    let is_bearable = |fault: &Fault| match fault {
        Fault::Task { task, fault, .. } => {
            !matches!(task, Task::Describe | Task::Lock)
                && (setting.reach == Reach::Near || !matches!(fault, TaskFault::Slow(_)))
        }
        Fault::Line { .. } => true,
        Fault::Host { fault, .. } => match fault {
            HostFault::Crash | HostFault::Cut => true,
            HostFault::Freeze(_) => setting.reach == Reach::Near,
            HostFault::Partition(_) => false,
        },
        // Agents with running traffic abandon a coordinator that is paused for a minute.
        Fault::Coordinator { fault, .. } => {
            matches!(fault, CoordinatorFault::Pause(time_ns) if *time_ns < 60 * SECOND)
        }
        Fault::Local { call, .. } => {
            !matches!(call, LocalCall::Store | LocalCall::Reserve | LocalCall::HostsKnown)
        }
        // The first start of a part is not a restart.
        Fault::Start { nth, fault, .. } => *nth > 0 && is_of_one_start(*fault),
    };
    let are_few = |fault: &Fault| {
        fault.host().is_none_or(|host| {
            let of_host = hits.iter().filter(|other| other.host() == Some(host));
            let (starts, others): (Vec<&Fault>, Vec<&Fault>) =
                of_host.partition(|other| matches!(other, Fault::Start { .. }));
            others.len() <= 1 && starts.len() < RESTARTS_MAX as usize
        })
    };
    let is_restored_in_time = setting.guard_ns < 30 * SECOND;
    !setting.is_quick && is_restored_in_time && hits.iter().all(|fault| is_bearable(fault) && are_few(fault))
}

/// Whether the next start of an agent on the host is not affected.
fn is_of_one_start(fault: StartFault) -> bool {
    matches!(
        fault,
        StartFault::NoLauncher | StartFault::NotRun | StartFault::EndsAtOnce | StartFault::DiesIn(_)
    )
}

#[cfg(test)]
mod tests {
    use netduel_model::ids::HostName;
    use netduel_model::plan::spec::Side;
    use netduel_model::plan::{Treatment, TreatmentAction};

    use super::*;

    /// A setting in which an agent that is killed costs a trial, and nothing else ends the run early. An agent that hangs ends with its launcher.
    fn is_plain(setting: &Setting) -> bool {
        let ends_early = setting.enough_trials.is_some() || setting.plan.design.budget.is_some();
        let is_whole = !setting.is_quick && !ends_early && setting.plan.lab.is_none();
        is_whole && setting.guard_ns < SECOND && setting.reach == Reach::Near
    }

    /// A run in a plain setting, with faults of the client of its first arm.
    fn play_plain(faults: impl FnOnce(&HostName) -> Vec<Fault>) -> Verdict {
        let plain = (0..1_000).map(|seed| (seed, Setting::of(seed))).find(|(_, setting)| is_plain(setting));
        let (seed, setting) = plain.expect("one of a thousand settings is plain");
        let faults = faults(&setting.plan.arms[0].pair.client);
        Case { seed, parts: vec![faults], sabotage: None }.play(false)
    }

    fn in_task(host: &HostName, task: Task, nth: u32, fault: TaskFault) -> Fault {
        Fault::Task { host: host.clone(), task, nth, fault }
    }

    /// An agent is killed at the start of its first trial.
    fn killed(host: &HostName) -> Fault {
        in_task(host, Task::Start, 0, TaskFault::CrashBefore)
    }

    /// A run in which an agent is killed at the start of its first trial, and so many that take its place are killed in a task.
    fn play_with(restarts: u32, task: Task) -> Verdict {
        play_plain(|host| {
            let again = (1..=restarts).map(|nth| {
                let fault = StartFault::DiesIn(task);
                Fault::Start { host: host.clone(), nth, fault }
            });
            std::iter::once(killed(host)).chain(again).collect()
        })
    }

    /// A run over hosts behind a network, of which the client of the first arm reboots when its first traffic starts.
    fn play_reboot(edit: impl FnOnce(&mut Setting)) -> Verdict {
        let is_far = |setting: &Setting| {
            let ends_early = setting.enough_trials.is_some() || setting.plan.design.budget.is_some();
            setting.reach == Reach::Far && !setting.is_quick && !ends_early
        };
        let far = (0..1_000).map(|seed| (seed, Setting::of(seed))).find(|(_, setting)| is_far(setting));
        let (seed, mut setting) = far.expect("one of a thousand settings is far");
        edit(&mut setting);
        let reboot = in_task(&setting.plan.arms[0].pair.client, Task::Start, 0, TaskFault::Reboot);
        Case { seed, parts: vec![vec![reboot]], sabotage: None }.play_in(setting, false)
    }

    #[test]
    fn run_goes_on_after_a_reboot_that_returns_all_settings() {
        let verdict = play_reboot(|_| ());
        assert_eq!((verdict.violations, verdict.hits), (Vec::new(), 1));
        assert_eq!(verdict.ends, ["BlockLimitReached"]);
    }

    #[test]
    fn no_later_trial_runs_on_a_host_that_rebooted_while_a_command_was_in_force() {
        let words = |word: &str| vec![word.to_owned()];
        let action = TreatmentAction::Command { command: words("on"), undo: words("off") };
        let treatments = vec![Treatment { action, on: Side::Both }];
        let verdict = play_reboot(|setting| {
            setting.plan.arms.iter_mut().for_each(|arm| arm.treatments.clone_from(&treatments));
        });
        assert_eq!((verdict.violations, verdict.hits), (Vec::new(), 1));
        let [first, second] = &verdict.ends[..] else { panic!("{:?}", verdict.ends) };
        assert!(first.contains("is not restored") && first.contains("rebooted"), "{first}");
        assert!(first.ends_with("; by hand: `off`"), "{first}");
        assert_eq!(second, "BlockLimitReached", "the user has undone it by hand");
    }

    #[test]
    fn run_survives_agents_that_are_killed_in_all_restarts_but_the_last() {
        for restarts in 0..RESTARTS_MAX {
            let verdict = play_with(restarts, Task::Describe);
            assert_eq!((verdict.violations, verdict.hits), (Vec::new(), 1 + restarts as usize));
            assert_eq!(verdict.ends, ["BlockLimitReached"], "{restarts} restarts in vain");
        }
    }

    #[test]
    fn run_whose_restarts_all_fail_ends_and_is_resumed() {
        let verdict = play_with(RESTARTS_MAX, Task::Describe);
        assert_eq!((verdict.violations, verdict.hits), (Vec::new(), 1 + RESTARTS_MAX as usize));
        let [first, second] = &verdict.ends[..] else { panic!("{:?}", verdict.ends) };
        assert!(first.starts_with("error: host ") && first.contains(" lost its agent 4 times "), "{first}");
        assert_eq!(second, "BlockLimitReached");
    }

    #[test]
    fn lock_is_taken_again_by_the_restart_that_succeeds() {
        let verdict = play_with(RESTARTS_MAX - 1, Task::Lock);
        assert_eq!((verdict.violations, verdict.ends), (Vec::new(), vec!["BlockLimitReached".to_owned()]));
    }

    #[test]
    fn first_lock_is_awaited_beyond_the_deadline_of_other_requests() {
        let slow = TaskFault::Slow(100 * SECOND);
        let verdict = play_plain(|host| vec![in_task(host, Task::Lock, 0, slow)]);
        assert_eq!((verdict.violations, verdict.hits), (Vec::new(), 1));
        assert_eq!(verdict.ends, ["BlockLimitReached"]);
    }

    #[test]
    fn lock_of_a_restart_is_awaited_until_its_deadline_or_the_end_of_the_agent() {
        // Dead after the lock, answered in time, and given up.
        for fault in [TaskFault::CrashAfter, TaskFault::Slow(100 * SECOND), TaskFault::Slow(200 * SECOND)] {
            // The first lock is that of the agent that is killed later.
            let verdict = play_plain(|host| vec![killed(host), in_task(host, Task::Lock, 1, fault)]);
            assert_eq!((verdict.violations, verdict.hits), (Vec::new(), 2), "{fault:?}");
            assert_eq!(verdict.ends, ["BlockLimitReached"], "{fault:?}");
        }
    }
}
