//! What a run does on the hosts of a plan besides traffic, in words: a reader decides by them whether to run a plan.
use netduel_model::plan::{HostCommand, HostUses, Launch, SshHost, Treatment};
use netduel_model::shell;

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
    lines.extend(treatments(&host.treatments));
    lines.extend(host.events.iter().map(|event| format!("event {event}")));
    lines
}

/// The treatments of a host, without their ends: those that change one thing in several ways have a line together.
fn treatments(all: &[Treatment]) -> Vec<String> {
    let mut lines: Vec<(Option<String>, Vec<String>)> = Vec::new();
    for action in all.iter().map(|treatment| &treatment.action) {
        let target = action.target();
        match lines.iter_mut().find(|(other, _)| target.is_some() && *other == target) {
            Some((_, changes)) => changes.push(action.words()),
            None => lines.push((target, vec![action.words()])),
        }
    }
    lines.into_iter().map(|(target, changes)| together(&target.unwrap_or_default(), &changes)).collect()
}

/// The changes of one thing: `gro of eth0 off`, or `gro of eth0: on, off, by arm`.
fn together(target: &str, changes: &[String]) -> String {
    if let [one] = changes {
        return one.clone();
    }
    let states = changes.iter().map(|change| change.strip_prefix(target)?.strip_prefix(' '));
    match states.collect::<Option<Vec<&str>>>() {
        Some(states) => format!("{target}: {}, by arm", states.join(", ")),
        None => format!("{}, by arm", changes.join(", ")),
    }
}

fn command(command: &HostCommand) -> String {
    let undo = match command.undo.as_slice() {
        [] => String::new(),
        undo => format!(", undone by `{}`", shell::line(undo)),
    };
    format!("command `{}`{undo}", shell::line(&command.words))
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::parse;

    use super::*;

    #[test]
    fn treatments_of_one_thing_have_a_line_together_without_their_ends() {
        let arm = |name: &str, state: &str, mtu: u32| {
            format!(
                "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [\n\
                 {{ offload = \"gro\", interface = \"eth0\", value = \"{state}\" }},\n\
                 {{ mtu = {mtu}, interface = \"eth0\", on = \"server\" }},\n\
                 {{ queues = 2, interface = \"eth0\", on = \"client\" }}]\n"
            )
        };
        let plan = format!(
            "name = \"p\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"local\"\n\
             addresses = [\"192.0.2.1\"]\n{}{}[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n",
            arm("one", "on", 1400),
            arm("other", "off", 9000)
        );
        let plan = parse(&plan, "p").unwrap();
        let lines: Vec<Vec<String>> = plan.uses().iter().map(uses).collect();
        assert_eq!(lines[0], ["this machine", "gro of eth0: on, off, by arm", "2 queues on eth0"]);
        assert_eq!(
            lines[1],
            [
                "this machine",
                "gro of eth0: on, off, by arm",
                "MTU 1400 B on eth0, MTU 9000 B on eth0, by arm"
            ]
        );
    }
}
