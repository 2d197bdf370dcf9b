//! Plans with pieces cut out and put in: `plan check` must accept or refuse each.
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::netduel;
use crate::random::Choices;

/// Changes of a plan at most.
const CHANGES_MAX: u64 = 5;
/// Bytes that a change cuts out, below.
const CUT_END: u64 = 40;
/// What is put in: values of other types, limits, keys from elsewhere, broken syntax, control characters, bytes that are no text.
const PIECES: [&[u8]; 18] = [
    b"",
    b"0",
    b"-1",
    b"99999999999999999999999999",
    b"1e400",
    b"nan",
    b"\"\"",
    b"\"0 s\"",
    b"\"\\u001b[2J\"",
    b"[]",
    b"{}",
    b"[[arms]]\n",
    b"[hosts.x]\n",
    b"\n",
    b"\"\"\"",
    b"\0",
    b"\x1b]0;x\x07",
    b"\xff\xfe",
];

/// The plans of the repository.
pub fn sound() -> Result<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let files = std::fs::read_dir(folder).context("failed to read the plans")?;
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).context("failed to read a plan")).collect()
}

/// Changes one of the plans.
pub fn attack(folder: &Path, plans: &[Vec<u8>], mut random: Choices) -> Result<&'static str> {
    let mut text = random.one_of(plans).clone();
    for _ in 0..=random.below(CHANGES_MAX) {
        let start = random.below(text.len() as u64 + 1) as usize;
        let end = (start + random.below(CUT_END) as usize).min(text.len());
        let piece: &[u8] = random.one_of::<&[u8]>(&PIECES);
        drop(text.splice(start..end, piece.iter().copied()));
    }
    std::fs::write(folder.join("changed.toml"), text).context("failed to write the changed plan")?;
    let checked = netduel(folder, &["plan", "check", "changed.toml"])?;
    match checked.code {
        0 => Ok("accepted"),
        2 => Ok("refused"),
        code => bail!("`plan check` ended with {code}: {}", checked.stderr),
    }
}
