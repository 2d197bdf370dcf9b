//! What pipelines read: JUnit XML after a schema, annotations, and the baseline file as a run of a comparison.
use std::process::Command;

use netduel_model::published::publication_named;
use netduel_model::run::Run;
use netduel_model::warning::Warning;
use netduel_report::analysis::compare::{RunComparison, Side, compare};
use netduel_report::baseline::Baseline;
use netduel_report::checks::{Checks, Outcome, Rules};
use netduel_report::gate::Condition;
use netduel_report::json::compare::CompareDocument;
use netduel_report::{analyse_run, github, junit, words};
use netduel_store::format::{FORMAT, upgrade};
use netduel_test_support::skip;
use serde_json::{Value, json};

use crate::builder::{Recipe, build};
use crate::json::{baseline, origin, printed};
use crate::packets;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/junit.xsd");

fn conditions(texts: &[&str]) -> Vec<Condition> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn checks(run: &Run, texts: &[&str], strict: bool) -> Checks {
    Checks::of_run(run, &analyse_run(run), Rules { conditions: &conditions(texts), strict })
}

/// Whether `xmllint` finds the document valid; skips without it. `NETDUEL_JUNIT_XSD` names a further schema, for example that of Jenkins.
fn assert_valid(page: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.xml");
    std::fs::write(&file, page).unwrap();
    let further = std::env::var("NETDUEL_JUNIT_XSD").ok();
    for schema in further.iter().map(String::as_str).chain([SCHEMA]) {
        match Command::new("xmllint").args(["--noout", "--nonet", "--schema", schema]).arg(&file).output() {
            Ok(output) => {
                let messages = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{schema}: {messages}\n{page}");
            }
            Err(error) => skip(format!("xmllint does not start: {error}")),
        }
    }
}

/// A run whose second arm loses 40 % of the throughput.
fn slower() -> Run {
    build(&Recipe { effect: 0.6, noise: 0.004, workloads: vec!["bulk", "rr"], ..Recipe::default() })
}

#[test]
fn junit_fails_the_cases_that_a_condition_proves_worse() {
    let run = slower();
    let page = junit::page(&checks(&run, &["throughput < -5 %", "latency-p50 > 10 %"], false));
    assert_valid(&page);
    let case = page.split("<testcase ").find(|case| case.contains("name=\"throughput of bulk\"")).unwrap();
    assert!(case.starts_with("classname=\"accelerated against synthetic\""), "{case}");
    for text in [
        "<failure type=\"gate\" message=\"worse: 0.60x (-40 %)",
        "failed by `throughput &lt; -5 %`: it is worse\n",
        "verdict: worse: 0.60x",
        "synthetic: ",
        "accelerated: ",
        "report: netduel report demo-20261121-103000-7f3a</failure>",
    ] {
        assert!(case.contains(text), "no `{text}` in {case}");
    }
    assert_eq!(
        page.matches("<failure").count(),
        1 + page.matches("name=\"round trip p50 of rr\">\n      <failure").count()
    );
    // Without conditions nothing fails, as in the exit code.
    let none = junit::page(&checks(&run, &[], false));
    assert!(!none.contains("<failure") && none.contains("failures=\"0\""), "{none}");
    assert_valid(&none);
}

#[test]
fn strict_fails_what_is_open_and_missing_data_is_an_error() {
    let open =
        build(&Recipe { blocks: 4, effect: 0.99, noise: 0.2, workloads: vec!["bulk"], ..Recipe::default() });
    let of = |strict| checks(&open, &["throughput < -5 %"], strict);
    let outcome = |checks: &Checks| {
        checks.checks.iter().find(|check| check.name == "throughput of bulk").unwrap().outcome
    };
    assert_eq!([outcome(&of(false)), outcome(&of(true))], [Outcome::Open, Outcome::Failed]);
    let page = junit::page(&of(true));
    assert_valid(&page);
    let reason = "\nfailed by `throughput &lt; -5 %`: it may be worse (--strict)\n";
    assert!(page.contains(reason) && !junit::page(&of(false)).contains("failed by"), "{page}");
    let page = junit::page(&of(false));
    assert_valid(&page);
    // Older schemas of Jenkins allow no attribute here.
    assert!(page.contains("<skipped>inconclusive") && !page.contains("<skipped "), "{page}");
    let failed = (0..8).map(|block| (block, 1)).collect();
    let mut empty = build(&Recipe { failed, workloads: vec!["bulk"], ..Recipe::default() });
    let page = junit::page(&checks(&empty, &["throughput < -5 %"], false));
    assert_valid(&page);
    assert!(page.contains("<error type=\"no-data\""), "{page}");
    let arm = "accelerated".parse().unwrap();
    empty.warnings.push(Warning::ArmDropped { arm, reason: "no such device".to_owned() });
    assert!(!junit::page(&checks(&empty, &[], false)).contains("<error"), "its warning says why");
}

#[test]
fn condition_without_a_comparison_is_an_error_of_its_own() {
    let page = junit::page(&checks(&slower(), &["loss of bulk > 1 points"], false));
    assert_valid(&page);
    assert!(
        page.contains(
            "<testcase classname=\"conditions\" name=\"loss of bulk &gt; 1 points\">\n      <error"
        ),
        "{page}"
    );
}

#[test]
fn junit_of_hostile_texts_is_valid() {
    let text = "<![CDATA[ ]]> & \" ' \u{1b}[31m \u{0} \u{202e} \u{ffff} é".to_owned();
    let mut run = build(&Recipe { question: text.clone(), text: text.clone(), ..Recipe::default() });
    run.header.annotations.title = Some(text.clone());
    run.header.annotations.overrides = vec![text.clone()];
    run.header.annotations.notes.insert("key".to_owned(), text);
    assert_valid(&junit::page(&checks(&run, &["throughput < -5 %"], true)));
}

#[test]
fn junit_has_the_settings_of_the_command_line_as_properties() {
    let plain = slower();
    let mut set = slower();
    set.header.id = "set".parse().unwrap();
    set.header.annotations.overrides = ["blocks_max=8", "bulk.duration=\"5 s\""].map(str::to_owned).to_vec();
    let value = "value=\"blocks_max=8; bulk.duration=&quot;5 s&quot;\"/>";
    let page = junit::page(&checks(&set, &[], false));
    assert_valid(&page);
    assert!(page.contains(&format!("<property name=\"settings of the command line\" {value}")), "{page}");
    let page = junit::page(&checks(&plain, &[], false));
    assert!(!page.contains("settings of the command line"), "{page}");
    let analyses = [analyse_run(&plain), analyse_run(&set)];
    let sides = [Side::of(&plain, &analyses[0]), Side::of(&set, &analyses[1])];
    let rules = Rules { conditions: &[], strict: false };
    let page = compared(&sides, |comparison| junit::page(&Checks::of_runs(comparison, rules)));
    assert_valid(&page);
    let property = format!("<property name=\"settings of the command line, run B\" {value}");
    assert!(page.contains(&property) && !page.contains("command line, run A"), "{page}");
}

fn compared<T>(sides: &[Side<'_>], test: impl FnOnce(&RunComparison<'_>) -> T) -> T {
    test(&compare(sides, &[]))
}

#[test]
fn junit_of_a_comparison_names_the_runs_and_what_is_not_compared() {
    let before =
        build(&Recipe { noise: 0.004, effect: 1.5, workloads: vec!["bulk", "rr"], ..Recipe::default() });
    let mut after =
        build(&Recipe { noise: 0.004, effect: 1.2, workloads: vec!["bulk"], seed: 3, ..Recipe::default() });
    after.header.id = "after".parse().unwrap();
    for host in after.header.hosts.values_mut() {
        host.kernel = Some("6.19.0".to_owned());
    }
    let analyses = [analyse_run(&before), analyse_run(&after)];
    let sides = [Side::of(&before, &analyses[0]), Side::of(&after, &analyses[1])];
    let conditions = conditions(&["throughput on accelerated < -5 %"]);
    let rules = Rules { conditions: &conditions, strict: false };
    let page = compared(&sides, |comparison| junit::page(&Checks::of_runs(comparison, rules)));
    assert_valid(&page);
    for text in [
        "classname=\"accelerated, B against A\" name=\"throughput of bulk\">\n      <failure",
        "may be the cause: kernel of host a (A: 6.18.5-cloud-amd64; B: 6.19.0)",
        "classname=\"B against A\" name=\"workload rr\">\n      <skipped>not compared: workload rr: A has it, B does not</skipped>",
        "<property name=\"run B\" value=\"after\"/>",
    ] {
        assert!(page.contains(text), "no `{text}` in {page}");
    }
    let lines = compared(&sides, |comparison| github::annotations(&Checks::of_runs(comparison, rules)));
    assert!(
        lines[0].starts_with("::error title=netduel%3A throughput of bulk (accelerated%2C B against A)::"),
        "{lines:?}"
    );
}

#[test]
fn baseline_file_gives_the_verdicts_and_differences_of_its_run() {
    let before = build(&Recipe { noise: 0.004, effect: 1.5, ..Recipe::default() });
    let mut after = build(&Recipe { noise: 0.004, effect: 1.2, seed: 3, ..Recipe::default() });
    after.header.id = "after".parse().unwrap();
    for host in after.header.hosts.values_mut() {
        host.kernel = Some("6.19.0".to_owned());
        host.interfaces[0].name = "eth1".to_owned();
    }
    let analyses = [analyse_run(&before), analyse_run(&after)];
    let document = baseline(&before);
    let text = serde_json::to_string_pretty(&document).unwrap();
    let read = Baseline::parse(&text, FORMAT, upgrade).unwrap();
    let of = |first: Side<'_>, second: Side<'_>| {
        compared(&[first, second], |comparison| printed(&CompareDocument::of(comparison, &origin())))
    };
    let (run, other) = (Side::of(&before, &analyses[0]), Side::of(&after, &analyses[1]));
    let [whole, small] = [of(run.clone(), other.clone()), of(read.side(), other.clone())];
    // The facts are in another order, by their kind.
    for key in ["runs", "comparisons", "not_compared", "confidence_ratio", "rules"] {
        let unmarked = |document: &Value| {
            let mut part = document[key].clone();
            if key == "comparisons" {
                for metric in part
                    .as_array_mut()
                    .unwrap()
                    .iter_mut()
                    .flat_map(|one| one["metrics"].as_array_mut().unwrap())
                {
                    for verdict in metric["comparisons"].as_array_mut().unwrap() {
                        verdict["explained_by"] = verdict["explained_by"].as_array().unwrap().len().into();
                    }
                }
            }
            part
        };
        assert_eq!(unmarked(&small), unmarked(&whole), "{key}");
    }
    let facts = |document: &Value| -> Vec<String> {
        let all = document["differences"].as_array().unwrap();
        let mut facts: Vec<String> =
            all.iter().map(|one| format!("{} {}", one["text"], one["values"])).collect();
        facts.sort();
        facts
    };
    assert_eq!(facts(&small), facts(&whole));
    assert!(facts(&whole).iter().any(|fact| fact.contains("presence of eth1")), "{:?}", facts(&whole));
    let reversed = of(other, read.side());
    assert_eq!(
        reversed["comparisons"].as_array().unwrap().len(),
        whole["comparisons"].as_array().unwrap().len()
    );
    assert!(text.len() < 150_000, "{} bytes", text.len());
}

#[test]
fn baseline_file_is_set_against_published_packet_rates_as_its_run() {
    let mut run = packets::swept();
    for host in run.header.hosts.values_mut() {
        let cloud = json!({"provider": "azure", "evidence": "", "size": "Standard_E192ids_v6"});
        host.cloud = serde_json::from_value(cloud).unwrap();
    }
    let analysis = analyse_run(&run);
    let read = Baseline::parse(&baseline(&run).to_string(), FORMAT, upgrade).unwrap();
    let publication = publication_named("azure-dpdk-2025").unwrap();
    let [whole, small] = [Side::of(&run, &analysis), read.side()].map(|side| {
        let comparison = compare(&[side], &[publication]);
        assert!(comparison.has_data() && words::other_sizes(&comparison).is_empty());
        printed(&CompareDocument::of(&comparison, &origin()))["published"].clone()
    });
    // Frames of 512 B have no published rate.
    assert_eq!(whole[0]["values"].as_array().unwrap().len(), 2, "{whole}");
    assert_eq!(small, whole);
}

#[test]
fn file_that_is_no_baseline_is_refused_with_the_reason() {
    let run = build(&Recipe::default());
    let document = baseline(&run);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut other = document.clone();
        other.as_object_mut().unwrap().remove("checksum");
        change(&mut other);
        Baseline::parse(&other.to_string(), FORMAT, upgrade).unwrap_err().to_string()
    };
    assert!(Baseline::parse("{", FORMAT, upgrade).unwrap_err().to_string().starts_with("it is no JSON: "));
    assert_eq!(changed(&|one| one["document"] = "netduel.report".into()), "it is no netduel.baseline");
    assert_eq!(changed(&|one| one["version"] = 9.into()), "its version is 9; this netduel reads version 1");
    assert!(changed(&|one| one["plan"]["arms"] = 3.into()).starts_with("it is damaged: "));
    assert!(
        changed(&|one| one["measured"][0]["metrics"][0]["metric"] = "x".into())
            .starts_with("it is damaged: ")
    );
    let newer = changed(&|one| one["run_format"] = (FORMAT + 1).into());
    assert!(newer.ends_with(&format!("this netduel reads formats up to {FORMAT}")), "{newer}");
}

/// A document as a program writes it that does not distinguish 3.0 from 3.
fn with_integers(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(with_integers).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), with_integers(value))).collect(),
        Value::Number(number) if number.is_f64() => match number.to_string().strip_suffix(".0") {
            Some(whole) => serde_json::from_str(whole).unwrap(),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

#[test]
fn changed_baseline_file_is_refused_and_one_that_is_laid_out_anew_is_read() {
    let document = baseline(&build(&Recipe::default()));
    let read = |text: &str| Baseline::parse(text, FORMAT, upgrade);
    for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
        read(&text).unwrap();
    }
    let text = document.to_string();
    let digits = text.bytes().enumerate().filter(|(_, byte)| (b'2'..b'4').contains(byte));
    let mut refused = 0;
    for (at, _) in digits.step_by(13) {
        let mut bytes = text.clone().into_bytes();
        // A digit stays a digit, so that only the checksum shows it.
        bytes[at] ^= 1;
        let changed = String::from_utf8(bytes).unwrap();
        match read(&changed) {
            // The last digit of a number may make no other number.
            Ok(_) => assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), document, "{at}"),
            Err(error) => {
                assert_eq!(error.to_string(), "it is damaged: its checksum does not fit", "{at}");
                refused += 1;
            }
        }
    }
    assert!(refused > 20, "{refused}");
    // Programs whose numbers are doubles write `3` for `3.0`.
    let rewritten = with_integers(&document);
    assert!(document.to_string().len() > rewritten.to_string().len());
    read(&rewritten.to_string()).unwrap();
    let mut without = document;
    without.as_object_mut().unwrap().remove("checksum");
    without["trials_valid"] = 7.into();
    read(&without.to_string()).unwrap();
}

/// Each pair of so many facts cannot be compared.
#[test]
fn very_many_facts_of_a_baseline_file_are_compared() {
    let run = build(&Recipe { effect: 1.5, ..Recipe::default() });
    let mut document = baseline(&build(&Recipe { seed: 3, ..Recipe::default() }));
    document.as_object_mut().unwrap().remove("checksum");
    let facts: serde_json::Map<String, Value> =
        (0..200_000).map(|number| (format!("fact {number}"), "x".into())).collect();
    document["facts"]["run"]["lab"] = facts.into();
    let read = Baseline::parse(&document.to_string(), FORMAT, upgrade).unwrap();
    let analysis = analyse_run(&run);
    let comparison = compare(&[read.side(), Side::of(&run, &analysis)], &[]);
    assert!(comparison.differences.len() >= 200_000, "{}", comparison.differences.len());
    assert!(comparison.explaining().len() >= 200_000, "each may be the cause of a verdict");
    let document = CompareDocument::of(&comparison, &origin());
    assert_eq!(document.differences.len(), comparison.differences.len());
}

#[test]
fn texts_of_a_baseline_file_do_not_fill_its_error() {
    let document = baseline(&build(&Recipe::default()));
    let errors = [
        ("/version", Value::from(vec![7; 100_000]), "its version is no number; "),
        ("/measured/0/metrics/0/metric", "x".repeat(1 << 19).into(), "it is damaged: unknown variant `xxx"),
        ("/run/title", "x".repeat(2 << 20).into(), "it has a text of 2097152 bytes, "),
    ];
    for (place, value, start) in errors {
        let mut other = document.clone();
        other.as_object_mut().unwrap().remove("checksum");
        *other.pointer_mut(place).unwrap() = value;
        let error = Baseline::parse(&other.to_string(), FORMAT, upgrade).unwrap_err().to_string();
        assert!(error.starts_with(start) && error.len() < 1000, "{place}: {error:.1000}");
    }
}

#[test]
fn baseline_file_with_a_block_zero_is_refused() {
    let mut document = baseline(&build(&Recipe::default()));
    document.as_object_mut().unwrap().remove("checksum");
    Baseline::parse(&document.to_string(), FORMAT, upgrade).unwrap();
    // Blocks 0 and 1 would both be the first one.
    for (place, value) in [
        ("/measured/0/metrics/0/values", json!({ "0": 1e9, "1": 2e9 })),
        ("/measured/0/metrics/0/bounds", json!([0])),
        ("/measured/0/contended", json!({ "0": 0.5 })),
    ] {
        let mut other = document.clone();
        *other.pointer_mut(place).unwrap() = value;
        let error = Baseline::parse(&other.to_string(), FORMAT, upgrade).unwrap_err().to_string();
        assert_eq!(error, "it is damaged: it has a block 0, and blocks count from 1", "{place}");
    }
}

#[test]
fn every_check_has_its_own_name() {
    let run = build(&Recipe { workloads: vec!["bulk", "rr", "udp", "crr", "load"], ..Recipe::default() });
    let checks = checks(&run, &["throughput < -5 %", "latency-p50 of rr > 5 %"], true);
    let mut names: Vec<String> =
        checks.checks.iter().map(|check| format!("{} {}", check.sides, check.name)).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    // Each of the five workloads has one at least.
    assert!(count > 5, "{count}");
}
