//! The hosts: each drawn, in facts and in findings, then what was found between them.
use std::collections::BTreeSet;

use maud::{Markup, html};
use netduel_model::run::Run;
use netduel_model::snapshot::{Device, HostSnapshot, Interface};

use super::drawing::drawing;
use crate::analysis::Analysis;
use crate::findings::Finding;
use crate::inspect::{InspectedHost, Inspection};
use crate::topology::groups;
use crate::words::{self, Fact, plain};

/// The section of the hosts.
pub(super) fn hosts(run: &Run, analysis: &Analysis) -> Markup {
    let inspection = &analysis.inspection;
    html! {
        section id="hosts" {
            h2 { "Hosts" }
            p.reading { "What each host told of itself before the first trial, and what follows from it. Commands are for you to run; \
                         netduel ran none of them." }
            (pairs(inspection))
            @for host in &inspection.hosts { (page(host)) }
            (settings(run))
        }
    }
}

/// A line near the top, so that nobody reads the answer without knowing of what is wrong with the hosts.
pub(super) fn in_brief(analysis: &Analysis) -> Markup {
    let problems = analysis.inspection.lines(crate::findings::Severity::Problem);
    html! {
        @for problem in &problems { p.brief.problem { a href="#hosts" { (plain(problem)) } } }
    }
}

fn pairs(inspection: &Inspection) -> Markup {
    html! {
        @for pair in inspection.pairs.iter().filter(|pair| !pair.findings.is_empty()) {
            h3 { "Between " (pair.client) " and " (pair.server) }
            (findings(&pair.findings))
        }
    }
}

fn page(host: &InspectedHost) -> Markup {
    let snapshot = &host.snapshot;
    let title = match &snapshot.hostname {
        Some(hostname) if *hostname != host.name => format!("{} ({})", host.name, plain(hostname)),
        _ => host.name.clone(),
    };
    html! {
        article.host id={ "host-" (host.name) } {
            h3 { (title) }
            @if !is_detailed(snapshot) {
                p.note { "This run was recorded without the devices, queues, nodes and cloud of its hosts, by an older netduel or on a host \
                          that does not tell them: they are not drawn, and few findings can be made." }
            }
            div.sides {
                @if let Some(drawing) = drawing(&host.name, snapshot) {
                    div.drawn { (drawing) p.reading { (legend(snapshot)) } }
                }
                div.told {
                    (facts(&host.facts()))
                    @for group in groups(snapshot) {
                        (interface(snapshot, group.top, false))
                        @for port in &group.ports { (interface(snapshot, port, true)) }
                    }
                }
            }
            @if host.findings.is_empty() { p { "Nothing was found to be wrong." } } @else { (findings(&host.findings)) }
        }
    }
}

/// Whether a snapshot knows of what is drawn; those of older runs do not.
fn is_detailed(host: &HostSnapshot) -> bool {
    host.processor.is_some()
        || host.cloud.is_some()
        || !host.nodes.is_empty()
        || host.interfaces.iter().any(|interface| interface.device != Device::default())
}

fn legend(host: &HostSnapshot) -> &'static str {
    let served = host.interfaces.iter().any(|interface| !interface.device.interrupts.is_empty());
    if served {
        "Numbered cells above are cores; shaded ones serve interrupts of a queue. Under a queue stands the core that serves it (c3: core 3)."
    } else {
        "Numbered cells are cores. Which of them serve the interfaces, the host does not tell: virtual interfaces have no interrupts."
    }
}

fn facts(facts: &[Fact]) -> Markup {
    html! { dl.facts { @for (title, text) in facts { dt { (title) } dd { (plain(text)) } } } }
}

fn interface(host: &HostSnapshot, interface: &Interface, beneath: bool) -> Markup {
    let facts_of = words::interface_facts(host, interface);
    html! {
        div.interface.beneath[beneath] {
            p { b { (plain(&interface.name)) } " " (plain(&words::interface(interface))) }
            @if !facts_of.is_empty() { (facts(&facts_of)) }
        }
    }
}

fn findings(findings: &[Finding]) -> Markup {
    html! {
        ul.findings {
            @for finding in findings {
                li class=(finding.severity.word()) {
                    p.what { b { (finding.severity.word()) } " " (plain(&finding.what)) " " code.id { (finding.id) } }
                    p { "Seen: " (plain(&finding.evidence.join("; "))) ". " (capital(&finding.why)) "." }
                    p.remedy { (capital(&finding.remedy)) "." }
                    @if let Some(command) = &finding.command { pre { code { (plain(command)) } } }
                }
            }
        }
    }
}

/// A sentence begins with a capital.
fn capital(text: &str) -> String {
    let text = plain(text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Everything that the hosts told, in tables, for those who look something up.
fn settings(run: &Run) -> Markup {
    let hosts = &run.header.hosts;
    let sysctls: BTreeSet<&String> = hosts.values().flat_map(|host| host.sysctls.keys()).collect();
    html! {
        details {
            summary { "All interfaces and settings" }
            @for (name, host) in hosts { (interfaces(name.as_str(), host)) }
            @if !sysctls.is_empty() {
                div.scroll { table.hosts {
                    thead { tr { th { "sysctl" } @for name in hosts.keys() { th scope="col" { (name) } } } }
                    tbody { @for sysctl in sysctls {
                        tr { th scope="row" { (plain(sysctl)) } @for host in hosts.values() { td { (absent(host.sysctls.get(sysctl).cloned())) } } }
                    } }
                } }
            }
            div.scroll { table.hosts {
                thead { tr { th { "identity" } @for name in hosts.keys() { th scope="col" { (name) } } } }
                tbody {
                    tr { th scope="row" { "boot" } @for host in hosts.values() { td { (absent(host.boot_id.clone())) } } }
                    tr { th scope="row" { "network namespace" }
                        @for host in hosts.values() { td { (absent(host.netns.map(|inode| inode.to_string()))) } } }
                    tr { th scope="row" { "platform" } @for host in hosts.values() { td { (absent(host.platform.clone())) } } }
                }
            } }
        }
    }
}

fn absent(text: Option<String>) -> Markup {
    html! { @if let Some(text) = text { (plain(&text)) } @else { span.absent { "not told" } } }
}

fn interfaces(name: &str, host: &HostSnapshot) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "Interface of " (name) } th { "kind" } th { "driver" } th.number { "MTU" } th { "state" } th { "above" }
                th.number { "speed" } th { "MAC" } th { "qdisc" } } }
            tbody {
                @for interface in &host.interfaces {
                    tr {
                        td { (plain(&interface.name)) }
                        td { (plain(interface.kind.as_deref().unwrap_or("hardware"))) }
                        td { (absent(interface.driver.clone())) }
                        td.number { (absent(interface.mtu.map(|mtu| mtu.to_string()))) }
                        td { @if interface.up { "up" } @else { "down" } }
                        td { (plain(interface.master.as_deref().unwrap_or(""))) }
                        td.number { (absent(interface.speed_mbps.map(|speed| format!("{speed} Mbit/s")))) }
                        td { (absent(interface.mac.clone())) }
                        td { (absent(interface.qdisc.clone())) }
                    }
                }
            }
        } }
    }
}
