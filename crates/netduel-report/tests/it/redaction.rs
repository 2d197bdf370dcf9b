//! Redacted runs: no format shows a secret, and the figures are those of the run. Every string of runs with every field is seeded with
//! secrets first.
use std::collections::BTreeMap;
use std::path::Path;

use netduel_model::redact::{Meaning, Place, Redactor, meaning, walk};
use netduel_model::run::Run;
use netduel_model::snapshot::HostSnapshot;
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::checks::{Checks, Rules};
use netduel_report::inspect::Inspection;
use netduel_report::json::compare::CompareDocument;
use netduel_report::json::inspect::InspectDocument;
use netduel_report::json::report::ReportDocument;
use netduel_report::{
    analyse_run, baseline, csv, document, github, html, influx, inspect, junit, markdown, prometheus,
    terminal,
};
use netduel_store::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::json::origin;

const USER: &str = "mallory7";
const DOMAIN: &str = "corp.secret-bank.example";
const V4: &str = "10.77.66.";
const V6: &str = "fd5e:c0de::";
const MAC: &str = "00:15:5d:be:ef:01";
const BARE_MAC: &str = "00155dbeef01";
const UUID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
const HOST: &str = "vaultsrv";

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

/// Puts secrets into the strings of a run: names in place of names, and all of them behind every text.
#[derive(Default)]
struct Seed {
    hosts: BTreeMap<String, String>,
    addresses: u32,
}

impl Seed {
    fn host(&mut self, name: &str) -> String {
        let number = self.hosts.len();
        self.hosts.entry(name.to_owned()).or_insert_with(|| format!("{HOST}{number}.{DOMAIN}")).clone()
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
            Meaning::Text => format!(
                "{text} {HOST}0.{DOMAIN}: {USER}@{HOST}0 /home/{USER}/plan 10.77.66.9:5210 [{V6}9]:1 {MAC} enx{BARE_MAC} {UUID}"
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
        Run {
            header,
            trials: self.value(&run.trials),
            warnings: self.value(&run.warnings),
            end: self.value(&run.end),
        }
    }
}

/// The run in every format, and as it is exported.
fn formats(run: &Run) -> Vec<(&'static str, String)> {
    let analysis = analyse_run(run);
    let page = document::of_run(run, &analysis);
    let hosts = run.header.hosts.iter().map(|(name, host)| (name.to_string(), host.clone())).collect();
    let inspection = Inspection::of_hosts(hosts);
    let checks = Checks::of_run(run, &analysis, Rules { conditions: &[], strict: false });
    vec![
        ("text", terminal::report(&page, 110, false)),
        ("summary", terminal::summary(&page, 110, false)),
        ("html", html::page(&page)),
        ("md", markdown::page(&page)),
        ("csv", csv::trials(run)),
        ("influx", influx::lines(run)),
        ("prometheus", prometheus::page(run, &analysis)),
        ("junit", junit::page(&checks)),
        ("github", github::annotations(&checks).join("\n")),
        ("baseline", serde_json::to_string(&baseline::document(run, &analysis, 1, &origin())).unwrap()),
        ("json", serde_json::to_string(&ReportDocument::of(run, &analysis, &origin())).unwrap()),
        ("inspect", inspect::text(&inspection, 110, false)),
        ("inspect json", serde_json::to_string(&InspectDocument::of(&inspection, &origin())).unwrap()),
        (
            "inspect plan",
            inspect::text(&Inspection::of_plan(&run.header.plan, &run.header.hosts), 110, false),
        ),
        ("header", serde_json::to_string(&run.header).unwrap()),
        ("trials", serde_json::to_string(&run.trials).unwrap()),
        ("warnings", serde_json::to_string(&run.warnings).unwrap()),
        ("end", serde_json::to_string(&run.end).unwrap()),
    ]
}

fn comparison(runs: &[Run; 2]) -> Vec<(&'static str, String)> {
    let analyses = runs.iter().map(analyse_run).collect::<Vec<_>>();
    let sides: Vec<_> = runs.iter().zip(&analyses).map(|(run, analysis)| Side::of(run, analysis)).collect();
    let comparison = compare(&sides);
    let page = document::of_runs(&comparison);
    vec![
        ("compare text", terminal::report(&page, 110, false)),
        ("compare html", html::page(&page)),
        ("compare md", markdown::page(&page)),
        ("compare json", serde_json::to_string(&CompareDocument::of(&comparison, &origin())).unwrap()),
    ]
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
    let secrets = [USER, DOMAIN, "secret-bank", V4, V6, MAC, BARE_MAC, UUID, HOST];
    let found = secrets.iter().filter_map(|secret| text.find(secret).map(|at| (secret, at)));
    let around = |at: usize| {
        text.chars().skip(text[..at].chars().count().saturating_sub(60)).take(140).collect::<String>()
    };
    found.map(|(secret, at)| format!("{secret}: ...{}...", around(at))).collect()
}

#[test]
fn no_format_of_a_redacted_run_shows_a_secret() {
    for name in RUNS {
        let seeded = Seed::default().run(&golden(name));
        assert!(
            formats(&seeded).iter().any(|(_, text)| shown(text).len() == 9),
            "{name} has no secret to hide"
        );
        for (format, text) in formats(&redacted(std::slice::from_ref(&seeded))[0]) {
            assert_eq!(shown(&text), Vec::<String>::new(), "{name} as {format}");
        }
    }
}

#[test]
fn no_format_of_a_comparison_of_redacted_runs_shows_a_secret() {
    let mut seed = Seed::default();
    let first = seed.run(&golden("2-real-packets"));
    let mut second = first.clone();
    second.header.id = "another".parse().unwrap();
    let pair = [first, second];
    assert!(comparison(&pair).iter().all(|(_, text)| !shown(text).is_empty()));
    let runs: [Run; 2] = redacted(&pair).try_into().unwrap();
    assert_eq!(runs[0].header.hosts, runs[1].header.hosts, "one host has one pseudonym in both runs");
    for (format, text) in comparison(&runs) {
        assert_eq!(shown(&text), Vec::<String>::new(), "{format}");
    }
}

#[test]
fn redacted_run_has_the_same_verdicts() {
    for name in RUNS {
        let run = golden(name);
        let verdicts = |run: &Run| {
            let analysis = analyse_run(run);
            let metrics = analysis.workloads.into_iter().flat_map(|workload| workload.judged);
            metrics.map(|metric| format!("{:?} {:?}", metric.metric, metric.comparisons)).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&redacted(std::slice::from_ref(&run))[0]), verdicts(&run), "{name}");
    }
}
