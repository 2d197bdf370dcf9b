//! `bless`: the tests that compare texts with files of the repository write these files anew. A person reads the difference and commits it.
use std::process::Command;

use anyhow::{Context, Result};

use crate::binaries::{self, TestBinary};
use crate::step;

/// The test binaries with such tests, and the names of these tests; an empty name is all of them. Crates that others depend on come first.
const BLESSED: [(&str, &str); 11] = [
    ("netduel_model/it", ""),
    ("netduel_host/it", "hosts::"),
    ("netduel_azure/it", "template::"),
    ("netduel_agent", "journal"),
    ("netduel_control/it", "golden::"),
    ("netduel_store", "format::"),
    ("netduel_lab", "protocol"),
    ("netduel_report/it", ""),
    ("netduel", "run::live::"),
    ("netduel", "serve::identity::"),
    ("netduel/it", "azure_errors::"),
];

/// Builds the tests, writes the files, and lists the changed ones; `false` when a test fails although it wrote its file: it prints what a
/// person has to change, for example the fingerprint of a format.
pub fn run() -> Result<bool> {
    let binaries = binaries::build()?;
    let mut is_current = true;
    for (name, tests) in BLESSED {
        let binary = binaries.iter().find(|binary| binary.name == name);
        let binary =
            binary.with_context(|| format!("no test binary `{name}`: correct BLESSED in bless.rs"))?;
        println!("{name} {tests}");
        is_current &= written(binary, tests)?;
    }
    step::succeeds(Command::new("git").args(["status", "--short"]).current_dir(crate::workspace::root()))?;
    Ok(is_current)
}

/// Runs tests that write their files, and once more if they fail: some compare with what others write.
fn written(binary: &TestBinary, tests: &str) -> Result<bool> {
    let mut last = None;
    for _ in 0..2 {
        let mut command = binary.command(&[tests.to_owned()]);
        command.env("NETDUEL_BLESS", "1").env("INSTA_UPDATE", "always");
        let output = command.output().with_context(|| format!("failed to start {}", binary.name))?;
        if output.status.success() {
            return Ok(true);
        }
        last = Some(output);
    }
    if let Some(output) = last {
        let text = String::from_utf8_lossy(&output.stdout);
        let failures = text.find("\nfailures:\n").map_or(&*text, |at| &text[at..]);
        println!("{}", failures.trim());
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::workspace;

    /// Whether a file below a folder writes what a person blesses.
    fn is_blessed(folder: &Path) -> bool {
        fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
            let path = entry.path();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            if path.is_dir() {
                return is_blessed(&path);
            }
            is_source
                && fs::read_to_string(&path).is_ok_and(|text| text.contains("var_os(\"NETDUEL_BLESS\")"))
        })
    }

    #[test]
    fn every_crate_with_such_tests_is_in_the_list() {
        let crates = workspace::root().join("crates");
        for entry in fs::read_dir(&crates).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap().replace('-', "_");
            for (folder, binary) in [("src", name.clone()), ("tests/it", format!("{name}/it"))] {
                if name != "xtask" && is_blessed(&entry.path().join(folder)) {
                    assert!(BLESSED.iter().any(|(known, _)| *known == binary), "{binary} is not in BLESSED");
                }
            }
        }
    }
}
