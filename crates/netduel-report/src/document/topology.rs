//! The drawing of what a run compared: client and server of each pair of hosts, and the path of each arm between them.
use netduel_model::plan::spec::{LabPath, PathKind};
use netduel_model::plan::{Arm, Launch, Pair, ResolvedPlan, TreatmentAction};
use netduel_model::workload::Role;

use super::chart::{BedDrawing, Chart, DrawnBand, DrawnNic, DrawnVm, Figure, VmRow};
use crate::words;

/// The drawing; absent without arms.
pub(super) fn figure(plan: &ResolvedPlan) -> Option<Figure> {
    if plan.arms.is_empty() {
        return None;
    }
    let rows = rows(plan);
    let host = |end: &DrawnVm| format!("{}: {}", end.name, end.lines.join(", "));
    let hosts = rows.iter().flat_map(|row| &row.vms).map(host);
    let alternative = plan.arms.iter().map(sentence).chain(hosts).collect::<Vec<_>>().join("; ");
    Some(Figure {
        title: "Client, path and server".to_owned(),
        reading: format!(
            "Left: client; right: server. Rows: arms, with the interface that must carry their bytes at each end. {}",
            filled(plan)
        ),
        alternative: alternative.clone(),
        chart: Chart::Bed(BedDrawing {
            label: format!("Client, path and server of each arm: {alternative}"),
            title: title(plan).to_owned(),
            rows,
        }),
        data: None,
        in_text: false,
    })
}

/// What a filled interface is: a lab has no virtual functions.
fn filled(plan: &ResolvedPlan) -> &'static str {
    if words::is_in_lab(plan) {
        "Filled: a veth that stands for a virtual function."
    } else {
        "Filled: the path uses virtual functions."
    }
}

/// Where the hosts are.
fn title(plan: &ResolvedPlan) -> &'static str {
    let are = |is: fn(&Launch) -> bool| plan.hosts.values().all(|host| is(&host.launch));
    if words::is_in_lab(plan) {
        "lab on one machine, without a physical NIC"
    } else if are(|launch| matches!(launch, Launch::Ssh(_))) {
        "hosts that netduel reaches by ssh"
    } else if are(|launch| !launch.uses_network()) {
        "processes on one machine"
    } else {
        "hosts with the launchers of the plan"
    }
}

/// An arm in words: `accelerated: client a (vf0), bypassing the software switches, server b (vf0)`.
fn sentence(arm: &Arm) -> String {
    let [client, server] = [Role::Client, Role::Server].map(|role| {
        let at = std::iter::once(interface(arm, role).to_owned()).chain(addresses(arm, role));
        let at = at.collect::<Vec<_>>().join(", ");
        format!("{} ({at})", words::end_and_host(role, arm.pair.host(role).as_str()))
    });
    format!("{}: {client}, {}, {server}", arm.name, path(arm))
}

/// The pairs of hosts from top to bottom, each with its arms.
fn rows(plan: &ResolvedPlan) -> Vec<VmRow> {
    let mut pairs: Vec<&Pair> = Vec::new();
    for arm in &plan.arms {
        if !pairs.contains(&&arm.pair) {
            pairs.push(&arm.pair);
        }
    }
    let row = |pair: &Pair| VmRow {
        vms: [Role::Client, Role::Server].map(|role| end(plan, pair, role)).to_vec(),
        bands: plan.arms.iter().filter(|arm| arm.pair == *pair).map(band).collect(),
    };
    pairs.into_iter().map(row).collect()
}

/// A host in its role, with its launcher, its size and its addresses.
fn end(plan: &ResolvedPlan, pair: &Pair, role: Role) -> DrawnVm {
    let name = pair.host(role);
    let mut lines = Vec::new();
    if let Some(host) = plan.hosts.get(name) {
        lines.push(words::brief_launch(&host.launch));
        lines.extend(host.size.clone());
        lines.extend(host.addresses.iter().map(ToString::to_string));
    }
    DrawnVm { name: words::end_and_host(role, name.as_str()), lines }
}

fn band(arm: &Arm) -> DrawnBand {
    let nics = [Role::Client, Role::Server].map(|role| {
        vec![DrawnNic {
            name: interface(arm, role).to_owned(),
            lines: addresses(arm, role).collect(),
            guest: None,
            is_accelerated: is_accelerated(arm),
            is_attached: true,
        }]
    });
    DrawnBand { title: format!("{}: {}", arm.name, path(arm)), nics: nics.to_vec() }
}

/// The interface of an arm at an end, as the plan expects it.
fn interface(arm: &Arm, role: Role) -> &str {
    arm.expected(role).unwrap_or("any interface")
}

/// The addresses that are the arm's own at an end.
fn addresses(arm: &Arm, role: Role) -> impl Iterator<Item = String> {
    let addresses = if role == Role::Server { arm.server_addresses.as_slice() } else { &[] };
    addresses.iter().map(ToString::to_string)
}

fn is_accelerated(arm: &Arm) -> bool {
    words::lab_path(arm) == Some(LabPath::Accelerated) || arm.expect_path == Some(PathKind::Vf)
}

/// What is between client and server, and what the arm changes there.
fn path(arm: &Arm) -> String {
    let of_lab = words::lab_path(arm).map(|path| match path {
        LabPath::Synthetic => "through the software switches",
        LabPath::Accelerated => "bypassing the software switches",
        LabPath::Direct => "one veth pair between the guests",
    });
    let expected = arm.expect_path.map(|path| match path {
        PathKind::Vf => "by the virtual function",
        PathKind::Synthetic => "by the synthetic NIC",
    });
    let is_change = |action: &TreatmentAction| !matches!(action, TreatmentAction::Path { .. });
    let changes = arm.treatments.iter().filter(|one| is_change(&one.action)).map(words::treatment);
    let parts: Vec<String> = of_lab.or(expected).map(str::to_owned).into_iter().chain(changes).collect();
    if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") }
}
