//! An inspection for a terminal: the facts of each host, laid out to be read at a glance, then what was found.
use netduel_model::snapshot::{HostSnapshot, Interface};

use super::{InspectedHost, Inspection};
use crate::findings::{Finding, Severity};
use crate::terminal::Page;
use crate::topology::{groups, others};
use crate::words::{self, Tone, plain};

/// Columns of the titles of facts.
const TITLE: usize = 10;

/// The inspection as text of `width` columns; `colour` adds ANSI colours.
pub fn text(inspection: &Inspection, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    for (index, host) in inspection.hosts.iter().enumerate() {
        if index > 0 {
            page.blank();
        }
        let name = match &host.snapshot.hostname {
            Some(hostname) if *hostname != host.name => format!("{} ({})", host.name, plain(hostname)),
            _ => host.name.clone(),
        };
        page.title(&name);
        facts(&mut page, host);
        page.blank();
        findings(&mut page, &format!("Findings on {}", host.name), &host.findings);
    }
    for pair in &inspection.pairs {
        page.blank();
        findings(&mut page, &format!("Findings between {} and {}", pair.client, pair.server), &pair.findings);
    }
    for (name, reason) in &inspection.failed {
        page.blank();
        page.hanging("", 2, &format!("{name} could not be asked: {}", plain(reason)));
    }
    page.into_text()
}

fn facts(page: &mut Page, inspected: &InspectedHost) {
    let host = &inspected.snapshot;
    for (title, text) in inspected.facts() {
        page.hanging(&format!("  {title:<TITLE$} "), TITLE + 3, &plain(&text));
    }
    for group in groups(host) {
        page.blank();
        interface(page, host, group.top, 2);
        for port in &group.ports {
            interface(page, host, port, 4);
        }
        if group.ports_left > 0 {
            page.hanging("    ", 4, &format!("and {} more beneath {}", group.ports_left, group.top.name));
        }
    }
    let others: Vec<&str> = others(host).iter().map(|other| other.name.as_str()).collect();
    if !others.is_empty() {
        page.blank();
        page.hanging(&format!("  {:<TITLE$} ", "also"), TITLE + 3, &plain(&others.join(", ")));
    }
}

fn interface(page: &mut Page, host: &HostSnapshot, interface: &Interface, indent: usize) {
    let room = TITLE + 2 - indent;
    let head = format!("{:indent$}{:<room$} ", "", interface.name);
    page.hanging(&head, TITLE + 3, &plain(&words::interface(interface)));
    for (title, text) in words::interface_facts(host, interface) {
        page.hanging(&" ".repeat(TITLE + 3), TITLE + 5, &plain(&format!("{title}: {text}")));
    }
}

fn findings(page: &mut Page, title: &str, findings: &[Finding]) {
    if findings.is_empty() {
        page.hanging("", 0, &format!("{title}: none."));
        return;
    }
    page.title(title);
    for finding in findings {
        let tone = match finding.severity {
            Severity::Problem => Tone::Worse,
            Severity::Warning => Tone::Open,
            Severity::Note => Tone::Same,
        };
        let word = page.toned(tone, &format!("{:<7}", finding.severity.word()));
        page.hanging(&format!("  {word} "), 10, &plain(&format!("{} [{}]", finding.what, finding.id)));
        let rows = [
            ("seen", finding.evidence.join("; ")),
            ("why", finding.why.clone()),
            ("do", finding.remedy.clone()),
        ];
        for (row, text) in rows {
            page.hanging(&format!("          {row:<4} "), 15, &plain(&text));
        }
        if let Some(command) = &finding.command {
            // A command is one line whatever the width is: people paste it.
            page.whole(&format!("               $ {}", plain(command)));
        }
    }
}
