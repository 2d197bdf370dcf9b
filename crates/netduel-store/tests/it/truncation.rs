//! A truncated file is read up to the truncation, or causes a clear error. A changed file is never read as if it were whole.
use std::path::Path;

use netduel_model::run::RunEnd;
use netduel_model::trial::Trial;
use netduel_store::{Store, StoreError};
use proptest::prelude::*;

use crate::sample;

/// A finished file with some trials, as bytes.
fn whole(store: &Store) -> (Vec<u8>, Vec<Trial>) {
    let mut writer = store.create(&sample::header("cut")).expect("a run is created");
    let trials: Vec<Trial> = (0..4).map(sample::trial).collect();
    for trial in &trials {
        writer.trial(trial).expect("stored");
    }
    writer.end(&RunEnd::BudgetReached).expect("stored");
    (std::fs::read(writer.path()).expect("it is there"), trials)
}

fn assert_is_a_beginning(
    store: &Store,
    path: &Path,
    bytes: &[u8],
    trials: &[Trial],
) -> Result<(), TestCaseError> {
    std::fs::write(path, bytes).expect("it can be written");
    match store.read_with_note(path.to_str().expect("a plain path")) {
        Ok((run, torn)) => {
            prop_assert!(trials.starts_with(&run.trials));
            let lines = bytes.split(|byte| *byte == b'\n').count() - 1;
            prop_assert!(
                run.trials.len() + 1 >= lines.min(trials.len() + 1),
                "{} of {lines}",
                run.trials.len()
            );
            prop_assert_eq!(torn.is_some(), bytes.last() != Some(&b'\n'));
        }
        Err(StoreError::NotARun { reason, .. }) => {
            prop_assert!(reason.contains("empty") || reason.contains("incomplete"), "{reason}");
            prop_assert!(!bytes.contains(&b'\n'));
        }
        Err(other) => prop_assert!(false, "{other}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn file_truncated_anywhere_is_read_up_to_there(cuts in prop::collection::vec(any::<prop::sample::Index>(), 4)) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("the folder is there");
        let (bytes, trials) = whole(&store);
        let path = folder.path().join("cut.netduel");
        for cut in cuts {
            assert_is_a_beginning(&store, &path, &bytes[..cut.index(bytes.len() + 1)], &trials)?;
        }
    }

    #[test]
    fn changed_bits_are_named_and_the_other_records_are_read(
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..4),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("the folder is there");
        let (whole, trials) = whole(&store);
        let path = folder.path().join("cut.netduel");
        let name = path.to_str().expect("a plain path");
        for (place, bit) in places {
            let mut bytes = whole.clone();
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
            std::fs::write(&path, &bytes).expect("it can be written");
            // Only a damaged header makes the file unreadable.
            let header_ends = whole.iter().position(|byte| *byte == b'\n').expect("it has lines");
            let Ok((run, torn)) = store.read_with_note(name) else {
                prop_assert!(place <= header_ends, "byte {place}, bit {bit}");
                continue;
            };
            let found = store.verify(name).expect("it was read");
            prop_assert!(!found.damaged.is_empty() || torn.is_some(), "byte {place}, bit {bit} is not noticed");
            prop_assert_eq!(run.warnings.len(), usize::from(!found.damaged.is_empty()) + usize::from(torn.is_some()));
            // A changed line end joins two records.
            prop_assert!(run.trials.len() + 2 >= trials.len());
            prop_assert!(run.trials.iter().all(|trial| trials.contains(trial)));
            let listed = store.list().expect("the folder can be read");
            let listed = listed.iter().find(|run| run.path == path).expect("it is there").contents.as_ref();
            let listed = listed.expect("it can be read");
            prop_assert_eq!(listed.damaged, found.damaged.len() as u64);
            prop_assert_eq!(listed.trials, found.trials);
        }
    }
}

#[test]
fn file_truncated_at_line_ends_is_read_up_to_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let (bytes, trials) = whole(&store);
    let path = folder.path().join("cut.netduel");
    let edges = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index);
    for edge in edges.flat_map(|index| [index - 1, index, index + 1]) {
        assert_is_a_beginning(&store, &path, &bytes[..edge], &trials).expect("a beginning");
    }
}

#[test]
fn line_with_zeros_after_a_power_failure_is_torn() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let (bytes, trials) = whole(&store);
    let id = sample::header("cut").id;
    let path = folder.path().join(format!("{id}.netduel"));
    for tail in [&b"{\"trial\":\0\0\0\0\0\0}\n"[..], &[0; 4096][..]] {
        std::fs::write(&path, [&bytes, tail].concat()).expect("it can be written");
        let (run, torn) = store.read_with_note("last").expect("it can be read");
        assert_eq!(
            (run.trials.as_slice(), torn.map(|torn| torn.bytes)),
            (&trials[..], Some(tail.len() as u64))
        );
        let (_, writer) = store.resume(&id).expect("it can be resumed");
        assert!(writer.cut_off().is_some());
        drop(writer);
        assert_eq!(store.read_with_note("last").expect("it can be read").1, None);
    }
}
