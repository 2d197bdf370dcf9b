//! Builds a static netduel, and checks its size.
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::machine::Machine;
use super::toolchain::Toolchain;
use crate::{step, workspace};

/// The profile in the manifest of the workspace.
const PROFILE: &str = "dist";
/// The limit of the program's size: 20 MB.
const BYTES_MAX: u64 = 20_000_000;

/// Builds the program and returns its file.
pub fn program(machine: Machine, toolchain: Toolchain, target_folder: &Path) -> Result<PathBuf> {
    let words = ["build", "--profile", PROFILE, "--package", "netduel"];
    let mut command = toolchain.cargo(machine, &words, target_folder);
    // Neither the caller's flags nor the folders of this machine get into the program.
    command.env("CARGO_ENCODED_RUSTFLAGS", flags().join("\u{1f}"));
    if !step::succeeds(&mut command)? {
        bail!("the static netduel for {} does not build; cargo's message is above", machine.name());
    }
    Ok(target_folder.join(machine.target()).join(PROFILE).join("netduel"))
}

/// Compiles the program for a machine without making it.
pub fn compiles(machine: Machine, toolchain: Toolchain, target_folder: &Path) -> Result<bool> {
    let mut command = toolchain.cargo(machine, &["check", "--package", "netduel"], target_folder);
    step::succeeds(command.env("CARGO_ENCODED_RUSTFLAGS", "-Dwarnings"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_of_the_documented_limit_is_refused() {
        let program = tempfile::NamedTempFile::new().unwrap();
        program.as_file().set_len(BYTES_MAX - 1).unwrap();
        assert_eq!(checked_size(program.path()).unwrap(), BYTES_MAX - 1);
        program.as_file().set_len(BYTES_MAX).unwrap();
        let error = checked_size(program.path()).unwrap_err().to_string();
        assert!(error.contains(&BYTES_MAX.to_string()), "{error}");
        let note = include_str!("../../../../docs/design/0035-dist.md");
        assert!(note.contains(&format!("less than {} MB", BYTES_MAX / 1_000_000)));
    }
}
