//! The coordinator: one linear loop that runs the blocks of a plan with agents. Clock, disk, terminal and processes are behind
//! [`Surroundings`] and [`Agents`].
mod blocked_port;
mod blocks;
mod commands_in_force;
mod conditions;
mod conductor;
mod conversation;
mod describe;
mod error;
mod failover;
mod host;
mod host_comparison;
mod pause;
mod probe;
mod provider;
mod restarts;
mod restoring;
mod search;
mod surroundings;
mod timing;
mod trial;
mod unread;
mod validity;

use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;

use crate::launcher::{Agents, Processes};
use crate::protocol::Limits;

pub use blocked_port::BlockedPort;
pub use conductor::traffic_ns;
pub use describe::Described;
pub use error::{PlanFault, RunError, RunErrorKind};
pub use restarts::RESTARTS_MAX;
pub use surroundings::{
    Clock, GuestCheck, HostChange, KnownRun, Lab, Launcher, Listener, NoProvider, Policy, Provider,
    ProviderError, Store, StoreProblem, Surroundings, Tokens,
};
pub use timing::PAUSE_MAX_NS;

/// Starts an agent process for each host of a plan, collects the descriptions of the hosts in parallel, and ends the agents. `metadata`:
/// whether the agents may query the cloud's metadata service. `None` when the user interrupts it.
pub fn describe<'a>(
    plan: &'a ResolvedPlan,
    clock: &'a dyn Clock,
    launcher: &'a mut Launcher<'a>,
    listener: &'a mut Listener<'a>,
    metadata: bool,
) -> Option<Described> {
    let limits = timing::agent_limits(plan, Limits::PROGRESS);
    let agents = Box::new(Processes::new());
    conversation::Hosts::new(plan, agents, (clock, launcher, listener), limits).describe(metadata)
}

/// Runs a plan to its end over the given agents, which it starts and ends.
pub fn run_over<'a>(
    plan: &'a ResolvedPlan,
    surroundings: Surroundings<'a>,
    agents: Box<dyn Agents + 'a>,
) -> Result<RunEnd, RunError> {
    conductor::Conductor::new(plan, surroundings, agents).run_and_close()
}
