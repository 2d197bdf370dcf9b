//! The page of inspected hosts: findings first, then each host with its drawing, facts and settings.
use netduel_model::ids::HostName;
use netduel_model::snapshot::HostSnapshot;
use netduel_report::document::block::{Block, Document};
use netduel_report::document::chart::Chart;
use netduel_report::inspect::{self, Inspection};
use netduel_report::{document, html, markdown};

use crate::hosts;

/// The page of three hosts, one of which has faults, and of a fourth that did not answer.
pub fn page() -> Document {
    let named = |(name, host): (HostName, HostSnapshot)| (name.to_string(), host);
    let hosts = hosts::of_a_run().into_iter().map(named).collect();
    let failed = vec![("far".to_owned(), "connection refused".to_owned())];
    document::of_inspection(&Inspection { failed, ..Inspection::of_hosts(hosts) }, 1_795_343_407_045)
}

#[test]
fn page_of_hosts_has_findings_facts_and_settings_without_a_run() {
    let document = page();
    assert_eq!(document.title, "Inspection of a, b, guest and far");
    assert_eq!(document.source[0], "2026-11-22 10:30 UTC");
    assert!(document.basis.contains("warning") && document.basis.contains(" and "), "{}", document.basis);
    assert!(document.basis.ends_with(". 1 host could not be inspected."), "{}", document.basis);
    let anchors: Vec<&str> = document.sections.iter().map(|section| section.anchor.as_str()).collect();
    assert_eq!(anchors, ["findings", "failed", "hosts"]);
    let drawn = document.sections[2]
        .blocks
        .iter()
        .filter(|block| matches!(block, Block::Figure(figure) if matches!(figure.chart, Chart::Host(_))));
    assert_eq!(drawn.count(), 3);
    let (page, text) = (html::page(&document), markdown::page(&document));
    for words in ["far: connection refused", "irqbalance"] {
        assert!(page.contains(words) && text.contains(words), "no `{words}`");
    }
    assert!(
        page.contains("<summary>Interfaces and settings</summary>") && page.contains("Interface of guest")
    );
}

/// Where both names are one host, the second one says at which name its findings are.
#[test]
fn pages_list_the_findings_of_a_host_at_the_first_of_its_names() {
    const WHAT: &str = "irqbalance is running and can move interrupts";
    let mut host = hosts::azure();
    host.irqbalance = Some(true);
    let named = vec![("b".to_owned(), host.clone()), ("b-vf".to_owned(), host)];
    let mut inspection = Inspection::of_hosts(named);
    let count = inspection.hosts[0].findings.len();
    let elsewhere = format!("{count} findings are listed at b: both names are the same host.");
    assert!(count > 1 && inspection.hosts[0].findings == inspection.hosts[1].findings);
    let shown = |inspection: &Inspection| {
        let mut document = document::of_inspection(inspection, 1_795_343_407_045);
        // Without the list of the findings of all hosts.
        document.sections.retain(|section| section.anchor == "hosts");
        let pages = [html::page(&document), markdown::page(&document), inspect::text(inspection, 100, false)];
        // A text for a terminal has lines.
        pages.map(|page| page.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    for page in shown(&inspection) {
        assert_eq!((page.matches(WHAT).count(), page.contains(&elsewhere)), (1, true), "{page}");
    }
    inspection.hosts[1].snapshot.boot_id = Some("another".to_owned());
    for page in shown(&inspection) {
        assert_eq!((page.matches(WHAT).count(), page.contains("both names")), (2, false), "{page}");
    }
}

#[test]
fn hosts_that_could_not_be_inspected_do_not_count_as_clean() {
    let failed = ["far", "away"].map(|name| (name.to_owned(), "connection refused".to_owned()));
    let inspection = Inspection { failed: failed.into(), ..Inspection::default() };
    let document = document::of_inspection(&inspection, 1_795_343_407_045);
    assert_eq!(document.title, "Inspection of far and away");
    assert_eq!(document.basis, "2 hosts could not be inspected.");
    let anchors: Vec<&str> = document.sections.iter().map(|section| section.anchor.as_str()).collect();
    assert_eq!(anchors, ["failed"]);
}
