//! Runs a plan for a bench.
use std::process::{Command, Stdio};

use netduel_model::run::Run;
use netduel_store::Store;

/// Runs this plan with the program in a store of its own and returns the stored run. The run must end with one of these exit codes.
pub fn stored_run(plan: &str, codes: &[i32]) -> Run {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("plan.toml");
    std::fs::write(&file, plan).expect("the plan can be written");
    let output = Command::new(env!("CARGO_BIN_EXE_netduel"))
        .arg("run")
        .arg(&file)
        .arg("--store")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .expect("the program can be started");
    let words = String::from_utf8_lossy(&output.stderr);
    let is_expected = output.status.code().is_some_and(|code| codes.contains(&code));
    assert!(is_expected, "the run failed: {}\n{words}", output.status);
    Store::open(folder.path())
        .and_then(|store| store.read("last"))
        .expect("the run that was just stored can be read")
}
