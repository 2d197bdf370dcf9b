//! How to repeat the run: its commands, each test by hand at both ends, and the appendix with plan and versions.
use netduel_model::plan::ResolvedPlan;
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
/// arm is a path in it.
fn by_hand(plan: &ResolvedPlan) -> Vec<Block> {
    let tests = words::commands_of_tests(plan);
    let has_quick = |test: &words::WorkloadCommands| test.arms.iter().any(|arm| !arm.lines.is_empty());
    let mut blocks = Vec::new();
    let mut code: Vec<String> = words::lab_command(plan).into_iter().collect();
    let settings = words::settings_of_arms(plan);
    if !settings.is_empty() {
        blocks.push(Block::Heading("Settings of each arm by hand".to_owned()));
        blocks.push(Block::Reading(who_changes_settings(plan).to_owned()));
        for group in &settings {
            code.push(words::plain(&match group.arms.as_slice() {
                [] => "# every arm".to_owned(),
                [one] => format!("# arm {one}"),
                arms => format!("# arms {}", arms.join(", ")),
            }));
            code.extend(group.lines.iter().map(|line| words::plain(line)));
        }
        blocks.push(Block::Code(std::mem::take(&mut code)));
    }
    if tests.iter().any(has_quick) {
        blocks.push(Block::Heading("Each test by hand".to_owned()));
        blocks.push(Block::Reading(where_tests_run(plan)));
        code.extend(words::preparation(plan));
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
fn who_changes_settings(plan: &ResolvedPlan) -> &'static str {
    if words::is_in_lab(plan) {
        "The equivalent commands. They need no root where user namespaces are allowed; `netduel lab path` applies to both guests. Write \
         down the earlier values: a run restores them, these commands do not."
    } else if plan.has_provider_treatments() {
        "The equivalent commands: `az` with your login, all others as root on the named host. Write down the earlier values: a \
         run restores them, these commands do not."
    } else {
        "The equivalent commands, as root on the named host. Write down the earlier values: a run restores them, these commands do not."
    }
}

/// Where the commands of the tests run.
fn where_tests_run(plan: &ResolvedPlan) -> String {
    let tests = "One trial of each workload, without the comparison. `netduel serve` runs on the server in a terminal of its own, the tests run \
                 on the client. The result of a quick test excludes the first tenth and the last twentieth of its time, which may not be the \
                 steady window of this run.";
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

    /// The commands of a plan with these tables of hosts and treatments of its arms, in their order, and the text above the settings.
    fn commands_and_text(hosts: &str, treatments: [&str; 2]) -> (Vec<String>, String) {
        let [one, two] = treatments;
        let pair = "client = \"a\"\nserver = \"b\"\n";
        let text = format!(
            "name = \"p\"\nquestion = \"?\"\n{hosts}\n[[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n\
             [[arms]]\nname = \"one\"\n{pair}treatments = [{one}]\n\
             [[arms]]\nname = \"two\"\n{pair}treatments = [{two}]\nset = {{ streams = 8 }}\n"
        );
        let plan = parse(&text, "p").unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        let (mut commands, mut above) = (Vec::new(), String::new());
        for block in by_hand(&plan) {
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
            assert_eq!(commands[0], "netduel lab up", "{commands:?}");
            assert_eq!(commands.iter().filter(|line| line.contains("lab up")).count(), 1, "{commands:?}");
        }
        assert!(with.contains(&"netduel lab path synthetic".to_owned()), "{with:?}");
        assert!(above.contains("need no root") && !above.contains("as root"), "{above}");
    }

    #[test]
    fn settings_of_hosts_need_root_and_no_lab() {
        let hosts = "[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"ssh\"\nhost = \"h\"\naddresses = [\"192.0.2.1\"]";
        let (commands, above) = commands_and_text(hosts, ["", "{ mtu = 1400, interface = \"eth0\" }"]);
        assert!(above.contains("as root on the named host"), "{above}");
        assert!(commands.iter().all(|line| !line.contains("lab")), "{commands:?}");
    }
}
