//! The folder of runs: creating, finding, listing.
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use netduel_model::ids::RunId;
use netduel_model::nearest::nearest;
use netduel_model::run::{Run, RunEnd, RunHeader};
use netduel_model::user_folder::UserFolder;
use netduel_model::warning::Warning;
use rustix::fs::{CWD, Mode, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::begun::{begun_unix_ms, is_in_future};
use crate::drafts;
use crate::error::StoreError;
use crate::folder;
use crate::format::{CHECKSUMS_FROM, EXTENSION};
use crate::name::{self, LAST};
use crate::reader::{self, DamagedRecord, TornTail, Whole};
use crate::run_file;
use crate::writer::{self, RunWriter};

/// End of the name of a draft of an earlier version, which began with a dot and the name of its run.
const DRAFT_END: &str = ".new";
/// Maximum number of runs that an error names.
const NEAR_MAX: usize = 3;

/// A folder of runs.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// A run in a listing.
#[derive(Debug)]
pub struct RunSummary {
    /// Its name: that of its file.
    pub id: RunId,
    /// The run of this store of which the file is a copy.
    pub copy_of: Option<RunId>,
    /// Its file.
    pub path: PathBuf,
    /// Its facts, or why it cannot be read: one damaged file does not hide the others.
    pub contents: Result<RunContents, StoreError>,
}

/// What is wrong with the file of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// Records that are left out because they are not as they were written.
    pub damaged: Vec<DamagedRecord>,
    /// Trials that are left out because they do not belong to the run.
    pub foreign: Vec<DamagedRecord>,
    /// What the run stored and the file lacks, in words.
    pub missing: Option<String>,
    /// An incomplete last record.
    pub torn: Option<TornTail>,
    /// Trials that can be read.
    pub trials: u64,
    /// Whether every record has a checksum; records of formats 1 and 2 have none.
    pub has_checksums: bool,
}

/// The facts of a run in a listing.
#[derive(Debug)]
pub struct RunContents {
    /// The facts known before its first trial.
    pub header: RunHeader,
    /// Trials that belong to the run, all attempts.
    pub trials: u64,
    /// Why it ended; absent while it runs, and when its coordinator was killed.
    pub end: Option<RunEnd>,
    /// An incomplete last record.
    pub torn: Option<TornTail>,
    /// Number of records that are left out: damaged ones, and trials that do not belong to the run.
    pub damaged: u64,
    /// Whether a process writes the run now.
    pub in_use: bool,
    /// Whether its start lies in the future of this machine's clock: the clock was set back since, or the file is from elsewhere.
    pub starts_in_future: bool,
    /// When it was begun at the latest, milliseconds since the Unix epoch.
    pub(crate) begun_unix_ms: u64,
}

impl Store {
    /// The folders that the default folder is in, the first that there is.
    pub const DEFAULTS: [UserFolder; 2] = [UserFolder::Data, UserFolder::Home];

    /// Opens the store in a folder; creates the folder if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be created, or a link of another user leads to it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = folder.into();
        folder::create(&folder)
            .map_err(|source| StoreError::of("create the store's folder", &folder, source))?;
        Ok(Self { folder })
    }

    /// The store of a folder that need not exist: without one it has no runs, and nothing is created.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The default folder: `NETDUEL_STORE`, else `$XDG_DATA_HOME/netduel`, else
    /// `~/.local/share/netduel`; `None` where [`Self::DEFAULTS`] name none. An empty `NETDUEL_STORE` counts as unset, and a relative one is
    /// in the current folder, as that of `--store`.
    pub fn default_dir(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        if let Some(folder) = env("NETDUEL_STORE").filter(|value| !value.is_empty()) {
            return Some(PathBuf::from(folder));
        }
        let home = || UserFolder::Home.path(&env).map(|home| home.join(".local/share"));
        UserFolder::Data.path(&env).or_else(home).map(|data| data.join("netduel"))
    }

    /// Checks that a run can be created, with a file that is removed again.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Permission`], or the error of the system.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        let (draft, _) = self.new_draft("create a run in the folder")?;
        fs::remove_file(&draft).map_err(|source| StoreError::of("remove", &draft, source))
    }

    /// Removes the drafts of processes that were killed while they created a run.
    pub(crate) fn remove_old_drafts(&self) {
        let is_old = |name: &str| name.starts_with('.') && name.ends_with(DRAFT_END);
        drafts::remove_abandoned(&self.folder, |name| drafts::is_draft(name) || is_old(name));
    }

    /// Creates an empty draft that only this user can read: a run describes hosts and networks. It is locked. `operation` is what the folder is
    /// needed for.
    pub(crate) fn new_draft(&self, operation: &'static str) -> Result<(PathBuf, File), StoreError> {
        let (draft, file) = drafts::create(&self.folder, Mode::RUSR | Mode::WUSR)
            .map_err(|source| StoreError::of(operation, &self.folder, source))?;
        if let Err(error) = writer::lock(&file, &draft) {
            // Without locks no later process would remove it.
            drop(fs::remove_file(&draft));
            return Err(error);
        }
        Ok((draft, file))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// An unused name for a new run.
    pub fn new_id(&self, plan_name: &str, unix_ms: u64, random: u16) -> RunId {
        let mut random = random;
        loop {
            let id = name::run_id(plan_name, unix_ms, random);
            if !self.file_of(id.as_str()).exists() {
                return id;
            }
            random = random.wrapping_add(1);
        }
    }

    /// Creates a run with its header. It appears in the folder under its name only when the header is on the disk.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Full`], [`StoreError::Permission`], or [`StoreError::Io`].
    pub fn create(&self, header: &RunHeader) -> Result<RunWriter, StoreError> {
        let path = self.file_of(header.id.as_str());
        if path.exists() {
            return Err(StoreError::Exists { path });
        }
        self.remove_old_drafts();
        let (draft, file) = self.new_draft("create").map_err(|error| error.at_start(&path))?;
        let mut writer = RunWriter::new(file, draft.clone(), 0, header);
        let finished =
            writer.header(header).and_then(|()| rename_new(&draft, &path)).and_then(|()| self.sync());
        if let Err(error) = finished {
            // Best effort: a remaining draft is never read, and a later run removes it.
            let _ = fs::remove_file(&draft);
            return Err(error.at_start(&path));
        }
        writer.renamed(path);
        Ok(writer)
    }

    /// Makes names in the folder durable.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| StoreError::of("make durable the store's folder", &self.folder, source))
    }

    /// Reads the facts of a run that were known before its first trial. Its file is not changed.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn header(&self, id: &RunId) -> Result<RunHeader, StoreError> {
        let path = self.file_of(id.as_str());
        let header = reader::read_header(&run_file::open(&path)?, &path)?;
        Ok(RunHeader { id: id.clone(), ..header })
    }

    /// Opens a run to resume it. An incomplete record of a killed writer is removed; [`RunWriter::cut_off`] returns its position. Otherwise the run
    /// stays as it was, with its end, until its first new trial is stored.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process writes it; otherwise as [`Self::read`] and [`Self::create`].
    pub fn resume(&self, id: &RunId) -> Result<(Run, RunWriter), StoreError> {
        let path = self.file_of(id.as_str());
        let file = match run_file::open_for_writing(&path) {
            Err(StoreError::NoFile { .. }) => return Err(self.not_found(id.as_str())?),
            opened => opened?,
        };
        writer::lock(&file, &path)?;
        let Whole { mut run, length, torn, format, .. } = reader::read_whole(&file, &path)?;
        run.header.id = id.clone();
        let mut writer = RunWriter::new(file, path, length, &run.header);
        writer.resumed(torn, &run, format)?;
        Ok((run, writer))
    }

    /// Reads a run: by its name, a unique prefix of it, `last`, or the path of its file.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] with similar names, [`StoreError::NoFile`] for a path, [`StoreError::Ambiguous`],
    /// [`StoreError::NoLast`], [`StoreError::Newer`], [`StoreError::NotARun`], [`StoreError::Damaged`], or [`StoreError::Io`].
    pub fn read(&self, name_or_path: &(impl AsRef<Path> + ?Sized)) -> Result<Run, StoreError> {
        self.read_with_note(name_or_path).map(|(run, _)| run)
    }

    /// As [`Self::read`], and returns an incomplete last record as well.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_with_note(
        &self,
        name_or_path: &(impl AsRef<Path> + ?Sized),
    ) -> Result<(Run, Option<TornTail>), StoreError> {
        let name_or_path = name_or_path.as_ref();
        let path = self.find(name_or_path)?;
        let file = run_file::open(&path)?;
        let mut whole = reader::read_whole(&file, &path)?;
        if let Some(id) = self.own_name(&path, name_or_path) {
            whole.run.header.id = id;
        }
        if let Some(torn) = whole.torn {
            whole.run.warnings.push(Warning::RecordIncomplete { bytes: torn.bytes });
        }
        Ok((whole.run, whole.torn))
    }

    /// Reads every record of a run and compares the checksums: by its name, a unique prefix of it, `last`, or the path of its file.
    ///
    /// # Errors
    /// As [`Self::read`]; damaged records are no error.
    pub fn verify(&self, name_or_path: &(impl AsRef<Path> + ?Sized)) -> Result<Integrity, StoreError> {
        let path = self.find(name_or_path.as_ref())?;
        let file = run_file::open(&path)?;
        let whole = reader::read_whole(&file, &path)?;
        Ok(Integrity {
            damaged: whole.damaged,
            foreign: whole.foreign,
            missing: whole.missing,
            torn: whole.torn,
            trials: whole.run.trials.len() as u64,
            has_checksums: whole.format_first >= CHECKSUMS_FROM,
        })
    }

    /// Deletes a run: by its name, a unique prefix of it, or `last`. Returns its full name.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when a process writes it; a path of a file is [`StoreError::NotFound`]; otherwise as [`Self::read`].
    pub fn remove(&self, name: &str) -> Result<RunId, StoreError> {
        let id = self.id_of(name)?;
        let path = self.file_of(id.as_str());
        let file = run_file::open(&path)?;
        writer::lock(&file, &path)?;
        fs::remove_file(&path).map_err(|source| StoreError::of("remove", &path, source))?;
        Ok(id)
    }

    /// The full name of a run of this store, from its name, a unique prefix of it, or `last`.
    ///
    /// # Errors
    /// As [`Self::read`]; a path of a file is [`StoreError::NotFound`].
    pub fn id_of(&self, name: &str) -> Result<RunId, StoreError> {
        let path = self.find(Path::new(name))?;
        self.id_at(&path).map_or_else(|| Err(self.not_found(name)?), Ok)
    }

    /// The name of the run whose file this is, if it is one of this store.
    pub(crate) fn id_at(&self, path: &Path) -> Option<RunId> {
        let id = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| RunId::new(stem).ok())?;
        (path == self.file_of(id.as_str())).then_some(id)
    }

    /// The name of a run that was found by its name: a renamed or copied file of this store is a run by the name of its file, as in the
    /// listing. A path is of any file.
    pub(crate) fn own_name(&self, path: &Path, name_or_path: &Path) -> Option<RunId> {
        self.id_at(path).filter(|_| !is_path(name_or_path))
    }

    /// Whether a process writes this run now. A run that cannot be opened is not in use.
    pub fn is_in_use(&self, id: &RunId) -> bool {
        let path = self.file_of(id.as_str());
        run_file::open(&path).is_ok_and(|file| writer::is_locked(&file))
    }

    /// All runs, those that were begun last first, copies after them. Runs that start in the future come after all others, and those that
    /// cannot be read come last. Everything with the name of a run file is listed: a folder or a pipe is one that cannot be read.
    ///
    /// # Errors
    /// [`StoreError`] when the folder cannot be read.
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let mut runs: Vec<RunSummary> = self
            .ids()?
            .into_iter()
            .map(|id| {
                let path = self.file_of(id.as_str());
                let contents = outline(&path);
                RunSummary { id, copy_of: None, path, contents }
            })
            .collect();
        let stored: Vec<(RunId, u64)> = runs
            .iter()
            .filter_map(|run| Some((run.id.clone(), run.contents.as_ref().ok()?.header.started_unix_ms)))
            .collect();
        for run in &mut runs {
            let Ok(contents) = &mut run.contents else { continue };
            let first = std::mem::replace(&mut contents.header.id, run.id.clone());
            let original = (first.clone(), contents.header.started_unix_ms);
            run.copy_of = (first != run.id && stored.contains(&original)).then_some(first);
        }
        runs.sort_by(|left, right| {
            let begun = |run: &RunSummary| {
                let RunContents { header, starts_in_future, begun_unix_ms, .. } =
                    run.contents.as_ref().ok()?;
                Some((!starts_in_future, *begun_unix_ms, header.started_unix_ms))
            };
            let order = begun(right).cmp(&begun(left));
            order
                .then_with(|| left.copy_of.is_some().cmp(&right.copy_of.is_some()))
                .then_with(|| left.id.cmp(&right.id))
        });
        Ok(runs)
    }

    /// The file of the run that was begun last.
    fn last(&self) -> Result<PathBuf, StoreError> {
        let runs = self.list()?;
        match runs.first() {
            Some(RunSummary { contents: Ok(contents), .. }) if contents.starts_in_future => {
                Err(StoreError::NoLast { folder: self.folder.clone() })
            }
            // Where none can be read, the reason of one says more than that there is none.
            Some(run) => Ok(run.path.clone()),
            None => Err(self.not_found(LAST)?),
        }
    }

    /// The file of a run, from its name, a unique prefix, `last`, or a path, which is not opened.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn find(&self, name_or_path: &Path) -> Result<PathBuf, StoreError> {
        if is_path(name_or_path) {
            return Ok(name_or_path.to_owned());
        }
        let Some(wanted) = name_or_path.to_str() else {
            return Err(self.not_found(&name_or_path.to_string_lossy())?);
        };
        if wanted == LAST {
            return self.last();
        }
        let ids = self.ids()?;
        if ids.iter().any(|id| id.as_str() == wanted) {
            return Ok(self.file_of(wanted));
        }
        let mut matches: Vec<String> = ids
            .iter()
            .filter(|id| !wanted.is_empty() && id.as_str().starts_with(wanted))
            .map(ToString::to_string)
            .collect();
        match matches.len() {
            0 => Err(self.not_found(wanted)?),
            1 => Ok(self.file_of(&matches.remove(0))),
            _ => Err(StoreError::Ambiguous { wanted: wanted.to_owned(), matches }),
        }
    }

    /// The error for a run that does not exist, with similar names.
    fn not_found(&self, wanted: &str) -> Result<StoreError, StoreError> {
        let ids = self.ids()?;
        let names: Vec<&str> = ids.iter().map(RunId::as_str).collect();
        let mut near: Vec<String> =
            nearest(wanted, names.iter().copied()).map(str::to_owned).into_iter().collect();
        let plan = wanted.split('-').next().unwrap_or_default();
        let of_plan = |name: &&&str| !plan.is_empty() && name.starts_with(plan);
        // Names end in the time, so the last ones of a plan are the newest.
        for name in names.iter().rev().filter(of_plan) {
            if near.len() < NEAR_MAX && !near.iter().any(|known| known == name) {
                near.push((*name).to_owned());
            }
        }
        let (wanted, folder) = (wanted.to_owned(), self.folder.clone());
        Ok(StoreError::NotFound { wanted, folder, runs: ids.len(), near })
    }

    /// The names of all runs, sorted.
    pub(crate) fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        let failed = |source| StoreError::of("read the store's folder", &self.folder, source);
        let mut ids = Vec::new();
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ids),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let path = PathBuf::from(entry.map_err(failed)?.file_name());
            // What is no file, as a folder or a pipe, cannot be read as a run, which its reader states.
            if path.extension().is_some_and(|end| end == EXTENSION)
                && let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
                && let Ok(id) = RunId::new(stem)
            {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    pub(crate) fn file_of(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.{EXTENSION}"))
    }
}

/// Whether a run is named by the path of its file.
fn is_path(wanted: &Path) -> bool {
    wanted.as_os_str().as_encoded_bytes().contains(&b'/')
        || wanted.extension().is_some_and(|end| end == EXTENSION)
}

fn outline(path: &Path) -> Result<RunContents, StoreError> {
    let file = run_file::open(path)?;
    let reader::Outline { header, trials, end, torn, damaged } = reader::read_outline(&file, path)?;
    let in_use = writer::is_locked(&file);
    let starts_in_future = is_in_future(header.started_unix_ms);
    let begun_unix_ms = begun_unix_ms(&file, header.started_unix_ms);
    Ok(RunContents { header, trials, end, torn, damaged, in_use, starts_in_future, begun_unix_ms })
}

/// Renames a draft to its final name without replacing another run.
pub(crate) fn rename_new(draft: &Path, path: &Path) -> Result<(), StoreError> {
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(StoreError::Exists { path: path.to_owned() }),
        // A file system without this flag, as NFS: between both calls only a run of this very name could appear.
        Err(Errno::INVAL | Errno::NOSYS) if path.symlink_metadata().is_ok() => {
            Err(StoreError::Exists { path: path.to_owned() })
        }
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::rename(draft, path).map_err(|source| StoreError::of("create run", path, source))
        }
        Err(error) => Err(StoreError::of("create run", path, error.into())),
    }
}
