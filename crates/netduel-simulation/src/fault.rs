//! Faults of a simulated run, generated from a seed. Faults are independent, so a failing seed can be shrunk to a few of them.
use std::fmt;

use netduel_control::coordinator::RESTARTS_MAX;
use netduel_model::ids::HostName;

use crate::random::Random;
use crate::setting::{Reach, Setting};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// A task of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// The facts of its host.
    Describe,
    /// The lock.
    Lock,
    /// Treatments.
    Apply,
    /// Undoing them.
    Undo,
    /// The probe of ports.
    Probe,
    /// Sockets.
    Prepare,
    /// Traffic.
    Start,
    /// Live figures.
    Live,
    /// The result.
    Result,
    /// Stopping.
    Abort,
}

/// A fault in a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskFault {
    /// It is refused. A refused undo leaves the treatments in place and reports this.
    Refuse,
    /// The agent dies before the task.
    CrashBefore,
    /// The agent dies after the task, before its answer.
    CrashAfter,
    /// It takes this long, nanoseconds.
    Slow(u64),
    /// The bytes use another interface.
    WrongPath,
    /// The host reboots before the task.
    Reboot,
}

/// A fault in a line that an agent sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFault {
    /// It is repeated after this time, nanoseconds.
    Repeat(u64),
    /// It is delayed by this time, nanoseconds, and arrives after later lines.
    Late(u64),
    /// It is lost.
    Lost,
    /// Text that is not a message precedes it.
    Garbage,
    /// Half of it arrives, then the output ends.
    Torn,
    /// A line without a line end arrives instead.
    Endless,
}

/// A fault of the agent of a host at a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFault {
    /// The agent is killed.
    Crash,
    /// The agent's process is stopped for this long, nanoseconds.
    Freeze(u64),
    /// The connection is closed at both ends.
    Cut,
    /// No bytes are delivered for this long, nanoseconds; they arrive afterwards.
    Partition(u64),
}

/// A fault in the start of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFault {
    /// There is no launcher.
    NoLauncher,
    /// The launcher cannot be run.
    NotRun,
    /// The agent has another version.
    OtherVersion,
    /// It never sends anything.
    Mute,
    /// A login banner of this number of lines precedes it.
    Banner(usize),
    /// It ends at once.
    EndsAtOnce,
    /// It is killed in this task.
    DiesIn(Task),
    /// Another run has locked the host.
    Busy,
}

/// A call that fails on the coordinator's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LocalCall {
    /// Creating or reopening the run.
    HostsKnown,
    /// Reserving disk space for a trial.
    Reserve,
    /// Storing a trial.
    Store,
    /// Generating a secret.
    Token,
    /// Setting the lab's path.
    SetPath,
    /// Beginning the lab's events.
    BeginEvents,
    /// Ending them.
    EndEvents,
}

/// A fault of the coordinator itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoordinatorFault {
    /// The user interrupts it.
    Interrupt,
    /// It is killed.
    Kill,
    /// It is paused for this long, nanoseconds.
    Pause(u64),
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// In the `nth` task of a kind at a host, from 0.
    Task { host: HostName, task: Task, nth: u32, fault: TaskFault },
    /// In the `nth` line from a host, from 0.
    Line { host: HostName, nth: u32, fault: LineFault },
    /// At this time after the start of this part of the run, nanoseconds.
    Host { host: HostName, at_ns: u64, fault: HostFault },
    /// In the `nth` start of the agent of a host, from 0.
    Start { host: HostName, nth: u32, fault: StartFault },
    /// In the `nth` such call, from 0.
    Local { call: LocalCall, nth: u32 },
    /// At the `step`th call of the coordinator to its surroundings.
    Coordinator { step: u64, fault: CoordinatorFault },
}

impl Fault {
    /// The affected host.
    pub fn host(&self) -> Option<&HostName> {
        match self {
            Self::Task { host, .. }
            | Self::Line { host, .. }
            | Self::Host { host, .. }
            | Self::Start { host, .. } => Some(host),
            Self::Local { .. } | Self::Coordinator { .. } => None,
        }
    }

    /// Generates one that fits a setting.
    fn draw(random: &mut Random, setting: &Setting) -> Self {
        let hosts: Vec<&HostName> = setting.plan.hosts.keys().collect();
        let host = random.pick(&hosts).clone();
        let trials = u64::from(setting.plan.design.blocks_max * setting.plan.trials_per_block());
        match random.below(12) {
            0..=3 => {
                let task = random.pick(&[
                    Task::Describe,
                    Task::Lock,
                    Task::Apply,
                    Task::Undo,
                    Task::Probe,
                    Task::Prepare,
                    Task::Start,
                    Task::Live,
                    Task::Result,
                    Task::Abort,
                ]);
                let most = if matches!(task, Task::Describe | Task::Lock) { 1 } else { trials };
                Self::Task { host, task, nth: random.below(most) as u32, fault: task_fault(random, task) }
            }
            4 | 5 => Self::Line { host, nth: random.below(2 + trials * 9) as u32, fault: line_fault(random) },
            6 | 7 => {
                let at_ns = random.below(2 + trials * 2) * SECOND + random.below(SECOND);
                let time =
                    random.pick(&[100 * MS, 3 * SECOND, 9 * SECOND, 12 * SECOND, 45 * SECOND, 7200 * SECOND]);
                let fault = match random.below(5) {
                    0 | 1 => HostFault::Crash,
                    2 => HostFault::Freeze(time),
                    3 => HostFault::Cut,
                    _ => HostFault::Partition(time),
                };
                Self::Host { host, at_ns, fault }
            }
            8 => {
                let fault = random.pick(&[
                    StartFault::NoLauncher,
                    StartFault::NotRun,
                    StartFault::OtherVersion,
                    StartFault::Mute,
                    StartFault::Banner(3),
                    StartFault::Banner(60),
                    StartFault::EndsAtOnce,
                    StartFault::Busy,
                ]);
                Self::Start { host, nth: random.below(2) as u32, fault }
            }
            9 => {
                let call = random.pick(&[
                    LocalCall::HostsKnown,
                    LocalCall::Reserve,
                    LocalCall::Store,
                    LocalCall::Token,
                    LocalCall::SetPath,
                    LocalCall::BeginEvents,
                    LocalCall::EndEvents,
                ]);
                let most = if call == LocalCall::HostsKnown { 1 } else { trials };
                Self::Local { call, nth: random.below(most) as u32 }
            }
            _ => {
                let fault = match random.below(5) {
                    0 | 1 => CoordinatorFault::Interrupt,
                    2 | 3 => CoordinatorFault::Kill,
                    _ => CoordinatorFault::Pause(random.pick(&[SECOND, 20 * SECOND, 120 * SECOND])),
                };
                Self::Coordinator { step: random.below(40 + trials * 90), fault }
            }
        }
    }
}

fn task_fault(random: &mut Random, task: Task) -> TaskFault {
    let time = random.pick(&[200 * MS, 5 * SECOND, 14 * SECOND, 25 * SECOND, 35 * SECOND, 100 * SECOND]);
    match random.below(6) {
        0 | 1 if !matches!(task, Task::Live | Task::Abort) => TaskFault::Refuse,
        0 | 1 => TaskFault::CrashBefore,
        2 => TaskFault::CrashAfter,
        3 | 4 => TaskFault::Slow(time),
        _ if task == Task::Result => TaskFault::WrongPath,
        _ => TaskFault::CrashBefore,
    }
}

fn line_fault(random: &mut Random) -> LineFault {
    let time = random.pick(&[0, MS, 300 * MS, 2 * SECOND, 6 * SECOND, 20 * SECOND]);
    // 64 MiB take long, so this fault is rare.
    if random.once_in(60) {
        return LineFault::Endless;
    }
    match random.below(7) {
        0 | 1 => LineFault::Repeat(time),
        2 | 3 => LineFault::Late(time),
        4 => LineFault::Lost,
        5 => LineFault::Garbage,
        _ => LineFault::Torn,
    }
}

/// The faults of each part of a run. When a part ends before the plan is done, the next resumes the run.
pub fn draw(random: &mut Random, setting: &Setting) -> Vec<Vec<Fault>> {
    let count = match random.below(10) {
        0 => 0,
        1..=4 => 1,
        5 | 6 => 2,
        7 | 8 => 3,
        _ => 7,
    };
    let mut parts = vec![(0..count).map(|_| Fault::draw(random, setting)).collect::<Vec<_>>()];
    while parts.len() < 3 && random.once_in(2) {
        let count = random.below(3);
        parts.push((0..count).map(|_| Fault::draw(random, setting)).collect());
    }
    parts
}

/// Agents that are killed or not started in place of lost ones, up to so many in a row that the run ends. They have random numbers of their
/// own: a restart is rare, so one of the other faults would hardly ever meet one.
pub fn draw_restarts(random: &mut Random, setting: &Setting, parts: &mut [Vec<Fault>]) {
    let hosts: Vec<&HostName> = setting.plan.hosts.keys().collect();
    for part in parts {
        if !random.once_in(3) {
            continue;
        }
        let host = random.pick(&hosts);
        for nth in 1..=random.between(1, u64::from(RESTARTS_MAX)) as u32 {
            let fault = random.pick(&[
                StartFault::NoLauncher,
                StartFault::NotRun,
                StartFault::EndsAtOnce,
                StartFault::DiesIn(Task::Describe),
                StartFault::DiesIn(Task::Lock),
            ]);
            part.push(Fault::Start { host: host.clone(), nth, fault });
        }
    }
}

/// Hosts that reboot while a trial is prepared, runs or is undone. They have random numbers of their own, so that the other faults of a seed stay. A
/// reboot of the coordinator's machine would end the coordinator as well.
pub fn draw_reboots(random: &mut Random, setting: &Setting, parts: &mut [Vec<Fault>]) {
    if setting.reach == Reach::Near {
        return;
    }
    let hosts: Vec<&HostName> = setting.plan.hosts.keys().collect();
    let trials = u64::from(setting.plan.design.blocks_max * setting.plan.trials_per_block());
    for part in parts {
        if !random.once_in(8) {
            continue;
        }
        let host = random.pick(&hosts).clone();
        let task =
            random.pick(&[Task::Apply, Task::Undo, Task::Prepare, Task::Start, Task::Live, Task::Result]);
        part.push(Fault::Task { host, task, nth: random.below(trials) as u32, fault: TaskFault::Reboot });
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task { host, task, nth, fault } => {
                write!(f, "host {host}, task {task:?} number {nth}: {fault:?}")
            }
            Self::Line { host, nth, fault } => write!(f, "host {host}, line {nth}: {fault:?}"),
            Self::Host { host, at_ns, fault } => write!(f, "host {host}, at {} ms: {fault:?}", at_ns / MS),
            Self::Start { host, nth, fault } => write!(f, "host {host}, start {nth} of its agent: {fault:?}"),
            Self::Local { call, nth } => write!(f, "coordinator's machine, call {call:?} number {nth} fails"),
            Self::Coordinator { step, fault } => write!(f, "coordinator, step {step}: {fault:?}"),
        }
    }
}
