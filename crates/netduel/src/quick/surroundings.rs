//! The surroundings of a quick test: those of a run, and an eye on the hosts and the one trial.
use std::collections::BTreeMap;

use netduel_control::coordinator::{KnownRun, StoreProblem, Surroundings};
use netduel_model::event::Event;
use netduel_model::ids::{HostName, Token};
use netduel_model::plan::Host;
use netduel_model::plan::spec::LabPath;
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_sys::local_bind::LocalBind;

use crate::run::System;

/// What a run's surroundings are, but for how often its ends speak, and that other tests may run beside it.
pub struct QuickSystem<'a> {
    /// Those of a run.
    pub system: System<'a>,
    /// How often the ends tell how it goes.
    pub progress: Nanos,
    /// The address or interface of this host that all connections come from.
    pub bind: Option<LocalBind>,
    /// What the hosts said they are.
    pub hosts: BTreeMap<HostName, HostSnapshot>,
    /// The trial, when it is finished.
    pub trial: Option<Trial>,
}

impl Surroundings for QuickSystem<'_> {
    fn launcher(&mut self, name: &HostName, host: &Host) -> Result<Vec<String>, String> {
        let mut argv = self.system.launcher(name, host)?;
        // The agent of this host binds the sockets of the data, the link to the server the control connection.
        if let Some(bind) = &self.bind {
            argv.extend(["--bind".to_owned(), bind.to_string()]);
        }
        Ok(argv)
    }

    fn set_path(&mut self, path: LabPath) -> Result<(), String> {
        self.system.set_path(path)
    }

    fn hosts_known(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem> {
        self.hosts = hosts.clone();
        self.system.hosts_known(hosts)
    }

    fn reserve(&mut self) -> Result<(), StoreProblem> {
        self.system.reserve()
    }

    fn store(&mut self, trial: &Trial) -> Result<(), StoreProblem> {
        self.trial = Some(trial.clone());
        self.system.store(trial)
    }

    fn event(&mut self, event: Event) {
        self.system.event(event);
    }

    fn stop_after_block(&mut self, _trials: &[Trial]) -> Option<RunEnd> {
        None
    }

    fn settle(&mut self, time: Nanos) {
        self.system.settle(time);
    }

    fn progress_interval(&self) -> Nanos {
        self.progress
    }

    fn locks_hosts(&self) -> bool {
        false
    }

    fn restarts_agents(&self) -> bool {
        false
    }

    fn interrupted(&self) -> bool {
        self.system.interrupted()
    }

    fn now_ns(&self) -> u64 {
        self.system.now_ns()
    }

    fn unix_ms(&self) -> u64 {
        self.system.unix_ms()
    }

    fn token(&mut self) -> Result<Token, String> {
        self.system.token()
    }
}
