//! The list of cases.
use std::process::Command;

use super::bench;

#[test]
fn list_of_cases_ends_without_an_error_when_its_reader_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let list = |command: &mut Command| command.output().unwrap();
    let whole = list(&mut bench(folder.path(), &["--list"]));
    assert!(whole.status.success() && whole.stdout.starts_with(b"tcp-1 "), "{whole:?}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = list(bench(folder.path(), &["--list"]).stdout(writer));
    assert!(closed.status.success() && closed.stderr.is_empty(), "{closed:?}");
}
