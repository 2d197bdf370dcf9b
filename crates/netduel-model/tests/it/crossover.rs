//! Plans whose arms exchange their hosts after half of the blocks.
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction, parse};
use netduel_model::workload::Role;

fn arm(name: &str, [client, server]: [&str; 2], rest: &str) -> String {
    format!("[[arms]]\nname = \"{name}\"\nclient = \"{client}\"\nserver = \"{server}\"\n{rest}\n")
}

fn nics(pair: [&str; 2], on: bool) -> String {
    let [client, server] =
        pair.map(|vm| format!("{{ azure-nic = \"{vm}-test\", resource-group = \"g\", accelerated = {on}"));
    format!("treatments = [{client}, on = \"client\" }}, {server}, on = \"server\" }}]")
}

fn text(arms: &[String], design: &str) -> String {
    let host = |name: &str| {
        format!(
            "[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"env\"]\naddresses = [\"192.0.2.1\", \"2001:db8::1\"]\n"
        )
    };
    format!(
        "name = \"x\"\nquestion = \"q?\"\n{}{}[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n[design]\n{design}\n",
        ["a", "b", "c", "d"].map(host).concat(),
        arms.concat()
    )
}

const FIRST: [&str; 2] = ["a", "b"];
const SECOND: [&str; 2] = ["c", "d"];

fn plan(design: &str) -> ResolvedPlan {
    let arms = [
        arm("off", FIRST, &nics(FIRST, false)),
        arm("on", SECOND, &nics(SECOND, true)),
        arm("off6", FIRST, &format!("{}\nset = {{ family = \"ipv6\" }}", nics(FIRST, false))),
        arm("on6", SECOND, &format!("{}\nset = {{ family = \"ipv6\" }}", nics(SECOND, true))),
    ];
    parse(&text(&arms, design), "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// Client, server, and NICs with their wanted states.
fn seen(arm: &Arm) -> (String, String, Vec<(String, bool)>) {
    let nic = |action: &TreatmentAction| match action {
        TreatmentAction::AzureNic { nic, accelerated, .. } => Some((nic.clone(), *accelerated)),
        _ => None,
    };
    let nics = arm.treatments.iter().filter_map(|treatment| nic(&treatment.action)).collect();
    (arm.pair.client.to_string(), arm.pair.server.to_string(), nics)
}

#[test]
fn second_half_has_the_states_of_an_arm_on_the_hosts_of_its_counterpart() {
    let plan = plan("crossover = true\nblocks_max = 12");
    assert_eq!((plan.design.blocks_min, plan.crossover_at()), (12, Some(6)));
    let counterpart = |index: usize| plan.counterpart(&plan.arms[index]).map(|arm| arm.name.to_string());
    assert_eq!([0, 1, 2, 3].map(counterpart), ["on", "off", "on6", "off6"].map(|name| Some(name.to_owned())));
    let nics = |names: [&str; 2], on: bool| names.map(|name| (format!("{name}-test"), on)).to_vec();
    let [off, on] = [&plan.arms[0], &plan.arms[1]];
    assert_eq!(seen(&plan.arm_in(off, 5)), ("a".into(), "b".into(), nics(FIRST, false)));
    assert_eq!(seen(&plan.arm_in(off, 6)), ("c".into(), "d".into(), nics(SECOND, false)));
    assert_eq!(seen(&plan.arm_in(on, 6)), ("a".into(), "b".into(), nics(FIRST, true)));
    assert_eq!(plan.pair_in(on, 11).host(Role::Server).as_str(), "b");
    assert_eq!(plan.host_words(off, Role::Client), "a, then c");
    // `plan check` lists what is done to a host in both halves.
    let uses = plan.uses();
    assert_eq!(uses[0].treatments.len(), 2, "{:?}", uses[0]);
    let without = self::plan("blocks_max = 12");
    assert!(without.arms.iter().all(|arm| seen(&without.arm_in(arm, 11)) == seen(arm)));
    let aa = plan.into_aa();
    assert!(!aa.design.crossover && aa.counterpart(&aa.arms[0]).is_none());
}

#[test]
fn verdicts_of_a_crossover_need_twice_the_blocks() {
    // Two verdicts of each of three arms need nine blocks.
    let default = plan("crossover = true").design;
    let without = plan("");
    assert_eq!(default.blocks_max, 2 * without.design.blocks_min);
    assert!(plan("crossover = true\nblocks_max = 10").too_few_blocks().is_some());
    assert!(plan("blocks_min = 10\nblocks_max = 10").too_few_blocks().is_none());
}

#[track_caller]
fn refused(arms: &[String], design: &str, what: &str) {
    let errors = parse(&text(arms, design), "x.toml").expect_err(what).to_string();
    assert!(errors.contains(what), "{errors}");
}

#[test]
fn plans_that_cannot_cross_are_refused() {
    let [off, on] = [arm("off", FIRST, &nics(FIRST, false)), arm("on", SECOND, &nics(SECOND, true))];
    let both = [off.clone(), on.clone()];
    for (design, what) in [
        ("crossover = true\nblocks_max = 7", "design.blocks_max: is 7, and the halves of a crossover"),
        ("crossover = true\nblocks_min = 4\nblocks_max = 8", "design.blocks_min: is 4, and a crossover has"),
        ("crossover = true\nbudget = \"1 h\"", "design.budget: ends a crossover before"),
        ("crossover = true\naa = true", "design.aa: compares an arm with its copy"),
    ] {
        refused(&both, design, what);
    }
    let design = "crossover = true\nblocks_max = 8";
    let other_traffic = arm("on", SECOND, &format!("{}\nset = {{ family = \"ipv6\" }}", nics(SECOND, true)));
    refused(&[off.clone(), other_traffic], design, "arm \"off\": has no counterpart");
    let same_hosts = arm("on", FIRST, &nics(FIRST, true));
    refused(&[off.clone(), same_hosts], design, "arm \"on\": has no counterpart");
    refused(&[off.clone(), arm("on", SECOND, "")], design, "arm \"off\": has no counterpart");
    let third = arm("too", SECOND, &nics(SECOND, true));
    refused(&[off, on, third], design, "arm \"off\": could exchange its hosts with each of on, too");
}
