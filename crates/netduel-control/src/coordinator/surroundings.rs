//! What the coordinator needs from the program around it: launchers, the lab, the store, the clock. It holds no logic of a run.
use std::collections::BTreeMap;

use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{HostName, RunId, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Host, Pair};
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;

use crate::protocol::Limits;

/// What the coordinator needs of its surroundings.
pub trait Surroundings {
    /// The argv that starts the agent of a host.
    fn launcher(&mut self, name: &HostName, host: &Host) -> Result<Vec<String>, String>;
    /// Sets the path of the lab's guests.
    fn set_path(&mut self, path: LabPath) -> Result<(), String>;
    /// Starts the events of a failover between guests of the lab, each at its time from now, while traffic runs.
    fn begin_events(&mut self, _pair: &Pair, _events: &[PathEvent]) -> Result<(), String> {
        Err("the plan has events of a lab, and there is no lab".to_owned())
    }
    /// Ends what [`Self::begin_events`] started and restores the path. Gives the events; absent when none were started.
    fn end_events(&mut self) -> Result<Option<LabEvents>, String> {
        Ok(None)
    }
    /// The hosts have described themselves: make or reopen the run.
    fn hosts_known(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem>;
    /// Reserves room for the next trial, before it runs.
    fn reserve(&mut self) -> Result<(), StoreProblem>;
    /// Stores a trial durably.
    fn store(&mut self, trial: &Trial) -> Result<(), StoreProblem>;
    /// Reports an event.
    fn event(&mut self, event: Event);
    /// Called after each complete block from `blocks_min` on: whether the run may end, and why.
    fn stop_after_block(&mut self, trials: &[Trial]) -> Option<RunEnd>;
    /// Waits before the next step of a search; returns early at an interrupt.
    fn settle(&mut self, _time: Nanos) {}
    /// Interval between the progress messages of an agent.
    fn progress_interval(&self) -> Nanos {
        Limits::PROGRESS
    }
    /// Whether hosts are locked against other runs.
    fn locks_hosts(&self) -> bool {
        true
    }

    /// Whether a lost agent is restarted, once per host, for the remaining trials.
    fn restarts_agents(&self) -> bool {
        true
    }
    /// Whether the user has interrupted the run.
    fn interrupted(&self) -> bool;
    /// Monotonic clock, nanoseconds.
    fn now_ns(&self) -> u64;
    /// Wall clock, milliseconds since the Unix epoch.
    fn unix_ms(&self) -> u64;
    /// A new secret of a trial.
    fn token(&mut self) -> Result<Token, String>;
}

/// A run that was made or reopened.
#[derive(Debug)]
pub struct KnownRun {
    /// Its name.
    pub id: RunId,
    /// The seed of its schedule.
    pub seed: u64,
    /// Whether it goes on after an end. Warnings about its hosts are stored already.
    pub is_resumed: bool,
    /// The trials that are stored.
    pub trials: Vec<Trial>,
}

/// The store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreProblem {
    /// The operation, the cause and the remedy.
    pub message: String,
}
