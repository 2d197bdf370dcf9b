//! Unknown commands and options that exclude each other: the suggestions of the error. Internal commands are never suggested.
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

/// Words that are no command below `netduel runs`, and the command with this effect.
const OF_RUNS: &[(&str, &str)] = &[
    ("list", "`netduel runs` lists runs"),
    ("ls", "`netduel runs` lists runs"),
    ("show", "`netduel report RUN` shows a run"),
];

/// The commands with the options of iperf3.
pub const QUICK_TESTS: &[&str] = &["tcp", "udp", "pps", "rr", "crr"];

/// Options of iperf3 that quick tests do not have, and the corresponding option.
const FOREIGN_OPTIONS: &[(&str, &str)] = &[
    ("-A", "--pin-client"),
    ("--affinity", "--pin-client"),
    ("-k", "--bytes"),
    ("--blockcount", "--bytes"),
    ("-S", "--dscp"),
    ("--tos", "--dscp"),
    ("-T", "--title"),
    ("-Z", "--engine zerocopy"),
    ("--zerocopy", "--engine zerocopy"),
];

/// Replaces the parser's suggestions by visible commands, and by the option that has the meaning of one of iperf3.
pub fn with_visible_suggestions(mut error: Error) -> Error {
    if error.kind() == ErrorKind::UnknownArgument {
        return with_equivalent_option(error);
    }
    if error.kind() == ErrorKind::ArgumentConflict {
        return with_time_of_a_search(error);
    }
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
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let of_runs = OF_RUNS.iter().find(|(word, _)| *word == written && usage.contains("netduel runs "));
    if let Some((_, tip)) = of_runs {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).to_owned().into()]));
        return error;
    }
    // Other tools have them in place of a command of netduel, not of one below it.
    let is_first = usage.contains("netduel <COMMAND>");
    let foreign = FOREIGN.iter().find(|(word, _)| is_first && *word == written);
    let foreign = foreign.map(|(_, command)| (*command).to_owned());
    let names: Vec<String> = match foreign {
        Some(command) => vec![command],
        None => suggested.into_iter().filter(is_visible).collect(),
    };
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
    error
}

/// Nothing here takes a value that begins with a hyphen, so the parser's advice to write `--` before the option is dropped.
fn with_equivalent_option(mut error: Error) -> Error {
    error.remove(ContextKind::Suggested);
    let written = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(written)) => written.clone(),
        _ => String::new(),
    };
    let is_of_a_test = error.get(ContextKind::Usage).is_some_and(|usage| {
        QUICK_TESTS.iter().any(|test| usage.to_string().contains(&format!("netduel {test} ")))
    });
    // The parser takes the minus sign of a value for the start of an option.
    if written.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        let tip = "no option takes a negative number".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let foreign = FOREIGN_OPTIONS.iter().find(|(option, _)| is_of_a_test && *option == written);
    if let Some((_, option)) = foreign {
        error.insert(ContextKind::SuggestedArg, ContextValue::String((*option).to_owned()));
    }
    error
}

/// Names the option that limits a search where a duration was given with it.
fn with_time_of_a_search(mut error: Error) -> Error {
    let text = error.to_string();
    if text.contains("--search <") && text.contains("--time <") {
        let tip = "--search-time limits the time of a search".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
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
    fn options_of_iperf3_suggest_the_equivalent() {
        for (option, equivalent) in FOREIGN_OPTIONS {
            let text = error_text(&["tcp", "host", option, "1"]);
            assert!(text.contains(&format!("'{equivalent}'")), "{text}");
            let name = equivalent.split(' ').next().unwrap().trim_start_matches('-');
            let tcp = Cli::command().find_subcommand("tcp").unwrap().clone();
            assert!(tcp.get_arguments().any(|argument| argument.get_long() == Some(name)), "{name}");
        }
        let text = error_text(&["tcp", "host", "-f"]);
        assert!(text.contains("'-f'") && !text.contains("tip:"), "{text}");
        assert!(!error_text(&["runs", "-A"]).contains("--pin-client"));
    }

    #[test]
    fn duration_of_a_search_names_the_option_for_its_time_limit() {
        let search = ["pps", "host", "--search", "no-drop"];
        let tip = "tip: --search-time limits the time of a search";
        let text = error_text(&[&search[..], &["-t", "1"]].concat());
        assert!(text.contains("cannot be used with") && text.contains(tip), "{text}");
        let text = error_text(&[&search[..], &["--rate", "1k"]].concat());
        assert!(text.contains("cannot be used with") && !text.contains("tip:"), "{text}");
    }

    #[test]
    fn negative_number_is_named_as_the_fault() {
        for words in [
            &["tcp", "host", "-t", "-1"][..],
            &["run", "x.toml", "--seed", "-15"],
            &["lab", "up", "--rules", "-1"],
        ] {
            let text = error_text(words);
            assert!(text.contains("tip: no option takes a negative number"), "{text}");
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
        assert!(error_text(&["list"]).contains("'runs'"));
        for (word, tip) in [("list", "tip: `netduel runs` lists"), ("show", "tip: `netduel report RUN`")] {
            let text = error_text(&["runs", word]);
            assert!(text.contains(tip) && !text.contains("similar subcommand"), "{text}");
        }
        assert!(!error_text(&["lab", "list"]).contains("'runs'"));
    }
}
