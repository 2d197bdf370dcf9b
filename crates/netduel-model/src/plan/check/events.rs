//! Events on a path: whether the hosts of an arm have them.
use crate::failover::{PathEvent, PathEventKind};
use crate::lab;
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::resolved::{Host, Launch, Treatment};
use crate::plan::spec::{LabPath, Side};

use super::treatments;
use super::values::{check_command, check_interface};

/// The hosts of an arm and what it changes on them.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub client: Option<&'a Host>,
    pub server: Option<&'a Host>,
    pub treatments: &'a [Treatment],
}

/// Notes events that the hosts of an arm do not have. `path`: where the list of events stands.
pub(super) fn check(events: &[PathEvent], ends: Ends<'_>, path: &str, problems: &mut Problems<'_>) {
    for (index, event) in events.iter().enumerate() {
        let path = element_path(path, index);
        check_command_of(event, &path, problems);
        check_hosts(event, ends, &path, problems);
    }
}

/// A command has its undo, and other events have neither.
fn check_command_of(event: &PathEvent, path: &str, problems: &mut Problems<'_>) {
    for (key, words) in [("command", &event.command), ("undo", &event.undo)] {
        if event.kind == PathEventKind::Command {
            check_command(problems, &key_path(path, key), words);
        } else if !words.is_empty() {
            let wrong = format!("is set, and the event is \"{}\"", event.kind);
            problems.add(&key_path(path, key), wrong, "leave it out, or write `do = \"command\"`");
        }
    }
}

fn check_hosts(event: &PathEvent, ends: Ends<'_>, path: &str, problems: &mut Problems<'_>) {
    let (Some(client), Some(server)) = (ends.client, ends.server) else { return };
    let in_lab = [client, server].map(|host| matches!(host.launch, Launch::Lab { .. }));
    if in_lab == [true, true] {
        if event.kind == PathEventKind::Command {
            let wrong = "is \"command\", which guests of the lab do not have";
            problems.add(&key_path(path, "do"), wrong, "allowed here: all other events");
        }
        if event.interface.is_some() {
            let wrong = "names an interface, but guests of the lab have one to take";
            let allowed = format!("leave it out: it is {}", lab::ACCELERATED_INTERFACE);
            problems.add(&key_path(path, "interface"), wrong, allowed);
        }
        let path_of_arm = treatments::lab_path(ends.treatments);
        if (event.kind.takes() || event.kind == PathEventKind::Return)
            && path_of_arm != Some(LabPath::Accelerated)
        {
            let wrong = format!(
                "is \"{}\", on an arm whose traffic does not run over the virtual function",
                event.kind
            );
            let allowed = "give the arm treatments = [{ path = \"accelerated\" }]";
            problems.add(&key_path(path, "do"), wrong, allowed);
        }
        return;
    }
    let is_of_lab = matches!(
        event.kind,
        PathEventKind::Graceful | PathEventKind::Carrier | PathEventKind::AddNic | PathEventKind::RemoveNic
    );
    if is_of_lab {
        let wrong = format!("is \"{}\", which only guests of the lab have", event.kind);
        problems.add(&key_path(path, "do"), wrong, "allowed here: `remove`, `down`, `return` or `command`");
    }
    for (side, host) in [(Side::Client, client), (Side::Server, server)] {
        if (event.on == side || event.on == Side::Both)
            && let Launch::Paired { address } = &host.launch
        {
            let wrong = format!("takes from the `netduel serve` at {address}, which makes no changes");
            problems.add(
                path,
                wrong,
                "name the other end in `on`, or start an agent there with launch = \"command\"",
            );
        }
    }
    if let Some(name) = &event.interface {
        check_interface(problems, &key_path(path, "interface"), name);
    } else if ![client, server].iter().any(|host| host.launch.is_of_bed()) {
        // On a bed it is that of the NIC in the network of the arm.
        let allowed = "name the virtual function, as `ip link` shows it, for example interface = \"enP1s1\"";
        problems.add(&key_path(path, "interface"), "is missing", allowed);
    }
}
