//! The commands that are in force on each host, those of treatments and of events. Their effects may outlive a boot, which ends the agent and the
//! guard that would undo them. It runs and undoes nothing.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::failover::PathEvent;
use netduel_model::ids::HostName;
use netduel_model::plan::TreatmentAction;
use netduel_model::shell;
use netduel_model::workload::Role;

/// What became of a command whose host was started again.
const REBOOTED: &str = "was in force when the host rebooted, so its undo may not have run";
/// The same of a command whose host has no agent at the end of the run.
const LOST: &str = "was in force when the agent was lost; the guard undoes it, unless the host rebooted";

/// A command and the one that undoes it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    command: Vec<String>,
    undo: Vec<String>,
}

impl Made {
    /// What became of it, and how to undo it by hand.
    fn words(&self, fate: &str) -> String {
        format!("`{}` {fate}; by hand: `{}`", shell::line(&self.command), shell::line(&self.undo))
    }
}

/// The commands that are in force by host, and the boot in which each host was described last.
#[derive(Debug, Default)]
pub(super) struct CommandsInForce {
    in_force: BTreeMap<HostName, BTreeSet<Made>>,
    boots: BTreeMap<HostName, String>,
}

impl CommandsInForce {
    /// Notes the commands of treatments, before a host is requested to apply them.
    pub(super) fn note_treatments(&mut self, host: &HostName, treatments: &[TreatmentAction]) {
        for treatment in treatments {
            if let TreatmentAction::Command { command, undo } = treatment {
                self.note(host, command, undo);
            }
        }
    }

    /// Notes the commands of events, before the traffic of a host starts.
    pub(super) fn note_events(&mut self, host: &HostName, role: Role, events: &[PathEvent]) {
        for event in events.iter().filter(|event| event.on.includes(role) && !event.command.is_empty()) {
            self.note(host, &event.command, &event.undo);
        }
    }

    fn note(&mut self, host: &HostName, command: &[String], undo: &[String]) {
        let made = Made { command: command.to_vec(), undo: undo.to_vec() };
        self.in_force.entry(host.clone()).or_default().insert(made);
    }

    /// The agent of a host has undone everything, or has reported what it could not undo.
    pub(super) fn undone(&mut self, host: &HostName) {
        self.in_force.remove(host);
    }

    /// An agent has described its host, in this boot. Returns the commands of an earlier boot that were not undone, in words. In the same boot the
    /// guard of the former agent undoes them, or the new agent does and reports what it cannot undo.
    pub(super) fn described(&mut self, host: &HostName, boot: Option<&str>) -> Vec<String> {
        let earlier = boot.and_then(|boot| self.boots.insert(host.clone(), boot.to_owned()));
        let left = self.in_force.remove(host).unwrap_or_default();
        if earlier.as_deref() == boot || earlier.is_none() {
            return Vec::new();
        }
        left.iter().map(|made| made.words(REBOOTED)).collect()
    }

    /// The commands that were in force when a host lost its agent, in words, where no agent was started since.
    pub(super) fn lost(&self) -> impl Iterator<Item = (&HostName, String)> {
        let each = self.in_force.iter();
        each.flat_map(|(host, commands)| commands.iter().map(move |made| (host, made.words(LOST))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_one(host: &HostName) -> CommandsInForce {
        let mut commands = CommandsInForce::default();
        assert!(commands.described(host, Some("first boot")).is_empty());
        let words = |word: &str| vec!["set".to_owned(), word.to_owned()];
        let command = TreatmentAction::Command { command: words("on"), undo: words("off") };
        let sysctl = TreatmentAction::Sysctl { name: "net.a".to_owned(), value: "1".to_owned() };
        commands.note_treatments(host, &[sysctl, command]);
        commands
    }

    #[test]
    fn command_is_left_by_a_reboot_only_as_long_as_it_is_in_force() {
        let host = HostName::new("a").unwrap();
        let left = with_one(&host).described(&host, Some("second boot"));
        assert_eq!(left, [format!("`set on` {REBOOTED}; by hand: `set off`")]);
        // The guard undoes it in the same boot, so that a later reboot finds nothing in force.
        let mut same_boot = with_one(&host);
        assert!(same_boot.described(&host, Some("first boot")).is_empty());
        assert!(same_boot.described(&host, Some("second boot")).is_empty());
        let mut undone = with_one(&host);
        undone.undone(&host);
        assert!(undone.lost().next().is_none());
        assert!(undone.described(&host, Some("second boot")).is_empty());
        assert!(with_one(&host).described(&host, None).is_empty(), "whether it rebooted is unknown");
    }

    #[test]
    fn command_of_a_host_without_an_agent_is_named_with_its_undo() {
        let host = HostName::new("a").unwrap();
        let commands = with_one(&host);
        let lost: Vec<(&HostName, String)> = commands.lost().collect();
        assert_eq!(lost, [(&host, format!("`set on` {LOST}; by hand: `set off`"))]);
    }

    #[test]
    fn commands_that_are_left_are_those_of_the_plan_when_a_shell_reads_them() {
        let words = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
        let made = Made { command: words("echo 1 > /a"), undo: words("echo 0 > /a b") };
        assert_eq!(
            made.words(LOST),
            format!("`sh -c 'echo 1 > /a'` {LOST}; by hand: `sh -c 'echo 0 > /a b'`")
        );
    }
}
