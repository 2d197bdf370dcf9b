//! Plans from the outside: those that come with the program, invalid plans, the schema and the guide.
#![forbid(unsafe_code)]
mod bed;
mod crossover;
mod failover;
mod guests;
mod guide;
mod invalid;
mod mutated;
mod permissions;
mod provider;
mod resolved;
mod shipped;
mod sizes;
mod warnings;
mod workloads;

use std::path::PathBuf;

/// A file of the project.
fn project_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Compares a generated text with the file that holds it, or writes the file for `cargo xtask bless`.
fn assert_current(file: &str, generated: &str) {
    let path = project_file(file);
    if std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, generated).expect("the file can be written");
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "{file} is not current: run `cargo xtask bless` and commit it");
}
