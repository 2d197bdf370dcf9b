//! `netduel runs verify|tag|rename|export|import|du`: what can be done with stored runs but listing and deleting them.
use std::path::{Path, PathBuf};

use netduel_model::ids::RunId;
use netduel_model::shell;
use netduel_model::units::{human_si, plural};
use netduel_model::warning::Warning;
use netduel_report::json::envelope::Document as _;
use netduel_report::json::listing::{
    ChangedRun, Note, RunAction, RunUsage, RunsUsage, VerifiedRun, VerifiedRuns,
};
use netduel_report::words;
use netduel_store::format::EXTENSION;
use netduel_store::{DamagedRecord, Imported, Integrity, LAST, Store, StoreError, bytes_of};

use crate::cli::shared::{StoreArgs, TagArgs, is_standard_output};
use crate::cli::stored::RunsAction;
use crate::console::{print, print_json, print_lines, tell};
use crate::exit::{Failure, Kind, OrFail as _, unwritten};
use crate::output_file::{self, Readers};
use crate::report_file::ANOTHER_PLACE;
use crate::run_store::{command_of, for_store, note_run, open_store, store_failure, writable_store};
use crate::shown_runs::{ShownRuns, number_file};
use crate::{program, redaction};

/// Runs the command.
pub fn command(action: &RunsAction) -> Result<(), Failure> {
    match action {
        RunsAction::Rm { .. } | RunsAction::Baseline { .. } => Ok(()),
        RunsAction::Verify { runs, json, store, .. } => verify(&open_store(store)?, runs, json.json),
        RunsAction::Tag { run, tags, no_title, unset, json, store, .. } => {
            tag(&open_store(store)?, run, &Tags { added: tags, no_title: *no_title, unset }, json.json)
        }
        RunsAction::Rename { run, to, json, store, .. } => rename(&open_store(store)?, run, to, json.json),
        RunsAction::Export { run, out, redact, json, store } => {
            export(&open_store(store)?, run, (out.as_deref(), redact.redact), json.json)
        }
        RunsAction::Import { file, name, json, store, .. } => import(store, file, name.as_ref(), json.json),
        RunsAction::Du { json, store, .. } => usage(&open_store(store)?, json.json),
    }
}

/// `netduel runs verify`: without names all runs of the store.
fn verify(store: &Store, names: &[String], json: bool) -> Result<(), Failure> {
    for name in names {
        note_run(store, name);
    }
    let is_whole_store = names.is_empty();
    let names: Vec<PathBuf> = match names {
        [] => store.list().kind(Kind::Store)?.into_iter().map(|run| run.path).collect(),
        names => names.iter().map(PathBuf::from).collect(),
    };
    if redaction::is_on() {
        // Files that cannot be read have their numbers in the order of the listing, and why they cannot is stated below.
        ShownRuns::of(store)?;
        let mut named = names.iter().filter_map(|name| store.read(name).ok());
        named.try_for_each(|run| redaction::learn_run(&run))?;
    }
    let mut runs = Vec::new();
    for name in &names {
        let run = verified(store, name)?;
        if !json {
            print_lines(&format!("{}\n", words::plain(&format!("{}: {}", run.id, run.text))))?;
        }
        runs.push(run);
    }
    let faulty = runs.iter().filter(|run| !run.is_sound).count();
    if is_whole_store && runs.is_empty() {
        tell(&format!("no run is stored in {}", store.folder().display()));
    }
    if json {
        print_json(&VerifiedRuns { envelope: VerifiedRuns::envelope(&program::origin()), runs })?;
    }
    if faulty > 0 {
        let runs = if faulty == 1 { "1 run is".to_owned() } else { format!("{faulty} runs are") };
        return Err(Failure::message(Kind::Store, format!("{runs} damaged or cannot be read"))
            .remedy("restore the files from copies, or repeat the runs"));
    }
    Ok(())
}

/// A checked run; an error of the system ends the command.
fn verified(store: &Store, name: &Path) -> Result<VerifiedRun, Failure> {
    let id = || redaction::text(&name.file_stem().unwrap_or(name.as_os_str()).display().to_string());
    match store.verify(name) {
        Ok(found) => Ok(VerifiedRun {
            id: id(),
            is_sound: faults(&found).is_empty(),
            text: redaction::text(&integrity(&found)),
            trials: Some(found.trials),
            damaged_lines: left_out(&found).iter().map(|record| record.line).collect(),
            torn: Some(found.torn.is_some()),
        }),
        Err(
            mut error @ (StoreError::Damaged { .. } | StoreError::NotARun { .. } | StoreError::Newer { .. }),
        ) => {
            let id = number_file(&mut error).unwrap_or_else(id);
            let text = redaction::text(&error.to_string());
            Ok(VerifiedRun { id, is_sound: false, text, trials: None, damaged_lines: Vec::new(), torn: None })
        }
        Err(error) => Err(store_failure(error)),
    }
}

/// The records of a run file that readers leave out, by line.
fn left_out(found: &Integrity) -> Vec<&DamagedRecord> {
    let mut records: Vec<&DamagedRecord> = found.damaged.iter().chain(&found.foreign).collect();
    records.sort_by_key(|record| record.line);
    records
}

/// Each fault of a run file.
fn faults(found: &Integrity) -> Vec<String> {
    let mut faults: Vec<String> = left_out(found).into_iter().map(ToString::to_string).collect();
    faults.extend(found.missing.clone());
    faults.extend(found.torn.map(|torn| torn.to_string()));
    faults
}

/// What is wrong with a run file, in words.
fn integrity(found: &Integrity) -> String {
    let trials = plural(found.trials, "trial");
    let faults = faults(found);
    match (faults.is_empty(), found.has_checksums) {
        (false, _) => format!("damaged, {trials} can be read; {}", faults.join("; ")),
        (true, true) => format!("sound, {trials}"),
        (true, false) => {
            format!("{trials}, readable; it is of an older version, whose records have no checksum")
        }
    }
}

/// What changes of a run's annotations.
struct Tags<'a> {
    added: &'a TagArgs,
    no_title: bool,
    unset: &'a [String],
}

/// `netduel runs tag`.
fn tag(store: &Store, name: &str, change: &Tags<'_>, json: bool) -> Result<(), Failure> {
    let Tags { added: tags, no_title, unset } = *change;
    if tags.title.is_none() && tags.notes.is_empty() && unset.is_empty() && !no_title {
        return Err(Failure::message(Kind::Usage, "nothing to change: name a title or a note")
            .remedy("use --title TEXT, --no-title, --note KEY=VALUE or --unset KEY"));
    }
    let shown = ShownRuns::of(store)?;
    note_run(store, name);
    let id = store.id_of(name).map_err(store_failure)?;
    let known = store.header(&id).map_err(store_failure)?.annotations.notes;
    if let Some(missing) = unset.iter().find(|key| !known.contains_key(*key)) {
        let keys: Vec<&str> = known.keys().map(String::as_str).collect();
        let has =
            if keys.is_empty() { "it has none".to_owned() } else { format!("it has {}", keys.join(", ")) };
        return Err(Failure::message(Kind::Usage, format!("the run {id} has no note {missing}; {has}")));
    }
    let changed = store.annotate(id.as_str(), |annotations| {
        if no_title {
            annotations.title = None;
        }
        annotations.title = tags.title.clone().or(annotations.title.take());
        annotations.notes.retain(|key, _| !unset.contains(key));
        annotations.notes.extend(tags.notes.iter().cloned());
    });
    let (id, annotations) = changed.map_err(store_failure)?;
    let (id, annotations) = (shown.name(&id), redaction::value(annotations)?);
    if json {
        let notes = Note::all(&annotations.notes);
        return print_json(&ChangedRun {
            title: annotations.title,
            notes,
            ..changed_run(RunAction::Tagged, id)
        });
    }
    let title = annotations.title.unwrap_or_else(|| "no title".to_owned());
    let notes = annotations.notes.iter().map(|(key, value)| format!("  {key}={value}"));
    print_lines(&format!("{}\n", words::plain(&format!("{id}: {title}{}", notes.collect::<String>()))))
}

/// A document with the keys that every action has. `id`: the name of the run as it is shown.
fn changed_run(action: RunAction, id: String) -> ChangedRun {
    ChangedRun {
        envelope: ChangedRun::envelope(&program::origin()),
        action,
        id,
        former_id: None,
        file: None,
        title: None,
        notes: Vec::new(),
        was_there: None,
    }
}

/// `netduel runs rename`.
fn rename(store: &Store, name: &str, to: &RunId, json: bool) -> Result<(), Failure> {
    let shown = ShownRuns::of(store)?;
    note_run(store, name);
    if store.id_of(name).is_ok_and(|id| id == *to) {
        let text = format!("failed to rename run {}: it has this name already", redaction::text(to.as_str()));
        return Err(Failure::message(Kind::Usage, text).remedy("choose another name"));
    }
    let former = shown.name(&store.rename(name, to).map_err(store_failure)?);
    let to = redaction::text(to.as_str());
    if json {
        return print_json(&ChangedRun { former_id: Some(former), ..changed_run(RunAction::Renamed, to) });
    }
    print(&format!("renamed {former} to {to}\n"))
}

/// `netduel runs export`.
fn export(
    store: &Store,
    name: &str,
    (out, is_redacted): (Option<&Path>, bool),
    json: bool,
) -> Result<(), Failure> {
    if out.is_some_and(is_standard_output) {
        let text =
            "failed to export the run to standard output (`--out -`): the name of the file is printed there";
        return Err(Failure::message(Kind::Usage, text).remedy("name a file with --out"));
    }
    note_run(store, name);
    let run = redaction::run(store.read(name).map_err(store_failure)?)?;
    tell_left_out(run.warnings.iter().filter(|warning| warning.is_about_the_file()));
    let id = run.header.id.to_string();
    let bytes = if is_redacted {
        bytes_of(&run).kind(Kind::Internal)?
    } else {
        store.records(name).map_err(store_failure)?
    };
    let file = match out {
        Some(file) => file.to_owned(),
        None => unused(PathBuf::from(format!("{id}.{EXTENSION}")))?,
    };
    // As in the store: it has all that is known of the hosts.
    output_file::write(&file, &bytes, Readers::Owner)
        .map_err(|error| unwritten(Kind::Store, format!("write {}", file.display()), error, ANOTHER_PLACE))?;
    let command = redaction::text(&open_command(&file));
    let file = redaction::text(&file.display().to_string());
    if json {
        return print_json(&ChangedRun { file: Some(file), ..changed_run(RunAction::Exported, id) });
    }
    let size = human_si(bytes.len() as f64, "B");
    print_lines(&format!("{file} ({size}); open it with: {command}\n"))
}

/// Warns of records that a copy lacks or that no figure contains: the copy itself may not show it, because an incomplete record is not copied.
fn tell_left_out<'w>(warnings: impl IntoIterator<Item = &'w Warning>) {
    for warning in warnings {
        tell(&format!("warning: {warning}"));
    }
}

/// The command that opens the file of a run: `netduel report` takes a name with neither a slash nor the extension for that of a stored run,
/// and a hyphen at its start for an option.
fn open_command(file: &Path) -> String {
    let name = file.display().to_string();
    let is_path = name.contains('/') || file.extension().is_some_and(|end| end == EXTENSION);
    let path = if is_path && !name.starts_with('-') { name } else { format!("./{name}") };
    shell::line(["netduel", "report", path.as_str()])
}

/// A file that the user did not name replaces no other.
fn unused(file: PathBuf) -> Result<PathBuf, Failure> {
    if file.symlink_metadata().is_ok() {
        let text = format!("failed to write {}: there is a file of this name", file.display());
        return Err(Failure::message(Kind::Store, text).remedy("name a file with --out"));
    }
    // `netduel report` takes a name with a slash for a file.
    Ok(Path::new(".").join(file))
}

/// `netduel runs import`.
fn import(args: &StoreArgs, file: &Path, name: Option<&RunId>, json: bool) -> Result<(), Failure> {
    let store = writable_store(args)?;
    learn_names(&store, file)?;
    let imported = store.import(file, name).map_err(|error| match error {
        StoreError::Exists { path } => {
            let text = format!(
                "failed to import {}: the store has another run of this name, {}",
                file.display(),
                path.display()
            );
            Failure::message(Kind::Store, text).remedy("choose another name with --name")
        }
        StoreError::Full { path, source, .. } | StoreError::FullAtStart { path, source, .. } => {
            let doing = format!("import {} as {}", file.display(), path.display());
            unwritten(Kind::Store, doing, source, "choose another disk with --store")
        }
        other => store_failure(other),
    })?;
    tell_left_out(&imported.left_out);
    warn_of_name_and_start(&store, &imported);
    let id = redaction::text(imported.id.as_str());
    if json {
        return print_json(&ChangedRun {
            file: Some(redaction::text(&file.display().to_string())),
            was_there: Some(imported.was_there),
            ..changed_run(RunAction::Imported, id)
        });
    }
    if imported.was_there {
        return print_lines(&format!("{id} was in the store before\n"));
    }
    let trials = plural(imported.trials, "trial");
    let command = redaction::text(&for_store(&format!("netduel report {id}")));
    print_lines(&format!("imported {id}, {trials}; show it with: {command}\n"))
}

/// Warns where the maker of an imported file has chosen a name or a start that makes commands take its run for another one.
fn warn_of_name_and_start(store: &Store, imported: &Imported) {
    let (id, date) = (&imported.id, words::date(imported.started_unix_ms));
    if imported.starts_in_future {
        tell(&format!("warning: the start of {id}, {date}, is in the future, so that it is not `last`"));
    }
    if imported.longer_names > 0 {
        let command = command_of(&["runs", "rename", id.as_str(), "NAME"]);
        let others = plural(imported.longer_names, "other run");
        tell(&format!(
            "warning: the names of {others} begin with {id}, which stands for the imported run alone; `{command}` \
             gives it another name"
        ));
    }
    let others = || store.list().is_ok_and(|runs| runs.len() > 1);
    if !imported.was_there && store.id_of(LAST).is_ok_and(|last| last == *id) && others() {
        tell(&format!("`last` is {id} now, which started later than all other runs: {date}"));
    }
}

/// With `--redact` learns the names in the runs of the store and in a run file, if it is one: messages may have them.
fn learn_names(store: &Store, file: &Path) -> Result<(), Failure> {
    if !redaction::is_on() {
        return Ok(());
    }
    ShownRuns::of(store)?;
    // A path with a slash is that of a file, never the name of a stored run.
    let path = Path::new(".").join(file);
    let Some(path) = path.to_str() else {
        let text = "failed to redact the name of the file: it is not UTF-8";
        return Err(Failure::message(Kind::Usage, text).remedy("give the file another name"));
    };
    store.read(path).ok().map_or(Ok(()), |run| redaction::learn_run(&run))
}

/// `netduel runs du`.
fn usage(store: &Store, json: bool) -> Result<(), Failure> {
    let shown = ShownRuns::of(store)?;
    let mut runs = Vec::new();
    for run in store.list().kind(Kind::Store)? {
        let usage = store.usage(&run.id).map_err(store_failure)?;
        runs.push(RunUsage { id: shown.name(&run.id), bytes: usage.bytes, disk_bytes: usage.disk_bytes });
    }
    runs.sort_by(|left, right| right.disk_bytes.cmp(&left.disk_bytes).then_with(|| left.id.cmp(&right.id)));
    let disk_bytes = runs.iter().map(|run| run.disk_bytes).fold(0, u64::saturating_add);
    let free_bytes = free_bytes(store.folder());
    let folder = redaction::text(&store.folder().display().to_string());
    if json {
        let envelope = RunsUsage::envelope(&program::origin());
        return print_json(&RunsUsage { envelope, folder, runs, disk_bytes, free_bytes });
    }
    let size = |bytes: u64| human_si(bytes as f64, "B");
    let lines: Vec<String> =
        runs.iter().map(|run| format!("{:>9}  {}\n", size(run.disk_bytes), run.id)).collect();
    let lines = lines.concat();
    let free = free_bytes.map(|bytes| format!(", {} are free", size(bytes))).unwrap_or_default();
    print_lines(&format!("{lines}{:>9}  in {folder}{free}\n", size(disk_bytes)))
}

/// Free space of the file system of a folder for this user.
fn free_bytes(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    space.f_bavail.checked_mul(space.f_frsize)
}
