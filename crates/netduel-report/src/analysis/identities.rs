//! Hosts that became others in the course of a run: moved, started anew, or given another NIC.
//!
//! Trials of one arm are compared with each other, since what an arm changes on its host (queues, a VF that is away) is no move.
//! Each change begins a new span of the arm; two arms are paired in a block only where both are in the same span.
use std::collections::BTreeMap;

use netduel_model::ids::{ArmName, HostName, WorkloadName};
use netduel_model::observation::{HostIdentity, NicIdentity};
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_model::workload::Role;

/// In which span each trial of an arm stands, and what changed.
#[derive(Debug, Default)]
pub(super) struct Spans {
    spans: BTreeMap<(ArmName, WorkloadName, u32), u32>,
    changes: BTreeMap<(HostName, u32), String>,
}

impl Spans {
    /// From the counting trials, those that are invalid too: they tell on what they ran.
    pub fn of(plan: &ResolvedPlan, counting: &[&Trial]) -> Self {
        let mut trials = counting.to_vec();
        trials.sort_by_key(|trial| (trial.slot.block, trial.slot.position));
        let mut all = Self::default();
        for arm in &plan.arms {
            let mut known: [Option<HostIdentity>; 2] = [None, None];
            let mut span = 0;
            for trial in trials.iter().filter(|trial| trial.slot.arm == arm.name) {
                for role in [Role::Client, Role::Server] {
                    let now = trial.end(role).and_then(|end| end.observation.identity.as_ref());
                    let Some(now) = now else { continue };
                    let now = completed(now, known[role as usize].as_ref());
                    if let Some(before) = known[role as usize].replace(now.clone())
                        && let Some(detail) = difference(&before, &now)
                    {
                        span += 1;
                        let at = (arm.pair.host(role).clone(), trial.slot.block);
                        all.changes.entry(at).or_insert(detail);
                    }
                }
                let key = (arm.name.clone(), trial.slot.workload.clone(), trial.slot.block);
                all.spans.insert(key, span);
            }
        }
        all
    }

    /// Whether two arms' trials of a block ran on hosts that had not changed between them.
    pub fn paired(&self, workload: &WorkloadName, block: u32, arms: [&ArmName; 2]) -> bool {
        let [one, other] = arms.map(|arm| self.spans.get(&(arm.clone(), workload.clone(), block)));
        one == other
    }

    /// The warnings. Arms see the same change one after the other, in one block or in the next; it is reported once.
    pub fn warnings(&self) -> Vec<Warning> {
        let is_told = |host: &HostName, block: u32, detail: &String| {
            block
                .checked_sub(1)
                .is_some_and(|before| self.changes.get(&(host.clone(), before)) == Some(detail))
        };
        let new = self.changes.iter().filter(|((host, block), detail)| !is_told(host, *block, detail));
        new.map(|((host, block), detail)| Warning::PlacementChanged {
            host: host.clone(),
            block: *block,
            detail: detail.clone(),
        })
        .collect()
    }
}

/// With what was last known where it is not told now: a file that could not be read for once is no move.
fn completed(now: &HostIdentity, before: Option<&HostIdentity>) -> HostIdentity {
    let mut now = now.clone();
    let Some(before) = before else { return now };
    now.boot_id = now.boot_id.or_else(|| before.boot_id.clone());
    now.physical_host = now.physical_host.or_else(|| before.physical_host.clone());
    now
}

/// What is not the same any more, in words; absent when it is the same host, as far as both times tell.
fn difference(before: &HostIdentity, now: &HostIdentity) -> Option<String> {
    let mut parts = Vec::new();
    if let (Some(from), Some(to)) = (&before.boot_id, &now.boot_id)
        && from != to
    {
        parts.push("it was booted anew".to_owned());
    }
    if let (Some(from), Some(to)) = (&before.physical_host, &now.physical_host)
        && from != to
    {
        parts.push(format!("it moved from physical host {from} to {to}"));
    }
    if before.cores != now.cores {
        parts.push(format!("{} cores became {}", before.cores, now.cores));
    }
    if before.nics != now.nics {
        parts.push(format!("network cards were {} and are {}", nics(&before.nics), nics(&now.nics)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn nics(nics: &[NicIdentity]) -> String {
    let one = |nic: &NicIdentity| {
        let model = nic.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
        let queues = |count: Option<u32>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "{}{model} with {} receive and {} transmit queues",
            nic.driver,
            queues(nic.rx_queues),
            queues(nic.tx_queues)
        )
    };
    if nics.is_empty() { "none".to_owned() } else { nics.iter().map(one).collect::<Vec<_>>().join(" + ") }
}
