//! The runs that may have been begun after `last`, and are not it. Nothing here chooses a run.
use std::fs;
use std::path::{Path, PathBuf};

use crate::begun::unix_ms;
use crate::error::StoreError;
use crate::store::Store;

/// How many runs `last` leaves out although they may be newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassedOver {
    /// Runs that start in the future of this machine's clock: it may have been set back since.
    pub in_future: usize,
    /// Run files that cannot be read, and were written after `last` was begun: damaged ones, those of another user or of a newer netduel.
    pub unread: usize,
}

impl Store {
    /// The runs that `last` leaves out although they may have been begun after it.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be read.
    pub fn passed_over(&self) -> Result<PassedOver, StoreError> {
        let mut passed_over = PassedOver::default();
        let mut last_begun_unix_ms = None;
        let mut unread = Vec::new();
        for run in self.list()? {
            match run.contents {
                Ok(contents) if contents.starts_in_future => passed_over.in_future += 1,
                // The first that can be read is `last`.
                Ok(contents) => last_begun_unix_ms = last_begun_unix_ms.or(Some(contents.begun_unix_ms)),
                Err(_) => unread.push(run.path),
            }
        }
        let may_be_newer = |path: &&PathBuf| {
            let written = written_unix_ms(path);
            last_begun_unix_ms.is_some_and(|begun| written.is_none_or(|written| written > begun))
        };
        passed_over.unread = unread.iter().filter(may_be_newer).count();
        Ok(passed_over)
    }
}

/// When a file was last written, milliseconds since the Unix epoch; absent where that is not known.
fn written_unix_ms(path: &Path) -> Option<u64> {
    unix_ms(fs::metadata(path).and_then(|metadata| metadata.modified()).ok()?)
}
