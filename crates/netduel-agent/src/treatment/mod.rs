//! Treatments: changes of the host for an arm, always undone.
//!
//! The order of every change: read the original, hand the way back to the guard, wait for its word, change, read back.
//! So no single process can be killed in a way that leaves a change behind: the guard undoes for a dead agent, and an
//! agent whose guard died undoes by itself. A change that takes more than setting a value, a command, may find its undo
//! run twice, or run though the command was not: see `docs/design/0005-observation-and-treatments.md`.
mod bond;
mod change;
mod coalesce;
mod command;
mod device;
mod device_settings;
mod error;
mod guard;
mod held_journal;
mod huge_pages;
mod in_force;
mod interface_name;
mod irq;
mod journal;
mod lifeline;
mod mtu;
mod offload;
mod own_folder;
mod pci;
mod processes;
mod protocol;
mod queues;
mod rebound_device;
mod record;
mod recorded_interface;
mod recovery;
mod resource;
mod ring;
mod roots;
mod rss;
mod stderr_pipe;
mod steering;
mod sysctl;
mod sysfs;
mod treatments;
mod vf;

pub use error::TreatmentError;
pub use guard::guard_main;
pub use journal::Keeper;
pub use lifeline::GuardCommand;
pub(crate) use own_folder::{folders, own_folder};
pub use processes::THIS_PROGRAM;
pub(crate) use recovery::{Recovered, in_use, left_behind, recover_others};
pub use recovery::{journaled, recover, recover_coordinators};
pub use resource::HostResource;
pub use roots::Roots;
pub use treatments::Treatments;
