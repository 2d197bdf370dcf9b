//! Hosts whose identity changed during a run: migrated, restarted, or with another NIC.
//!
//! Only trials of the same arm are compared, because an arm may change its host on purpose (queues, a removed VF). Each change
//! starts a new span of the arm; two arms are paired in a block only when both are in the same span.
//!
//! A plan whose treatments switch NICs and VMs of the provider may stop VMs, which start on other hosts: the place of a VM is then a draw that
//! belongs to its arm, as noise does, and all blocks are pairs. The changes are reported all the same.
use std::collections::BTreeMap;

use netduel_model::ids::{ArmName, HostName, WorkloadName};
use netduel_model::observation::{HostIdentity, NicIdentity};
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_model::workload::Role;

/// The span of each trial of an arm, and the changes between spans.
#[derive(Debug, Default)]
pub(super) struct Spans {
    spans: BTreeMap<(ArmName, WorkloadName, u32), u32>,
    changes: BTreeMap<(HostName, u32), String>,
}

impl Spans {
    /// From all counting trials, including invalid ones: these also recorded the identity of their hosts.
    pub fn of(plan: &ResolvedPlan, counting: &[&Trial]) -> Self {
        let mut trials = counting.to_vec();
        trials.sort_by_key(|trial| (trial.slot.block, trial.slot.position));
        let mut all = Self::default();
        let is_own_doing = plan.has_provider_treatments();
        for arm in &plan.arms {
            let mut known: BTreeMap<&HostName, HostIdentity> = BTreeMap::new();
            let mut span = 0;
            for trial in trials.iter().filter(|trial| trial.slot.arm == arm.name) {
                for role in [Role::Client, Role::Server] {
                    let now = trial.end(role).and_then(|end| end.observation.identity.as_ref());
                    let Some(now) = now else { continue };
                    let host = plan.pair_in(arm, trial.slot.block).host(role);
                    let now = completed(now, known.get(host));
                    if let Some(before) = known.insert(host, now.clone())
                        && let Some(detail) = difference(&before, &now)
                    {
                        span += 1;
                        let at = (host.clone(), trial.slot.block);
                        all.changes.entry(at).or_insert(detail);
                    }
                }
                let key = (arm.name.clone(), trial.slot.workload.clone(), trial.slot.block);
                all.spans.insert(key, if is_own_doing { 0 } else { span });
            }
        }
        all
    }

    /// Whether the trials of two arms in a block ran on hosts that did not change between them.
    pub fn paired(&self, workload: &WorkloadName, block: u32, arms: [&ArmName; 2]) -> bool {
        let [one, other] = arms.map(|arm| self.spans.get(&(arm.clone(), workload.clone(), block)));
        one == other
    }

    /// The warnings. Arms see the same change in the same block or the next; it is reported once.
    pub fn warnings(&self) -> Vec<Warning> {
        let is_reported = |host: &HostName, block: u32, detail: &String| {
            block
                .checked_sub(1)
                .is_some_and(|before| self.changes.get(&(host.clone(), before)) == Some(detail))
        };
        let new = self.changes.iter().filter(|((host, block), detail)| !is_reported(host, *block, detail));
        new.map(|((host, block), detail)| Warning::PlacementChanged {
            host: host.clone(),
            block: *block,
            detail: detail.clone(),
        })
        .collect()
    }
}

/// Fills unknown facts with the last known ones: a file that could not be read once is not a change.
fn completed(now: &HostIdentity, before: Option<&HostIdentity>) -> HostIdentity {
    let mut now = now.clone();
    let Some(before) = before else { return now };
    now.boot_id = now.boot_id.or_else(|| before.boot_id.clone());
    now.physical_host = now.physical_host.or_else(|| before.physical_host.clone());
    now
}

/// The differences in words; absent when it is the same host as far as both records show.
fn difference(before: &HostIdentity, now: &HostIdentity) -> Option<String> {
    let mut parts = Vec::new();
    if let (Some(from), Some(to)) = (&before.boot_id, &now.boot_id)
        && from != to
    {
        parts.push("it was rebooted".to_owned());
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
