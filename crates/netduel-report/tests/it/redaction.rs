//! Redacted runs: no format shows a secret, and the figures are those of the run. Every string of runs with every field is seeded with
//! secrets first.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use netduel_model::published;
use netduel_model::redact::{Meaning, Place, Redactor, meaning, walk};
use netduel_model::run::Run;
use netduel_model::snapshot::HostSnapshot;
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::baseline::Baseline;
use netduel_report::checks::{Checks, Rules};
use netduel_report::document::block::Document;
use netduel_report::history::{History, PastRun, Selection};
use netduel_report::html::Paper;
use netduel_report::inspect::Inspection;
use netduel_report::json::compare::CompareDocument;
use netduel_report::json::history::HistoryDocument;
use netduel_report::json::inspect::InspectDocument;
use netduel_report::json::report::ReportDocument;
use netduel_report::{
    analyse_run, baseline, csv, document, github, html, influx, inspect, junit, markdown, prometheus,
    terminal,
};
use netduel_store::Store;
use netduel_store::format::{FORMAT, upgrade};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::builder::{Recipe, build};
use crate::compare_document::document_of;
use crate::json::origin;

const USER: &str = "mallory7";
const DOMAIN: &str = "corp.secret-bank.example";
const V4: &str = "10.77.66.";
const V6: &str = "fd5e:c0de::";
const MAC: &str = "00:15:5d:be:ef:01";
const BARE_MAC: &str = "00155dbeef01";
const UUID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
const HOST: &str = "vaultsrv";
const RESOURCE: &str = "payrollgrp";

/// Runs with every variant and field, and runs of the program.
const RUNS: [&str; 7] =
    ["3-1", "3-2", "3-3", "2-every", "2-real-treatments", "2-real-packets", "2-real-failover"];

fn golden(name: &str) -> Run {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netduel-store/tests/golden");
    let file = folder.join(format!("format-{name}.netduel"));
    let mut run = Store::open(&folder).unwrap().read(file.to_str().unwrap()).unwrap();
    if run.trials.is_empty() {
        // Those of a generated file have other arms than its plan, so a reader leaves them out.
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let trials = lines.filter_map(|mut line| line.get_mut("trial").map(serde_json::Value::take));
        run.trials = trials.map(|trial| serde_json::from_value(trial).unwrap()).collect();
    }
    run
}

/// A run with a failed trial, whose second arm has `effect` times the rate of the first. The other runs have no annotation of GitHub.
fn built(effect: f64) -> Run {
    let workloads = vec!["bulk", "rr"];
    build(&Recipe { effect, noise: 0.004, failed: vec![(0, 1)], workloads, ..Recipe::default() })
}

/// Puts secrets into the strings of a run: names in place of names, and all of them behind every text.
#[derive(Default)]
struct Seed {
    hosts: BTreeMap<String, String>,
    resources: BTreeMap<String, String>,
    addresses: u32,
}

impl Seed {
    fn host(&mut self, name: &str) -> String {
        let number = self.hosts.len();
        self.hosts.entry(name.to_owned()).or_insert_with(|| format!("{HOST}{number}.{DOMAIN}")).clone()
    }

    fn resource(&mut self, name: &str) -> String {
        let number = self.resources.len();
        self.resources.entry(name.to_owned()).or_insert_with(|| format!("{RESOURCE}{number}")).clone()
    }

    fn address(&mut self, is_v4: bool) -> String {
        self.addresses += 1;
        if is_v4 { format!("{V4}{}", self.addresses % 250 + 1) } else { format!("{V6}{:x}", self.addresses) }
    }

    fn string(&mut self, place: Place, text: &str) -> String {
        if let Ok(address) = text.parse::<std::net::IpAddr>() {
            return self.address(address.is_ipv4());
        }
        match meaning(place) {
            // Those in the alphabet of names have at most 40 characters.
            Meaning::PlanHost => self.host(text).chars().take(34).collect(),
            Meaning::Host => self.host(text),
            Meaning::Resource => self.resource(text),
            Meaning::User => USER.to_owned(),
            Meaning::Id => UUID.to_owned(),
            Meaning::Name | Meaning::Word => text.to_owned(),
            Meaning::Version => format!("{text} built by {USER}"),
            Meaning::Text if place.field == "mac" => MAC.to_owned(),
            // Ports, quantities and places on a bus are read from their text.
            Meaning::Text if text.starts_with(|c: char| c.is_ascii_digit()) || text.is_empty() => {
                text.to_owned()
            }
            Meaning::Text if place.field == "device" || place.holder == "PathProof" => text.to_owned(),
            Meaning::Text
            | Meaning::Argument
            | Meaning::Author
            | Meaning::Organization
            | Meaning::PlanName => format!(
                "{text} {HOST}0.{DOMAIN}: {USER}@{HOST}0 /home/{USER}/plan /resourceGroups/{RESOURCE}0 10.77.66.9:5210 [{V6}9]:1 {MAC} enx{BARE_MAC} {UUID}"
            ),
        }
    }

    fn value<T: Serialize + DeserializeOwned>(&mut self, value: &T) -> T {
        let seeded = walk(value, &mut |place, text| self.string(place, text)).unwrap();
        serde_json::from_value(seeded).unwrap()
    }

    fn run(&mut self, run: &Run) -> Run {
        let mut header = self.value(&run.header);
        // Texts name the first host, which a run without hosts does not have.
        let hostname = Some(format!("{HOST}0.{DOMAIN}"));
        let host = HostSnapshot { hostname, ..HostSnapshot::default() };
        header.hosts.insert("seeded".parse().unwrap(), host);
        // Tables of trials and annotations name the run, and nothing else of the header.
        header.id = format!("run-of-{USER}").parse().unwrap();
        Run {
            header,
            trials: self.value(&run.trials),
            warnings: self.value(&run.warnings),
            end: self.value(&run.end),
        }
    }
}

/// A document in each format for people, and as a browser prints it.
fn pages(of: &str, document: &Document) -> Vec<(String, String)> {
    let pages = [
        ("text", terminal::report(document, 110, false)),
        ("html", html::page(document)),
        ("paper", html::printed(document, Paper::A4)),
        ("md", markdown::page(document)),
    ];
    named(pages.map(|(format, text)| (format!("{of} {format}"), text)))
}

fn named<const N: usize>(formats: [(impl Into<String>, String); N]) -> Vec<(String, String)> {
    formats.into_iter().map(|(format, text)| (format.into(), text)).collect()
}

/// The run in every format, and as it is exported.
fn formats(run: &Run) -> Vec<(String, String)> {
    let analysis = analyse_run(run);
    let page = document::of_run(run, &analysis);
    let hosts = run.header.hosts.iter().map(|(name, host)| (name.to_string(), host.clone())).collect();
    let inspection = Inspection::of_hosts(hosts);
    let of_plan = Inspection::of_plan(&run.header.plan, &run.header.hosts);
    let checks = Checks::of_run(run, &analysis, Rules { conditions: &[], strict: false });
    let history = History::of(vec![PastRun::of(run, &analysis)], &Selection::default()).unwrap();
    let others = [
        ("summary", terminal::summary(&page, 110, false)),
        ("csv", csv::trials(run)),
        ("influx", influx::lines(run)),
        ("prometheus", prometheus::page(run, &analysis)),
        ("junit", junit::page(&checks)),
        ("github", github::annotations(&checks).join("\n")),
        ("step summary", github::summary(&markdown::page(&page), None, &checks.command, usize::MAX)),
        ("baseline", json(&baseline::document(run, &analysis, FORMAT, &origin(), true))),
        ("json", json(&ReportDocument::of(run, &analysis, &origin()))),
        ("history json", json(&HistoryDocument::of(&history, &origin()))),
        ("inspect", inspect::text(&inspection, 110, false)),
        ("inspect json", json(&InspectDocument::of(&inspection, &origin()))),
        ("inspect plan", inspect::text(&of_plan, 110, false)),
        ("header", json(&run.header)),
        ("trials", json(&run.trials)),
        ("warnings", json(&run.warnings)),
        ("end", json(&run.end)),
    ];
    let documents = [
        ("run", page),
        ("inspection", document::of_inspection(&inspection, run.header.started_unix_ms)),
        ("history", document::of_history(&history)),
    ];
    let pages = documents.iter().flat_map(|(of, document)| pages(of, document));
    pages.chain(named(others)).collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn comparison(runs: &[Run; 2]) -> Vec<(String, String)> {
    let analyses = runs.iter().map(analyse_run).collect::<Vec<_>>();
    let sides: Vec<_> = runs.iter().zip(&analyses).map(|(run, analysis)| Side::of(run, analysis)).collect();
    let comparison = compare(&sides, &[]);
    let checks = Checks::of_runs(&comparison, Rules { conditions: &[], strict: false });
    let publications: Vec<_> = published::publications().iter().collect();
    let published = compare(&sides, &publications);
    let file = json(&baseline::document(&runs[0], &analyses[0], FORMAT, &origin(), false));
    let file = Baseline::parse(&file, FORMAT, upgrade).unwrap();
    let of_file = compare(&[file.side(), Side::of(&runs[1], &analyses[1])], &[]);
    let others = [
        ("compare json", json(&CompareDocument::of(&comparison, &origin()))),
        ("compare junit", junit::page(&checks)),
        ("compare github", github::annotations(&checks).join("\n")),
        ("baseline json", json(&CompareDocument::of(&of_file, &origin()))),
        ("published json", json(&CompareDocument::of(&published, &origin()))),
    ];
    let documents = [
        ("compare", document_of(&comparison)),
        ("published", document_of(&published)),
        ("baseline", document_of(&of_file)),
    ];
    let pages = documents.iter().flat_map(|(of, document)| pages(of, document));
    pages.chain(named(others)).collect()
}

/// Takes the formats that show a secret from those that have shown none yet.
fn take_showing(silent: &mut BTreeSet<String>, formats: &[(String, String)]) {
    for (format, _) in formats.iter().filter(|(_, text)| !shown(text).is_empty()) {
        silent.remove(format);
    }
}

fn names(formats: &[(String, String)]) -> BTreeSet<String> {
    formats.iter().map(|(format, _)| format.clone()).collect()
}

fn redacted(runs: &[Run]) -> Vec<Run> {
    let mut redactor = Redactor::default();
    for run in runs {
        redactor.learn_run(run).unwrap();
    }
    runs.iter().map(|run| redactor.redact_run(run).unwrap()).collect()
}

/// The secrets that a text shows, each with what is around it.
fn shown(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let secrets = [USER, DOMAIN, "secret-bank", V4, V6, MAC, BARE_MAC, UUID, HOST, RESOURCE];
    let found = secrets.iter().filter_map(|secret| text.find(secret).map(|at| (secret, at)));
    let around = |at: usize| {
        text.chars().skip(text[..at].chars().count().saturating_sub(60)).take(140).collect::<String>()
    };
    found.map(|(secret, at)| format!("{secret}: ...{}...", around(at))).collect()
}

#[test]
fn no_format_of_a_redacted_run_shows_a_secret() {
    let others = std::iter::once(("built", built(0.6)));
    let runs = RUNS.into_iter().map(|name| (name, golden(name))).chain(others);
    let mut silent = names(&formats(&built(0.6)));
    for (name, run) in runs {
        let seeded = Seed::default().run(&run);
        let plain = formats(&seeded);
        assert!(plain.iter().any(|(_, text)| shown(text).len() == 10), "{name} has no secret to hide");
        take_showing(&mut silent, &plain);
        for (format, text) in formats(&redacted(std::slice::from_ref(&seeded))[0]) {
            assert_eq!(shown(&text), Vec::<String>::new(), "{name} as {format}");
        }
    }
    assert_eq!(silent, BTreeSet::new(), "these formats have nothing to hide in any run");
}

#[test]
fn exports_of_a_redacted_run_have_pseudonyms_in_the_settings_of_the_command_line() {
    let mut run = built(0.6);
    let program = |user: &str| format!("packets.program={}", ["/home", user, "testpmd"].join("/"));
    run.header.annotations.overrides = vec![program(USER)];
    let exports =
        |run: &Run| [csv::trials(run), influx::lines(run), prometheus::page(run, &analyse_run(run))];
    assert!(exports(&run).iter().all(|text| text.contains(USER)), "an export has nothing to hide");
    for text in exports(&redacted(std::slice::from_ref(&run))[0]) {
        assert!(text.contains(&program("user-1")) && !text.contains(USER), "{text}");
    }
}

#[test]
fn no_format_of_a_redacted_run_shows_a_part_of_a_name_at_which_its_own_is_cut() {
    let mut run = Seed::default().run(&built(0.6));
    run.header.plan.name = format!("path-of-the-{HOST}0");
    run.header.id = "path-of-the-vaultsr-20261121-104501-7f3a".parse().unwrap();
    let showing = |run: &Run| -> Vec<String> {
        let formats = formats(run).into_iter();
        formats.filter(|(_, text)| text.contains("vaultsr")).map(|(format, _)| format).collect()
    };
    assert_ne!(showing(&run), Vec::<String>::new());
    let hidden = redacted(std::slice::from_ref(&run)).remove(0);
    assert_eq!(showing(&hidden), Vec::<String>::new());
    // Names of runs stay distinct.
    assert!(hidden.header.id.as_str().ends_with("-20261121-104501-7f3a"), "{}", hidden.header.id);
}

#[test]
fn no_format_of_a_redacted_run_shows_the_hash_of_the_template_of_its_bed() {
    let mut run = golden("3-1");
    let hash = "0a".repeat(32);
    run.header.bed.as_mut().unwrap().template_sha256 = Some(hash.clone());
    let showing = |run: &Run| -> Vec<String> {
        formats(run).into_iter().filter(|(_, text)| text.contains(&hash)).map(|(format, _)| format).collect()
    };
    assert_ne!(showing(&run), Vec::<String>::new());
    assert_eq!(showing(&redacted(std::slice::from_ref(&run))[0]), Vec::<String>::new());
}

#[test]
fn no_format_of_a_redacted_run_shows_an_author_or_organization_of_one_letter() {
    let mut run = built(0.6);
    run.header.plan.report.author = Some("Ħ".to_owned());
    run.header.annotations.publication.organization = Some("Ŧ".to_owned());
    run.header.plan_text = "[report]\nauthor = \"Ħ\"\n".to_owned();
    run.header.command.extend(["--organization".to_owned(), "Ŧ".to_owned()]);
    let showing = |run: &Run| -> Vec<String> {
        let formats = formats(run).into_iter();
        formats.filter(|(_, text)| text.contains(['Ħ', 'Ŧ'])).map(|(format, _)| format).collect()
    };
    assert_ne!(showing(&run), Vec::<String>::new());
    assert_eq!(showing(&redacted(std::slice::from_ref(&run))[0]), Vec::<String>::new());
}

#[test]
fn no_format_of_a_comparison_of_redacted_runs_shows_a_secret() {
    let mut seed = Seed::default();
    let packets = seed.run(&golden("2-real-packets"));
    let faster = seed.run(&built(3.0));
    let slower = Run { trials: built(1.8).trials, ..faster.clone() };
    let mut silent = names(&comparison(&[faster.clone(), slower.clone()]));
    for (first, mut second) in [(packets.clone(), packets), (faster, slower)] {
        second.header.id = "another".parse().unwrap();
        let pair = [first, second];
        take_showing(&mut silent, &comparison(&pair));
        let runs: [Run; 2] = redacted(&pair).try_into().unwrap();
        assert_eq!(runs[0].header.hosts, runs[1].header.hosts, "one host has one pseudonym in both runs");
        for (format, text) in comparison(&runs) {
            assert_eq!(shown(&text), Vec::<String>::new(), "{format}");
        }
    }
    assert_eq!(silent, BTreeSet::new(), "these formats have nothing to hide in any comparison");
}

fn verdicts(run: &Run) -> Vec<String> {
    let metrics = analyse_run(run).workloads.into_iter().flat_map(|workload| workload.judged);
    metrics.map(|metric| format!("{:?} {:?}", metric.metric, metric.comparisons)).collect()
}

#[test]
fn redacted_run_has_the_same_verdicts() {
    for name in RUNS {
        let run = golden(name);
        assert_eq!(verdicts(&redacted(std::slice::from_ref(&run))[0]), verdicts(&run), "{name}");
    }
}

/// The value with hosts of a plan below `srv`, each in a domain of its own.
fn in_domains<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let renamed = walk(value, &mut |place, text| match meaning(place) {
        Meaning::PlanHost => format!("srv.{text}"),
        _ => text.to_owned(),
    });
    serde_json::from_value(renamed.unwrap()).unwrap()
}

#[test]
fn redacted_run_keeps_hosts_with_one_first_label_apart() {
    let run = built(0.6);
    let run = Run { header: in_domains(&run.header), trials: in_domains(&run.trials), ..run };
    assert_eq!(run.header.plan.hosts.len(), 2);
    let hidden = redacted(std::slice::from_ref(&run)).remove(0);
    let names = hidden.header.plan.hosts.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names, ["host-1", "host-2"]);
    assert_eq!(hidden.header.hosts.len(), run.header.hosts.len());
    assert_eq!(verdicts(&hidden), verdicts(&run));
}
