//! The command `azure-undo`: returns a resource of Azure to its original state. Started by runs and their guards, also after the run was killed.
use std::sync::Arc;
use std::time::Duration;

use netduel_agent::treatment::THIS_PROGRAM;
use netduel_azure::az::CallError;
use netduel_azure::az::patient::Patient;
use netduel_azure::az::process::AzProcess;
use netduel_azure::resource::{self, Machine, Place};

use crate::azure::session::kind_of_call;
use crate::cli::azure_undo::{PlaceArgs, UndoCommand};
use crate::console::tell;
use crate::exit::Failure;

/// Limit of an undo: a VM is stopped and started.
pub const UNDO_LIMIT: Duration = Duration::from_secs(35 * 60);
/// How long calls of `az` are repeated. What is left of the limit is for the start of a VM after a change that was repeated in vain.
const PATIENCE: Duration = UNDO_LIMIT.saturating_sub(Duration::from_secs(5 * 60));

/// What is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// Accelerated networking of a NIC; `stops`: with its VM stopped.
    Nic { place: Place, nic: String, accelerated: bool, stops: bool },
    /// The proximity placement group of a VM.
    Placement { place: Place, vm: String, group: Option<String> },
    /// The stop of a VM.
    Start { place: Place, vm: String },
}

impl Undo {
    /// The command that does it, by the program that runs it: its record is read after an update of this one, and after a restart of the machine,
    /// when another user may have made a file at its path. `shutdown_unix_s`: the daily shutdown of the VM, after which it is not started, in
    /// seconds since 1970-01-01T00:00:00Z.
    pub fn command(&self, shutdown_unix_s: Option<u64>) -> Vec<String> {
        let (kind, name, place) = match self {
            Self::Nic { place, nic, .. } => ("nic", nic, place),
            Self::Placement { place, vm, .. } => ("placement", vm, place),
            Self::Start { place, vm } => ("start", vm, place),
        };
        let mut words = [THIS_PROGRAM, "azure-undo", kind].map(str::to_owned).to_vec();
        words.extend(["--resource-group".to_owned(), place.group.clone()]);
        words.extend(place.subscription.iter().flat_map(|id| ["--subscription".to_owned(), id.clone()]));
        words.extend(shutdown_unix_s.iter().flat_map(|at| ["--shutdown-at".to_owned(), at.to_string()]));
        match self {
            Self::Nic { accelerated, stops, .. } => {
                words.extend(["--accelerated".to_owned(), accelerated.to_string()]);
                words.extend(stops.then(|| "--stop".to_owned()));
            }
            Self::Placement { group, .. } => {
                words.extend(group.iter().flat_map(|group| ["--group".to_owned(), group.clone()]));
            }
            Self::Start { .. } => {}
        }
        words.push(name.clone());
        words
    }
}

fn place(args: &PlaceArgs) -> Place {
    Place { subscription: args.subscription.clone(), group: args.resource_group.clone() }
}

/// Runs the command. No signal ends it: it is what remains of a run that was ended.
pub fn command(command: &UndoCommand) -> Result<(), Failure> {
    let mut process = AzProcess::new(Arc::default());
    let mut az = Patient::new(&mut process, PATIENCE);
    let (may_stop, shutdown_unix_s) = match command {
        UndoCommand::Nic { stop, shutdown, .. } => (*stop, shutdown.shutdown_at),
        UndoCommand::Placement { shutdown, .. } | UndoCommand::Start { shutdown, .. } => {
            (true, shutdown.shutdown_at)
        }
    };
    let machine = |vm: &str, place: &PlaceArgs| Machine { place: self::place(place), name: vm.to_owned() };
    let (what, undone) = match command {
        UndoCommand::Nic { name, accelerated, stop, place, .. } => (
            format!("accelerated networking of {name}"),
            resource::restore_nic(&mut az, &self::place(place), name, *accelerated, *stop, shutdown_unix_s),
        ),
        UndoCommand::Placement { vm, group, place, .. } => (
            format!("the placement of {vm}"),
            resource::restore_placement(&mut az, &machine(vm, place), group.as_deref(), shutdown_unix_s),
        ),
        UndoCommand::Start { vm, place, .. } => (
            format!("the running state of {vm}"),
            resource::restore_running(&mut az, &machine(vm, place), shutdown_unix_s),
        ),
    };
    if may_stop && undone.is_ok() && resource::is_past(shutdown_unix_s) {
        tell(&format!("{what}: the VM was not started, because its daily shutdown has passed"));
    }
    undone.map_err(|error| {
        let needs_stop = matches!(error, CallError::NotTaken { .. }) && !may_stop;
        let kind = kind_of_call(&error);
        let failure = Failure::caused(kind, format!("failed to restore {what}: {error}"), error);
        if needs_stop { failure.remedy("stop the VM, and repeat the command") } else { failure }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn design_note_has_the_limits_of_an_undo() {
        let note = include_str!("../../../../docs/design/0042-azure-treatments-and-prices.md");
        let [limit, patience] = [UNDO_LIMIT, PATIENCE].map(|time| time.as_secs() / 60);
        for part in [
            format!("Limit {limit} min in place of 30 s."),
            format!("repeats each call of `az` for {patience} min while"),
        ] {
            assert!(note.contains(&part), "docs/design/0042 lacks this text: {part}");
        }
    }

    #[test]
    fn command_of_an_undo_is_read_as_it_was_written() {
        let place = Place { subscription: Some("s".to_owned()), group: "g".to_owned() };
        let nic = Undo::Nic { place: place.clone(), nic: "n".to_owned(), accelerated: false, stops: true };
        let words = nic.command(Some(1_795_374_000));
        assert_eq!(words[0], THIS_PROGRAM, "a file that another one may replace");
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::AzureUndo(UndoCommand::Nic { name, accelerated, stop, place: read, shutdown }) =
            cli.command
        else {
            panic!("another command");
        };
        assert_eq!(
            (name.as_str(), accelerated, stop, super::place(&read)),
            ("n", false, true, place.clone())
        );
        assert_eq!(shutdown.shutdown_at, Some(1_795_374_000));
        let group = Some("/subscriptions/s/near".to_owned());
        let placement = Undo::Placement { place: place.clone(), vm: "vm1".to_owned(), group: group.clone() };
        let cli = Cli::try_parse_from(placement.command(None)).unwrap();
        let Command::AzureUndo(UndoCommand::Placement { vm, group: read, .. }) = cli.command else {
            panic!("another command");
        };
        assert_eq!((vm.as_str(), read), ("vm1", group));
        let start = Undo::Start { place, vm: "vm1".to_owned() };
        assert!(matches!(
            Cli::try_parse_from(start.command(None)).unwrap().command,
            Command::AzureUndo(UndoCommand::Start { .. })
        ));
    }
}
