//! What asking hosts needs of its surroundings: how agents are started, the clock, Ctrl-C. There is no run and no store.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_control::coordinator::{KnownRun, StoreProblem, Surroundings};
use netduel_model::event::Event;
use netduel_model::ids::{HostName, Token};
use netduel_model::plan::Host;
use netduel_model::plan::spec::LabPath;
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;

/// How the agent of each host is started, and whether somebody wants it to stop.
pub struct Asking {
    /// The argv by host.
    pub argv: BTreeMap<HostName, Result<Vec<String>, String>>,
    /// Set by Ctrl-C.
    pub interrupted: Arc<AtomicBool>,
}

/// Words for what a question to hosts never comes to.
const NO_RUN: &str = "hosts are only asked what they are; there is no run";

impl Surroundings for Asking {
    fn launcher(&mut self, name: &HostName, _host: &Host) -> Result<Vec<String>, String> {
        self.argv.get(name).cloned().unwrap_or_else(|| Err(format!("nobody named host {name}")))
    }

    fn set_path(&mut self, _path: LabPath) -> Result<(), String> {
        Err(NO_RUN.to_owned())
    }

    fn hosts_known(&mut self, _hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem> {
        Err(StoreProblem { message: NO_RUN.to_owned() })
    }

    fn reserve(&mut self) -> Result<(), StoreProblem> {
        Err(StoreProblem { message: NO_RUN.to_owned() })
    }

    fn store(&mut self, _trial: &Trial) -> Result<(), StoreProblem> {
        Err(StoreProblem { message: NO_RUN.to_owned() })
    }

    fn event(&mut self, event: Event) {
        if let Event::Warned { warning } = event {
            eprintln!("netduel: {warning}");
        }
    }

    fn stop_after_block(&mut self, _trials: &[Trial]) -> Option<RunEnd> {
        None
    }

    fn locks_hosts(&self) -> bool {
        false
    }

    fn restarts_agents(&self) -> bool {
        false
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        netduel_sys::clock::monotonic_ns()
    }

    fn unix_ms(&self) -> u64 {
        netduel_sys::clock::realtime_ns() / 1_000_000
    }

    fn token(&mut self) -> Result<Token, String> {
        Err(NO_RUN.to_owned())
    }
}
