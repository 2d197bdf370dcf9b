//! The guard: a process that undoes what its agent left behind. It changes nothing on its own before the lifeline ends.
//!
//! The lifeline is the guard's standard input. Only the agent holds its other end, so its end means that the agent is
//! gone, however it went.
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use netduel_model::plain_text::plain;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::in_force::InForce;
use super::journal::{Journal, Keeper};
use super::protocol::{Answer, Request, namespace};
use super::recovery::await_later;

/// The hidden subcommand `undo-guard`: keeps records until the lifeline ends, then undoes what is left, the last first.
/// Returns the exit code: 0 when nothing is left behind. `lasting`: a folder that outlives a boot, for the journal of a coordinator. `has_names`:
/// whether messages name changes; those of a redacted output do not.
pub fn guard_main(keeper: Keeper, lasting: Option<PathBuf>, has_names: bool) -> i32 {
    // A session of its own: what is sent to the agent's process group or terminal does not reach the guard. Started as
    // a group's leader it cannot have one, and would die with its agent.
    if let Err(cause) = rustix::process::setsid() {
        print_error(&format!("failed to watch over the agent's changes: no session of its own: {cause}"));
        return 1;
    }
    // The guard ends when its lifeline does. A signal that is sent to every process of a service must not end it before
    // its agent. These handlers only take note; commands that the guard starts have the default again.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        if let Err(cause) = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))) {
            print_error(&format!("failed to watch over the agent's changes: signal {signal}: {cause}"));
            return 1;
        }
    }
    let mut journal = Journal::new(keeper, lasting);
    let in_force = watch(io::stdin().lock(), io::stdout().lock(), &mut journal);
    if let (Some(head), Some(path)) = (journal.head(), journal.path())
        && !in_force.is_empty()
    {
        await_later(&path, head);
    }
    let left = undo_all(in_force, &mut journal, has_names);
    i32::from(left)
}

/// Keeps records until the lifeline ends, in memory and in the journal.
fn watch(lifeline: impl BufRead, mut answers: impl Write, journal: &mut Journal) -> InForce {
    let mut in_force = InForce::default();
    // An answer that cannot be written has no reader any more; the lifeline then ends too.
    let mut answer = |answer: &Answer| {
        let line = serde_json::to_string(answer).unwrap_or_default();
        let _ = writeln!(answers, "{line}").and_then(|()| answers.flush());
    };
    answer(&Answer::Ready { namespace: namespace(), journal: journal.path() });
    for line in lifeline.lines() {
        // A line that is cut off was never acknowledged, so nothing was changed for it.
        let Some(request) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
        // Written before the agent may make the change.
        if let Err(cause) = journal.note(&request) {
            if let Request::Keep { id, .. } = request {
                // Recovery from a journal without it would restore a part of what is changed.
                if in_force.is_empty() {
                    journal.remove();
                }
                answer(&Answer::NotRecorded { id, cause: cause.to_string() });
                continue;
            }
            print_error(&format!("failed to write the journal of changes: {cause}"));
        }
        let id = in_force.note(request);
        if in_force.is_empty() {
            journal.remove();
        }
        answer(&Answer::Done { id });
    }
    in_force
}

/// Undoes, the last change first, and reports it afterwards, because the reader of the log may be slow. Whether anything is left.
fn undo_all(in_force: InForce, journal: &mut Journal, has_names: bool) -> bool {
    let count = in_force.len();
    let left = in_force.undo_all(|note| drop(journal.note(note)));
    if left.is_empty() {
        journal.remove();
    }
    if count > 0 {
        print_error(&format!(
            "the agent ended with {count} changes in force: {} are undone now",
            count - left.len()
        ));
    }
    if !has_names && !left.is_empty() {
        print_error("the names of the other changes, and why they are left, are not shown with --redact");
    }
    for failed in left.iter().filter(|_| has_names) {
        print_error(&format!("failed to {failed}"));
    }
    !left.is_empty()
}

fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "{}", line(text));
}

/// A line of standard error, which may be the terminal of root: the text has output of commands and names of devices.
fn line(text: &str) -> String {
    format!("netduel undo-guard: {}", plain(text))
}

#[cfg(test)]
mod tests {
    use super::super::record::Record;
    use super::*;

    #[test]
    fn output_of_a_command_does_not_control_the_terminal() {
        assert_eq!(line("failed: \u{1b}[2J\nx"), "netduel undo-guard: failed: \u{fffd}[2J x");
    }

    #[test]
    fn what_was_kept_and_not_forgotten_is_left_at_the_end_of_the_lifeline() {
        let undo = |name: &str| Record::of_sysctl(name, "1");
        let lines: Vec<String> = [
            Request::Keep { id: 1, undo: undo("a.b"), running: false },
            Request::Keep { id: 2, undo: undo("c.d"), running: false },
            Request::Forget { id: 1 },
            Request::Running { id: 2, running: true },
        ]
        .iter()
        .map(|request| serde_json::to_string(request).unwrap())
        .collect();
        let cut = format!("{}\n{{\"keep\":{{\"id\":3", lines.join("\n"));
        let mut answers = Vec::new();
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::within(&[folder.path().join("netduel")], Keeper::Agent);
        let in_force = watch(cut.as_bytes(), &mut answers, &mut journal);
        assert_eq!(in_force.running(), [(2, true)]);
        assert_eq!(String::from_utf8(answers).unwrap().lines().count(), 5);
    }

    #[test]
    fn change_whose_record_cannot_be_written_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("netduel");
        let mut journal = Journal::within(std::slice::from_ref(&place), Keeper::Agent);
        // As a full file system, no file can be made in it.
        std::fs::remove_dir(&place).unwrap();
        let keep = Request::Keep { id: 7, undo: Record::of_sysctl("a.b", "1"), running: false };
        let line = serde_json::to_string(&keep).unwrap();
        let mut answers = Vec::new();
        let in_force = watch(line.as_bytes(), &mut answers, &mut journal);
        assert!(in_force.is_empty(), "the change is not made, so it is not undone");
        let answers = String::from_utf8(answers).unwrap();
        let answered: Vec<Answer> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(matches!(answered[..], [Answer::Ready { .. }, Answer::NotRecorded { id: 7, .. }]));
    }
}
