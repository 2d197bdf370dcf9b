//! Network namespaces as hosts and the paths between them.
//!
//! A *keeper* process holds the lab. It is pid 1 of its own pid namespace: when it ends, for any reason, the kernel ends every
//! process of the lab and removes every namespace. The keeper's abstract Unix socket is the registry of running labs.
//! `docs/design/0004-lab.md` has the reasons and measurements.
//!
//! This crate never runs `ip`, `nft` or `tc`: it uses netlink itself.
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
pub use protocol::{InterfaceStatus, Lifetime, Performed, PolicyStatus, Status, rewritten};
