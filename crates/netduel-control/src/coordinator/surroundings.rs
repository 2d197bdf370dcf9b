//! What the coordinator needs from the program around it: launchers, the lab, the store, the clock. It holds no logic of a run.
use std::collections::BTreeMap;

use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{HostName, RunId, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Host, Pair};
use netduel_model::run::RunEnd;
use netduel_model::search::{Search, SearchAsk, SearchCount, SearchEnd, SearchResult, SearchStep};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;

use crate::protocol::Limits;

/// What the coordinator needs of its surroundings.
pub trait Surroundings {
    /// The argv that starts the agent of a host.
    fn launcher(&mut self, name: &HostName, host: &Host) -> Result<Vec<String>, String>;
    /// Puts the lab's guests on a path.
    fn set_path(&mut self, path: LabPath) -> Result<(), String>;
    /// Traffic of a failover between guests of the lab has begun: has the lab do these things to the path, each at its time from now,
    /// while it goes on.
    fn begin_events(&mut self, _pair: &Pair, _events: &[PathEvent]) -> Result<(), String> {
        Err("events of a lab were asked for where there is none".to_owned())
    }
    /// Has what [`Self::begin_events`] began end, and the path given back. What was done; absent when nothing was begun.
    fn end_events(&mut self) -> Result<Option<LabEvents>, String> {
        Ok(None)
    }
    /// The hosts have described themselves: make or reopen the run.
    fn hosts_known(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem>;
    /// Makes sure that the next trial can be kept, before it is run.
    fn reserve(&mut self) -> Result<(), StoreProblem>;
    /// Keeps a trial, durably.
    fn store(&mut self, trial: &Trial) -> Result<(), StoreProblem>;
    /// Tells what happens.
    fn event(&mut self, event: Event);
    /// Asked after each complete block from `blocks_min` on: is it enough?
    fn stop_after_block(&mut self, trials: &[Trial]) -> Option<RunEnd>;
    /// Who chooses the rates of a trial that is a search, and judges what they showed; it may take this long.
    fn search(&mut self, _search: &Search, _most: Nanos) -> Result<Box<dyn Seeker>, String> {
        Err("a search was asked for of a coordinator that cannot judge one".to_owned())
    }
    /// Lets this much time pass before the next step of a search, less when somebody wants the run to stop.
    fn settle(&mut self, _time: Nanos) {}
    /// How often the ends of a trial tell how it goes.
    fn progress_interval(&self) -> Nanos {
        Limits::PROGRESS
    }
    /// Whether the hosts are kept from other runs until this one ends.
    fn locks_hosts(&self) -> bool {
        true
    }

    /// Whether an agent that is lost is started again, once: for the trials that are to come.
    fn restarts_agents(&self) -> bool {
        true
    }
    /// Whether somebody wants the run to stop.
    fn interrupted(&self) -> bool;
    /// Monotonic clock, nanoseconds.
    fn now_ns(&self) -> u64;
    /// Wall clock, milliseconds since the Unix epoch.
    fn unix_ms(&self) -> u64;
    /// A new secret.
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

/// The store cannot keep what it is given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreProblem {
    /// What, why, and what to do.
    pub message: String,
}

/// Chooses the rates of a search and judges what their trials showed.
pub trait Seeker {
    /// The next trial; `None` when the search is over.
    fn wanted(&mut self) -> Option<SearchAsk>;
    /// Takes what the trial that was asked for counted.
    fn record(&mut self, ask: SearchAsk, count: SearchCount) -> SearchStep;
    /// What is known of each goal, and why the search is over, if it is.
    fn found(&mut self) -> (Vec<SearchResult>, Option<SearchEnd>);
}
