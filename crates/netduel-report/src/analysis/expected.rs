//! The known rate limit of an arm's sending hosts: from the plan, from the size that it names, or from the cloud.
use std::collections::BTreeMap;

use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, Pair, ResolvedPlan};
use netduel_model::size;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::units::human_bit_rate;
use netduel_model::workload::{Direction, Role, Workload};
use serde::Serialize;

use crate::words::percent;

/// A known limit of the rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expected {
    /// The limit, bit/s; of traffic both ways the sum of both.
    pub bps: f64,
    /// Owner and source of the limit, for example `Standard_DS4_v2's limit (dsv2-series of 2024-07-29)`.
    pub whose: String,
    /// Why the limit may not apply; absent when no reason is known.
    pub doubt: Option<String>,
    /// Of traffic both ways the limit of each sender: one direction can be at its limit while the sum is not.
    #[serde(skip)]
    pub by_sender: Vec<(Role, Expected)>,
}

/// Above this multiple of a limit the limit does not apply. Token buckets exceed a limit for a short time only.
const BEYOND: f64 = 1.1;

impl Expected {
    /// A limit that the plan names, Mbit/s.
    fn planned(mbps: u32, whose: String) -> Self {
        Self { bps: f64::from(mbps) * 1e6, whose, doubt: None, by_sender: Vec::new() }
    }

    /// `5.7 Gbit/s of 6 Gbit/s, 95 % of Standard_DS4_v2's limit (dsv2-series of 2024-07-29)`.
    pub fn share_words(&self, rate_bps: f64) -> String {
        let mut doubt = self.doubt.as_ref().map(|doubt| format!("; this limit {doubt}")).unwrap_or_default();
        if rate_bps > self.bps * BEYOND {
            doubt.push_str("; above the limit, so the limit does not apply");
        }
        format!(
            "{} of payload of {}, {} of {}{doubt}",
            human_bit_rate(rate_bps),
            human_bit_rate(self.bps),
            percent(rate_bps / self.bps),
            self.whose
        )
    }
}

/// The limit of a workload on an arm; absent where none is known, or the traffic is not bulk data. Order of precedence: the plan's
/// limit of the arm, of a host, the size named in the plan, the size detected on the host. Only sending is limited: where both hosts
/// send, both limits must be known.
pub fn of(
    plan: &ResolvedPlan,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    arm: &Arm,
    workload: &Workload,
) -> Option<Expected> {
    of_pair(plan, hosts, (arm, &arm.pair), workload)
}

/// The same for an arm on the hosts that it has in a half of a crossover.
pub(super) fn of_pair(
    plan: &ResolvedPlan,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    (arm, pair): (&Arm, &Pair),
    workload: &Workload,
) -> Option<Expected> {
    let senders: &[Role] = match workload.traffic.facts().bulk? {
        Direction::Up => &[Role::Client],
        Direction::Down => &[Role::Server],
        Direction::Both => &[Role::Client, Role::Server],
    };
    let of_sender = |role: &Role| match arm.expect_mbps {
        Some(mbps) => Some(Expected::planned(mbps, "the expected rate of the pair".to_owned())),
        None => of_host(plan, hosts, pair.host(*role)),
    };
    let limits: Vec<Expected> = senders.iter().map(of_sender).collect::<Option<_>>()?;
    let by_sender: Vec<(Role, Expected)> = senders.iter().copied().zip(limits.iter().cloned()).collect();
    let sum = limits.into_iter().reduce(|one, other| Expected {
        bps: one.bps + other.bps,
        whose: if one.whose == other.whose {
            one.whose
        } else {
            format!("{} and {}", one.whose, other.whose)
        },
        doubt: one.doubt.or(other.doubt),
        by_sender: Vec::new(),
    })?;
    Some(if by_sender.len() > 1 { Expected { by_sender, ..sum } } else { sum })
}

fn of_host(
    plan: &ResolvedPlan,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    name: &HostName,
) -> Option<Expected> {
    let planned = plan.hosts.get(name)?;
    if let Some(mbps) = planned.expect_mbps {
        return Some(Expected::planned(mbps, format!("the expected rate of host {name}")));
    }
    let found = hosts.get(name).and_then(size_of);
    let size = size::named(planned.size.as_deref().or(found)?)?;
    Some(Expected {
        bps: size.rate().0 as f64,
        whose: format!("{}'s limit ({})", size.name, size.source()),
        doubt: Some(size.doubt.clone()).filter(|doubt| !doubt.is_empty()),
        by_sender: Vec::new(),
    })
}

/// The size detected on a host.
fn size_of(host: &HostSnapshot) -> Option<&str> {
    host.cloud.as_ref()?.size.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_a_limit_reads_neither_as_nothing_nor_as_all() {
        let limit = Expected::planned(1000, "the limit".to_owned());
        for (rate, share) in [
            (0.95e9, "95 %"),
            (0.996e9, "99 %"),
            (1e9, "100 %"),
            (1.05e9, "105 %"),
            (2e6, "0.2 %"),
            (1e3, "less than 0.001 %"),
        ] {
            let words = limit.share_words(rate);
            assert!(words.ends_with(&format!(" of payload of 1.00 Gbit/s, {share} of the limit")), "{words}");
        }
    }
}
