//! The interface between the coordinator and its agents: starting them, and carrying bytes both ways. [`super::Processes`] implements it
//! with processes, the simulation with its own agents. It does not depend on messages.
use std::process::ExitStatus;
use std::time::Duration;

use netduel_model::ids::HostName;
use netduel_model::plan::Host;

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The launcher names no program.
    #[error("failed to start the agent of host {host}: its launcher is empty")]
    Empty {
        /// The host.
        host: String,
    },
    /// The program could not be run.
    #[error(
        "failed to start the agent of host {host} with `{command}`: {source}; is `{program}` installed and in the search path?"
    )]
    Spawn {
        /// The host.
        host: String,
        /// The whole command.
        command: String,
        /// Its first word.
        program: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// This machine has no process, thread or memory left.
    #[error(
        "failed to start the agent of host {host}: {source}; this machine has no process, thread or memory left: raise the limit \
         (`ulimit -u`, TasksMax= of the service, pids.max of a container, kernel.threads-max), or end other programs"
    )]
    Exhausted {
        /// The host.
        host: String,
        /// The kernel's error.
        source: std::io::Error,
    },
}

/// Output of an agent's process.
#[derive(Debug)]
pub enum Arrival {
    /// Bytes of its standard output.
    Bytes(Vec<u8>),
    /// Its standard output has ended.
    End,
}

/// Number of an agent within a run. An agent that is started again has a new one.
pub type AgentId = u64;

/// The end of an agent.
#[derive(Debug, Default)]
pub struct Ended {
    /// The exit status of its launcher, when it is known.
    pub status: Option<ExitStatus>,
    /// The last lines of its standard error.
    pub last_words: String,
    /// The last line that the connection to its host printed, where that has a process of its own and has ended.
    pub connection: Option<String>,
    /// Whether all processes that it started have ended, its guard among them. A running guard may still restore the host.
    pub is_over: bool,
}

/// The agents of a run.
pub trait Agents {
    /// Prepares hosts at the same time, before their agents are started again. The launcher then returns the reason for a host that failed.
    fn prepare(&mut self, _hosts: &[(&HostName, &Host)]) {}

    /// Starts the agent of `host` with `argv` under the number `id`.
    fn start(&mut self, id: AgentId, host: &str, argv: &[String]) -> Result<(), LaunchError>;

    /// Sends a line and returns at once. The end of an agent is reported by [`Arrival::End`], not here.
    fn send(&mut self, id: AgentId, line: &str);

    /// The next output of any agent. Waits for `timeout` at most; `None` when nothing arrived in that time.
    fn next_arrival(&mut self, timeout: Duration) -> Option<(AgentId, Arrival)>;

    /// Closes the input of an agent, waits `patience` for its end, and kills it when it has not ended by then.
    fn end(&mut self, id: AgentId, patience: Duration) -> Ended;

    /// Waits `patience` for the end of all processes that an ended agent started; `false` when one of them still runs.
    fn is_over(&mut self, id: AgentId, patience: Duration) -> bool;
}
