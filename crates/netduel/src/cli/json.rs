//! Commands that print a JSON document, whose errors are documents too. Nothing is printed here.
use std::ffi::OsString;

use super::azure::AzureCommand;
use super::lab::LabCommand;
use super::shared::named_place;
use super::stored::RunsAction;
use super::{Command, PlanCommand};

/// Whether the command prints one JSON document on standard output; false for a stream of documents.
pub fn prints_document(command: &Command) -> bool {
    match command {
        Command::Demo(args) => args.outcome.json.json,
        Command::Run(args) => args.outcome.json.json,
        Command::Tcp(args) => args.common.json.json,
        Command::Udp(args) => args.common.json.json,
        Command::Pps(args) => args.common.json.json,
        Command::Rr(args) => args.common.json.json,
        Command::Crr(args) => args.common.json.json,
        Command::Pair(args) => args.json.json,
        Command::Inspect(args) => args.json.json,
        Command::Plan(PlanCommand::Check { json, .. }) => json.json,
        Command::Lab(command) => match command {
            LabCommand::Up { json, .. }
            | LabCommand::Down { json, .. }
            | LabCommand::Status { json }
            | LabCommand::Path { json, .. } => json.json,
            LabCommand::Exec { .. } => false,
        },
        Command::Azure(command) => match command {
            AzureCommand::Check { json, .. }
            | AzureCommand::Up { json, .. }
            | AzureCommand::Down { json, .. }
            | AzureCommand::Sizes { json, .. }
            | AzureCommand::List { json, .. } => json.json,
            AzureCommand::Run(args) => args.outcome.json.json,
            AzureCommand::Template { .. } | AzureCommand::Schema => false,
        },
        // Its result is a stream of documents; if it cannot start, the error is the only one.
        Command::Serve(args) => args.json,
        Command::Report(args) => args.output.prints_json(args.format),
        Command::Compare(args) => args.output.prints_json(args.format),
        Command::History(args) => args.output.prints_json(args.format),
        Command::Runs(args) => match &args.action {
            Some(
                RunsAction::Rm { json, .. }
                | RunsAction::Verify { json, .. }
                | RunsAction::Tag { json, .. }
                | RunsAction::Rename { json, .. }
                | RunsAction::Export { json, .. }
                | RunsAction::Import { json, .. }
                | RunsAction::Du { json, .. },
            ) => json.json,
            Some(RunsAction::Baseline { out, .. }) => named_place(out.as_deref()).is_none(),
            None => args.json.json,
        },
        Command::Plan(PlanCommand::Schema)
        | Command::Agent { .. }
        | Command::Completions { .. }
        | Command::Man { .. }
        | Command::Complete { .. }
        | Command::Link { .. }
        | Command::LabKeeper { .. }
        | Command::UndoGuard { .. }
        | Command::AzureUndo(_) => false,
    }
}

/// Whether the arguments of an invalid command line request a JSON document. Arguments after `--` belong to another program.
pub fn is_asked_for(words: impl IntoIterator<Item = OsString>) -> bool {
    let is_json = |word: &[u8]| {
        matches!(word, b"--json" | b"--format=json")
            || (word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'J'))
    };
    let words: Vec<OsString> = words.into_iter().take_while(|word| word != "--").collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_encoded_bytes()).collect();
    words.iter().any(|word| is_json(word)) || words.windows(2).any(|pair| pair == [&b"--format"[..], b"json"])
}

/// Whether the JSON output of an invalid command line is a stream of documents, one in a line.
pub fn is_stream(words: impl IntoIterator<Item = OsString>) -> bool {
    words.into_iter().nth(1).is_some_and(|command| command == "serve")
}

/// Whether the arguments of an invalid command line request the events of a quick test.
pub fn are_events_asked_for(words: impl IntoIterator<Item = OsString>) -> bool {
    words.into_iter().take_while(|word| word != "--").any(|word| word == "--json-stream")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn every_command_with_json_prints_its_errors_as_documents() {
        for (words, expected) in [
            ("tcp far -J", true),
            ("tcp far", false),
            ("tcp far --json-stream", false),
            ("runs --json", true),
            ("runs rm last -J", true),
            ("runs verify -J", true),
            ("runs export last --json", true),
            ("runs du", false),
            ("lab down -J", true),
            ("lab exec a -- ip -J link", false),
            ("azure check x.toml --json", true),
            ("azure down x -y -J", true),
            ("azure run x.toml --json", true),
            ("azure sizes --type dpdk --json", true),
            ("azure template x.toml", false),
            ("report last --format json", true),
            ("report last --json --out x.json", false),
            ("report last --json --out -", true),
            ("report last --out a.html --out a.json", false),
            ("compare a b -J", true),
            ("compare a b c --format json", true),
            ("compare a b --json --out x.json", false),
            ("history -J", true),
            ("history last --format html", false),
            ("runs baseline last", true),
            ("runs baseline last --out x.json", false),
            ("runs baseline last --out -", true),
            ("plan check x.toml --json", true),
            ("pair --forget far --json", true),
            ("inspect -J", true),
        ] {
            let cli = super::super::Cli::parse_from(format!("netduel {words}").split(' '));
            assert_eq!(prints_document(&cli.command), expected, "{words}");
        }
    }

    #[test]
    fn arguments_after_the_separator_do_not_request_json() {
        let asks = |words: &str| is_asked_for(words.split(' ').map(OsString::from));
        assert!(asks("netduel report --format json") && asks("netduel report last --format=json --bogus"));
        assert!(!asks("netduel report --format md --bogus json"));
        let streams = |words: &str| is_stream(words.split(' ').map(OsString::from));
        assert!(streams("netduel serve --json --bogus") && !streams("netduel runs --json --bogus"));
        let events = |words: &str| are_events_asked_for(words.split(' ').map(OsString::from));
        assert!(events("netduel tcp far --json-stream --bogus"));
        assert!(!events("netduel tcp far -J --bogus") && !events("netduel lab exec a -- --json-stream"));
        assert!(asks("netduel tcp far --json --bogus") && asks("netduel tcp -qJ --bogus"));
        assert!(!asks("netduel tcp far --bogus") && !asks("netduel lab exec --bogus a -- ip -J link"));
    }
}
