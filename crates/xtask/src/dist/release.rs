//! What is packed: its version and its time.
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// One line about the program, for lists of packages.
pub const DESCRIPTION: &str = "A/B-tests two network paths and reports which is faster, and why";
/// Formats of packages require an address. It has no mailbox, because the project has none.
pub const MAINTAINER: &str = "The netduel contributors <netduel@localhost>";

/// The version and the time of the files.
#[derive(Debug, Clone)]
pub struct Release {
    /// That of the workspace, for example `0.1.0`.
    pub version: String,
    /// The time stamp of every file, in seconds since 1970: that of the commit, so that two builds of it are the same.
    pub time_s: u64,
}

impl Release {
    /// Reads the manifest of the workspace and the time of the commit; without git the time is that of `SOURCE_DATE_EPOCH`, or 0.
    pub fn read() -> Result<Self> {
        let manifest = workspace::root().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("failed to read {}", manifest.display()))?;
        let manifest: toml::Table = text.parse().context("failed to read the manifest of the workspace")?;
        let version = manifest
            .get("workspace")
            .and_then(|table| table.get("package")?.get("version")?.as_str())
            .context("failed to find the version in the manifest of the workspace")?;
        let time_s = std::env::var("SOURCE_DATE_EPOCH").ok().or_else(commit_time).unwrap_or_default();
        Ok(Self { version: version.to_owned(), time_s: time_s.trim().parse().unwrap_or_default() })
    }
}

fn commit_time() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(workspace::root());
    String::from_utf8(git.output().ok()?.stdout).ok()
}
