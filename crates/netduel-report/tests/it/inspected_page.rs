//! The page of inspected hosts: findings first, then each host with its drawing, facts and settings.
use netduel_model::ids::HostName;
use netduel_model::snapshot::HostSnapshot;
use netduel_report::document::block::{Block, Document};
use netduel_report::document::chart::Chart;
use netduel_report::inspect::Inspection;
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
