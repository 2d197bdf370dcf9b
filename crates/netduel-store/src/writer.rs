//! Writes a run file. When a call returns, its record is on disk, or the file is unchanged. A run that is resumed stays as it was until its first
//! new trial is stored.
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use netduel_model::PROGRAM;
use netduel_model::run::{Run, RunEnd, RunHeader};
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::checksum;
use crate::disk_space;
use crate::error::StoreError;
use crate::format::{FORMAT, FirstLine, KIND, Record};
use crate::reader::TornTail;
use crate::removed::{self, Fate};

/// Appends to a run. It holds a lock, so no other process can write the run; the lock ends with the writer, or with the process.
#[derive(Debug)]
pub struct RunWriter {
    file: File,
    path: PathBuf,
    /// Length of the complete records, bytes: the offset of the next record.
    length: u64,
    /// Disk space to reserve before a trial, bytes.
    trial_bytes_max: u64,
    cut_off: Option<TornTail>,
    /// A resumed run to which nothing was added yet.
    resumption: Option<Resumption>,
}

/// What is held back until the first new trial of a resumed run. A coordinator that ends or is killed before leaves the run with its end.
#[derive(Debug)]
struct Resumption {
    /// The lines that come before the trial: that the run is resumed, and the warnings since.
    lines: Vec<u8>,
    /// Whether the run had ended by a rule of its plan.
    was_over: bool,
}

impl RunWriter {
    /// For a locked file whose first `length` bytes are complete records.
    pub(crate) fn new(file: File, path: PathBuf, length: u64, header: &RunHeader) -> Self {
        let trial_bytes_max = disk_space::trial_bytes_max(&header.plan);
        Self { file, path, length, trial_bytes_max, cut_off: None, resumption: None }
    }

    /// Writes the first line.
    pub(crate) fn header(&mut self, header: &RunHeader) -> Result<(), StoreError> {
        let first = FirstLine { netduel: KIND.into(), format: FORMAT, header: Cow::Borrowed(header) };
        let operation = "write the header of run";
        let line = serde_json::to_vec(&first)
            .and_then(|line| serde_json::from_slice::<FirstLine<'_>>(&line).map(|_| line))
            .map_err(|source| StoreError::Record { operation, path: self.path.clone(), source })?;
        self.append(operation, line)
    }

    /// Removes an incomplete record of an earlier writer, and prepares the record that the run is resumed after records of `format`.
    pub(crate) fn resumed(
        &mut self,
        torn: Option<TornTail>,
        run: &Run,
        format: u32,
    ) -> Result<(), StoreError> {
        if torn.is_some() {
            self.truncate()
                .map_err(|source| StoreError::of("cut off the torn end of", &self.path, source))?;
        }
        self.cut_off = torn;
        let is_newer = format != FORMAT;
        let resumed = Record::Resumed {
            trials: run.trials.len() as u64,
            format: is_newer.then_some(FORMAT),
            program: is_newer.then(|| PROGRAM.to_owned()),
        };
        let lines = sealed(self.line("resume run", &resumed)?);
        let was_over = run.end.as_ref().is_some_and(RunEnd::is_regular);
        self.resumption = Some(Resumption { lines, was_over });
        Ok(())
    }

    /// Reserves disk space for the next trial. Call it before the trial runs: after success the trial can be stored.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there is not enough space.
    pub fn reserve(&mut self) -> Result<(), StoreError> {
        let operation = "reserve space for the next trial in";
        if let Some(error) = self.removed(operation) {
            return Err(error);
        }
        let held = self.resumption.as_ref().map_or(0, |resumption| resumption.lines.len() as u64);
        let bytes = self.trial_bytes_max.saturating_add(held);
        disk_space::reserve(&self.file, self.length, bytes)
            .map_err(|source| StoreError::for_space(operation, &self.path, bytes, source))
    }

    /// Stores a finished trial.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be made durable; the file is then unchanged, and the call may be repeated.
    pub fn trial(&mut self, trial: &Trial) -> Result<(), StoreError> {
        self.record("store a trial in", &Record::Trial(Cow::Borrowed(trial)))
    }

    /// Stores a warning; that of a resumed run is stored with its first new trial.
    ///
    /// # Errors
    /// As [`Self::trial`].
    pub fn warning(&mut self, warning: &Warning) -> Result<(), StoreError> {
        let operation = "store a warning in";
        let line = self.line(operation, &Record::Warning(Cow::Borrowed(warning)))?;
        if let Some(resumption) = &mut self.resumption {
            resumption.lines.extend(sealed(line));
            return Ok(());
        }
        self.append(operation, line)
    }

    /// Stores why the run ended, and releases unused reserved space. Without a new trial a resumed run keeps the end that it had: only a complete
    /// run that lacked the end of a complete one gets it.
    ///
    /// # Errors
    /// As [`Self::trial`].
    pub fn end(&mut self, end: &RunEnd) -> Result<(), StoreError> {
        let operation = "store the end of run";
        let keeps = |resumption: &Resumption| resumption.was_over || !end.is_regular();
        if self.resumption.as_ref().is_some_and(keeps) {
            self.removed(operation).map_or(Ok(()), Err)?;
        } else {
            self.record(operation, &Record::End(Cow::Borrowed(end)))?;
        }
        self.truncate().map_err(|source| StoreError::of("release unused space of", &self.path, source))
    }

    /// Whether the run was resumed, and nothing was added to it since.
    pub fn is_unchanged(&self) -> bool {
        self.resumption.is_some()
    }

    /// The run's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file belongs to this user. Another one would choose the paths in its header.
    ///
    /// # Errors
    /// That of the system.
    pub fn is_of_this_user(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.uid() == rustix::process::geteuid().as_raw())
    }

    /// The incomplete record of an earlier writer that was removed when the run was resumed.
    pub fn cut_off(&self) -> Option<TornTail> {
        self.cut_off
    }

    /// The file has been given its final name.
    pub(crate) fn renamed(&mut self, path: PathBuf) {
        self.path = path;
    }

    fn record(&mut self, operation: &'static str, record: &Record<'_>) -> Result<(), StoreError> {
        let line = self.line(operation, record)?;
        self.append(operation, line)
    }

    /// The line of a record, without its checksum and its end.
    fn line(&self, operation: &'static str, record: &Record<'_>) -> Result<Vec<u8>, StoreError> {
        // A number that is not finite is written as null, which makes the file unreadable from this line on. Therefore every line
        // is read once before it is written.
        serde_json::to_vec(record)
            .and_then(|line| serde_json::from_slice::<Record<'_>>(&line).map(|_| line))
            .map_err(|source| StoreError::Record { operation, path: self.path.clone(), source })
    }

    /// Appends a line, after those that were held back.
    fn append(&mut self, operation: &'static str, line: Vec<u8>) -> Result<(), StoreError> {
        let held = self.resumption.as_ref().map(|resumption| resumption.lines.clone());
        let mut bytes = held.unwrap_or_default();
        bytes.extend(sealed(line));
        // The record follows the others to where they are now.
        let removed = self.removed(operation);
        let written = self.file.write_all_at(&bytes, self.length).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Removes incomplete lines. If that fails too, readers recognize an incomplete line.
            let _ = self.truncate();
            return Err(StoreError::for_space(operation, &self.path, bytes.len() as u64, source));
        }
        self.resumption = None;
        self.length += bytes.len() as u64;
        removed.map_or(Ok(()), Err)
    }

    /// The error of a run whose file was removed or moved, once: its records are then in a file with a name, which is written from now on.
    fn removed(&mut self, operation: &'static str) -> Option<StoreError> {
        if !removed::has_lost_its_name(&self.file, &self.path) {
            return None;
        }
        let path = self.path.clone();
        let fate = if let Some(moved) = removed::new_name(&self.file) {
            self.path.clone_from(&moved);
            Fate::Moved(moved)
        } else {
            match removed::write_again(&self.file, &path, self.length) {
                Ok((file, restored)) => {
                    // Only a reader can hold a lock of a file that was just created, and only for a moment.
                    drop(lock(&file, &restored));
                    (self.file, self.path) = (file, restored.clone());
                    Fate::Restored(restored)
                }
                Err(error) => Fate::Lost(error),
            }
        };
        Some(StoreError::Removed { operation, path, fate })
    }

    /// Truncates the file after the complete records and releases reserved space.
    fn truncate(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        // Reserved space lies beyond the end of the file and would stay allocated until the file is deleted.
        let _ = self.truncate();
        // Closing the file may not unlock it: a child that another thread starts has the descriptor until it executes its program.
        unlock(&self.file);
    }
}

/// A line as it stands in the file: with its checksum and its end.
fn sealed(mut line: Vec<u8>) -> Vec<u8> {
    checksum::add(&mut line);
    line.push(b'\n');
    line
}

/// Makes this process the only writer of a file.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(StoreError::InUse { path: path.to_owned() }),
        Err(error) => Err(StoreError::of("lock", path, error.into())),
    }
}

/// Ends the lock of [`lock`].
pub(crate) fn unlock(file: &File) {
    let _ = flock(file, FlockOperation::Unlock);
}

/// Whether another process is the writer of a file: tries a shared lock, which other readers do not block, and releases it.
pub(crate) fn is_locked(file: &File) -> bool {
    if flock(file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK) {
        return true;
    }
    // Closing the file would unlock it as well.
    unlock(file);
    false
}
