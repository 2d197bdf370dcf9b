//! A crossover: arms on different hosts exchange them after half of the blocks, so that a difference between the hosts is none of the arms.
use std::borrow::Cow;

use crate::ids::HostName;
use crate::plan::resolved::{Arm, Pair, ResolvedPlan, Treatment, TreatmentAction};
use crate::workload::Role;

impl Arm {
    /// Whether another arm has the same traffic on other hosts, so that the two can exchange them.
    pub(super) fn can_cross(&self, other: &Self) -> bool {
        let hosts = |arm: &Self| [arm.pair.client.clone(), arm.pair.server.clone()];
        let are_apart = hosts(self).iter().all(|host| !hosts(other).contains(host));
        are_apart
            && self.network == other.network
            && self.workloads == other.workloads
            && self.expect_mbps == other.expect_mbps
            && self.treatments_on(other).is_some()
    }

    /// Its treatments as they are on the hosts of another arm: those of the provider change the NICs that the other arm names there. `None`
    /// where the other arm names none for one of them.
    fn treatments_on(&self, other: &Self) -> Option<Vec<Treatment>> {
        let nics = |arm: &Self| -> Vec<TreatmentAction> {
            let actions = arm.treatments.iter().map(|treatment| &treatment.action);
            actions.filter(|action| is_of_nic(action)).cloned().collect()
        };
        let mut others = other.treatments.iter().filter(|treatment| is_of_nic(&treatment.action));
        let crossed = self.treatments.iter().map(|treatment| {
            let TreatmentAction::AzureNic { accelerated, .. } = treatment.action else {
                let is_of_vm = matches!(treatment.action, TreatmentAction::AzurePlacement { .. });
                return (!is_of_vm).then(|| treatment.clone());
            };
            let there = others.next().filter(|there| there.on == treatment.on)?;
            let TreatmentAction::AzureNic { nic, resource_group, .. } = &there.action else { return None };
            let (nic, resource_group) = (nic.clone(), resource_group.clone());
            Some(Treatment {
                action: TreatmentAction::AzureNic { nic, resource_group, accelerated },
                on: treatment.on,
            })
        });
        let crossed = crossed.collect();
        if nics(self).len() == nics(other).len() { crossed } else { None }
    }

    /// The arm on the hosts of another one.
    fn on_hosts_of(&self, other: &Self) -> Self {
        Self {
            pair: other.pair.clone(),
            treatments: self.treatments_on(other).unwrap_or_else(|| self.treatments.clone()),
            server_addresses: other.server_addresses.clone(),
            ..self.clone()
        }
    }
}

impl TreatmentAction {
    /// Whether both set accelerated networking of one NIC.
    pub fn is_of_the_same_nic(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::AzureNic { nic, resource_group, .. },
                Self::AzureNic { nic: other_nic, resource_group: other_group, .. },
            ) => nic == other_nic && resource_group == other_group,
            _ => false,
        }
    }
}

fn is_of_nic(action: &TreatmentAction) -> bool {
    matches!(action, TreatmentAction::AzureNic { .. })
}

impl ResolvedPlan {
    /// The first block of the second half of a crossover, counted from 0; `None` without a crossover.
    pub fn crossover_at(&self) -> Option<u32> {
        self.design.crossover.then_some(self.design.blocks_max / 2)
    }

    /// The arm that exchanges its hosts with an arm.
    pub fn counterpart(&self, arm: &Arm) -> Option<&Arm> {
        let mut others = self.arms.iter().filter(|other| other.name != arm.name && other.can_cross(arm));
        self.design.crossover.then(|| others.next()).flatten()
    }

    /// An arm as it is in a block: in the second half of a crossover on the hosts of its counterpart.
    pub fn arm_in<'p>(&'p self, arm: &'p Arm, block: u32) -> Cow<'p, Arm> {
        let is_crossed = self.crossover_at().is_some_and(|half| block >= half);
        match self.counterpart(arm).filter(|_| is_crossed) {
            Some(other) => Cow::Owned(arm.on_hosts_of(other)),
            None => Cow::Borrowed(arm),
        }
    }

    /// The hosts of an arm in a block.
    pub fn pair_in<'p>(&'p self, arm: &'p Arm, block: u32) -> &'p Pair {
        let is_crossed = self.crossover_at().is_some_and(|half| block >= half);
        self.counterpart(arm).filter(|_| is_crossed).map_or(&arm.pair, |other| &other.pair)
    }

    /// The host of an arm in a role, with that of the second half of a crossover: `vm1`, or `vm1, then vm3`.
    pub fn host_words(&self, arm: &Arm, role: Role) -> String {
        let first = arm.pair.host(role);
        self.counterpart(arm)
            .map_or_else(|| first.to_string(), |other| format!("{first}, then {}", other.pair.host(role)))
    }

    /// The hosts of an arm in each half of a crossover; without one its only pair.
    pub fn pairs_of<'p>(&'p self, arm: &'p Arm) -> impl Iterator<Item = &'p Pair> {
        let pairs = [Some(&arm.pair), self.counterpart(arm).map(|other| &other.pair)];
        pairs.into_iter().flatten()
    }

    /// All hosts that an arm uses in a run.
    pub fn hosts_of<'p>(&'p self, arm: &'p Arm) -> impl Iterator<Item = &'p HostName> {
        self.pairs_of(arm).flat_map(|pair| [&pair.client, &pair.server])
    }

    /// Every arm as it is in any block.
    pub fn arms_of_all_blocks(&self) -> Vec<Cow<'_, Arm>> {
        let last = self.design.blocks_max.saturating_sub(1);
        let crossed = self.arms.iter().filter(|arm| self.counterpart(arm).is_some());
        self.arms.iter().map(Cow::Borrowed).chain(crossed.map(|arm| self.arm_in(arm, last))).collect()
    }
}
