//! Interfaces that carried the bytes of an arm at each end, over its trials.
use std::collections::BTreeMap;

use crate::total;
use netduel_model::lab;
use netduel_model::plan::spec::{PathKind, Side};
use netduel_model::plan::{Arm, Launch, ResolvedPlan};
use netduel_model::trial::{PathProof, Trial};
use netduel_model::workload::{Role, Workload};

/// Proof of path of an arm at one end, over the counting trials of a workload.
#[derive(Debug, Clone)]
pub struct PathShares {
    /// The end.
    pub role: Role,
    /// The host.
    pub host: String,
    /// The interface that the arm expects.
    pub expected: String,
    /// Minimum over the valid trials of the expected interface's share of the bytes; absent when no trial has one.
    pub share_min: Option<f64>,
    /// Number of counting trials with a valid proof.
    pub proven: u32,
    /// Number of counting trials with a proof, valid or not.
    pub trials: u32,
    /// Bytes by interface, total of these trials, largest first.
    pub bytes: Vec<(String, u64)>,
}

/// The proofs of an arm's trials by end: the interface that the arm names, and the kind of path. `hosts`: the words for client and server. None
/// for a failover, which moves the bytes between paths; its own section reports them.
pub(super) fn shares(
    arm: &Arm,
    settings: &Workload,
    hosts: &[String; 2],
    trials: &[&Trial],
) -> Vec<PathShares> {
    if !settings.traffic.facts().events.is_empty() {
        return Vec::new();
    }
    let ends = || [Role::Client, Role::Server].into_iter().zip(hosts);
    let of_interfaces = ends().filter_map(|(role, host)| {
        let of = |proof: &&PathProof| proof.role == role && proof.kind.is_none();
        Some(at_end((role, host), arm.expected(role)?.to_owned(), trials, of))
    });
    let of_kinds = ends().filter_map(|(role, host)| {
        let of = |proof: &&PathProof| proof.role == role && proof.kind == arm.expect_path;
        let expected = match arm.expect_path? {
            PathKind::Vf => "the virtual function",
            PathKind::Synthetic => "the synthetic path",
        };
        Some(at_end((role, host), expected.to_owned(), trials, of))
    });
    of_interfaces.chain(of_kinds).collect()
}

fn at_end(
    (role, host): (Role, &str),
    expected: String,
    trials: &[&Trial],
    is_of: impl Fn(&&PathProof) -> bool,
) -> PathShares {
    let (mut proven, mut count, mut share_min) = (0, 0, None::<f64>);
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for trial in trials {
        for proof in trial.proofs.iter().filter(&is_of) {
            count += 1;
            // Bytes alone are no proof: a path that changed during the trial made it invalid.
            proven += u32::from(proof.failure().is_none() && trial.is_valid());
            if trial.is_valid()
                && let Some(share) = proof.share
            {
                share_min = Some(share_min.map_or(share, |least| least.min(share)));
            }
            for (name, bytes) in &proof.bytes {
                total::add(sums.entry(name).or_default(), *bytes);
            }
        }
    }
    let mut bytes: Vec<(String, u64)> =
        sums.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    bytes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let host = host.to_owned();
    PathShares { role, host, expected, share_min, proven, trials: count, bytes }
}

/// Interfaces that carried the bytes of a lab guest around the events of a failover, over all valid trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The end.
    pub role: Role,
    /// The host.
    pub host: String,
    /// The interfaces expected to carry the bytes before the first event, between events, and after the last.
    pub interfaces: Vec<String>,
    /// The smallest share of the bytes that an expected interface carried in its interval.
    pub share_min: f64,
    /// Number of trials with this information.
    pub trials: u32,
}

/// The path changes of an arm's valid trials, by end; empty unless the lab made the events.
pub(super) fn moved(plan: &ResolvedPlan, arm: &Arm, trials: &[&Trial]) -> Vec<Moved> {
    let at_end = |(role, side): (Role, Side)| {
        let host = arm.pair.host(role);
        let Launch::Lab { guest } = &plan.hosts.get(host)?.launch else { return None };
        let expected = arm.expected(role)?;
        let mut moved =
            Moved { role, host: host.to_string(), interfaces: Vec::new(), share_min: 1.0, trials: 0 };
        for events in trials.iter().filter_map(|trial| trial.lab_events.as_ref()) {
            let parts = events.moves(guest, side, expected, lab::SYNTHETIC_INTERFACE);
            moved.trials += 1;
            for part in parts.iter().filter(|part| part.total > 0) {
                moved.share_min = moved.share_min.min(part.through as f64 / part.total as f64);
            }
            moved.interfaces = parts.into_iter().map(|part| part.interface).collect();
        }
        (moved.trials > 0).then_some(moved)
    };
    [(Role::Client, Side::Client), (Role::Server, Side::Server)].into_iter().filter_map(at_end).collect()
}
