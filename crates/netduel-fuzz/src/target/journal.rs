//! Journals of guards: an agent reads them as root, and undoes what they say.
use netduel_agent::treatment::journaled;

/// Reads a journal. Nothing of it is undone here.
pub(crate) fn run(bytes: &[u8]) {
    // A file that is no text is read as one, too.
    let text = String::from_utf8_lossy(bytes);
    let (changes, damaged_lines) = journaled(&text);
    let lines = text.split_inclusive('\n').count();
    assert!(changes.len() + damaged_lines.len() < lines.max(1), "{changes:?} {damaged_lines:?}");
    assert!(damaged_lines.iter().all(|line| (2..=lines).contains(line)), "{damaged_lines:?} of {lines}");
}
