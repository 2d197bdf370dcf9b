//! The commands that repeat each test by hand: settings of the arms, and the quick test of each workload at both ends.
//!
//! They are for readers who do not have the plan. A quick test is one trial: the comparison needs the plan. The file of each type of workload
//! in the model has its commands.
mod events;
mod ping;

use std::fmt::Write as _;

use netduel_model::plan::tuning::core_list;
use netduel_model::plan::{Arm, Host, Lab, Launch, ResolvedPlan, TreatmentAction};
use netduel_model::shell;
use netduel_model::units::Nanos;
use netduel_model::workload::{ByHand, Family, QuickTest, Role, Workload};

use super::setting::setting;
use super::text::plain;

/// Commands of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmCommands {
    /// The arms that they are for; empty when all arms have the same.
    pub arms: Vec<String>,
    /// Lines to copy.
    pub lines: Vec<String>,
    /// Why there are none; absent when there are.
    pub reason: Option<&'static str>,
}

/// Commands of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadCommands {
    /// The workload.
    pub workload: String,
    /// For each group of arms with the same commands.
    pub arms: Vec<ArmCommands>,
}

/// Commands, or why there are none.
type Lines = Result<Vec<String>, &'static str>;

/// The settings of each arm as commands, arms with the same ones together; empty when no arm changes anything.
pub fn settings_of_arms(plan: &ResolvedPlan) -> Vec<ArmCommands> {
    if plan.arms.iter().all(|arm| arm.treatments.is_empty()) {
        return Vec::new();
    }
    grouped(plan.arms.iter().map(|arm| (arm, Ok(settings(plan, arm)))))
}

/// The commands of arms, those of arms with the same ones once and without names when they are those of all.
fn grouped<'a>(commands: impl Iterator<Item = (&'a Arm, Lines)>) -> Vec<ArmCommands> {
    let mut groups: Vec<ArmCommands> = Vec::new();
    for (arm, lines) in commands {
        let (lines, reason) = match lines {
            Ok(lines) => (lines, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        match groups.iter_mut().find(|group| group.lines == lines && group.reason == reason) {
            Some(group) => group.arms.push(arm.name.to_string()),
            None => groups.push(ArmCommands { arms: vec![arm.name.to_string()], lines, reason }),
        }
    }
    if let [only] = groups.as_mut_slice() {
        only.arms.clear();
    }
    groups
}

/// The line that makes the lab of a plan. Everything else in it comes after this line; absent without a lab.
pub fn lab_command(plan: &ResolvedPlan) -> Option<String> {
    plan.lab.as_ref().map(lab_up)
}

/// Whether all hosts are guests of a lab, whose user has the rights of root in them.
pub fn is_in_lab(plan: &ResolvedPlan) -> bool {
    plan.hosts.values().all(|host| matches!(host.launch, Launch::Lab { .. }))
}

/// The lines that prepare all tests: the server of quick tests on each server host.
pub fn preparation(plan: &ResolvedPlan) -> Vec<String> {
    let mut lines = Vec::new();
    let mut servers: Vec<&str> = plan.arms.iter().map(|arm| arm.pair.server.as_str()).collect();
    servers.sort_unstable();
    servers.dedup();
    for server in servers {
        lines.push(comment(&format!(
            "server {server}, in a terminal of its own: prints a pairing string for each of its addresses"
        )));
        lines.push(on(plan, server, "netduel serve"));
    }
    lines
}

/// The lines that pair a client with an address of its server, for each address that a quick test uses. They ask for the string, so that
/// nothing can be pasted after them.
pub fn pairings(plan: &ResolvedPlan) -> Vec<Vec<String>> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for arm in &plan.arms {
        let is_quick = |workload: &&Workload| {
            let by_hand = workload.traffic.by_hand(&workload.timing);
            matches!(by_hand, ByHand::Test(_) | ByHand::Parts(_))
        };
        for workload in arm.workloads.iter().filter(is_quick) {
            let pair = (arm.pair.client.as_str(), address(plan, arm, workload.family));
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    let lines = |(client, address): (&str, String)| {
        let asks =
            format!("client {client}: asks for the pairing string that the server printed for {address}");
        vec![comment(&asks), on(plan, client, "netduel pair -")]
    };
    pairs.into_iter().map(lines).collect()
}

/// The tests of every workload on every arm. A workload that no command repeats has the reason.
pub fn commands_of_tests(plan: &ResolvedPlan) -> Vec<WorkloadCommands> {
    let of = |name: &netduel_model::ids::WorkloadName| {
        let of_arm = |arm: &'_ Arm| arm.workload(name).map(|workload| test(plan, arm, workload));
        let commands = plan.arms.iter().filter_map(|arm| Some((arm, of_arm(arm)?)));
        WorkloadCommands { workload: name.to_string(), arms: grouped(commands) }
    };
    plan.workloads.iter().map(of).collect()
}

/// Whether tests have events, whose commands do not run at the client only.
pub fn has_events(plan: &ResolvedPlan) -> bool {
    plan.arms
        .iter()
        .flat_map(|arm| &arm.workloads)
        .any(|workload| !workload.traffic.facts().events.is_empty())
}

fn comment(text: &str) -> String {
    plain(&format!("# {text}"))
}

fn lab_up(lab: &Lab) -> String {
    let mut line = "netduel lab up".to_owned();
    let mut add = |option: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = write!(line, " --{option} {}", shell::word(&value));
    };
    // Also the default: it determines the difference between the paths.
    add("rules", lab.rules.to_string());
    if let Some(cap) = lab.cap {
        add("cap", cap.to_string());
    }
    if lab.mtu != Lab::MTU {
        add("mtu", lab.mtu.to_string());
    }
    if lab.queues != Lab::QUEUES {
        add("queues", lab.queues.to_string());
    }
    line
}

/// A command on a host: as it is, or inside the guest or namespace.
fn on(plan: &ResolvedPlan, host: &str, command: &str) -> String {
    let launch = plan.hosts.iter().find(|(name, _)| name.as_str() == host).map(|(_, host)| &host.launch);
    plain(&match launch {
        Some(Launch::Lab { guest }) => format!("netduel lab exec {} -- {command}", shell::word(guest)),
        Some(Launch::Netns { name }) => format!("ip netns exec {} {command}", shell::word(name)),
        _ => command.to_owned(),
    })
}

/// The settings of an arm: a comment for the hosts of the lines below it.
fn settings(plan: &ResolvedPlan, arm: &Arm) -> Vec<String> {
    let mut lines = Vec::new();
    for treatment in &arm.treatments {
        let is_of_coordinator = matches!(
            treatment.action,
            TreatmentAction::Path { .. }
                | TreatmentAction::AzureNic { .. }
                | TreatmentAction::AzurePlacement { .. }
        );
        if is_of_coordinator {
            lines.push(plain(&setting(&treatment.action)));
        }
    }
    for role in [Role::Client, Role::Server] {
        let host = arm.pair.host(role).as_str();
        let own: Vec<String> = arm.agent_treatments(role).iter().map(setting).collect();
        if !own.is_empty() {
            lines.push(comment(&format!("{role} {host}")));
            lines.extend(own.iter().map(|line| on(plan, host, line)));
        }
    }
    if lines.is_empty() {
        lines.push(comment("changes nothing"));
    }
    lines
}

/// The commands of a workload, at the client where no comment names another host.
fn test(plan: &ResolvedPlan, arm: &Arm, workload: &Workload) -> Lines {
    let address = address(plan, arm, workload.family);
    let line = |test: &QuickTest| quick_test(plan, arm, workload, test, &address);
    let mut lines = match workload.traffic.by_hand(&workload.timing) {
        ByHand::Test(test) => vec![line(&test)],
        ByHand::Parts(parts) => parts
            .iter()
            .flat_map(|part| [comment(&part.title), delayed(part.delay, line(&part.test))])
            .collect(),
        ByHand::Ping(ping) => {
            let client = &arm.pair.client;
            let is_guest = |host: &Host| matches!(host.launch, Launch::Lab { .. });
            // In a lab it is root of its user namespace.
            let is_root = plan.hosts.get(client).is_some_and(is_guest) || !ping.needs_root;
            let note = (!is_root).then(|| comment("as root: ping allows other users no interval below 2 ms"));
            let command = on(plan, client.as_str(), &ping::command(&ping, workload, &address));
            note.into_iter().chain([command]).collect()
        }
        ByHand::Nothing(reason) => return Err(reason),
    };
    lines.extend(events::commands(plan, arm, workload.traffic.facts().events));
    Ok(lines)
}

/// A line that begins later than those beside it.
fn delayed(delay: Nanos, line: String) -> String {
    if delay.0 == 0 { line } else { format!("sleep {}; {line}", delay.0 as f64 / 1e9) }
}

/// A quick test at the client, with the options that every one has.
fn quick_test(
    plan: &ResolvedPlan,
    arm: &Arm,
    workload: &Workload,
    test: &QuickTest,
    address: &str,
) -> String {
    let mut words = vec![format!("netduel {} {address}", test.name)];
    words.extend(test.options.iter().cloned());
    words.push(match workload.family {
        Family::Ipv4 => "-4".to_owned(),
        Family::Ipv6 => "-6".to_owned(),
    });
    for (option, cores, auto) in [
        ("--pin-client", &workload.pin_client, workload.pin_auto.client),
        ("--pin-server", &workload.pin_server, workload.pin_auto.server),
    ] {
        if auto {
            words.push(format!("{option} auto"));
        } else if !cores.is_empty() {
            words.push(format!("{option} {}", core_list(cores)));
        }
    }
    if let Some(dscp) = workload.dscp {
        words.push(format!("--dscp {dscp}"));
    }
    on(plan, arm.pair.client.as_str(), &words.join(" "))
}

/// The address of the server's data.
fn address(plan: &ResolvedPlan, arm: &Arm, family: Family) -> String {
    plan.server_address(arm, family).map_or_else(|| "ADDRESS".to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::parse;
    use netduel_model::workload::WorkloadType;

    use super::*;

    const LAB: &str = "name = \"p\"\nquestion = \"?\"\n[lab]\nrules = 50\ncap = \"1 Gbit/s\"\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
         [[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"synthetic\" }, { offload = \"tso\", interface = \"eth0\", value = \"off\", on = \"client\" }]\n\
         [[arms]]\nname = \"two\"\nclient = \"a\"\nserver = \"b\"\nset = { streams = 8 }\ntreatments = [{ path = \"accelerated\" }]\n\
         [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\nduration = \"500 ms\"\n[[workloads]]\nname = \"rr\"\ntype = \"udp-rr\"\nduration = \"2 s\"\nfamily = \"ipv6\"\n\
         [[workloads]]\nname = \"load\"\ntype = \"loaded-latency\"\n";

    #[test]
    fn commands_name_both_ends_and_the_settings_of_each_arm() {
        let plan = parse(LAB, "p").unwrap();
        assert_eq!(lab_command(&plan).unwrap(), "netduel lab up --rules 50 --cap '1 Gbit/s'");
        assert_eq!(preparation(&plan)[1], "netduel lab exec b -- netduel serve");
        let asked: Vec<(String, String)> =
            pairings(&plan).into_iter().map(|lines| (lines[0].clone(), lines[1].clone())).collect();
        let pairing = |address: &str| {
            let asks = "# client a: asks for the pairing string that the server printed for";
            (format!("{asks} {address}"), "netduel lab exec a -- netduel pair -".to_owned())
        };
        assert_eq!(asked, [pairing("10.77.0.2"), pairing("fd77::2")], "each address once");
        let settings = settings_of_arms(&plan);
        assert_eq!(
            settings[0].lines,
            ["netduel lab path synthetic", "# client a", "netduel lab exec a -- ethtool -K eth0 tso off"]
        );
        let tests = commands_of_tests(&plan);
        let bulk: Vec<&str> = tests[0].arms.iter().flat_map(|arm| &arm.lines).map(String::as_str).collect();
        assert_eq!(
            bulk,
            [
                "netduel lab exec a -- netduel tcp 10.77.0.2 -t 500ms --engine lean -4",
                "netduel lab exec a -- netduel tcp 10.77.0.2 -t 500ms -P 8 --engine lean -4",
            ]
        );
        assert_eq!(tests[1].arms.len(), 1, "both arms have the same command");
        assert!(tests[1].arms[0].arms.is_empty());
        assert!(tests[1].arms[0].lines[0].contains("netduel rr fd77::2 -t 2 -u -l "), "{tests:?}");
        assert_eq!(tests[2].arms[0].lines.len(), 4, "a load and probes, each with its terminal");
    }

    const EVENTS: &str = "events = [{ at = \"1 s\", do = \"remove\" }, { at = \"2 s\", do = \"return\" }]";

    /// The commands of a workload between the guests of a lab.
    fn commands_of(workload: &str) -> ArmCommands {
        let (begin, _) = LAB.split_once("[[workloads]]").unwrap();
        let begin = begin.replace("set = { streams = 8 }\n", "").replace("\"synthetic\"", "\"accelerated\"");
        let text = format!("{begin}[[workloads]]\nname = \"w\"\n{workload}\n");
        let plan = parse(&text, "p").unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        commands_of_tests(&plan)[0].arms[0].clone()
    }

    #[test]
    fn every_type_of_workload_has_commands() {
        for kind in WorkloadType::ALL {
            let events = if *kind == WorkloadType::Failover { EVENTS } else { "" };
            let found = commands_of(&format!("type = \"{}\"\nduration = \"4 s\"\n{events}", kind.word()));
            let is_sent = |line: &String| line.contains("lab exec a -- ") && line.contains(" 10.77.0.2");
            assert!(found.lines.iter().any(is_sent), "{}: {found:?}", kind.word());
            assert_eq!(found.reason, None, "{}", kind.word());
        }
    }

    #[test]
    fn loaded_latency_is_a_load_beside_probes() {
        let load = "duration = \"4 s\"\nstreams = 2\ndirection = \"up\"";
        let found = commands_of(&format!("type = \"loaded-latency\"\n{load}")).lines;
        assert_eq!(
            found,
            [
                "# the probes, in one terminal",
                "netduel lab exec a -- netduel rr 10.77.0.2 -t 4 -u -l 64 --rate 200 -4",
                "# the load, at the same time in another terminal: it begins after 1 s",
                "sleep 1; netduel lab exec a -- netduel tcp 10.77.0.2 -t 3 -P 2 --engine lean -4",
            ]
        );
    }

    #[test]
    fn transaction_with_a_longer_response_has_its_length() {
        let found = commands_of("type = \"tcp-crr\"\nresponse_size = \"64 KiB\"");
        assert!(found.lines[0].contains(" --response-length 65536 "), "{found:?}");
        assert!(!commands_of("type = \"tcp-crr\"").lines[0].contains("--response-length"));
    }

    #[test]
    fn workload_without_commands_has_the_reason() {
        let goal = "search = [{ loss_ratio = \"1 %\", final_trial = \"2 s\" }]";
        let found = commands_of(&format!("type = \"pps\"\n{goal}"));
        assert!(found.lines.is_empty() && found.reason.unwrap().contains("goals of its search"), "{found:?}");
    }

    #[test]
    fn every_setting_is_a_command() {
        let cases = [
            ("queues = 4", "ethtool -L eth0 combined 4"),
            ("rss = \"weights 6 2\"", "ethtool -X eth0 weight 6 2"),
            ("ring = \"rx\", value = \"512\"", "ethtool -G eth0 rx 512"),
            ("coalesce = \"adaptive-rx\", value = \"off\"", "ethtool -C eth0 adaptive-rx off"),
            (
                "rps = \"0-1\"",
                "sh -c 'n=0; for f in /sys/class/net/eth0/queues/rx-*/rps_cpus; do echo 3 > $f; n=$((n + 1)); done'",
            ),
            ("mtu = 9000", "ip link set dev eth0 mtu 9000"),
        ];
        for (written, command) in cases {
            let text = format!(
                "name = \"p\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\naddresses = [\"192.0.2.1\"]\n[hosts.b]\nlaunch = \"netns\"\nnetns = \"n\"\n\
                 addresses = [\"192.0.2.2\"]\n[[workloads]]\nname = \"w\"\ntype = \"tcp-stream\"\n[[arms]]\nname = \"x\"\nclient = \"a\"\nserver = \"b\"\n\
                 [[arms]]\nname = \"y\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{{ {written}, interface = \"eth0\", on = \"server\" }}]\n"
            );
            let plan = parse(&text, "p").unwrap();
            let settings = settings_of_arms(&plan);
            assert_eq!(settings[0].lines, ["# changes nothing"]);
            assert_eq!(settings[1].lines[1], format!("ip netns exec n {command}"));
        }
    }
}
