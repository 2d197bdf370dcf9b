//! What CI can afford of `dist`: the code compiles for the other machine, every library has its licence text, and each file for
//! installation can be made, installed and started. It makes no program: the one for guests stands in for that of a release.
use std::path::Path;

use anyhow::Result;
use netduel_test_support::requires_all;

use super::machine::Machine;
use super::toolchain::{self, Toolchain};
use super::{BUILD_FOLDER, Dist, build, licences};
use crate::workspace;

/// The files of this check, which nobody installs.
const FOLDER: &str = "target/dist-check";

/// A part of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quick {
    /// It passed, or it did not.
    Ended(bool),
    /// Something is missing; the reason was printed.
    NotRun,
}

/// Compiles the program for each other machine.
pub fn compiles() -> Result<Quick> {
    let folder = workspace::root().join(BUILD_FOLDER);
    for machine in Machine::ALL.into_iter().filter(|machine| !machine.is_native()) {
        let mut found = Toolchain::find(machine);
        // Only CI changes the toolchain of the machine.
        if found.is_err() && workspace::in_ci() && toolchain::add_target(machine).unwrap_or(false) {
            found = Toolchain::find(machine);
        }
        let toolchain = match found {
            Ok(toolchain) => toolchain,
            Err(missing) => {
                println!("skipped: netduel was not compiled for {}: {missing}", machine.name());
                return Ok(Quick::NotRun);
            }
        };
        if !build::compiles(machine, toolchain, &folder)? {
            return Ok(Quick::Ended(false));
        }
    }
    Ok(Quick::Ended(true))
}

/// Packs a static program of this machine, which is built already, and checks the files.
pub fn packs(program: Option<&Path>) -> Result<Quick> {
    let Some(machine) = Machine::ALL.into_iter().find(|machine| machine.is_native()) else {
        println!("skipped: there are no files for {}", std::env::consts::ARCH);
        return Ok(Quick::NotRun);
    };
    let third_party = licences::collect(machine, Toolchain::Own)?;
    let Some(program) = program else {
        println!(
            "skipped: no file for installation was made, because there is no static program; `cargo xtask dist` builds one"
        );
        return Ok(if requires_all() { Quick::Ended(false) } else { Quick::NotRun });
    };
    let mut dist = Dist::new(FOLDER)?;
    dist.make(machine, program, third_party)?;
    dist.close().map(Quick::Ended)
}
