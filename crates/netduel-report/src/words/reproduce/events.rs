//! Events of a workload by hand: each is a command at its time.
use netduel_model::failover::{PathEvent, PathEventKind};
use netduel_model::lab;
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Arm, Launch, ResolvedPlan, TreatmentAction};
use netduel_model::shell;
use netduel_model::workload::Role;

use super::{comment, on, setting};

/// The events, each below its time and host.
pub(super) fn commands(plan: &ResolvedPlan, arm: &Arm, events: &[PathEvent]) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, event) in events.iter().enumerate() {
        for role in [Role::Client, Role::Server].into_iter().filter(|role| event.on.includes(*role)) {
            let host = arm.pair.host(role).as_str();
            lines.push(comment(&format!("{} at {} after the start: {role} {host}", event.kind, event.at)));
            let earlier = events.iter().take(index).rev();
            let taken = earlier.filter(|one| one.on.includes(role)).find(|one| one.kind.takes());
            lines.extend(match guest(plan, host) {
                Some(guest) => in_the_lab(plan, host, guest, event.kind),
                None => vec![on_a_host(plan, host, event, taken)],
            });
        }
    }
    lines
}

/// The guest of the lab that a host is.
fn guest<'p>(plan: &'p ResolvedPlan, host: &str) -> Option<&'p str> {
    let (_, host) = plan.hosts.iter().find(|(name, _)| name.as_str() == host)?;
    let Launch::Lab { guest } = &host.launch else { return None };
    Some(guest)
}

/// An event on the path of a guest, which the processes of the lab make in a run.
fn in_the_lab(plan: &ResolvedPlan, host: &str, guest: &str, kind: PathEventKind) -> Vec<String> {
    let function = lab::ACCELERATED_INTERFACE;
    let path = |path: LabPath| setting(&TreatmentAction::Path { path });
    let delete = || on(plan, host, &format!("ip link delete dev {function}"));
    match kind {
        PathEventKind::Remove => vec![delete()],
        PathEventKind::Graceful => vec![path(LabPath::Synthetic), delete()],
        PathEventKind::Carrier => {
            let (machine, port) = (lab::machine(guest).unwrap_or(guest), lab::ACCELERATED_PORT);
            vec![format!("netduel lab exec {} -- ip link set dev {port} down", shell::word(machine))]
        }
        PathEventKind::Down => vec![on(plan, host, &format!("ip link set dev {function} down"))],
        PathEventKind::Return => vec![path(LabPath::Accelerated)],
        PathEventKind::AddNic | PathEventKind::RemoveNic => {
            vec![comment("netduel has no command that adds or removes the second interface of a lab")]
        }
        PathEventKind::Command => vec![comment("no event of a lab")],
    }
}

/// An event on a host's own path. `taken`: the event that a return undoes.
fn on_a_host(plan: &ResolvedPlan, host: &str, event: &PathEvent, taken: Option<&PathEvent>) -> String {
    let interface = |event: &PathEvent| event.interface.clone().unwrap_or_else(|| "INTERFACE".to_owned());
    let command = match event.kind {
        PathEventKind::Remove => setting(&TreatmentAction::Pci { interface: interface(event) }),
        PathEventKind::Down => setting(&TreatmentAction::Vf { interface: interface(event) }),
        PathEventKind::Command => shell::line(&event.command),
        PathEventKind::Return => match taken.map(|taken| (taken.kind, taken)) {
            Some((PathEventKind::Remove, _)) => "sh -c 'echo 1 > /sys/bus/pci/rescan'".to_owned(),
            Some((PathEventKind::Down, taken)) => {
                format!("ip link set dev {} up", shell::word(&interface(taken)))
            }
            Some((PathEventKind::Command, taken)) => shell::line(&taken.undo),
            _ => String::new(),
        },
        PathEventKind::Graceful
        | PathEventKind::Carrier
        | PathEventKind::AddNic
        | PathEventKind::RemoveNic => String::new(),
    };
    if command.is_empty() {
        comment("netduel has no command for this event")
    } else {
        on(plan, host, &command)
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::parse;

    use super::super::commands_of_tests;

    const ARMS: &str = "[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n[design]\naa = true\n[[workloads]]\nname = \"w\"\n";

    /// The lines of the workload of a plan in a lab.
    fn in_a_lab(workload: &str) -> Vec<String> {
        let hosts = "[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n";
        let arms = ARMS.replace("[design]", "treatments = [{ path = \"accelerated\" }]\n[design]");
        lines(&format!("{hosts}{arms}{workload}\n"))
    }

    /// The same on two hosts.
    fn on_hosts(workload: &str) -> Vec<String> {
        let hosts = "[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"ssh\"\nhost = \"b\"\naddresses = [\"192.0.2.2\"]\n";
        lines(&format!("{hosts}{ARMS}{workload}\n"))
    }

    fn lines(plan: &str) -> Vec<String> {
        let text = format!("name = \"p\"\nquestion = \"?\"\n{plan}");
        let plan = parse(&text, "p").unwrap_or_else(|error| panic!("{text}\n{error}"));
        commands_of_tests(&plan)[0].arms[0].lines.clone()
    }

    #[test]
    fn failover_is_its_traffic_and_its_events() {
        let found = in_a_lab(
            "type = \"failover\"\nduration = \"3 s\"\n\
             events = [{ at = \"1 s\", do = \"carrier\" }, { at = \"2 s\", do = \"return\" }]",
        );
        assert_eq!(
            found,
            [
                "# the probes, 1000 /s each way, in one terminal: the number lost, divided by the rate, is about the outage",
                "netduel lab exec a -- netduel udp 10.77.0.2 -t 3 --bidir -b 512000 -l 64 --offload none -4",
                "# the streams, at the same time in another terminal",
                "netduel lab exec a -- netduel tcp 10.77.0.2 -t 3 --engine lean -4",
                "# carrier at 1 s after the start: client a",
                "netduel lab exec h1 -- ip link set dev vvf down",
                "# return at 2 s after the start: client a",
                "netduel lab path accelerated",
            ]
        );
    }

    #[test]
    fn return_on_a_host_undoes_what_was_taken() {
        let of = |taken: &str| {
            let found = on_hosts(&format!(
                "type = \"failover\"\nduration = \"3 s\"\nstreams = 0\n\
                 events = [{{ at = \"1 s\", do = \"{taken}\", interface = \"eth1\" }}, {{ at = \"2 s\", do = \"return\", interface = \"eth1\" }}]"
            ));
            [3, 5].map(|line| found[line].clone())
        };
        let [down, up] = of("down");
        assert!(down.starts_with("ip link set dev eth1 down"), "{down}");
        assert_eq!(up, "ip link set dev eth1 up");
        assert_eq!(of("remove")[1], "sh -c 'echo 1 > /sys/bus/pci/rescan'");
    }
}
