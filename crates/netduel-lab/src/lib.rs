//! Network namespaces as hosts and the paths between them.
//!
//! A lab is held by a *keeper*, a process that is pid 1 of its own pid namespace: when it ends, however it ends, the
//! kernel ends every process of the lab and removes every namespace. The keeper's abstract Unix socket is the registry of
//! labs that are up. `docs/design/0004-lab.md` says why, with figures.
//!
//! This crate never runs `ip`, `nft` or `tc`: it speaks netlink itself.
#![forbid(unsafe_code)]

mod directory;
mod error;
mod exec;
mod handle;
mod keeper;
mod netlink;
mod protocol;
mod topology;

pub use directory::list;
pub use error::{Errno, LabError};
pub use exec::exec;
pub use handle::{KeeperCommand, Lab};
pub use keeper::keeper_main;
pub use netlink::link::Counters;
pub use protocol::{InterfaceStatus, Lifetime, Performed, PolicyStatus, Status};
