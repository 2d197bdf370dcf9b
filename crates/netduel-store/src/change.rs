//! Changes of stored runs: annotations, names, copies to and from other machines, and the disk space that they use. A crash leaves a run as it
//! was, or as it will be: a new file has a name only when its content is on the disk.
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use netduel_model::ids::RunId;
use netduel_model::run::{Annotations, Run, RunHeader};
use netduel_model::warning::Warning;
use serde_json::{Map, Value};
use std::borrow::Cow;

use crate::begun::is_in_future;
use crate::checksum;
use crate::error::{SIZE_MAX, StoreError};
use crate::format::{FORMAT, FirstLine, KIND, Record};
use crate::name::unusable_name;
use crate::reader;
use crate::run_file;
use crate::store::{Store, rename_new};
use crate::writer;

/// Unit of `st_blocks` in bytes (stat(3type)).
const BLOCK: u64 = 512;
/// The members of a header that have the paths of report files.
const REPORTS: [&str; 2] = ["report", "further_reports"];

/// An imported run.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Its name in the store.
    pub id: RunId,
    /// Number of its trials, all attempts.
    pub trials: u64,
    /// Whether the store had the same run before, which was left as it is.
    pub was_there: bool,
    /// Warnings about records of the file that are damaged or do not belong to the run, and about an incomplete last one, which is not copied.
    pub left_out: Vec<Warning>,
    /// Wall clock at its start, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// Whether its start lies in the future of this machine's clock.
    pub starts_in_future: bool,
    /// Number of other runs of the store whose names begin with its name, which stands for it alone.
    pub longer_names: usize,
}

/// Disk space of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Space that it occupies, bytes: reserved space counts, and a file system may compress.
    pub disk_bytes: u64,
}

impl Store {
    /// Changes the annotations of a run: by its name, a unique prefix of it, or `last`. All its records stay as they are, damaged and
    /// incomplete ones too. Returns its full name and the new annotations.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when a process writes it, [`StoreError::FullAtChange`]; otherwise as [`Self::read`] and [`Self::create`].
    pub fn annotate(
        &self,
        name: &str,
        change: impl FnOnce(&mut Annotations),
    ) -> Result<(RunId, Annotations), StoreError> {
        let id = self.id_of(name)?;
        let path = self.file_of(id.as_str());
        let file = run_file::open(&path)?;
        writer::lock(&file, &path)?;
        let mut annotations = reader::read_header(&file, &path)?.annotations;
        change(&mut annotations);
        let content = content(&path)?;
        let (header, records) = split_at_header(&content);
        let header = annotated(header, &annotations).map_err(|source| StoreError::Record {
            operation: "write the header of run",
            path: path.clone(),
            source,
        })?;
        let failed = |error: StoreError| error.at_change("change the title and notes of run", &path);
        let draft = self.draft(&[&header, records]).map_err(failed)?;
        // The lock of the run is held: no process writes it.
        if let Err(source) = fs::rename(&draft.path, &path) {
            drop(fs::remove_file(&draft.path));
            return Err(failed(StoreError::of("replace run", &path, source)));
        }
        self.sync()?;
        Ok((id, annotations))
    }

    /// Gives a run another name. Returns its former full name.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`], [`StoreError::InUse`] when a process writes the run, [`StoreError::FullAtChange`]; otherwise as
    /// [`Self::read`].
    pub fn rename(&self, name: &str, to: &RunId) -> Result<RunId, StoreError> {
        let id = self.id_of(name)?;
        let from = self.file_of(id.as_str());
        let file = run_file::open(&from)?;
        writer::lock(&file, &from)?;
        rename_new(&from, &self.file_of(to.as_str())).map_err(|error| match error {
            StoreError::Exists { .. } => StoreError::NameTaken { path: from.clone(), to: to.clone() },
            other => other.at_change("rename run", &from),
        })?;
        self.sync()?;
        Ok(id)
    }

    /// The complete records of a run, as its file has them: by its name, a unique prefix of it, `last`, or the path of its file. The header of a
    /// run that was renamed has its new name, so that it has it elsewhere, too.
    ///
    /// # Errors
    /// As [`Self::read`]; [`StoreError::TooLarge`].
    pub fn records(&self, name_or_path: &str) -> Result<Vec<u8>, StoreError> {
        let name_or_path = Path::new(name_or_path);
        let path = self.find(name_or_path)?;
        let length = reader::read_whole(&run_file::open(&path)?, &path)?.length;
        let mut content = content(&path)?;
        content.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(match self.own_name(&path, name_or_path) {
            Some(id) => named(content, &id),
            None => content,
        })
    }

    /// Copies a run file into the store, under its own name or another, without the paths of its report files: the maker of the file chose them,
    /// and a resumed run writes to them.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the store has another run of this name, [`StoreError::UnusableName`] when commands would not find the run by
    /// its own; otherwise as [`Self::records`] and [`Self::create`].
    pub fn import(&self, path: &Path, name: Option<&RunId>) -> Result<Imported, StoreError> {
        let file = run_file::open(path)?;
        let whole = reader::read_whole(&file, path)?;
        let mut records = content(path)?;
        records.truncate(usize::try_from(whole.length).unwrap_or(usize::MAX));
        let records = without_reports(records).map_err(|source| StoreError::Record {
            operation: "read the header of run",
            path: path.to_owned(),
            source,
        })?;
        let id = name.unwrap_or(&whole.run.header.id).clone();
        if let Some(reason) = unusable_name(id.as_str()) {
            return Err(StoreError::UnusableName { path: path.to_owned(), id, reason });
        }
        let trials = whole.run.trials.len() as u64;
        let torn = whole.torn.map(|torn| Warning::RecordIncomplete { bytes: torn.bytes });
        let left_out: Vec<Warning> =
            whole.run.warnings.into_iter().filter(Warning::is_about_the_file).chain(torn).collect();
        let started_unix_ms = whole.run.header.started_unix_ms;
        let starts_in_future = is_in_future(started_unix_ms);
        let is_longer = |other: &&RunId| **other != id && other.as_str().starts_with(id.as_str());
        let longer_names = self.ids()?.iter().filter(is_longer).count();
        let stored = self.file_of(id.as_str());
        let was_there = stored.exists() && is_same_but_for_its_name(&content(&stored)?, &records, &id);
        let imported =
            Imported { id, trials, was_there, left_out, started_unix_ms, starts_in_future, longer_names };
        if was_there {
            return Ok(imported);
        }
        self.remove_old_drafts();
        let draft = self.draft(&[&records])?;
        if let Err(error) = rename_new(&draft.path, &stored) {
            drop(fs::remove_file(&draft.path));
            return Err(error);
        }
        self.sync()?;
        Ok(imported)
    }

    /// Disk space of a run of this store.
    ///
    /// # Errors
    /// That of the system.
    pub fn usage(&self, id: &RunId) -> Result<Usage, StoreError> {
        let path = self.file_of(id.as_str());
        // A link to no file has a size of its own.
        let metadata = fs::metadata(&path)
            .or_else(|_| fs::symlink_metadata(&path))
            .map_err(|source| StoreError::of("read the size of", &path, source))?;
        Ok(Usage { bytes: metadata.len(), disk_bytes: metadata.blocks().saturating_mul(BLOCK) })
    }

    /// Writes a draft of a run and makes it durable. It is locked until it is whole, so that no other process takes it for that of a killed one.
    fn draft(&self, parts: &[&[u8]]) -> Result<Draft, StoreError> {
        let (draft, mut file) = self.new_draft("create a run in the folder")?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let written = parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| file.sync_all());
        if let Err(source) = written {
            drop(fs::remove_file(&draft));
            return Err(StoreError::for_space("write run", &draft, bytes, source));
        }
        Ok(Draft { path: draft, file })
    }
}

/// A whole file that is not a run yet. It is locked as long as this value lives.
struct Draft {
    path: std::path::PathBuf,
    file: File,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Closing the file may not unlock it: a child that another thread starts has the descriptor until it executes its program.
        writer::unlock(&self.file);
    }
}

/// A run as the bytes of a file of the current format: first its header, then warnings, trials and its end.
///
/// # Errors
/// That of a number that JSON cannot represent.
pub fn bytes_of(run: &Run) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    let mut push = |mut line: Vec<u8>| {
        checksum::add(&mut line);
        line.push(b'\n');
        bytes.extend_from_slice(&line);
    };
    push(first_line(&run.header)?);
    for warning in run.warnings.iter().filter(|warning| !warning.is_about_the_file()) {
        push(serde_json::to_vec(&Record::Warning(Cow::Borrowed(warning)))?);
    }
    for trial in &run.trials {
        push(serde_json::to_vec(&Record::Trial(Cow::Borrowed(trial)))?);
    }
    if let Some(end) = &run.end {
        push(serde_json::to_vec(&Record::End(Cow::Borrowed(end)))?);
    }
    Ok(bytes)
}

fn first_line(header: &RunHeader) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&FirstLine { netduel: KIND.into(), format: FORMAT, header: Cow::Borrowed(header) })
}

/// The content of a run file.
fn content(path: &Path) -> Result<Vec<u8>, StoreError> {
    let file = run_file::open(path)?;
    let length = |file: &File| file.metadata().map(|metadata| metadata.len());
    let read = |source| StoreError::of("read", path, source);
    let bytes = length(&file).map_err(read)?;
    if bytes > SIZE_MAX {
        return Err(StoreError::TooLarge { path: path.to_owned(), bytes });
    }
    let mut content = Vec::new();
    file.take(SIZE_MAX).read_to_end(&mut content).map_err(read)?;
    Ok(content)
}

/// Whether two run files differ at most in the name of the run and in its report files: a run that was renamed has its former name in its
/// header, and an imported one has no report files.
fn is_same_but_for_its_name(stored: &[u8], records: &[u8], id: &RunId) -> bool {
    let ((stored_header, stored_rest), (header, rest)) = (split_at_header(stored), split_at_header(records));
    let facts = |line: &[u8]| {
        with_header(line, |header| {
            header.insert("id".to_owned(), Value::from(id.as_str()));
            remove_reports(header);
            Ok(())
        })
        .ok()
    };
    let has_same_facts = || facts(stored_header).is_some_and(|stored| facts(header) == Some(stored));
    stored_rest == rest && (stored_header == header || has_same_facts())
}

/// The content of a run file without the paths of report files in its header. A header without any stays as it is.
fn without_reports(mut content: Vec<u8>) -> Result<Vec<u8>, serde_json::Error> {
    let (header, _) = split_at_header(&content);
    let end = header.len();
    let mut is_changed = false;
    let header = with_header(header, |header| {
        is_changed = remove_reports(header);
        Ok(())
    })?;
    if is_changed {
        drop(content.splice(..end, header));
    }
    Ok(content)
}

/// Removes the paths of report files from a header; whether it had any.
fn remove_reports(header: &mut Map<String, Value>) -> bool {
    REPORTS.map(|key| header.remove(key).is_some()).contains(&true)
}

/// The content of a run file with this name in its header. A header that has it, or cannot be read, stays as it is.
fn named(mut content: Vec<u8>, id: &RunId) -> Vec<u8> {
    let (header, _) = split_at_header(&content);
    let end = header.len();
    if let Ok((header, is_changed)) = with_name(header, id)
        && is_changed
    {
        drop(content.splice(..end, header));
    }
    content
}

/// The first line of a run file, without its end, and the rest.
fn split_at_header(content: &[u8]) -> (&[u8], &[u8]) {
    content.split_at(content.iter().position(|byte| *byte == b'\n').unwrap_or(content.len()))
}

/// The first line with this name of the run, and whether it had another.
fn with_name(line: &[u8], id: &RunId) -> Result<(Vec<u8>, bool), serde_json::Error> {
    let mut is_changed = true;
    let header = with_header(line, |header| {
        let former = header.insert("id".to_owned(), Value::from(id.as_str()));
        is_changed = former.is_none_or(|former| former != id.as_str());
        Ok(())
    })?;
    Ok((header, is_changed))
}

/// The first line with other annotations. Without a line end.
fn annotated(line: &[u8], annotations: &Annotations) -> Result<Vec<u8>, serde_json::Error> {
    with_header(line, |header| {
        if annotations.is_empty() {
            header.remove("annotations");
        } else {
            header.insert("annotations".to_owned(), serde_json::to_value(annotations)?);
        }
        Ok(())
    })
}

/// The first line with a changed header, in the format that it has: the records after it are of that format. Without a line end.
fn with_header(
    line: &[u8],
    change: impl FnOnce(&mut Map<String, Value>) -> Result<(), serde_json::Error>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = line.to_vec();
    let has_checksum = checksum::take(&mut line) != checksum::Checksum::Absent;
    let mut value: Value = serde_json::from_slice(&line)?;
    if let Some(header) = value.get_mut("header").and_then(Value::as_object_mut) {
        change(header)?;
    }
    let mut line = serde_json::to_vec(&value)?;
    if has_checksum {
        checksum::add(&mut line);
    }
    Ok(line)
}
