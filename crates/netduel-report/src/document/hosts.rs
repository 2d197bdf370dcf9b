//! Hosts: facts, findings on each host and between hosts, and all recorded settings.
use std::collections::BTreeSet;

use netduel_model::lab;
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Treatment, TreatmentAction};
use netduel_model::run::Run;
use netduel_model::snapshot::{Device, HostSnapshot, Interface};
use netduel_model::units::plural;

use super::block::{Block, Document, FactGroup, Scope, Section, list};
use super::chart::{Chart, Figure};
use super::cover::Cover;
use super::host_drawing;
use super::table::{Cell, Column, Table};
use crate::findings::Severity;
use crate::inspect::{HostFindings, InspectedHost, Inspection};
use crate::topology::{groups, others};
use crate::words::{self, Fact};

/// The section of a run's hosts.
pub(super) fn section(run: &Run, inspection: &Inspection) -> Section {
    let mut blocks = vec![Block::Reading(
        "Facts of each host before the first trial, and findings. Commands are suggestions; netduel ran none of them."
            .to_owned(),
    )];
    let reaches_direct =
        |treatment: &Treatment| matches!(treatment.action, TreatmentAction::Path { path: LabPath::Direct });
    let plan = &run.header.plan;
    if plan.lab.is_some() && !plan.arms.iter().flat_map(|arm| &arm.treatments).any(reaches_direct) {
        let words = format!(
            "{} is the lab's third path, `direct`, which no arm of this run uses.",
            lab::DIRECT_INTERFACE
        );
        blocks.push(Block::Paragraph(words.into()));
    }
    blocks.extend(congestion(run).map(|text| Block::Paragraph(text.into())));
    blocks.extend(with_findings(inspection));
    let hosts: Vec<Named<'_>> = run.header.hosts.iter().map(|(name, host)| (name.as_str(), host)).collect();
    blocks.push(Block::Folded(SETTINGS.to_owned(), settings(&hosts)));
    Section { anchor: "hosts".to_owned(), title: "Hosts".to_owned(), scope: Scope::Reference, blocks }
}

/// The congestion control that workloads set; absent without any, and where the facts of all hosts show one of them as the default.
fn congestion(run: &Run) -> Option<String> {
    let workloads = run.header.plan.arms.iter().flat_map(|arm| &arm.workloads);
    let set: BTreeSet<&str> =
        workloads.filter_map(|workload| workload.traffic.facts().tcp.congestion).collect();
    let differs = |host: &HostSnapshot| {
        let default = host.sysctls.get("net.ipv4.tcp_congestion_control");
        default.is_some_and(|default| !set.contains(default.as_str()))
    };
    let is_confusing = !set.is_empty() && run.header.hosts.values().any(differs);
    let names: Vec<&str> = set.iter().copied().collect();
    is_confusing.then(|| {
        format!(
            "Workloads with a congestion control in the plan ({}) do not use the default of the hosts.",
            words::listed(&names)
        )
    })
}

/// The page of inspected hosts without a run. `unix_ms`: when they were read.
pub fn of_inspection(inspection: &Inspection, unix_ms: u64) -> Document {
    let section = |anchor: &str, title: &str, blocks: Vec<Block>| Section {
        anchor: anchor.to_owned(),
        title: title.to_owned(),
        scope: Scope::Detail,
        blocks,
    };
    let lines = inspection.lines(Severity::Note);
    let found = if lines.is_empty() { Block::Paragraph("None.".into()) } else { list(lines) };
    let mut sections = Vec::new();
    if !inspection.hosts.is_empty() {
        sections.push(section("findings", "Findings", vec![found]));
    }
    let failed: Vec<String> =
        inspection.failed.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    if !failed.is_empty() {
        sections.push(section("failed", "Hosts that could not be inspected", vec![list(failed)]));
    }
    if !inspection.hosts.is_empty() {
        let mut blocks =
            vec![Block::Reading("Commands are suggestions; netduel ran none of them.".to_owned())];
        blocks.extend(with_findings(inspection));
        let hosts: Vec<Named<'_>> =
            inspection.hosts.iter().map(|host| (host.name.as_str(), &host.snapshot)).collect();
        blocks.push(Block::Folded(SETTINGS.to_owned(), settings(&hosts)));
        sections.push(section("hosts", "Hosts", blocks));
    }
    let failed = inspection.failed.iter().map(|(name, _)| name.as_str());
    let names: Vec<&str> = inspection.hosts.iter().map(|host| host.name.as_str()).chain(failed).collect();
    Document {
        cover: Cover::default(),
        title: format!("Inspection of {}", words::listed(&names)),
        source: vec![words::date(unix_ms), netduel_model::PROGRAM.to_owned()],
        basis: basis(inspection),
        arms: Vec::new(),
        sections,
    }
}

/// What was found on the hosts, and how many could not be inspected: on those nothing is known.
fn basis(inspection: &Inspection) -> String {
    let found = (!inspection.hosts.is_empty()).then(|| match inspection.counted(Severity::Note) {
        counts if counts.is_empty() => "No findings.".to_owned(),
        counts => format!("{counts}."),
    });
    let failed = match inspection.failed.len() {
        0 => None,
        count => Some(format!("{} could not be inspected.", plural(count, "host"))),
    };
    found.into_iter().chain(failed).collect::<Vec<_>>().join(" ")
}

/// The findings of the pairs, then each host with its drawing, facts and findings. What hosts of one machine have in common is shown once.
fn with_findings(inspection: &Inspection) -> Vec<Block> {
    let mut blocks = Vec::new();
    for pair in inspection.pairs.iter().filter(|pair| !pair.findings.is_empty()) {
        blocks.push(Block::Heading(format!("Findings between {} and {}", pair.client, pair.server)));
        blocks.push(Block::Findings(pair.findings.clone()));
    }
    let mut done: Vec<&str> = Vec::new();
    for found in inspection.by_host() {
        let host = found.host;
        let same = on_machine_of(inspection, host);
        if same.len() > 1 && !done.contains(&host.name.as_str()) {
            done.extend(same.iter().map(|host| host.name.as_str()));
            let names: Vec<String> = same.iter().map(|host| title(host)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            blocks.push(Block::Heading(format!("Machine of {}", words::listed(&names))));
            let rows =
                common_facts(&same).into_iter().map(|(title, text)| (title.to_owned(), text)).collect();
            blocks.push(Block::Facts(vec![FactGroup { rows, ..FactGroup::default() }]));
        }
        blocks.push(Block::Heading(title(host)));
        blocks.extend(figure(host).map(|figure| Block::Figure(Box::new(figure))));
        let common = if same.len() > 1 { common_facts(&same) } else { Vec::new() };
        blocks.push(Block::Facts(facts(host, &common)));
        blocks.extend(listed(found, "No findings."));
    }
    blocks
}

/// The findings of a host, and the other name of it at which the rest of them is listed. `none`: the text without any.
fn listed(found: HostFindings<'_>, none: &str) -> Vec<Block> {
    let elsewhere = found.elsewhere.into_iter().map(|(name, count)| {
        let are = if count == 1 { "is" } else { "are" };
        format!("{} {are} listed at {name}: both names are the same host.", plural(count, "finding"))
    });
    let mut texts: Vec<String> = elsewhere.collect();
    let mut blocks = Vec::new();
    if !found.listed.is_empty() {
        blocks.push(Block::Findings(found.listed));
    } else if texts.is_empty() {
        texts.push(none.to_owned());
    }
    blocks.extend(texts.into_iter().map(|text| Block::Paragraph(text.into())));
    blocks
}

/// Inspected hosts without a run: a section for each host and each pair.
pub(crate) fn inspected(inspection: &Inspection) -> Vec<Section> {
    let section = |title: String, blocks: Vec<Block>| Section {
        anchor: String::new(),
        title,
        scope: Scope::Detail,
        blocks,
    };
    let mut sections = Vec::new();
    for found in inspection.by_host() {
        let host = found.host;
        sections.push(section(title(host), vec![Block::Facts(facts(host, &[]))]));
        sections.push(section(format!("Findings on {}", host.name), listed(found, "None.")));
    }
    for pair in &inspection.pairs {
        let title = format!("Findings between {} and {}", pair.client, pair.server);
        let found = match pair.findings.as_slice() {
            [] => Block::Paragraph("None.".into()),
            found => Block::Findings(found.to_vec()),
        };
        sections.push(section(title, vec![found]));
    }
    for (name, reason) in &inspection.failed {
        sections.push(section(
            name.clone(),
            vec![Block::Paragraph(format!("Inspection failed: {reason}").into())],
        ));
    }
    sections
}

/// The hosts on the machine of a host, itself included.
fn on_machine_of<'a>(inspection: &'a Inspection, host: &'a InspectedHost) -> Vec<&'a InspectedHost> {
    let is_same =
        |other: &&InspectedHost| other.name == host.name || other.snapshot.same_machine(&host.snapshot);
    inspection.hosts.iter().filter(is_same).collect()
}

/// The facts that all of these hosts have in common: those of their machine.
fn common_facts(hosts: &[&InspectedHost]) -> Vec<Fact> {
    let Some((first, others)) = hosts.split_first() else { return Vec::new() };
    let others: Vec<Vec<Fact>> = others.iter().map(|host| host.facts()).collect();
    first.facts().into_iter().filter(|fact| others.iter().all(|facts| facts.contains(fact))).collect()
}

fn title(host: &InspectedHost) -> String {
    match &host.snapshot.hostname {
        Some(hostname) if *hostname != host.name => format!("{} ({hostname})", host.name),
        _ => host.name.clone(),
    }
}

/// Whether a snapshot contains the facts of the drawing; snapshots of older runs do not.
fn is_detailed(host: &HostSnapshot) -> bool {
    host.processor.is_some()
        || host.cloud.is_some()
        || !host.numa_nodes.is_empty()
        || host.interfaces.iter().any(|interface| interface.device != Device::default())
}

/// Queues and cores; absent for a host without these facts.
fn figure(host: &InspectedHost) -> Option<Figure> {
    let snapshot = &host.snapshot;
    let drawing = host_drawing::of_host(&host.name, snapshot)?;
    let served = snapshot.interfaces.iter().any(|interface| !interface.device.interrupts.is_empty());
    let reading = match (is_detailed(snapshot), served) {
        (false, _) => {
            "This run has no record of the host's devices, queues, NUMA nodes and cloud (older netduel, or not available on the host). Few \
             findings are possible."
        }
        (_, true) => {
            "Numbered cells at the top are cores; shaded cores serve interrupts of a queue. Below each queue: the core that serves it (c3: \
             core 3)."
        }
        (_, false) => {
            "Numbered cells are cores. Virtual interfaces have no hardware interrupts, so no interrupt belongs to a core."
        }
    };
    Some(Figure {
        title: String::new(),
        reading: reading.to_owned(),
        alternative: format!(
            "cores, nodes, interfaces and queues of {}; the facts have the same in words",
            host.name
        ),
        chart: Chart::Host(drawing),
        data: None,
        in_text: false,
    })
}

/// The facts of the machine except those that another block has, then each interface with those below it.
fn facts(inspected: &InspectedHost, elsewhere: &[Fact]) -> Vec<FactGroup> {
    let host = &inspected.snapshot;
    let own = inspected.facts().into_iter().filter(|fact| !elsewhere.contains(fact)).collect();
    let rows = |facts: Vec<Fact>| facts.into_iter().map(|(title, text)| (title.to_owned(), text)).collect();
    let mut all = vec![FactGroup { rows: rows(own), ..FactGroup::default() }];
    all.retain(|group| !group.rows.is_empty());
    let interface = |interface: &Interface, nested: bool| FactGroup {
        head: Some((interface.name.clone(), words::interface(interface))),
        nested,
        rows: rows(words::interface_facts(host, interface)),
    };
    for group in groups(host) {
        all.push(interface(group.top, false));
        all.extend(group.ports.iter().map(|port| interface(port, true)));
        if group.ports_left > 0 {
            let more = (format!("{} more", group.ports_left), format!("below {}", group.top.name));
            all.push(FactGroup { head: Some(more), nested: true, rows: Vec::new() });
        }
    }
    let others: Vec<&str> = others(host).iter().map(|other| other.name.as_str()).collect();
    if !others.is_empty() {
        all.push(FactGroup { head: Some(("also".to_owned(), others.join(", "))), ..FactGroup::default() });
    }
    all
}

/// One field of a host's identity.
type Identity = fn(&HostSnapshot) -> Option<String>;

/// A host with its name.
type Named<'a> = (&'a str, &'a HostSnapshot);

/// The title of the settings.
const SETTINGS: &str = "Interfaces and settings";

/// All recorded settings of the hosts, in tables.
fn settings(hosts: &[Named<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> =
        hosts.iter().map(|(name, host)| Block::Table(interfaces(name, host))).collect();
    let by_host = |title: &str| {
        let names = hosts.iter().map(|(name, _)| Column::text(*name));
        Table::new([Column::key(title)].into_iter().chain(names).collect())
    };
    let cell = |text: Option<String>| text.map_or(Cell::Absent, Cell::Text);
    let mut sysctls = by_host("sysctl");
    let names: BTreeSet<&String> = hosts.iter().flat_map(|(_, host)| host.sysctls.keys()).collect();
    for name in names {
        let values = hosts.iter().map(|(_, host)| cell(host.sysctls.get(name).cloned()));
        sysctls.rows.push([Cell::from(name.as_str())].into_iter().chain(values).collect());
    }
    let mut identities = by_host("identity");
    let rows: [(&str, Identity); 3] = [
        ("boot", |host| host.boot_id.clone()),
        ("network namespace", |host| host.netns.map(|inode| inode.to_string())),
        ("platform", |host| host.platform.clone()),
    ];
    for (title, of) in rows {
        let values = hosts.iter().map(|(_, host)| cell(of(host)));
        identities.rows.push([Cell::from(title)].into_iter().chain(values).collect());
    }
    blocks.extend([sysctls, identities].map(Block::Table));
    blocks
}

/// The kind of an interface; the kernel names only that of virtual ones, and none for the loopback interface.
fn kind(interface: &Interface) -> &str {
    match interface.kind.as_deref() {
        Some(kind) => kind,
        None if interface.name == "lo" => "loopback",
        None => "hardware",
    }
}

fn interfaces(name: &str, host: &HostSnapshot) -> Table {
    let mut columns =
        vec![Column::key(format!("Interface of {name}")), Column::text("kind"), Column::text("driver")];
    columns.extend([
        Column::number("MTU"),
        Column::text("state"),
        Column::text("master"),
        Column::number("speed"),
    ]);
    columns.extend([Column::text("MAC"), Column::text("qdisc")]);
    let mut table = Table::new(columns);
    let cell = |text: &Option<String>| text.clone().map_or(Cell::Absent, Cell::Text);
    table.rows = host
        .interfaces
        .iter()
        .map(|interface| {
            vec![
                interface.name.as_str().into(),
                kind(interface).into(),
                cell(&interface.driver),
                Cell::number(interface.mtu.map(|mtu| mtu.to_string())),
                if interface.up { "up" } else { "down" }.into(),
                interface.master.as_deref().unwrap_or("").into(),
                Cell::number(interface.line_speed_mbps().map(|speed| format!("{speed} Mbit/s"))),
                cell(&interface.mac),
                cell(&interface.qdisc),
            ]
        })
        .collect();
    table
}
