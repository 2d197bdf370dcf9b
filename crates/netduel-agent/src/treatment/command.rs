//! A command of the user's, and the one that undoes it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::error::TreatmentError;
use super::processes::{failed, run};

/// A command that was run, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct CommandOriginal {
    command: Vec<String>,
    undo: Vec<String>,
    /// The mark of both commands' processes.
    mark: String,
}

impl Original for CommandOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        run(&self.undo, &self.mark)
    }

    fn what(&self) -> String {
        format!("`{}`", self.command.join(" "))
    }

    fn by_hand(&self) -> String {
        format!("`{}`", self.undo.join(" "))
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

/// Nothing can be read beforehand; only the words are checked.
pub(super) fn prepare(
    command: &[String],
    undo: &[String],
) -> Result<(CommandOriginal, CommandChange), TreatmentError> {
    let random = netduel_sys::random::bytes16()
        .map_err(|cause| TreatmentError::Refused { doing: "draw a random mark".to_owned(), cause })?;
    let mark = format!("{:032x}", u128::from_be_bytes(random));
    for words in [command, undo] {
        if words.first().is_none_or(String::is_empty) {
            return Err(failed(words, "it names no program".to_owned(), String::new()));
        }
    }
    let change = CommandChange { command: command.to_vec(), mark: mark.clone() };
    Ok((CommandOriginal { command: command.to_vec(), undo: undo.to_vec(), mark }, change))
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
