//! The agent's work: traffic from `load` and `interop`, readings from `host`, treatments with their guard. `control` has the
//! protocol. Must not know the lab, the store or any report: an agent runs on hosts that have none of them.
#![forbid(unsafe_code)]

mod carrier;
mod dpdk;
mod dpdk_host;
mod engine;
mod error_chain;
mod failure;
mod host_changes;
mod installed;
mod kernel_bypass;
mod lock;
mod management_interfaces;
pub mod path_events;
mod placement;
mod program;
pub mod treatment;
pub mod trial_end;
mod work;

pub use engine::server_by;
pub use error_chain::chain;
pub use host_changes::HostChanges;
pub use installed::{Installed, foreign_program};
pub use placement::DataAddress;
pub use work::{AgentWork, Monotonic, snapshot};
