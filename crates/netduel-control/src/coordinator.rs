//! The coordinator: one linear loop that takes a plan through its blocks over agents. It knows no clock, no disk, no terminal, and no
//! process: those are behind [`Surroundings`] and [`Agents`].
mod arrival;
mod conductor;
mod conversation;
mod describe;
mod error;
mod failover;
mod host;
mod search;
mod surroundings;
mod timing;
mod trial;

use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;

use crate::launcher::{Agents, Processes};

pub use describe::Described;
pub use error::{RunError, RunErrorKind};
pub use surroundings::{KnownRun, StoreProblem, Surroundings};

/// Starts an agent process for each host of a plan, has the hosts describe themselves side by side, and ends the agents. `metadata`:
/// whether each may ask its cloud's metadata service. `None` when the user interrupts it.
pub fn describe(
    plan: &ResolvedPlan,
    surroundings: &mut dyn Surroundings,
    metadata: bool,
) -> Option<Described> {
    conductor::Conductor::new(plan, surroundings, &mut Processes::new()).describe(metadata)
}

/// Runs a plan to its end over agent processes, which it starts and ends.
pub fn run(plan: &ResolvedPlan, surroundings: &mut dyn Surroundings) -> Result<RunEnd, RunError> {
    run_over(plan, surroundings, &mut Processes::new())
}

/// Runs a plan to its end over the given agents.
pub fn run_over(
    plan: &ResolvedPlan,
    surroundings: &mut dyn Surroundings,
    agents: &mut dyn Agents,
) -> Result<RunEnd, RunError> {
    conductor::Conductor::new(plan, surroundings, agents).run_and_close()
}
