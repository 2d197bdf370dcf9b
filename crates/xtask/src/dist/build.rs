//! Builds a static netduel for a processor, or says what is missing for that.
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::machine::Machine;
use crate::{step, workspace};

/// The profile in the manifest of the workspace.
const PROFILE: &str = "dist";
/// The limit of the program's size: 20 MB.
const BYTES_MAX: u64 = 20_000_000;
/// Debian's toolchain with the source of the standard library: the packages `rustc-web`, `cargo-web` and `rust-web-src`.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.toml";

/// What builds for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolchain {
    /// That of the project, which has the standard library for it.
    Own,
    /// Debian's, which compiles the standard library too.
    Debian,
}

impl Toolchain {
    /// The first one that can build for the processor, or what to install.
    pub fn find(machine: Machine) -> Result<Self, String> {
        if machine.is_native() {
            return Ok(Self::Own);
        }
        for (program, package) in [
            (machine.emulator(), "qemu-user".to_owned()),
            (
                machine.cross_compiler(),
                format!("gcc-{0}-linux-gnu libc6-dev-{1}-cross", machine.name(), machine.debian()),
            ),
        ] {
            if !step::is_installed(&program) {
                return Err(format!("there is no {program} (Debian: {package})"));
            }
        }
        let target = machine.target();
        if has_standard_library(&target) {
            return Ok(Self::Own);
        }
        if [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_SOURCE].iter().all(|path| Path::new(path).exists()) {
            return Ok(Self::Debian);
        }
        Err(format!(
            "there is no standard library for it (`rustup target add {target}`, or Debian: rustc-web cargo-web rust-web-src)"
        ))
    }

    /// Builds the program and returns its file.
    pub fn build(self, machine: Machine, target_folder: &Path) -> Result<PathBuf> {
        let target = machine.target();
        let words = ["build", "--locked", "--profile", PROFILE, "--target", &target, "--package", "netduel"];
        let mut command = step::cargo(words);
        if self == Self::Debian {
            command = Command::new(DEBIAN_CARGO);
            command.args(words).arg("-Zbuild-std=std,panic_unwind").current_dir(workspace::root());
            // `cargo xtask` sets the search path of libraries to those of its own toolchain.
            command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1").env_remove("LD_LIBRARY_PATH");
        }
        if !machine.is_native() {
            let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
            command.env(variable, machine.cross_compiler());
        }
        // Neither the caller's flags nor the folders of this machine get into the program.
        command.env("CARGO_ENCODED_RUSTFLAGS", flags().join("\u{1f}")).env("CARGO_TARGET_DIR", target_folder);
        command.env_remove("RUSTFLAGS").env_remove("CARGO_INCREMENTAL");
        if !step::succeeds(&mut command)? {
            bail!("the static netduel for {} does not build; cargo's message is above", machine.name());
        }
        Ok(target_folder.join(target).join(PROFILE).join("netduel"))
    }
}

/// Checks the size of the program, and returns it in bytes.
pub fn checked_size(program: &Path) -> Result<u64> {
    let bytes = program
        .metadata()
        .with_context(|| format!("failed to read the size of {}", program.display()))?
        .len();
    if bytes >= BYTES_MAX {
        bail!("the program has {bytes} bytes, and the limit is {BYTES_MAX}");
    }
    Ok(bytes)
}

/// The flags of rustc.
fn flags() -> Vec<String> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    let root = workspace::root();
    let replaced = [(Some(root), "/netduel"), (cargo, "/cargo")];
    let replaced = replaced
        .into_iter()
        .filter_map(|(folder, name)| Some(format!("--remap-path-prefix={}={name}", folder?.display())));
    std::iter::once("-Ctarget-feature=+crt-static".to_owned()).chain(replaced).collect()
}

/// Whether the project's toolchain has the target of rustup.
fn has_standard_library(target: &str) -> bool {
    let output = Command::new(workspace::cargo().with_file_name("rustc"))
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(workspace::root())
        .output();
    output.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && Path::new(&folder).is_dir()
    })
}
