//! Folders, files and commands of this machine, with errors that name them. It knows no program and no format.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;

/// Removes a folder with all that is in it, and makes it anew.
pub fn remake(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("failed to remove {}", folder.display()));
        }
        _ => {}
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))
}

/// The content of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("failed to read {}", path.display()))
}

/// What a command prints; an error with its messages when it fails.
pub fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    let shown = step::shown(command);
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("failed to start `{shown}`"))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("failed to run `{shown}`: {}\n{messages}", output.status);
    }
    Ok(output.stdout)
}
