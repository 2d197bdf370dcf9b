//! `az` in memory: answers in the order in which they are expected.
use std::collections::VecDeque;
use std::time::Duration;

use netduel_azure::az::cause::Cause;
use netduel_azure::az::{Az, CallError};
use netduel_azure::deployment::Subscription;

/// Answers that the real `az` gave, or as its reference describes them.
pub const VERSION: (&str, &str) =
    ("version", r#"{"azure-cli": "2.91.0", "azure-cli-core": "2.91.0", "extensions": {}}"#);
pub const ACCOUNT: (&str, &str) = (
    "account show",
    r#"{"id": "22222222-2222-2222-2222-222222222222", "name": "fake", "state": "Enabled", "isDefault": true}"#,
);

/// What `az` answers.
pub enum Answer {
    Text(String),
    Failure(Cause),
    Interrupt,
}

/// `az` with prepared answers; it panics when it is asked for anything else.
pub struct FakeAz {
    answers: VecDeque<(String, Answer)>,
    /// The commands so far.
    pub calls: Vec<String>,
    /// Pauses after which the user interrupts.
    pub pauses: u32,
}

impl FakeAz {
    /// With texts as answers to commands that begin with these words.
    pub fn new<'t>(answers: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let text = |(start, text): (&str, &str)| (start.to_owned(), Answer::Text(text.to_owned()));
        Self { answers: answers.into_iter().map(text).collect(), calls: Vec::new(), pauses: 1000 }
    }

    /// The same with one more answer.
    pub fn then(mut self, start: &str, answer: Answer) -> Self {
        self.answers.push_back((start.to_owned(), answer));
        self
    }

    /// Panics when answers are left.
    pub fn is_done(&self) {
        let left: Vec<&String> = self.answers.iter().map(|(start, _)| start).collect();
        assert!(left.is_empty(), "not asked: {left:?}");
    }
}

impl Az for FakeAz {
    fn call(&mut self, words: &[&str], _: Duration) -> Result<String, CallError> {
        let command = words.join(" ");
        self.calls.push(command.clone());
        let Some((start, answer)) = self.answers.pop_front() else { panic!("no answer to {command}") };
        assert!(command.starts_with(&start), "{command} does not begin with {start}");
        match answer {
            Answer::Text(text) => Ok(text),
            Answer::Failure(cause) => Err(CallError::Failed { command, cause }),
            Answer::Interrupt => Err(CallError::Interrupted { command }),
        }
    }

    fn pause(&mut self) -> bool {
        self.pauses = self.pauses.saturating_sub(1);
        self.pauses > 0
    }
}

/// The subscription of [`ACCOUNT`].
pub fn subscription() -> Subscription {
    let id = "22222222-2222-2222-2222-222222222222".to_owned();
    Subscription { id, name: "fake".to_owned(), named: None, user: None }
}
