//! How to repeat the run: its commands, each test by hand at both ends, and the appendix with plan and versions.
use netduel_model::plan::{ResolvedPlan, Treatment, TreatmentAction};
use netduel_model::run::Run;

use super::block::{Block, FactGroup, Scope, Section};
use super::environment;
use crate::analysis::Analysis;
use crate::words;

fn section(anchor: &str, title: &str, blocks: Vec<Block>) -> Section {
    Section { anchor: anchor.to_owned(), title: title.to_owned(), scope: Scope::Reference, blocks }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// The commands that repeat the run and its tests.
pub(super) fn reproduction(run: &Run) -> Section {
    let arms = run.header.plan.arms.iter().enumerate().map(|(index, arm)| {
        let baseline = if index == 0 { " (baseline)" } else { "" };
        let treatments: Vec<String> =
            arm.treatments.iter().map(|treatment| format!(", {}", words::treatment(treatment))).collect();
        let pair = format!("{} to {}{}", arm.pair.client, words::server(arm), treatments.concat());
        (format!("{}{baseline}", arm.name), pair)
    });
    let annotations = &run.header.annotations;
    let notes = annotations.notes.iter().map(|(key, note)| (key.clone(), note.clone()));
    let overrides = annotations.overrides.iter().map(|setting| ("override".to_owned(), setting.clone()));
    let rows = notes.chain(overrides).chain(arms).collect();
    let mut blocks = vec![
        Block::Code(words::commands(run)),
        Block::Facts(vec![FactGroup { rows, ..FactGroup::default() }]),
    ];
    if words::has_plan_file(run) {
        blocks.extend(by_hand(&run.header.plan));
    }
    section("reproduce", "Reproduction", blocks)
}

/// Each test by hand: settings of the arms, then the quick test of each workload at both ends. The lab comes first, because the path of an
/// arm is a path in it. What is entered on its own, as the settings of one arm, has a block of its own to copy.
fn by_hand(plan: &ResolvedPlan) -> Vec<Block> {
    let tests = words::commands_of_tests(plan);
    let has_quick = |test: &words::WorkloadCommands| test.arms.iter().any(|arm| !arm.lines.is_empty());
    let mut blocks = Vec::new();
    let mut lab = words::lab_command(plan).map(|line| Block::Code(vec![line]));
    let settings = words::settings_of_arms(plan);
    if !settings.is_empty() {
        blocks.push(Block::Heading("Settings of each arm by hand".to_owned()));
        blocks.push(Block::Reading(who_changes_settings(plan)));
        blocks.extend(lab.take());
        for group in &settings {
            let title = words::plain(&match group.arms.as_slice() {
                [] => "# every arm".to_owned(),
                [one] => format!("# arm {one}"),
                arms => format!("# arms {}", arms.join(", ")),
            });
            let lines = group.lines.iter().map(|line| words::plain(line));
            blocks.push(Block::Code([title].into_iter().chain(lines).collect()));
        }
    }
    if tests.iter().any(has_quick) {
        blocks.push(Block::Heading("Each test by hand".to_owned()));
        blocks.push(Block::Reading(where_tests_run(plan)));
        blocks.extend(lab.take());
        blocks.push(Block::Code(words::preparation(plan)));
        blocks.extend(words::pairings(plan).into_iter().map(Block::Code));
        let mut code = Vec::new();
        for test in tests.iter().filter(|test| has_quick(test)) {
            for group in test.arms.iter().filter(|group| !group.lines.is_empty()) {
                let of = if group.arms.is_empty() {
                    String::new()
                } else {
                    format!(", arm {}", group.arms.join(", "))
                };
                code.push(words::plain(&format!("# {}{of}", test.workload)));
                code.extend(group.lines.iter().cloned());
            }
        }
        blocks.push(Block::Code(code));
    }
    if plan.lab.is_some() && !blocks.is_empty() {
        blocks.push(Block::Code(vec!["netduel lab down".to_owned()]));
    }
    for test in &tests {
        for (group, reason) in test.arms.iter().filter_map(|group| Some((group, group.reason?))) {
            let on = match group.arms.as_slice() {
                [] => String::new(),
                arms => format!(" on {}", arms.join(", ")),
            };
            let text = format!("No command for {}{on}: {reason}. Use the plan.", test.workload);
            blocks.push(Block::Reading(words::plain(&text)));
        }
    }
    blocks
}

/// With which rights the settings are changed, and where.
fn who_changes_settings(plan: &ResolvedPlan) -> String {
    let rights = if words::is_in_lab(plan) {
        "They need no root where user namespaces are allowed; `netduel lab path` applies to both guests."
            .to_owned()
    } else if plan.has_provider_treatments() {
        let subscription = words::SUBSCRIPTION_OF_AZ;
        format!("Run `az` with your login, all others as root on the named host; {subscription}.")
    } else {
        "Run them as root on the named host.".to_owned()
    };
    // A path of the lab is no setting that a host had before.
    let is_path = |treatment: &Treatment| matches!(treatment.action, TreatmentAction::Path { .. });
    let earlier = if plan.arms.iter().flat_map(|arm| &arm.treatments).all(is_path) {
        ""
    } else {
        " Write down the earlier values: a run restores them, these commands do not."
    };
    format!("The equivalent commands: enter those of one arm before its tests. {rights}{earlier}")
}

/// Where the commands of the tests run.
fn where_tests_run(plan: &ResolvedPlan) -> String {
    let tests = "One trial of each workload, without the comparison. `netduel` has to be in the PATH. `netduel serve` runs on the server in a terminal \
                 of its own, the tests run on the client. The result of a quick test excludes the first tenth and the last twentieth of its time; \
                 the settings of each workload state the steady window of this run.";
    if words::has_events(plan) {
        format!("{tests} Commands of events run as root on the host in the comment above them, at its time.")
    } else {
        tests.to_owned()
    }
}

/// The plan as it was written, and as it was run, and the versions of what ran it.
pub(super) fn appendix(run: &Run, analysis: &Analysis) -> Section {
    let mut plan = run.header.plan.clone();
    // The plan may leave it to the run.
    plan.design.seed = Some(run.header.seed);
    let resolved = serde_json::to_string_pretty(&plan).unwrap_or_default();
    let mut blocks = Vec::new();
    if words::has_plan_file(run) {
        blocks.extend([Block::Heading("Plan".to_owned()), Block::Code(lines(&run.header.plan_text))]);
    }
    if let Some(plan) = words::quick_test_as_plan(run) {
        let reading = "The test as a plan for `netduel run`. It compares the path with itself (`aa = true`); add a second arm and remove \
                       `aa` to compare two paths.";
        let (reading, plan) = (Block::Reading(reading.to_owned()), Block::Code(lines(plan)));
        blocks.extend([Block::Heading("Plan".to_owned()), reading, plan]);
    }
    blocks.push(Block::Folded(
        "Resolved plan (JSON)".to_owned(),
        vec![
            Block::Reading("The settings that this run used. What is null or absent was not set.".to_owned()),
            Block::Code(lines(&resolved)),
        ],
    ));
    if let Some(versions) = environment::versions(run, analysis) {
        blocks.extend([Block::Heading("Versions".to_owned()), Block::Table(versions)]);
    }
    section("appendix", "Appendix", blocks)
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::parse;

    use super::*;

    /// A plan with these tables of hosts and treatments of its arms.
    fn plan_of(hosts: &str, treatments: [&str; 2]) -> ResolvedPlan {
        let [one, two] = treatments;
        let pair = "client = \"a\"\nserver = \"b\"\n";
        let text = format!(
            "name = \"p\"\nquestion = \"?\"\n{hosts}\n[[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n\
             [[arms]]\nname = \"one\"\n{pair}treatments = [{one}]\n\
             [[arms]]\nname = \"two\"\n{pair}treatments = [{two}]\nset = {{ streams = 8 }}\n"
        );
        parse(&text, "p").unwrap_or_else(|errors| panic!("{text}\n{errors}"))
    }

    /// The commands of such a plan in their order, and the text above the settings.
    fn commands_and_text(hosts: &str, treatments: [&str; 2]) -> (Vec<String>, String) {
        let (mut commands, mut above) = (Vec::new(), String::new());
        for block in by_hand(&plan_of(hosts, treatments)) {
            match block {
                Block::Code(lines) => commands.extend(lines),
                Block::Reading(text) if above.is_empty() => above = text,
                _ => {}
            }
        }
        (commands, above)
    }

    #[test]
    fn lab_is_made_once_before_every_command_in_it() {
        let guests = "[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"";
        let paths = ["{ path = \"synthetic\" }", "{ path = \"accelerated\" }"];
        let (with, above) = commands_and_text(guests, paths);
        let (without, _) = commands_and_text(guests, ["", ""]);
        for commands in [&with, &without] {
            assert_eq!(commands[0], "netduel lab up --rules 600", "{commands:?}");
            assert_eq!(commands.iter().filter(|line| line.contains("lab up")).count(), 1, "{commands:?}");
            assert_eq!(commands.last().unwrap(), "netduel lab down", "{commands:?}");
        }
        assert!(with.contains(&"netduel lab path synthetic".to_owned()), "{with:?}");
        assert!(above.contains("need no root") && !above.contains("as root"), "{above}");
        assert!(!above.contains("earlier values"), "the end of a lab removes its path: {above}");
    }

    #[test]
    fn commands_that_exclude_each_other_or_ask_for_a_string_are_in_blocks_of_their_own() {
        let guests = "[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"";
        let paths = ["{ path = \"synthetic\" }", "{ path = \"accelerated\" }"];
        let plan = plan_of(guests, paths);
        let code: Vec<Vec<String>> = by_hand(&plan)
            .into_iter()
            .filter_map(|block| if let Block::Code(lines) = block { Some(lines) } else { None })
            .collect();
        let alone = |line: &str| code.iter().any(|lines| lines.last().is_some_and(|last| last == line));
        for line in [
            "netduel lab up --rules 600",
            "netduel lab path synthetic",
            "netduel lab path accelerated",
            "netduel lab exec b -- netduel serve",
            "netduel lab exec a -- netduel pair -",
            "netduel lab down",
        ] {
            assert!(alone(line), "{line} is followed by another command: {code:?}");
        }
    }

    #[test]
    fn settings_of_hosts_need_root_and_no_lab() {
        let hosts = "[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"ssh\"\nhost = \"h\"\naddresses = [\"192.0.2.1\"]";
        let (commands, above) = commands_and_text(hosts, ["", "{ mtu = 1400, interface = \"eth0\" }"]);
        assert!(above.contains("as root on the named host"), "{above}");
        assert!(commands.iter().all(|line| !line.contains("lab")), "{commands:?}");
    }

    #[test]
    fn settings_of_nics_of_azure_name_the_option_for_another_subscription() {
        let hosts = "[hosts.a]\nlaunch = \"ssh\"\nhost = \"g\"\n[hosts.b]\nlaunch = \"ssh\"\nhost = \"h\"\naddresses = [\"192.0.2.1\"]";
        let switch = "{ azure-nic = \"n\", accelerated = true, on = \"client\", resource-group = \"g\" }";
        let (commands, above) = commands_and_text(hosts, ["", switch]);
        assert!(commands.iter().any(|line| line.starts_with("az network nic update")), "{commands:?}");
        assert!(above.contains("add --subscription to commands of `az`"), "{above}");
    }
}
