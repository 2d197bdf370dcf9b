//! Unknown commands: the suggestions of the error. Internal commands are never suggested.
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::Cli;

/// Command names of other tools, and the corresponding command.
const FOREIGN: &[(&str, &str)] = &[
    ("client", "tcp"),
    ("server", "serve"),
    ("iperf", "tcp"),
    ("iperf3", "tcp"),
    ("latency", "rr"),
    ("list", "runs"),
    ("ping", "rr"),
    ("show", "report"),
];

/// Replaces the parser's suggestions by visible commands.
pub fn with_visible_suggestions(mut error: Error) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let command = Cli::command();
    let is_visible = |name: &String| {
        let found = command.get_subcommands().find(|command| command.get_name() == name);
        // Other names are subcommands of a visible command.
        found.is_none_or(|command| !command.is_hide_set())
    };
    let suggested = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names,
        Some(ContextValue::String(name)) => vec![name],
        _ => Vec::new(),
    };
    let written = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(written)) => written.clone(),
        _ => String::new(),
    };
    let foreign = FOREIGN.iter().find(|(word, _)| *word == written).map(|(_, command)| (*command).to_owned());
    let names: Vec<String> = match foreign {
        Some(command) => vec![command],
        None => suggested.into_iter().filter(is_visible).collect(),
    };
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn error_text(words: &[&str]) -> String {
        let words = std::iter::once("netduel").chain(words.iter().copied());
        let error = Cli::try_parse_from(words).expect_err("not a command");
        with_visible_suggestions(error).to_string()
    }

    #[test]
    fn hidden_commands_are_never_suggested() {
        for (word, hidden) in [("lik", "'link'"), ("agnt", "'agent'"), ("undo-gard", "'undo-guard'")] {
            let text = error_text(&[word]);
            assert!(!text.contains(hidden) && text.contains(word), "{text}");
        }
    }

    #[test]
    fn command_names_of_other_tools_suggest_the_equivalent() {
        assert!(error_text(&["client"]).contains("'tcp'") && !error_text(&["client"]).contains("agent"));
        assert!(error_text(&["server"]).contains("'serve'"));
        assert!(error_text(&["rapport"]).contains("'report'"));
        assert!(error_text(&["lab", "stats"]).contains("'status'"));
        for (_, command) in FOREIGN {
            assert!(Cli::command().find_subcommand(command).is_some(), "{command}");
        }
    }
}
