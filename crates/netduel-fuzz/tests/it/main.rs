//! The corpora in a normal build: each file is an input that a fuzzer found worth keeping, or one that was a fault.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use netduel_fuzz::TARGETS;

/// Bytes of all corpora at most: they are in each clone of the repository.
const CORPORA_LEN_MAX: u64 = 512 << 10;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn inputs(target: &str) -> Vec<PathBuf> {
    let folder = corpora().join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn every_input_of_the_corpora_is_parsed_without_a_fault() {
    for target in TARGETS {
        let inputs = inputs(target.name);
        assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        for path in inputs {
            let bytes = fs::read(&path).expect("an input");
            let result = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(result.is_ok(), "the target {} fails with {}", target.name, path.display());
        }
    }
}

#[test]
fn every_target_has_a_folder_and_every_folder_a_target() {
    let folders = fs::read_dir(corpora()).expect("the corpora");
    let folders: BTreeSet<String> =
        folders.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}

#[test]
fn corpora_stay_small() {
    let length: u64 = TARGETS
        .iter()
        .flat_map(|target| inputs(target.name))
        .map(|path| fs::metadata(path).expect("an input").len())
        .sum();
    assert!(length <= CORPORA_LEN_MAX, "{length} bytes: merge them with `cargo xtask fuzz --minimize`");
}
