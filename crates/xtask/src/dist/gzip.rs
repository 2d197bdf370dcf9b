//! Compression by gzip(1), without name and time, so that the same bytes give the same bytes.
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The compressed bytes.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new("gzip")
        .args(["--no-name", "--best"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start gzip: install the package gzip")?;
    let mut stdin = child.stdin.take().context("gzip has no standard input")?;
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || stdin.write_all(bytes));
        let output = child.wait_with_output();
        writer.join().map(|written| (written, output))
    });
    let Ok((written, output)) = output else { bail!("failed to write to gzip") };
    written.context("failed to write to gzip")?;
    let output = output.context("failed to read from gzip")?;
    if !output.status.success() {
        bail!("failed to compress with gzip: {}", output.status);
    }
    Ok(output.stdout)
}
