//! Whether the hosts of a run still have the settings of its start, after each block and when it is resumed. It reads descriptions only.
mod comparison;
mod interfaces;
mod routes;
mod settings;
mod used;

use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::HostName;
use netduel_model::plan::ResolvedPlan;
use netduel_model::snapshot::HostSnapshot;

use comparison::Comparison;

/// Pairs of client and server with a NAT between them.
pub(super) type Translated = BTreeSet<(HostName, HostName)>;

/// How a host differs from its description at the start of the run.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Those that bear on results, each with both values; interfaces and routes before settings.
    pub(super) all: Vec<String>,
    /// Those that are not known to concern the path of the test.
    pub(super) possible: Vec<String>,
    /// Whether an interface of the path was added anew, or it or a route differs: what follows it, such as the settings that udev makes, can
    /// still come.
    pub(super) has_movement: bool,
    /// Whether no later look can show the host as it was: it has another build, kernel or CPU model.
    pub(super) is_permanent: bool,
}

/// How a host of the plan differs from its description among those at the start of the run.
pub(super) fn differences(
    plan: &ResolvedPlan,
    host: &HostName,
    hosts: &BTreeMap<HostName, HostSnapshot>,
    now: &HostSnapshot,
    translated: &Translated,
) -> Differences {
    let Some(comparison) = Comparison::of(plan, host, hosts, now) else { return Differences::default() };
    let mut found = interfaces::moved(&comparison);
    found.append(routes::changed(&comparison, translated));
    let has_movement = !found.is_empty() || interfaces::is_one_new(&comparison);
    found.append(settings::changed(&comparison));
    let is_permanent = settings::are_permanent(&comparison);
    Differences { all: found.certain, possible: found.possible, has_movement, is_permanent }
}

#[cfg(test)]
mod tests;
