//! Virtual environments of Python below the target folder, for tests with programs of Python. Nothing is installed elsewhere.
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{step, workspace};

/// Makes a virtual environment with these packages, unless a former call has completed it, and returns the folder of its programs. Other
/// packages need another folder.
pub fn prepare(folder: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = workspace::root().join(folder);
    let programs = folder.join("bin");
    let is_complete = folder.join("complete");
    if is_complete.exists() {
        return Ok(programs);
    }
    let mut environment = Command::new("python3");
    if !step::succeeds(environment.args(["-m", "venv", "--clear"]).arg(&folder))? {
        bail!("python3 cannot make a virtual environment; its message is above (Debian: python3-venv)");
    }
    let mut install = Command::new(programs.join("python"));
    if !step::succeeds(install.args(["-m", "pip", "install", "--quiet"]).args(packages))? {
        bail!("pip cannot install {}; its message is above", packages.join(", "));
    }
    std::fs::write(is_complete, "")?;
    Ok(programs)
}
