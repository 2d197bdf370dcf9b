//! `netduel demo`: a complete comparison in a local lab, with a report.
use std::path::PathBuf;

use netduel_control::coordinator::NoProvider;
use netduel_lab::Lab;
use netduel_model::event::Event;
use netduel_model::ids::WorkloadName;
use netduel_model::metric::Metric;
use netduel_model::plan::{self, ResolvedPlan};
use netduel_model::publication::Publication;
use netduel_model::run::RunEnd;
use netduel_model::trial::{PathProof, Slot, Trial, Validity};
use netduel_model::units::Nanos;
use netduel_model::workload::{Family, PinAuto, RoundTrip, Timing, Traffic, Wait, Workload};
use netduel_store::Store;

use crate::cli::publication::PrintingArgs;
use crate::cli::run::DemoArgs;
use crate::cli::shared::GateArgs;
use crate::console;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::redaction;
use crate::report_file::destinations;
use crate::run::{
    Around, Output, PlanPolicy, RunSource, System, announced_lab, execute, run_failure, stopped_before_trials,
};
use crate::run_store::writable_store;
use crate::ssh::SshHosts;

/// The demo's plan, compiled in: the demo needs no file.
const PLAN: &str = include_str!("../../../plans/demo.toml");
/// Duration of the traffic of a path check, per address family.
const CHECK_DURATION: Nanos = Nanos::from_millis(200);
/// Excluded from the beginning of a check: the first packets include neighbour discovery.
const CHECK_WARMUP: Nanos = Nanos::from_millis(50);

/// Runs the command.
pub fn command(args: &DemoArgs) -> Result<(), Failure> {
    redaction::begin(args.outcome.redact.redact);
    let outs = args.out.iter().map(PathBuf::as_path);
    let output = Output {
        out: destinations(outs, None, |_| true, &PrintingArgs::default())?,
        json: args.outcome.json.json,
        quiet: args.outcome.quiet.quiet,
        live: args.outcome.live,
        verbose: args.outcome.verbose,
        gate: GateArgs::default(),
        publication: Publication::default(),
    };
    output.check()?;
    let store = writable_store(&args.outcome.store)?;
    let mut plan = plan::parse(PLAN, "plans/demo.toml").kind(Kind::Internal)?;
    pin_to_an_allowed_core(&mut plan)?;
    let tell = |line: &str| {
        if !args.outcome.quiet.quiet {
            console::tell(line);
        }
    };
    tell(&plan.question);
    let lab = announced_lab(&plan, args.outcome.quiet.quiet)?;
    let (store, lab) = check_paths(&plan, store, lab, &tell)?;
    let source = RunSource::New {
        plan_text: PLAN.to_owned(),
        annotations: args.outcome.tags.annotations(&[]),
        reports: output.reports(),
        bed: None,
    };
    let around = Around { lab, ssh: SshHosts::default(), provider: Box::new(NoProvider) };
    execute(&plan, source, store, around, &output)
}

/// The plan pins round trips to core 0. If this process may not run on core 0 (as in a container with other cores), they are
/// pinned to its first allowed core.
fn pin_to_an_allowed_core(plan: &mut ResolvedPlan) -> Result<(), Failure> {
    let allowed = netduel_sys::affinity::allowed().kind(Kind::Environment)?;
    let Some(first) = allowed.first().copied() else { return Ok(()) };
    for workload in plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
        for core in workload.pin_client.iter_mut().chain(&mut workload.pin_server) {
            if !allowed.contains(core) {
                *core = first;
            }
        }
    }
    Ok(())
}

/// Checks before any measurement that each path carries traffic of both IP versions through the interfaces of its label.
fn check_paths(
    plan: &ResolvedPlan,
    store: Store,
    lab: Option<Lab>,
    tell: &impl Fn(&str),
) -> Result<(Store, Option<Lab>), Failure> {
    let check = check_plan(plan)?;
    let mut checks: Vec<(Option<usize>, bool, String)> = Vec::new();
    let system = System::new(&check, RunSource::Unstored, store, lab)?;
    let (result, closed) = system.run(&mut PlanPolicy::of(&check), |event| {
        if let Event::TrialFinished { trial } = event {
            let (is_good, line) = checked(trial);
            checks.push((place(&check, &trial.slot), is_good, line));
        }
    });
    // The trials are in random order.
    checks.sort_by_key(|(place, ..)| *place);
    for (.., line) in &checks {
        tell(line);
    }
    let failures: Vec<&str> =
        checks.iter().filter(|(_, is_good, _)| !is_good).map(|(.., line)| line.as_str()).collect();
    match result.map_err(run_failure)? {
        RunEnd::Interrupted => Err(stopped_before_trials()),
        RunEnd::Failed { detail } => Err(Failure::message(Kind::Host, detail)),
        _ if !failures.is_empty() => Err(Failure::message(
            Kind::Lab,
            format!("the lab's paths are not as labelled: {}", failures.join("; ")),
        )),
        _ => Ok((closed.store, closed.lab)),
    }
}

/// The place of a trial in the order of the plan: by arm, then by workload.
fn place(plan: &ResolvedPlan, slot: &Slot) -> Option<usize> {
    let arm = plan.arms.iter().position(|arm| arm.name == slot.arm)?;
    let workload = plan.workloads.iter().position(|name| *name == slot.workload)?;
    Some(arm * plan.workloads.len() + workload)
}

/// One finished check, for people. Its round trips are no measurement: the trial is short, and nothing is compared.
fn checked(trial: &Trial) -> (bool, String) {
    let head = format!("check: {:<12} {}", trial.slot.arm, trial.slot.workload);
    match &trial.validity {
        Validity::Valid => (true, format!("{head}  ok: {}", carried(&trial.proofs))),
        Validity::WrongPath { reason } | Validity::PathUnproven { reason } | Validity::Failed { reason } => {
            (false, format!("{head}  FAILED: {reason}"))
        }
    }
}

/// Which share of the bytes the interfaces of a path carried, rounded down to one form: `99.9 % of the bytes by syn0 at both ends`.
fn carried(proofs: &[PathProof]) -> String {
    let share = |proof: &PathProof| proof.share.unwrap_or(0.0);
    let words = |share: f64, expected: &str, end: &str| {
        format!("{:.1} % of the bytes by {expected} at {end}", (share * 1000.0).floor() / 10.0)
    };
    if let [one, other] = proofs
        && one.expected == other.expected
    {
        return words(share(one).min(share(other)), &one.expected, "both ends");
    }
    let at_end = |proof: &PathProof| words(share(proof), &proof.expected, &format!("the {}", proof.role));
    proofs.iter().map(at_end).collect::<Vec<_>>().join(", ")
}

/// The plan with short round trips in both families in place of its workloads.
fn check_plan(plan: &ResolvedPlan) -> Result<ResolvedPlan, Failure> {
    let pinned = plan.arms.iter().flat_map(|arm| &arm.workloads).find(|w| !w.pin_client.is_empty());
    let cores = pinned.map(|workload| workload.pin_client.clone()).unwrap_or_default();
    let workloads =
        [check_workload("ipv4", Family::Ipv4, &cores)?, check_workload("ipv6", Family::Ipv6, &cores)?];
    let mut check = plan.clone();
    check.design.blocks_min = 1;
    check.design.blocks_max = 1;
    check.workloads = workloads.iter().map(|workload| workload.name.clone()).collect();
    for arm in &mut check.arms {
        arm.workloads = workloads.to_vec();
    }
    Ok(check)
}

/// Pinned like the plan's round trips, so that the values are comparable.
fn check_workload(name: &str, family: Family, cores: &[u16]) -> Result<Workload, Failure> {
    Ok(Workload {
        name: WorkloadName::new(name).kind(Kind::Internal)?,
        traffic: Traffic::TcpRr(RoundTrip {
            size: netduel_model::units::Bytes(64),
            outstanding: 1,
            wait: Wait::Block,
            rate: None,
            timestamps: false,
            congestion: None,
        }),
        timing: Timing { duration: CHECK_DURATION, warmup: CHECK_WARMUP, cooldown: Nanos(0) },
        family,
        pin_client: cores.to_vec(),
        pin_server: cores.to_vec(),
        pin_auto: PinAuto::default(),
        dscp: None,
        metrics: vec![Metric::LatencyP50],
    })
}

#[cfg(test)]
mod tests {
    use netduel_model::workload::Role;

    use super::*;

    #[test]
    fn checks_are_in_the_order_of_the_plan_whatever_the_order_of_their_trials_was() {
        let plan = plan::parse(PLAN, "plans/demo.toml").expect("the demo's plan");
        let check = check_plan(&plan).expect("the checks");
        let at = |arm: &str, workload: &str| {
            let (arm, workload) = (arm.parse().expect("a name"), workload.parse().expect("a name"));
            place(&check, &Slot { block: 0, position: 0, arm, workload })
        };
        let places =
            [("synthetic", "ipv4"), ("synthetic", "ipv6"), ("accelerated", "ipv4"), ("accelerated", "ipv6")]
                .map(|(arm, workload)| at(arm, workload));
        assert_eq!(places, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(at("other", "ipv4"), None);
    }

    #[test]
    fn shares_of_checks_have_one_form() {
        let proof = |role, expected: &str, share| PathProof {
            role,
            expected: expected.to_owned(),
            bytes: Vec::new(),
            share: Some(share),
            changed: Vec::new(),
            kind: None,
            own_packets: None,
            other_traffic: None,
        };
        let both = |client: f64, server: f64| {
            carried(&[proof(Role::Client, "vf0", client), proof(Role::Server, "vf0", server)])
        };
        assert_eq!(both(1.0, 1.0), "100.0 % of the bytes by vf0 at both ends");
        assert_eq!(both(0.999_996, 1.0), "99.9 % of the bytes by vf0 at both ends");
        assert_eq!(both(1.0, 0.9937), "99.3 % of the bytes by vf0 at both ends");
        let two = carried(&[proof(Role::Client, "vf0", 1.0), proof(Role::Server, "eth1", 1.0)]);
        let words = "100.0 % of the bytes by vf0 at the client, 100.0 % of the bytes by eth1 at the server";
        assert_eq!(two, words);
    }
}
