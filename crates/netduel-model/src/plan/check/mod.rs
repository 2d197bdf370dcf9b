//! Whether a plan makes sense, and its defaults. Each file judges one table; none of them stops at the first problem.
mod arms;
mod design;
mod events;
mod frames;
mod guests;
mod hosts;
mod overrides;
mod permissions;
mod provider;
mod report;
mod settings;
mod sizes;
mod treatments;
mod tuning;
mod values;
mod workloads;

use super::permissions::Permissions;
use super::problem::{Problems, element_path, one_of};
use super::resolved::{Arm, Lab, ResolvedPlan};
use super::spec::{DesignSpec, LabSpec, PlanSpec};
use crate::ids::{NAME_LEN_MAX, RunId};
use crate::nearest::nearest;
use crate::published;
use crate::workload::LAB;

use values::check_table;

pub(super) use overrides::apply as apply_overrides;
pub use settings::traffic;

/// Checks everything and resolves it; `None` when what is missing or unreadable leaves nothing to run. A plan with
/// problems may be resolved all the same: the caller looks at the problems.
pub(super) fn resolve(
    spec: &PlanSpec,
    permissions: Permissions,
    problems: &mut Problems<'_>,
) -> Option<ResolvedPlan> {
    if !sizes::check(spec, problems) {
        return None;
    }
    permissions::check(spec, permissions, problems);
    if let Some(name) = &spec.name
        && RunId::new(name.as_str()).is_err()
    {
        let rule = format!(
            "1 to {NAME_LEN_MAX} of a-z A-Z 0-9 . _ - are allowed, beginning with a letter or a digit"
        );
        problems.add("name", format!("{name:?} is not a name"), rule);
    }
    if let Some(question) = &spec.question
        && question.trim().is_empty()
    {
        problems.add("question", "is empty", "write in one sentence what the run is to find out");
    }
    check_publication(spec.published.as_deref(), problems);
    let report = report::resolve(spec.report.as_ref(), problems);
    let lab = spec.lab.as_ref().map(|lab| resolve_lab(lab, problems));
    let mut hosts = hosts::resolve(spec, problems);
    hosts::check_bed_type(spec, problems);
    let workloads = workloads::check(spec, problems);
    let arms = arms::resolve(spec, lab.as_ref(), &hosts, problems);
    // A host is known by all of its addresses. Its own come first: they are those of arms that name none.
    for arm in arms.iter().flatten() {
        let Some(server) = hosts.get_mut(&arm.pair.server) else { continue };
        for address in &arm.server_addresses {
            if !server.addresses.contains(address) {
                server.addresses.push(*address);
            }
        }
    }
    let comparisons =
        arms.iter().flatten().skip(1).flat_map(|arm| &arm.workloads).map(|w| w.metrics.len()).sum();
    let design =
        design::resolve(spec.design.as_ref().unwrap_or(&DesignSpec::default()), comparisons, problems);
    if design.crossover {
        check_crossover(arms.as_deref().unwrap_or_default(), problems);
    }
    Some(ResolvedPlan {
        name: spec.name.clone()?,
        question: spec.question.clone()?,
        published: spec.published.clone(),
        bed_type: spec.bed_type,
        report,
        lab,
        hosts,
        arms: arms?,
        workloads: workloads?,
        design,
    })
}

/// Notes arms of a crossover that cannot exchange their hosts with exactly one other arm.
fn check_crossover(arms: &[Arm], problems: &mut Problems<'_>) {
    for (index, arm) in arms.iter().enumerate() {
        let others = arms.iter().filter(|other| other.name != arm.name && other.can_cross(arm));
        let names: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        let wrong = match names.as_slice() {
            [_] => continue,
            [] => "has no counterpart, so that it cannot exchange its hosts".to_owned(),
            several => format!("could exchange its hosts with each of {}", several.join(", ")),
        };
        let allowed = "with crossover = true each arm needs one other arm with the same workloads, network and expect_mbps, with other hosts, and \
                       with as many azure-nic treatments on the same sides; azure-placement cannot cross";
        problems.add(&element_path("arms", index), wrong, allowed);
    }
}

/// Notes a publication that has no figures.
fn check_publication(id: Option<&str>, problems: &mut Problems<'_>) {
    let Some(id) = id.filter(|id| published::publication_named(id).is_none()) else { return };
    let ids = published::publications().iter().map(|publication| publication.id.as_str());
    let meant =
        nearest(id, ids.clone()).map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
    problems.add(
        "published",
        format!("is {id:?}, which is not a publication with figures"),
        format!("{meant}allowed: {}", one_of(ids)),
    );
}

fn resolve_lab(lab: &LabSpec, problems: &mut Problems<'_>) -> Lab {
    check_table(problems, "lab", LAB, |key| lab.number(key));
    Lab {
        rules: lab.rules.unwrap_or(Lab::RULES),
        cap: lab.cap,
        mtu: lab.mtu.unwrap_or(Lab::MTU),
        queues: lab.queues.unwrap_or(Lab::QUEUES),
    }
}
