//! Parses host arguments, and selects the launcher of each host's agent.
use std::collections::BTreeMap;

use netduel_model::ids::{HostName, LabName, NAME_LEN_MAX};
use netduel_model::lab::DEFAULT_NAME;
use netduel_model::plan::SshHost;
use netduel_model::socket_name::SocketName;

use crate::exit::{Failure, Kind};
use crate::quick::known;
use crate::ssh::{OnFailure, SshHosts};
use crate::{named_namespace, program, redaction};
use netduel_model::pairing::Pairing;

/// The word for this host.
const THIS_HOST: &str = "local";

/// A host of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The argument.
    pub word: String,
    /// How its agent is started.
    start: Start,
}

/// How an agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    /// By this argv.
    Argv(Vec<String>),
    /// By ssh.
    Ssh(SshHost),
}

impl Target {
    /// The argument as it is shown, with `--redact` by its pseudonym.
    pub fn shown(&self) -> String {
        shown(&self.word)
    }

    /// The argv, or the reason why it could not start an agent.
    pub fn checked_argv(&self, name: &HostName, ssh: &mut SshHosts) -> Result<Vec<String>, String> {
        if let Some(name) = self.word.strip_prefix("netns:") {
            named_namespace::check(name)?;
        }
        match &self.start {
            Start::Argv(argv) => Ok(argv.clone()),
            Start::Ssh(host) => ssh.argv(name, host),
        }
    }
}

/// Prepares the hosts that are reached by ssh, all at the same time.
pub fn prepare(targets: &BTreeMap<HostName, Target>, ssh: &mut SshHosts) {
    let by_ssh = targets.iter().filter_map(|(name, target)| match &target.start {
        Start::Ssh(host) => Some((name, host)),
        Start::Argv(_) => None,
    });
    // Failed hosts do not affect the others.
    drop(ssh.prepare(by_ssh, OnFailure::Continue));
}

/// With `--redact` no message shows the host arguments from here on.
pub fn learn(words: &[String]) {
    for word in words {
        shown(word);
    }
}

/// A host argument as it is shown. The word for this host names none, and is a word of messages.
fn shown(word: &str) -> String {
    if word == THIS_HOST { word.to_owned() } else { redaction::host(word) }
}

/// Parses the host arguments; each gets a name for errors.
pub fn targets(words: &[String]) -> Result<BTreeMap<HostName, Target>, Failure> {
    let mut targets: BTreeMap<HostName, Target> = BTreeMap::new();
    for word in words {
        let target = Target { word: word.clone(), start: start(word)? };
        if targets.values().any(|other| other == &target) {
            return Err(Failure::message(Kind::Usage, format!("{word} is named twice")));
        }
        targets.insert(name(word, targets.len())?, target);
    }
    Ok(targets)
}

/// A host name similar to the argument; the number makes names unique and keeps their order.
fn name(word: &str, index: usize) -> Result<HostName, Failure> {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' };
    let text: String = format!("{:02}-{word}", index + 1).chars().map(allowed).take(NAME_LEN_MAX).collect();
    HostName::new(text).map_err(|error| Failure::new(Kind::Internal, error))
}

/// Checks that the labs of the words are up: the agent of a guest would only end.
pub fn check_labs(targets: &BTreeMap<HostName, Target>) -> Result<(), Failure> {
    let mut words =
        targets.values().map(|target| &target.word).filter_map(|word| Some((word, lab_of(word)?)));
    if targets.values().all(|target| lab_of(&target.word).is_none()) {
        return Ok(());
    }
    let up = netduel_lab::list().map_err(crate::lab::failed)?;
    match words.find(|(_, lab)| !up.iter().any(|name| name.as_str() == *lab)) {
        Some((word, lab)) => Err(no_lab(word, lab, &up)),
        None => Ok(()),
    }
}

/// The lab of a word for a guest.
fn lab_of(word: &str) -> Option<&str> {
    let rest = word.strip_prefix("lab:")?;
    Some(rest.split_once('/').map_or(DEFAULT_NAME, |(lab, _)| lab))
}

fn no_lab(word: &str, lab: &str, up: &[LabName]) -> Failure {
    let names: Vec<&str> = up.iter().map(LabName::as_str).collect();
    let which =
        if names.is_empty() { "no lab is up".to_owned() } else { format!("up: {}", names.join(", ")) };
    Failure::message(Kind::Lab, format!("failed to inspect {word}: there is no lab {lab}; {which}"))
        .remedy(format!("make it with `netduel lab up --lab {lab}`, or name another one as lab:LAB/GUEST"))
}

fn start(word: &str) -> Result<Start, Failure> {
    match word.strip_prefix("ssh:") {
        Some(destination) if SshHost::is_plain_word(destination) => Ok(Start::Ssh(SshHost::of(destination))),
        Some(_) => Err(wrong(word, "names no destination")),
        None => argv(word).map(Start::Argv),
    }
}

fn wrong(word: &str, why: &str) -> Failure {
    let text = format!(
        "{word:?} {why}: name HOST or HOST:PORT of a paired server, ssh:DESTINATION, netns:NAME, lab:GUEST, lab:LAB/GUEST, or local"
    );
    Failure::message(Kind::Usage, text)
}

fn argv(word: &str) -> Result<Vec<String>, Failure> {
    let own = program::path().display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let wrong = |why: &str| wrong(word, why);
    let Some((kind, rest)) = word.split_once(':').filter(|(kind, _)| matches!(*kind, "netns" | "lab")) else {
        return if word == THIS_HOST { Ok(words(&[&own, "agent"])) } else { paired(word, &own) };
    };
    match kind {
        "netns" if rest.is_empty() || rest.starts_with('-') || rest.contains('/') => {
            Err(wrong("names no network namespace"))
        }
        "netns" => Ok([named_namespace::prefix(rest), words(&[&own, "agent"])].concat()),
        _ => {
            let (lab, guest) = rest.split_once('/').unwrap_or((DEFAULT_NAME, rest));
            let lab = LabName::new(lab).map_err(|_| wrong("names no lab"))?;
            if guest.is_empty() || guest.starts_with('-') {
                return Err(wrong("names no guest of a lab"));
            }
            Ok(words(&[&own, "lab", "exec", "--lab", lab.as_str(), guest, "--", &own, "agent"]))
        }
    }
}

fn paired(word: &str, own: &str) -> Result<Vec<String>, Failure> {
    if Pairing::looks_like(word) {
        let text = "a pairing string is no host: store it with `netduel pair -`, which reads it from standard input, and name its HOST:PORT";
        return Err(Failure::message(Kind::Usage, text));
    }
    let problem = "is neither HOST, HOST:PORT, ssh:, netns: nor lab:";
    let name = SocketName::parse(word).ok_or_else(|| known::names_no_server(word, problem))?;
    if known::find(&name)?.is_none() {
        return Err(Failure::message(Kind::NotPaired, format!("there is no pairing with {name}"))
            .remedy(format!("{}, or reach it as ssh:{}", known::PAIR, name.host())));
    }
    Ok(vec![own.to_owned(), "link".to_owned(), name.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(word: &str) -> Result<Vec<String>, String> {
        match start(word).map_err(|failure| failure.to_string())? {
            Start::Argv(argv) => Ok(argv[1..].to_vec()),
            Start::Ssh(host) => Ok(vec!["by ssh".to_owned(), host.host]),
        }
    }

    #[test]
    fn host_argument_selects_the_launcher() {
        assert_eq!(of("local").unwrap(), ["agent"]);
        assert_eq!(of("ssh:u@h").unwrap(), ["by ssh", "u@h"]);
        assert_eq!(of("netns:blue").unwrap()[..3], ["netns", "exec", "blue"]);
        assert_eq!(of("lab:a").unwrap()[..5], ["lab", "exec", "--lab", "local", "a"]);
        assert_eq!(of("lab:mine/b").unwrap()[..5], ["lab", "exec", "--lab", "mine", "b"]);
    }

    #[test]
    fn lab_that_does_not_exist_is_named_with_those_that_do() {
        assert_eq!(["lab:a", "lab:mine/b", "local"].map(lab_of), [Some("local"), Some("mine"), None]);
        let up = [LabName::new("mine").expect("a name")];
        let text = no_lab("lab:a", "local", &up).to_string();
        assert!(text.contains("no lab local") && text.contains("up: mine"), "{text}");
        assert!(no_lab("lab:a", "local", &[]).to_string().contains("no lab is up"));
    }

    #[test]
    fn a_word_that_would_be_an_option_is_refused() {
        for word in ["ssh:-oProxyCommand=x", "ssh:", "netns:../x", "netns:-x", "lab:-x", "lab:a b/c"] {
            assert!(of(word).is_err(), "{word}");
        }
    }

    #[test]
    fn similar_host_names_stay_distinct_and_in_order() {
        let words = ["ssh:a:b", "ssh:a-b", "local"].map(str::to_owned);
        let targets = targets(&words).unwrap();
        assert_eq!(targets.values().map(|target| target.word.as_str()).collect::<Vec<_>>(), words);
        assert!(super::targets(&["local".into(), "local".into()]).is_err());
    }
}
