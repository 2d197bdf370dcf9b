//! A command of the user's, and the one that undoes it.
use std::time::Duration;

use netduel_model::shell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::error::TreatmentError;
use super::processes::{DEADLINE, failed, run, run_within, shown};

/// A command that was run, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct CommandOriginal {
    command: Vec<String>,
    undo: Vec<String>,
    /// The mark of both commands' processes.
    mark: String,
    /// Limit of the undo, seconds, when it is another one than that of every command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit_s: Option<u64>,
}

impl CommandOriginal {
    fn limit(&self) -> Duration {
        self.limit_s.map_or(DEADLINE, Duration::from_secs)
    }
}

impl Original for CommandOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        run_within(&self.undo, &self.mark, self.limit())
    }

    fn what(&self) -> String {
        match self.command.as_slice() {
            // A program, or the change of a caller in words.
            [one] => format!("`{one}`"),
            words => format!("`{}`", shell::line(words)),
        }
    }

    fn by_hand(&self) -> String {
        format!("`{}`", shown(&self.undo))
    }

    fn mark(&self) -> Option<&str> {
        Some(&self.mark)
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct CommandChange {
    command: Vec<String>,
    mark: String,
}

/// A change that the caller makes itself, with the command that undoes it.
#[derive(Debug)]
pub(super) struct HeldChange;

impl Change for HeldChange {
    fn make(&self) -> Result<(), TreatmentError> {
        Ok(())
    }

    /// The caller reads it.
    fn read_back(&self) -> Result<(), TreatmentError> {
        Ok(())
    }
}

/// The record of a change that the caller makes. `what` names it in place of a command; `limit` is that of the undo.
pub(super) fn hold(
    what: &str,
    undo: &[String],
    limit: Duration,
) -> Result<(CommandOriginal, HeldChange), TreatmentError> {
    let (command, limit_s) = (vec![what.to_owned()], Some(limit.as_secs()));
    Ok((CommandOriginal { command, undo: undo.to_vec(), mark: mark()?, limit_s }, HeldChange))
}

fn mark() -> Result<String, TreatmentError> {
    let random = netduel_sys::random::bytes16()
        .map_err(|cause| TreatmentError::Refused { doing: "draw a random mark".to_owned(), cause })?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}

/// Nothing can be read beforehand; only the words are checked.
pub(super) fn prepare(
    command: &[String],
    undo: &[String],
) -> Result<(CommandOriginal, CommandChange), TreatmentError> {
    let mark = mark()?;
    for words in [command, undo] {
        if words.first().is_none_or(String::is_empty) {
            return Err(failed(words, "it names no program".to_owned(), String::new()));
        }
    }
    let change = CommandChange { command: command.to_vec(), mark: mark.clone() };
    Ok((CommandOriginal { command: command.to_vec(), undo: undo.to_vec(), mark, limit_s: None }, change))
}

impl Change for CommandChange {
    fn make(&self) -> Result<(), TreatmentError> {
        run(&self.command, &self.mark)
    }

    /// Nothing tells what it changed.
    fn read_back(&self) -> Result<(), TreatmentError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::treatment::THIS_PROGRAM;

    #[test]
    fn undo_by_this_program_is_a_command_of_its_name_in_messages() {
        let undo = [THIS_PROGRAM, "azure-undo", "nic", "a b"].map(str::to_owned);
        let (original, _) = hold("n off", &undo, Duration::from_secs(9)).unwrap();
        assert_eq!(original.by_hand(), "`netduel azure-undo nic 'a b'`");
        let failed = failed(&undo, "it ended".to_owned(), String::new()).to_string();
        assert!(failed.contains("`netduel azure-undo nic 'a b'`"), "{failed}");
    }

    #[test]
    fn change_of_the_caller_is_named_as_it_was_given() {
        let undo = ["az".to_owned(), "start".to_owned()];
        let (original, _) = hold("accelerated networking of n off", &undo, Duration::from_secs(9)).unwrap();
        assert_eq!(original.what(), "`accelerated networking of n off`");
        assert_eq!((original.by_hand().as_str(), original.limit()), ("`az start`", Duration::from_secs(9)));
    }

    #[test]
    fn commands_in_messages_are_those_of_the_plan_when_a_shell_reads_them() {
        let words = |script: &str| ["sh", "-c", script].map(str::to_owned);
        let (original, _) = prepare(&words("echo 1 > /a"), &words("echo 0 > /a b; true")).unwrap();
        assert_eq!(original.what(), "`sh -c 'echo 1 > /a'`");
        assert_eq!(original.by_hand(), "`sh -c 'echo 0 > /a b; true'`");
    }
}
