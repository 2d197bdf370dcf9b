//! `netduel plan`: check a plan, print the schema.
use std::collections::BTreeSet;
use std::fmt::Write as _;

use netduel_model::bed::{BedNetwork, RunBed};
use netduel_model::data_ports::PortNeeds;
use netduel_model::plan::spec::PathKind;
use netduel_model::plan::{Arm, Design, Launch, ResolvedPlan, TreatmentAction, offload};
use netduel_model::warning::Warning;
use netduel_report::json::plan::CheckedPlan;
use netduel_report::words;

use crate::azure::known::described;
use crate::azure::{check_fit, cost};
use crate::cli::PlanCommand;
use crate::console::{print_json, print_lines};
use crate::exit::Failure;
use crate::run::read_plan;
use crate::{expected_time, program, publication, redaction};

/// Runs the command.
pub fn command(command: &PlanCommand) -> Result<(), Failure> {
    match command {
        PlanCommand::Schema => print_json(&netduel_model::plan::schema()),
        PlanCommand::Check { plan, overrides, permissions, bed, redact, json } => {
            redaction::begin(redact.redact);
            let (text, resolved) = read_plan(plan, &overrides.set, permissions.permissions())?;
            redaction::learn_plan(&resolved)?;
            publication::logo_of_plan(&resolved, (&text, plan))?;
            let bed = bed.as_ref().map(described).transpose()?;
            if let Some(bed) = &bed {
                let bed = RunBed::planned(bed);
                redaction::learn(&bed)?;
                // A name of the bed may be in that of an arm.
                redaction::learn_plan(&resolved)?;
                check_fit(plan, &text, &resolved, &bed)?;
            }
            let resolved = redaction::value(resolved)?;
            let file = redaction::text(&plan.display().to_string());
            let cost = bed.as_ref().map(|bed| cost::of_run(bed, &resolved));
            if json.json {
                return print_json(&CheckedPlan::of(&file, &resolved, cost, &program::origin()));
            }
            let cost = cost.as_ref().map(cost::line).unwrap_or_default();
            let bed = bed.map(|bed| redaction::text(&bed.name));
            let design = &resolved.design;
            print_lines(&format!(
                "{file} is a valid plan: {}\n{}{}{}{}{}  trials     {} in a block, {}, {}, and the start of the agents{}\n{}{cost}",
                words::plain(&resolved.question),
                contents(&resolved),
                on_bed(&resolved, bed.as_deref()),
                uses(&resolved),
                ports(&resolved),
                crossover(&resolved),
                resolved.trials_per_block(),
                blocks(design),
                expected_time::of_trials(&resolved),
                design.budget.map(|budget| format!("; no block begins after {budget}")).unwrap_or_default(),
                expected_time::azure_lines(&resolved),
            ))?;
            warn_of_few_blocks(&resolved);
            warn(&resolved);
            Ok(())
        }
    }
}

/// The number of blocks: `8 to 30 blocks`, `12 blocks`.
fn blocks(design: &Design) -> String {
    if design.may_stop_early() {
        format!("{} to {} blocks", design.blocks_min, design.blocks_max)
    } else {
        format!("{} blocks", design.blocks_max)
    }
}

/// The arms that exchange their hosts; empty without a crossover.
fn crossover(plan: &ResolvedPlan) -> String {
    let Some(half) = plan.crossover_at() else { return String::new() };
    let arms = plan.arms.iter().filter_map(|arm| {
        let other = plan.counterpart(arm)?;
        Some(format!("{} {} -> {}", arm.name, other.pair.client, other.pair.server))
    });
    format!("  crossover  after block {half}: {}\n", arms.collect::<Vec<_>>().join(", "))
}

/// The arms with their changes and proofs, and the workloads with their settings and metrics. Where arms run a workload differently, it
/// stands there for each of them.
fn contents(plan: &ResolvedPlan) -> String {
    let mut text = String::new();
    for (index, arm) in plan.arms.iter().enumerate() {
        let title = if index == 0 { "arms" } else { "" };
        let mut parts = vec![format!("{} -> {}", arm.pair.client, words::server(arm))];
        parts.extend(arm.network.map(|network| format!("network {network}")));
        parts.extend(arm.treatments.iter().map(words::treatment));
        parts.extend(required_path(arm));
        let baseline = if index == 0 { " (baseline)" } else { "" };
        let _ = writeln!(text, "  {title:<9}  {}{baseline}: {}", arm.name, parts.join(", "));
    }
    for (index, name) in plan.workloads.iter().enumerate() {
        let mut descriptions: Vec<(String, Vec<&str>)> = Vec::new();
        for arm in &plan.arms {
            let Some(workload) = arm.workload(name) else { continue };
            let metrics: Vec<&str> = workload.metrics.iter().map(|metric| metric.key()).collect();
            let words = format!("{}; verdicts: {}", words::workload(workload), metrics.join(", "));
            match descriptions.iter_mut().find(|(other, _)| *other == words) {
                Some((_, arms)) => arms.push(arm.name.as_str()),
                None => descriptions.push((words, vec![arm.name.as_str()])),
            }
        }
        let differs = descriptions.len() > 1;
        for (nth, (words, arms)) in descriptions.iter().enumerate() {
            let title = if index + nth == 0 { "workloads" } else { "" };
            let of = if differs { format!(" ({})", arms.join(", ")) } else { String::new() };
            let _ = writeln!(text, "  {title:<9}  {name}{of}: {words}");
        }
    }
    text
}

/// What must carry the bytes of an arm, in words; absent when the plan requires nothing.
pub fn required_path(arm: &Arm) -> Option<String> {
    let interfaces = match (&arm.expect_client, &arm.expect_server) {
        (Some(client), Some(server)) if client == server => Some(format!("{client} at both ends")),
        (Some(client), Some(server)) => Some(format!("{client} at the client and {server} at the server")),
        (Some(client), None) => Some(format!("{client} at the client")),
        (None, Some(server)) => Some(format!("{server} at the server")),
        (None, None) => None,
    };
    let path = arm.expect_path.map(|path| match path {
        PathKind::Vf => "the virtual function at both ends".to_owned(),
        PathKind::Synthetic => "the synthetic NIC at both ends".to_owned(),
    });
    let required: Vec<String> = path.into_iter().chain(interfaces).collect();
    (!required.is_empty()).then(|| format!("must use {}", required.join(", ")))
}

/// The VMs, networks and type of bed that a plan uses, and what is not known of them before a run; empty for a plan without a bed.
fn on_bed(plan: &ResolvedPlan, bed: Option<&str>) -> String {
    let mut networks: Vec<BedNetwork> = plan.arms.iter().filter_map(|arm| arm.network).collect();
    networks.sort_unstable();
    networks.dedup();
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    let vms: Vec<&str> = plan.vms().map(|(_, vm)| vm).collect();
    if vms.is_empty() {
        return String::new();
    }
    let kind = plan.bed_type.map(|kind| format!(" of a bed of type {kind}")).unwrap_or_default();
    let known = match bed {
        Some(bed) => format!("the bed {bed} has them"),
        None => "whether a bed has them is not known without --bed".to_owned(),
    };
    format!(
        "  bed        {} in {}{kind}; {known}; addresses and the path that carries the bytes are known when `netduel azure run` runs the plan\n",
        vms.join(", "),
        networks.join(", ")
    )
}

/// What a run does on each host besides traffic, a line for each thing.
fn uses(plan: &ResolvedPlan) -> String {
    let mut text = String::new();
    for (index, host) in plan.uses().iter().enumerate() {
        for (nth, line) in words::uses(host).iter().enumerate() {
            let title = if index + nth == 0 { "hosts" } else { "" };
            let _ = writeln!(text, "  {title:<9}  {}: {line}", host.name);
        }
    }
    text
}

/// The data ports of each server that has some, and how many of them its trials need, a line for each server.
fn ports(plan: &ResolvedPlan) -> String {
    let mut text = String::new();
    for (name, host) in &plan.hosts {
        let Some(ports) = host.data_ports else { continue };
        let arms = plan.arms.iter().filter(|arm| arm.pair.server == *name);
        let needs = arms
            .flat_map(|arm| &arm.workloads)
            .map(|workload| workload.traffic.facts().sockets.port_needs())
            .fold(PortNeeds::default(), PortNeeds::max);
        if needs.count() > 0 {
            let title = if text.is_empty() { "ports" } else { "" };
            let (tcp, udp) = (u32::from(needs.tcp), needs.udp);
            let need = format!("its trials need {tcp} for TCP, {udp} for UDP");
            let _ = writeln!(text, "  {title:<9}  {name}: {ports}; {need}");
        }
    }
    text
}

/// A warning for each arm that is the same as an earlier one but for its name.
fn equal_arms(plan: &ResolvedPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, arm) in plan.arms.iter().enumerate() {
        let is_equal = |other: &&Arm| Arm { name: other.name.clone(), ..arm.clone() } == **other;
        if let Some(other) = plan.arms[..index].iter().find(is_equal).filter(|_| !plan.design.aa) {
            warnings.push(format!(
                "warning: the arms {} and {} are the same: give one of them other treatments, another pair or a `set`; for an A/A run \
                 write aa = true in [design]",
                other.name, arm.name
            ));
        }
    }
    warnings
}

/// The warning of a run for each arm whose path nothing proves. On a bed the run finds out what carries the bytes of an arm.
fn unproven_arms(plan: &ResolvedPlan) -> Vec<String> {
    let unproven = plan.arms.iter().filter(|arm| !arm.is_proven() && arm.network.is_none());
    let warnings = unproven.map(|arm| Warning::ArmNotProven { arm: arm.name.clone() });
    warnings.map(|warning| format!("warning: {warning}")).collect()
}

/// A warning for each offload that no known kernel has. It is no error: a newer kernel of a host may have it.
fn unknown_offloads(plan: &ResolvedPlan) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut warnings = Vec::new();
    for arm in &plan.arms {
        for treatment in &arm.treatments {
            let TreatmentAction::Offload { feature, .. } = &treatment.action else { continue };
            if offload::is_known(feature) || !seen.insert(feature) {
                continue;
            }
            let meant = offload::similar(feature).map(|name| format!(" (did you mean \"{name}\"?)"));
            warnings.push(format!(
                "warning: the arm {} switches the offload \"{feature}\", which is unknown{}; a host without it refuses the trials of \
                 the arm; `ethtool -k` lists the offloads of an interface",
                arm.name,
                meant.unwrap_or_default()
            ));
        }
    }
    warnings
}

/// A warning for each host by ssh that the plan changes and whose agent is not root as far as the plan shows it.
fn hosts_without_root(plan: &ResolvedPlan) -> Vec<String> {
    let uses = plan.uses();
    let is_user = |launch: &Launch| matches!(launch, Launch::Ssh(ssh) if !ssh.is_root());
    let changed = uses.iter().filter(|host| is_user(host.launch) && host.needs_root());
    let warning = |name: &str| {
        format!(
            "warning: the plan changes the host {name}, which needs root there: set sudo = true for it, unless ssh logs in as root"
        )
    };
    changed.map(|host| warning(host.name.as_str())).collect()
}

/// Prints the warnings of a plan besides that of too few blocks, which a run has as well.
fn warn(plan: &ResolvedPlan) {
    let warnings = [equal_arms(plan), unproven_arms(plan), unknown_offloads(plan), hosts_without_root(plan)];
    for text in warnings.concat() {
        crate::console::tell(&text);
    }
}

/// Warns before the run when its blocks cannot yield a verdict for any difference.
pub fn warn_of_few_blocks(plan: &ResolvedPlan) {
    if let Some(reason) = words::too_few_blocks(plan) {
        crate::console::tell(&format!("warning: {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::data_ports::DataPorts;
    use netduel_model::plan;

    use super::*;

    fn resolved(second: &str) -> ResolvedPlan {
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
             [[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{{ path = \"synthetic\" }}]\n\
             [[arms]]\nname = \"other\"\nclient = \"a\"\nserver = \"b\"\n{second}\n\
             [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\nduration = \"2 s\"\n"
        );
        plan::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn arms_without_a_difference_have_a_warning() {
        let synthetic = "treatments = [{ path = \"synthetic\" }]";
        let same = resolved(synthetic);
        assert!(equal_arms(&same)[0].contains("one and other are the same"), "{:?}", equal_arms(&same));
        assert!(equal_arms(&resolved(&format!("{synthetic}\nset = {{ streams = 8 }}"))).is_empty());
        assert!(equal_arms(&resolved("treatments = [{ path = \"accelerated\" }]")).is_empty());
        assert!(equal_arms(&same.into_aa()).is_empty());
    }

    #[test]
    fn arm_that_names_no_interface_has_the_warning_of_its_run() {
        let mut plan = resolved("treatments = [{ path = \"accelerated\" }]");
        for arm in &mut plan.arms {
            (arm.expect_client, arm.expect_server, arm.expect_path) = (None, None, None);
        }
        plan.arms[1].expect_client = Some("eth0".to_owned());
        let warnings = unproven_arms(&plan);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("warning: arm not proven: the arm one names no"), "{warnings:?}");
        plan.arms[0].network = Some(BedNetwork::Synthetic);
        assert!(unproven_arms(&plan).is_empty(), "known when the run begins");
    }

    #[test]
    fn arm_shows_what_must_carry_its_bytes() {
        let mut arm = resolved("treatments = [{ path = \"accelerated\" }]").arms[1].clone();
        assert_eq!(required_path(&arm).unwrap(), "must use vf0 at both ends");
        arm.expect_server = Some("eth1".to_owned());
        assert_eq!(required_path(&arm).unwrap(), "must use vf0 at the client and eth1 at the server");
        arm.expect_client = None;
        assert_eq!(required_path(&arm).unwrap(), "must use eth1 at the server");
        (arm.expect_server, arm.expect_path) = (None, Some(PathKind::Vf));
        assert_eq!(required_path(&arm).unwrap(), "must use the virtual function at both ends");
        arm.expect_path = None;
        assert_eq!(required_path(&arm), None);
    }

    /// A plan of hosts by ssh with these keys of both, and these treatments of its second arm.
    fn by_ssh(keys: &str, treatments: &str) -> ResolvedPlan {
        let host = |name: &str, last: u8| {
            format!(
                "[hosts.{name}]\nlaunch = \"ssh\"\nhost = \"{name}.example\"\naddresses = [\"192.0.2.{last}\"]\n{keys}\n"
            )
        };
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n{}{}[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n\
             [[arms]]\nname = \"other\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{treatments}]\n\
             [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n",
            host("a", 1),
            host("b", 2)
        );
        plan::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn changed_host_by_ssh_without_root_has_a_warning() {
        let gro = "{ offload = \"gro\", interface = \"eth0\", value = \"off\", on = \"server\" }";
        let warnings = hosts_without_root(&by_ssh("", gro));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("warning: the plan changes the host b, which needs"), "{warnings:?}");
        for (keys, treatments) in [("sudo = true", gro), ("user = \"root\"", gro), ("", "")] {
            assert!(hosts_without_root(&by_ssh(keys, treatments)).is_empty(), "{keys} {treatments}");
        }
    }

    #[test]
    fn offload_that_no_kernel_has_is_named_once_with_a_similar_one() {
        let of = |name: &str, interface: &str| {
            format!("{{ offload = \"{name}\", interface = \"{interface}\", value = \"off\" }}")
        };
        let both = format!("{}, {}", of("tsoo", "eth0"), of("tsoo", "eth1"));
        let warnings = unknown_offloads(&by_ssh("", &both));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains("the arm other switches the offload \"tsoo\", which is unknown")
                && warnings[0].contains("did you mean \"tso\"?"),
            "{warnings:?}"
        );
        assert!(unknown_offloads(&by_ssh("", &of("tx-tcp-segmentation", "eth0"))).is_empty());
    }

    #[test]
    fn data_ports_of_a_server_are_shown_with_the_number_that_its_trials_need() {
        let mut plan = resolved("treatments = [{ path = \"accelerated\" }]");
        assert_eq!(ports(&plan), "");
        for host in plan.hosts.values_mut() {
            host.data_ports = DataPorts::new(5210, 5219);
        }
        assert_eq!(ports(&plan), "  ports      b: 5210-5219; its trials need 1 for TCP, 0 for UDP\n");
    }

    #[test]
    fn plan_on_a_bed_says_what_is_not_known_of_it() {
        let mut plan = resolved("treatments = [{ path = \"accelerated\" }]");
        assert_eq!(on_bed(&plan, None), "");
        for (host, vm) in plan.hosts.values_mut().zip(["vm1", "vm2"]) {
            host.vm = Some(vm.to_owned());
        }
        for (arm, network) in plan.arms.iter_mut().zip([BedNetwork::Synthetic, BedNetwork::Accelerated]) {
            arm.network = Some(network);
        }
        let text = on_bed(&plan, None);
        assert!(
            text.starts_with(
                "  bed        vm1, vm2 in synthetic, accelerated; whether a bed has them is not known"
            ),
            "{text}"
        );
        assert!(contents(&plan).contains("network accelerated"), "{}", contents(&plan));
    }

    #[test]
    fn contents_show_path_duration_and_metrics() {
        let text = contents(&resolved("treatments = [{ path = \"accelerated\" }]\nset = { streams = 8 }"));
        for words in [
            "one (baseline): a -> b",
            "lab path accelerated, must use vf0 at both ends",
            "2 s",
            "throughput",
            "bulk (one)",
            "bulk (other)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
