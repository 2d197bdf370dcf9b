//! `cargo xtask test dist`: the code compiles for the other machine. It makes no program.
use anyhow::{Result, bail};

use super::machine::Machine;
use super::toolchain::{self, Toolchain};
use super::{BUILD_FOLDER, build};
use crate::workspace;

/// Compiles the program for each other machine.
pub fn compiles() -> Result<bool> {
    let folder = workspace::root().join(BUILD_FOLDER);
    for machine in Machine::ALL.into_iter().filter(|machine| !machine.is_native()) {
        let mut found = Toolchain::find(machine);
        // Only CI changes the toolchain of the machine.
        if found.is_err() && workspace::in_ci() && toolchain::add_target(machine).unwrap_or(false) {
            found = Toolchain::find(machine);
        }
        let toolchain = match found {
            Ok(toolchain) => toolchain,
            Err(missing) => bail!("netduel cannot be compiled for {}: {missing}", machine.name()),
        };
        if !build::compiles(machine, toolchain, &folder)? {
            return Ok(false);
        }
    }
    Ok(true)
}
