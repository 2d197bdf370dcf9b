//! What builds netduel for a machine: the project's own toolchain with the target of rustup, or Debian's packages, with Debian's standard
//! library for the machine or its source. It installs nothing.
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::machine::Machine;
use super::system::output_of;
use crate::{step, workspace};

/// Debian's toolchain with the source of the standard library.
const DEBIAN_PACKAGES: &str = "rustc-web cargo-web rust-web-src";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_LIBRARIES: &str = "/usr/lib/rustlib";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.toml";
const DEBIAN_NOTICE: &str = "/usr/share/doc/rustc-web/copyright";
/// The notices of the standard library below the folder of a toolchain.
const NOTICE: &str = "share/doc/rust/COPYRIGHT-library.html";

/// A toolchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolchain {
    /// That of the project, which has the standard library for the machine.
    Own,
    /// Debian's, which compiles the standard library too where it has only the source.
    Debian,
}

impl Toolchain {
    /// The first one that can build for the machine, or what is missing.
    pub fn find(machine: Machine) -> Result<Self, String> {
        if machine.is_native() {
            return Ok(Self::Own);
        }
        let compiler = machine.cross_compiler();
        if !step::is_installed(&compiler) {
            let (name, debian) = (machine.name().replace('_', "-"), machine.debian());
            return Err(format!(
                "there is no {compiler} (Debian: gcc-{name}-linux-gnu libc6-dev-{debian}-cross)"
            ));
        }
        let target = machine.target();
        if has_standard_library(&target) {
            return Ok(Self::Own);
        }
        let has_library = debian_has_standard_library(&target) || Path::new(DEBIAN_SOURCE).exists();
        if has_library && [DEBIAN_CARGO, DEBIAN_RUSTC].iter().all(|path| Path::new(path).exists()) {
            return Ok(Self::Debian);
        }
        Err(format!(
            "there is no Rust standard library for {target} (`rustup target add {target}`, or Debian: {DEBIAN_PACKAGES})"
        ))
    }

    /// A cargo command for the machine, such as `build` or `check`, in a target folder of its own.
    pub fn cargo(self, machine: Machine, words: &[&str], target_folder: &Path) -> Command {
        let target = machine.target();
        let mut command = match self {
            Self::Own => step::cargo(words),
            Self::Debian => {
                let mut command = Command::new(DEBIAN_CARGO);
                command.args(words).current_dir(workspace::root()).env("RUSTC", DEBIAN_RUSTC);
                // `cargo xtask` sets the search path of libraries to those of its own toolchain.
                command.env_remove("LD_LIBRARY_PATH");
                if !debian_has_standard_library(&target) {
                    command.arg("-Zbuild-std=std,panic_unwind").env("RUSTC_BOOTSTRAP", "1");
                }
                command
            }
        };
        command.args(["--locked", "--target", &target]).env("CARGO_TARGET_DIR", target_folder);
        if !machine.is_native() {
            let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
            command.env(variable, machine.cross_compiler());
        }
        command.env_remove("RUSTFLAGS").env_remove("CARGO_INCREMENTAL");
        command
    }

    /// The file with the licence notices of the standard library.
    pub fn notice(self) -> Result<PathBuf> {
        let notice = match self {
            Self::Own => {
                let output = output_of(own_rustc().args(["--print", "sysroot"]))?;
                Path::new(String::from_utf8_lossy(&output).trim()).join(NOTICE)
            }
            Self::Debian => PathBuf::from(DEBIAN_NOTICE),
        };
        ensure!(
            notice.is_file(),
            "the licence texts of the Rust standard library are missing: the toolchain has no {}",
            notice.display()
        );
        Ok(notice)
    }
}

/// Adds the target of rustup to the project's toolchain. An error is no reason to stop: there may be another way.
pub fn add_target(machine: Machine) -> Result<bool> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", &machine.target()]).current_dir(workspace::root());
    step::succeeds(&mut rustup).context("failed to add a target")
}

fn own_rustc() -> Command {
    let mut command = Command::new(workspace::cargo().with_file_name("rustc"));
    command.current_dir(workspace::root());
    command
}

/// Whether `libstd-rust-web-dev` of the machine's architecture is installed.
fn debian_has_standard_library(target: &str) -> bool {
    Path::new(DEBIAN_LIBRARIES).join(target).is_dir()
}

/// Whether the project's toolchain has the target of rustup.
fn has_standard_library(target: &str) -> bool {
    let output = output_of(own_rustc().args(["--print", "target-libdir", "--target", target]));
    output.is_ok_and(|folder| Path::new(String::from_utf8_lossy(&folder).trim()).is_dir())
}
