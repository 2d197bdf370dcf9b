//! Run files with one changed bit: `runs verify` must find the damage, and a report must name it or refuse the file.
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::netduel;
use crate::random::Choices;

/// Four short trials in a lab.
const PLAN: &str = r#"
name = "attack"
question = "Is the damage named?"
[lab]
rules = 10
[hosts.a]
launch = "lab"
[hosts.b]
launch = "lab"
[[arms]]
name = "one"
client = "a"
server = "b"
treatments = [{ path = "synthetic" }]
[[arms]]
name = "other"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
[[workloads]]
name = "w"
type = "tcp-stream"
duration = "200 ms"
warmup = "0 s"
cooldown = "0 s"
[design]
seed = 1
blocks_min = 2
blocks_max = 2
"#;

/// The bytes of a run that was just made.
pub fn sound_run(folder: &Path) -> Result<Vec<u8>> {
    std::fs::write(folder.join("plan.toml"), PLAN).context("failed to write the plan")?;
    let ended = netduel(folder, &["run", "plan.toml"])?;
    // 6: on a busy machine a comparison may have no valid trial, and all trials are stored.
    ensure!(matches!(ended.code, 0 | 6), "the run ended with {}: {}", ended.code, ended.stderr);
    let files = std::fs::read_dir(folder.join("store")).context("failed to read the store")?;
    let files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    let is_run = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "netduel");
    let run = files.iter().find(is_run).with_context(|| format!("no run is stored: {files:?}"))?;
    std::fs::read(run).context("failed to read the run")
}

/// Changes one bit of a run.
pub fn attack(folder: &Path, run: &[u8], mut random: Choices) -> Result<&'static str> {
    let (place, bit) = (random.below(run.len() as u64) as usize, random.below(8));
    let mut bytes = run.to_vec();
    bytes[place] ^= 1 << bit;
    let path = folder.join("flipped.netduel");
    std::fs::write(&path, bytes).context("failed to write the changed run")?;
    let path = path.to_string_lossy();
    let at = || format!("byte {place}, bit {bit}");
    let verified = netduel(folder, &["runs", "verify", &path]).with_context(at)?;
    ensure!(verified.code == 5, "{}: `runs verify` ended with {}: {}", at(), verified.code, verified.stdout);
    let report = netduel(folder, &["report", &path]).with_context(at)?;
    if report.code != 0 {
        return Ok("refused");
    }
    let is_named = ["damaged", "incomplete"].iter().any(|word| report.stdout.contains(word));
    ensure!(is_named, "{}: the report does not name the damage:\n{}", at(), report.stdout);
    Ok("named")
}
