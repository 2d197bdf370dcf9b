//! Test bed: guests with the drivers of real NICs under QEMU without KVM, in a network namespace of their own
//! ([0032](../../../docs/design/0032-guests.md)). For tests and xtask only: no product crate depends on it, and it installs nothing.
#![forbid(unsafe_code)]

mod archive;
mod bed;
mod bed_folder;
mod console;
mod dpdk;
mod error;
mod guest;
mod initramfs;
mod kernel;
mod kernels;
mod machine_files;
mod packages;
mod prepared;
mod program;
mod qemu;
mod qmp;
mod scene;
mod set_up;
mod stopwatch;
mod watched;

pub use bed::{BED_VARIABLE, Bed};
pub use error::{Error, Result};
pub use guest::Guest;
pub use kernels::Kernel;
pub use prepared::{FOLDER_VARIABLE, OBSTACLE_VARIABLE, Prepared};
pub use qemu::guest_uuid;
pub use scene::{
    Device, Function, Nic, Role, SCENES, SCENES_AT_A_TIME, Scene, TESTS_AT_A_TIME, management_mac,
};
pub use stopwatch::Stopwatch;
