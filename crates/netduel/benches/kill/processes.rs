//! The processes of a run, and those that a kill hits. Sends no signal but SIGKILL.
use std::fmt;

use anyhow::{Context as _, Result};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::random::Choices;

/// What a process of netduel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Coordinator,
    Agent,
    Guard,
    Keeper,
    Launcher,
}

/// A process of the pid namespace.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    parent: i32,
    pub command: String,
    role: Option<Role>,
}

/// The processes that a kill hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Coordinator,
    Agent,
    Guard,
    Keeper,
    Launcher,
    AllAgents,
    AllGuards,
    AllKeepers,
    AgentAndItsGuard,
    CoordinatorAndGuards,
    CoordinatorAndKeepers,
    Everything,
}

/// All targets.
pub const TARGETS: [Target; 12] = [
    Target::Coordinator,
    Target::Agent,
    Target::Guard,
    Target::Keeper,
    Target::Launcher,
    Target::AllAgents,
    Target::AllGuards,
    Target::AllKeepers,
    Target::AgentAndItsGuard,
    Target::CoordinatorAndGuards,
    Target::CoordinatorAndKeepers,
    Target::Everything,
];

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Coordinator => "coordinator",
            Self::Agent => "an agent",
            Self::Guard => "a guard",
            Self::Keeper => "a stage of the lab keeper",
            Self::Launcher => "a launcher into the lab",
            Self::AllAgents => "all agents",
            Self::AllGuards => "all guards",
            Self::AllKeepers => "both stages of the lab keeper",
            Self::AgentAndItsGuard => "an agent and its guard",
            Self::CoordinatorAndGuards => "coordinator and all guards",
            Self::CoordinatorAndKeepers => "coordinator and lab keeper",
            Self::Everything => "all processes",
        })
    }
}

/// All processes here, except the first one and this one.
pub fn all() -> Vec<Process> {
    let own = getpid().as_raw_nonzero().get();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != 1 && *pid != own)
        .filter_map(Process::read)
        .collect()
}

impl Process {
    /// `None` when it has ended.
    fn read(pid: i32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<String> = line
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        // Everything here was started by the bench or by netduel, which starts itself under several names.
        let role = match words.get(1).map(String::as_str) {
            Some("run") => Some(Role::Coordinator),
            Some("agent") => Some(Role::Agent),
            Some("undo-guard") => Some(Role::Guard),
            Some("lab-keeper") => Some(Role::Keeper),
            Some("lab") => Some(Role::Launcher),
            _ => None,
        };
        Some(Self { pid, parent, command: words.join(" "), role })
    }
}

/// Whether some process guards a changed host.
pub fn is_treated(processes: &[Process]) -> bool {
    processes.iter().any(|process| process.role == Some(Role::Guard))
}

/// The first of the targets of which processes are here, and these processes.
pub fn choose(
    processes: &[Process],
    targets: &[Target],
    random: &mut Choices,
) -> Option<(Target, Vec<Process>)> {
    targets.iter().find_map(|target| {
        let mut victims = victims(*target, processes, random)?;
        random.shuffle(&mut victims);
        Some((*target, victims))
    })
}

fn victims(target: Target, processes: &[Process], random: &mut Choices) -> Option<Vec<Process>> {
    let of = |role| -> Option<Vec<Process>> {
        let found: Vec<Process> =
            processes.iter().filter(|process| process.role == Some(role)).cloned().collect();
        (!found.is_empty()).then_some(found)
    };
    let both = |one, other| Some([of(one)?, of(other)?].concat());
    match target {
        Target::Coordinator => of(Role::Coordinator),
        Target::Agent => Some(vec![random.one_of(&of(Role::Agent)?).clone()]),
        Target::Guard => Some(vec![random.one_of(&of(Role::Guard)?).clone()]),
        Target::Keeper => Some(vec![random.one_of(&of(Role::Keeper)?).clone()]),
        Target::Launcher => Some(vec![random.one_of(&of(Role::Launcher)?).clone()]),
        Target::AllAgents => of(Role::Agent),
        Target::AllGuards => of(Role::Guard),
        Target::AllKeepers => of(Role::Keeper),
        Target::AgentAndItsGuard => {
            let guards = of(Role::Guard)?;
            let guard = random.one_of(&guards);
            let agent = processes.iter().find(|process| process.pid == guard.parent)?;
            Some(vec![agent.clone(), guard.clone()])
        }
        Target::CoordinatorAndGuards => both(Role::Coordinator, Role::Guard),
        Target::CoordinatorAndKeepers => both(Role::Coordinator, Role::Keeper),
        Target::Everything => {
            of(Role::Coordinator)?;
            Some(processes.iter().filter(|process| process.role.is_some()).cloned().collect())
        }
    }
}

/// Whether an agent is among the victims together with its guard: then the next agent restores the host.
pub fn need_the_next_agent(victims: &[Process]) -> bool {
    let is_agent =
        |pid| victims.iter().any(|process| process.pid == pid && process.role == Some(Role::Agent));
    victims.iter().any(|process| process.role == Some(Role::Guard) && is_agent(process.parent))
}

/// Whether the victims include the process whose exit code the user would see.
pub fn include_the_coordinator(victims: &[Process]) -> bool {
    victims.iter().any(|process| process.role == Some(Role::Coordinator))
}

/// Kills processes of this pid namespace; some may have ended meanwhile.
pub fn kill(victims: &[Process]) -> Result<()> {
    for victim in victims {
        let Some(pid) = Pid::from_raw(victim.pid) else { continue };
        match kill_process(pid, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("failed to kill process {}", victim.command));
            }
        }
    }
    Ok(())
}
