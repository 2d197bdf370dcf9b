//! The az CLI: one trait between what netduel wants to know or change and the process that does it. Arguments are a list, never a line.
pub mod cause;
pub mod patient;
pub mod process;

use std::time::Duration;

use netduel_model::json_text::quoted;
use netduel_model::shell;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use cause::Cause;

/// Time limit of a call that does not wait for resources: a call takes 0.6 s to 2.2 s, and throttling makes `az` wait by itself.
pub const CALL_LIMIT: Duration = Duration::from_secs(120);

/// Time between two looks at something that takes minutes, seconds. A look is one or two calls.
pub const PAUSE_S: u64 = 5;

/// The version of `az` with which netduel was tried.
pub(crate) const TRIED: &str = "2.91";

/// Runs `az`.
pub trait Az {
    /// Runs `az` with these arguments and returns its standard output.
    ///
    /// # Errors
    /// [`CallError`] when it cannot be started, fails, does not end in time, or the user interrupts it.
    fn call(&mut self, words: &[&str], limit: Duration) -> Result<String, CallError>;

    /// Waits [`PAUSE_S`] until the next look at something that takes minutes; false after an interrupt.
    fn pause(&mut self) -> bool;
}

/// Why a call of `az` has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The program cannot be run.
    #[error(
        "failed to start `{program}`: {source}; install the Azure CLI, and check that `az version` runs in this shell"
    )]
    Start {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It failed.
    #[error("`{command}` failed: {cause}")]
    Failed {
        /// The command.
        command: String,
        /// Why, as far as its output is understood.
        cause: Cause,
    },
    /// It did not end.
    #[error("`{command}` did not end within {} s and was stopped; check the connection to Azure, and repeat the command", .limit.as_secs())]
    TimedOut {
        /// The command.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// The user interrupted it.
    #[error("`{command}` was interrupted")]
    Interrupted {
        /// The command.
        command: String,
    },
    /// Azure accepted a change of a NIC and did not make it.
    #[error(
        "failed to turn accelerated networking of {nic} {wanted}: Azure accepted the command, and the NIC is as it was"
    )]
    NotTaken {
        /// The NIC.
        nic: String,
        /// `on` or `off`.
        wanted: &'static str,
    },
    /// Azure accepted a change of the placement of a VM and did not make it.
    #[error("failed to {doing}: Azure accepted the command, and the VM is in {found}")]
    NotPlaced {
        /// The change: `put vm1 into the proximity placement group ...`.
        doing: String,
        /// Where the VM is.
        found: String,
    },
    /// Its output is not what netduel understands.
    #[error(
        "`{command}` answered with something that netduel does not understand ({reason}); `az version` prints its version, and netduel was tried \
         with {tried}",
        tried = TRIED
    )]
    Answer {
        /// The command.
        command: String,
        /// Why.
        reason: String,
    },
}

impl CallError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Failed { cause, .. } => matches!(cause, Cause::Throttled { .. } | Cause::Connection { .. }),
            Self::Start { .. }
            | Self::Interrupted { .. }
            | Self::NotTaken { .. }
            | Self::NotPlaced { .. }
            | Self::Answer { .. } => false,
        }
    }
}

/// Looks, each with a pause after it, that take this time or longer, minutes: their calls take time as well.
pub(crate) const fn looks_of(minutes: u64) -> u64 {
    minutes * 60 / PAUSE_S
}

/// Runs `az` and reads its answer, one JSON document.
///
/// # Errors
/// As [`Az::call`], and when the answer is something else.
pub fn ask<T: DeserializeOwned>(az: &mut dyn Az, words: &[&str]) -> Result<T, CallError> {
    let text = az.call(words, CALL_LIMIT)?;
    serde_json::from_str(&text)
        .map_err(|error| CallError::Answer { command: shown(words), reason: quoted(&error.to_string()) })
}

/// A value that `az` may also print as null, which stands for none.
///
/// # Errors
/// When it is of another type.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// A MAC address of Azure, `00-0D-3A-12-34-56`, as the kernel writes it.
pub(crate) fn mac(text: &str) -> String {
    text.replace('-', ":").to_ascii_lowercase()
}

/// The name of a command for people, without its options: they are tags, paths and ids, and no cause is in them.
pub(crate) fn name(words: &[&str]) -> String {
    let named = words.iter().copied().take_while(|word| !word.starts_with("--"));
    shown(&named.collect::<Vec<_>>())
}

/// A command for people, quoted for a shell.
pub fn shown(words: &[&str]) -> String {
    shell::line(std::iter::once("az").chain(words.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each call with the same text.
    struct Answering(String);

    impl Az for Answering {
        fn call(&mut self, _: &[&str], _: Duration) -> Result<String, CallError> {
            Ok(self.0.clone())
        }

        fn pause(&mut self) -> bool {
            true
        }
    }

    #[test]
    fn answer_that_is_not_understood_does_not_fill_the_error() {
        let mut az = Answering(format!("\"{}\"", "x".repeat(1 << 20)));
        let error = ask::<u32>(&mut az, &["vm", "list"]).unwrap_err().to_string();
        assert!(error.contains("string \"xxx") && error.len() < 1000, "{error:.1000}");
    }

    #[test]
    fn name_of_a_command_has_no_options() {
        let words = ["group", "create", "--name", "netduel-x", "--tags", "netduel=x", "netduel-price=2 EUR"];
        assert_eq!(name(&words), "az group create");
        assert_eq!(name(&["version"]), "az version");
    }

    #[test]
    fn word_that_is_not_plain_is_quoted_as_in_every_other_command() {
        assert_eq!(shown(&["group", "show", "--name", "x y"]), "az group show --name 'x y'");
        assert_eq!(shown(&["", "a;b", "50%"]), "az '' 'a;b' 50%");
    }
}
