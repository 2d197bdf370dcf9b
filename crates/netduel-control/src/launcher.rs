//! How a coordinator reaches its agents: the trait [`Agents`], and processes behind it.
mod agents;
mod input;
mod process;
mod processes;

pub use agents::{AgentId, Agents, Arrival, Ended, LaunchError};
pub use process::{AgentProcess, Guard};
pub use processes::Processes;
