//! What a run does on the hosts of a plan besides traffic, in words: a reader decides by them whether to run a plan.
use netduel_model::plan::{HostCommand, HostUses, Launch, SshHost};
use netduel_model::shell;

use super::treatment;

/// How the agent of a host is started.
pub fn launch(launch: &Launch) -> String {
    match launch {
        Launch::Local => "this machine".to_owned(),
        Launch::Lab { guest } => {
            format!("guest {guest} of the run's lab, a network namespace of this machine")
        }
        Launch::Netns { name } => format!("network namespace {name} of this machine"),
        Launch::Command { prefix } => format!("reached by `{}`", shell::line(prefix)),
        Launch::Ssh(ssh) => ssh_launch(ssh),
        Launch::Paired { address } => format!("the server at {address}, which is paired"),
        Launch::Bed { vm, sudo, folder } => format!(
            "{vm} of a bed, reached by ssh{}; netduel is copied into {} there",
            if *sudo { " as root by `sudo -n`" } else { "" },
            folder.as_deref().unwrap_or(SshHost::FOLDER)
        ),
    }
}

/// The same in the few words that a drawing has room for.
pub fn brief_launch(launch: &Launch) -> String {
    match launch {
        Launch::Local => "this machine".to_owned(),
        Launch::Lab { .. } => "guest of the lab".to_owned(),
        Launch::Netns { name } => format!("namespace {name}"),
        Launch::Command { prefix } => format!("by {}", shell::line(prefix)),
        Launch::Ssh(ssh) => format!("ssh {}", ssh.host),
        Launch::Paired { address } => format!("paired {address}"),
        Launch::Bed { vm, .. } => format!("{vm} of a bed"),
    }
}

fn ssh_launch(ssh: &SshHost) -> String {
    let user = ssh.user.as_ref().map(|user| format!(", user {user}")).unwrap_or_default();
    let port = ssh.port.map(|port| format!(", port {port}")).unwrap_or_default();
    let root = if ssh.sudo { ", as root by `sudo -n`" } else { "" };
    format!("reached by ssh to {}{user}{port}{root}; netduel is copied into {} there", ssh.host, ssh.folder())
}

/// What a run does on a host, a line for each thing; the first is how its agent is started.
pub fn uses(host: &HostUses<'_>) -> Vec<String> {
    let mut lines = vec![launch(host.launch)];
    lines.extend(host.commands.iter().map(command));
    lines.extend(host.sysctls.iter().map(|(name, value)| format!("sysctl {name} = {value}")));
    lines.extend(host.treatments.iter().map(treatment));
    lines.extend(host.events.iter().map(|event| format!("event {event}")));
    lines
}

fn command(command: &HostCommand) -> String {
    let undo = match command.undo.as_slice() {
        [] => String::new(),
        undo => format!(", undone by `{}`", shell::line(undo)),
    };
    format!("command `{}`{undo}", shell::line(&command.words))
}
