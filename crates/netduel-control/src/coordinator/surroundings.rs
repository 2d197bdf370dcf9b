//! The interfaces of the coordinator to the rest of the program, one trait for each concern. No logic of a run.
use std::collections::BTreeMap;

use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{ArmName, HostName, RunId, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Host, Pair, TreatmentAction};
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;

use super::error::RunErrorKind;
use crate::protocol::Limits;

/// Returns the argv that starts the agent of a host, or why there is none.
pub type Launcher<'a> = dyn FnMut(&HostName, &Host) -> Result<Vec<String>, String> + 'a;
/// Shows an event to the user.
pub type Listener<'a> = dyn FnMut(Event) + 'a;
/// Generates a new secret of a trial.
pub type Tokens<'a> = dyn FnMut() -> Result<Token, String> + 'a;

/// The surroundings of a run.
pub struct Surroundings<'a> {
    /// Time.
    pub clock: &'a dyn Clock,
    /// How agents are started.
    pub launcher: &'a mut Launcher<'a>,
    /// The user.
    pub listener: &'a mut Listener<'a>,
    /// Secrets of trials.
    pub tokens: &'a mut Tokens<'a>,
    /// The run's file.
    pub store: &'a mut dyn Store,
    /// The plan's lab.
    pub lab: &'a mut dyn Lab,
    /// The provider of the hosts' machines.
    pub provider: &'a mut dyn Provider,
    /// The policy of this kind of run.
    pub policy: &'a mut dyn Policy,
}

/// Time, and the user's interrupt, which ends every wait.
pub trait Clock {
    /// Monotonic clock, nanoseconds.
    fn now_ns(&self) -> u64;
    /// Wall clock, milliseconds since the Unix epoch.
    fn unix_ms(&self) -> u64;
    /// Waits. Returns early at an interrupt.
    fn wait(&self, time: Nanos);
    /// Whether the user has interrupted the run.
    fn interrupted(&self) -> bool;
}

/// What differs between a run of a plan and a quick test. The defaults are those of a run.
pub trait Policy {
    /// Interval between the progress messages of an agent.
    fn progress_interval(&self) -> Nanos {
        Limits::PROGRESS
    }
    /// Whether hosts are locked against other runs.
    fn locks_hosts(&self) -> bool {
        true
    }
    /// Whether lost agents are restarted for the remaining trials.
    fn restarts_agents(&self) -> bool {
        true
    }
    /// Problems of the hosts that would waste trials, each a sentence for the user.
    fn problems(&mut self, _hosts: &BTreeMap<HostName, HostSnapshot>) -> Vec<String> {
        Vec::new()
    }
    /// Whether the next trial is to wait: asked before each trial, and again while it waits, for at most some minutes.
    fn is_paused(&mut self) -> bool {
        false
    }
    /// Called when a pause has lasted this long, the longest time, and the run goes on: the next trial must not wait for it again.
    fn pause_ended(&mut self, _after: Nanos) {}
    /// Called when a trial has failed, with the kind of its failure and the host that refused it, if one did.
    fn trial_failed(&mut self, _kind: RunErrorKind, _host: Option<&HostName>) {}
    /// Called before each block from `blocks_min` on and after the last: whether the run may end, and why. `dropped`: the arms that are
    /// no longer tried, each with the reason. More blocks make their intervals no narrower.
    fn stop_after_block(
        &mut self,
        _trials: &[Trial],
        _dropped: &BTreeMap<ArmName, String>,
    ) -> Option<RunEnd> {
        None
    }
}

/// The run's file.
pub trait Store {
    /// Creates or reopens the run, with the descriptions of its hosts.
    fn open(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem>;
    /// Reserves disk space for the next trial, before it runs.
    fn reserve(&mut self) -> Result<(), StoreProblem>;
    /// Stores a trial durably.
    fn trial(&mut self, trial: &Trial) -> Result<(), StoreProblem>;
    /// Stores a warning. A failure does not end the run: the warning was already shown.
    fn warning(&mut self, warning: &Warning);
    /// Stores why the run ended. A failure does not change the result.
    fn end(&mut self, end: &RunEnd);
}

/// The plan's lab.
pub trait Lab {
    /// Sets the path of the lab's guests.
    fn set_path(&mut self, path: LabPath) -> Result<(), String>;
    /// Starts the events of a failover between guests of the lab, each at its time from now, while traffic runs.
    fn begin_events(&mut self, pair: &Pair, events: &[PathEvent]) -> Result<(), String>;
    /// Ends the events of [`Self::begin_events`] and restores the path. Returns the events; absent when none were started.
    fn end_events(&mut self) -> Result<Option<LabEvents>, String>;
}

/// The provider of the hosts' machines, whose resources treatments change from this machine.
pub trait Provider {
    /// What has to change so that the resources are as an arm wants them; those that it does not name return to their original state. By host,
    /// in the order in which it is to be done.
    fn pending(&mut self, wanted: &[(HostName, TreatmentAction)]) -> Result<Vec<HostChange>, ProviderError>;
    /// Makes the changes of a host while its machine runs. Returns what its guest must show then.
    fn change(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError>;
    /// Stops the machine of a host, makes its changes, and starts it. Returns what its guest must show then.
    fn change_stopped(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError>;
    /// What each guest must show of its NICs as they are now; a NIC whose state or MAC address is not known is left out.
    fn present(&self) -> Vec<(HostName, GuestCheck)> {
        Vec::new()
    }
    /// Whether machines may be stopped.
    fn may_stop(&self) -> bool;
    /// How long a guest may take to show a change, and a machine to be reachable again after its start.
    fn patience(&self) -> (Nanos, Nanos);
    /// Returns every resource to its original state. What could not be, with its host.
    fn restore(&mut self) -> Vec<(HostName, String)>;
}

/// Changes of the resources of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostChange {
    /// The host.
    pub host: HostName,
    /// What is changed, in words.
    pub words: String,
    /// Whether its machine must be stopped for them.
    pub needs_stop: bool,
}

/// What a guest must show of a NIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestCheck {
    /// The NIC, as the provider names it.
    pub nic: String,
    /// Its MAC address, lower case with colons.
    pub mac: String,
    /// Whether it has a virtual function.
    pub has_vf: bool,
}

impl GuestCheck {
    /// What a guest does not show; `None` when its NIC is as it must be.
    pub(super) fn difference(&self, guest: &HostSnapshot) -> Option<String> {
        let Self { nic, mac, has_vf } = self;
        match (*has_vf, guest.has_function_beside(mac)) {
            (true, Some(true)) | (false, Some(false)) => None,
            (_, None) => Some(format!("the guest has no interface with the MAC address {mac} of {nic}")),
            (true, Some(false)) => Some(format!(
                "accelerated networking of {nic} is on, and the guest shows no virtual function of it"
            )),
            (false, Some(true)) => Some(format!(
                "accelerated networking of {nic} is off, and the guest still has its virtual function"
            )),
        }
    }
}

/// Why the provider did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// The change is refused; while the machine runs, a stop of it may help.
    #[error("{0}")]
    WhileRunning(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// For plans that change no resource of a provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProvider;

impl Provider for NoProvider {
    fn pending(&mut self, wanted: &[(HostName, TreatmentAction)]) -> Result<Vec<HostChange>, ProviderError> {
        match wanted.first() {
            None => Ok(Vec::new()),
            Some((_, action)) => {
                Err(ProviderError::Failed(format!("{} is not available in this kind of run", action.words())))
            }
        }
    }

    fn change(&mut self, _: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        Ok(Vec::new())
    }

    fn change_stopped(&mut self, _: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        Ok(Vec::new())
    }

    fn may_stop(&self) -> bool {
        false
    }

    fn patience(&self) -> (Nanos, Nanos) {
        (Nanos(0), Nanos(0))
    }

    fn restore(&mut self) -> Vec<(HostName, String)> {
        Vec::new()
    }
}

/// A created or reopened run.
#[derive(Debug)]
pub struct KnownRun {
    /// Its name.
    pub id: RunId,
    /// The seed of its schedule.
    pub seed: u64,
    /// Whether it is resumed. Warnings about its hosts are already stored.
    pub is_resumed: bool,
    /// The stored trials.
    pub trials: Vec<Trial>,
    /// The stored warnings.
    pub warnings: Vec<Warning>,
    /// The descriptions of its hosts at its start; empty for a new run.
    pub hosts: BTreeMap<HostName, HostSnapshot>,
}

/// The store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreProblem {
    /// The operation, the cause and the remedy.
    pub message: String,
}
