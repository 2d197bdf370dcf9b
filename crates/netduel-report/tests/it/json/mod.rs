//! The JSON documents: what is printed fits the schemas, the schemas and the reference page are current, and no version loses a key.
mod compatible;
mod examples;
mod reference;

use netduel_model::bed::money::Money;
use netduel_model::plan::spec::LabPath;
use netduel_model::run::Run;
use netduel_model::warning::Warning;
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::history::Selection;
use netduel_report::inspect::Inspection;
use netduel_report::json::bed::{
    BedCost, BedHost, BedHostNic, BedSizes, BedsDocument, CheckedBed, DeployedBed, Price, VmPrice,
};
use netduel_report::json::compare::CompareDocument;
use netduel_report::json::envelope::{Document, Envelope, ErrorInfo, Origin};
use netduel_report::json::error::ErrorDocument;
use netduel_report::json::history::HistoryDocument;
use netduel_report::json::inspect::InspectDocument;
use netduel_report::json::lab::{Lab, LabInterface, LabPolicy, LabsDocument};
use netduel_report::json::listing::{
    ChangedRun, EndReason, Note, PairedServer, PairingAction, Pairings, RemovedRuns, RunAction, RunEnd,
    RunState, RunUsage, RunsDocument, RunsUsage, StoredRun, VerifiedRun, VerifiedRuns,
};
use netduel_report::json::parts::Interval;
use netduel_report::json::plan::{CheckedPlan, PlanLab};
use netduel_report::json::quick::{
    QuickDocument, QuickEvent, QuickEventKind, QuickInput, QuickTest, QuickWarning,
};
use netduel_report::json::report::ReportDocument;
use netduel_report::json::schema::DOCUMENTS;
use netduel_report::json::serve::{Moved, ServerEvent, ServerEventKind, ServerPairing};
use netduel_report::quick::SummaryInput;
use netduel_report::{analyse_run, quick};
use netduel_store::format::FORMAT;
use serde_json::Value;

use crate::builder::{Recipe, build};
use crate::{failover, hosts, packets, stamps};

pub fn origin() -> Origin {
    Origin { program_version: "1.2.3".to_owned(), created_unix_ms: 1_795_343_407_045 }
}

/// The document as it is printed, after it was compared with its schema.
pub fn printed(document: &impl Document) -> Value {
    let text = serde_json::to_string(document).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_fits(&value);
    value
}

/// Compares a document with the schema of its type.
fn assert_fits(value: &Value) {
    let name = value["document"].as_str().unwrap();
    let kind = DOCUMENTS.iter().find(|kind| kind.name == name).unwrap();
    let validator = jsonschema::validator_for(&kind.schema()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name} does not fit its schema:\n{}", errors.join("\n"));
}

/// The report of a run.
pub fn report(run: &Run) -> Value {
    printed(&ReportDocument::of(run, &analyse_run(run), &origin()))
}

/// A run against one of another kernel and a workload less.
pub fn compared(run: &Run) -> Value {
    let mut later = run.clone();
    later.header.id = "later".parse().unwrap();
    for host in later.header.hosts.values_mut() {
        host.kernel = Some("6.19.0-cloud-amd64".to_owned());
    }
    for arm in &mut later.header.plan.arms {
        arm.workloads.truncate(1);
    }
    later.header.plan.workloads.truncate(1);
    let analyses = [analyse_run(run), analyse_run(&later)];
    let comparison = compare(&[Side::of(run, &analyses[0]), Side::of(&later, &analyses[1])], &[]);
    printed(&CompareDocument::of(&comparison, &origin()))
}

/// The baseline file of a run.
pub fn baseline(run: &Run) -> Value {
    printed(&netduel_report::baseline::document(run, &analyse_run(run), FORMAT, &origin(), false))
}

/// A history with a change.
pub fn history() -> Value {
    let runs = crate::history::runs(16, 10, [3.0, 2.7]);
    let history = crate::history::history(&runs, &Selection::default());
    printed(&HistoryDocument::of(&history, &origin()))
}

fn quick_test_of(run: &Run, summary: SummaryInput<'_>) -> QuickTest {
    let intervals = [quick::Interval {
        start_s: 0.0,
        end_s: 1.0,
        bytes: 125_000_000,
        by_direction: Some([100_000_000, 25_000_000]),
        messages: 10,
        retransmits: Some(3),
        cwnd_bytes: None,
        lost: None,
        jitter_ns: None,
        round_trips: None,
        is_drain: false,
    }];
    let run_name = Some(run.header.id.as_str());
    QuickTest::of(QuickInput {
        plan: &run.header.plan,
        run: run_name,
        summary,
        intervals: &intervals,
        warnings: &[
            QuickWarning::of(&Warning::SharedMachine {
                client: "a".parse().unwrap(),
                server: "b".parse().unwrap(),
            }),
            QuickWarning::of_host("host a has a problem"),
        ],
    })
}

/// A quick test of a trial of a run.
pub fn quick_test(run: &Run, summary: SummaryInput<'_>) -> Value {
    printed(&QuickDocument::of("10.0.0.2:5210", vec![quick_test_of(run, summary)], None, &origin()))
}

fn first_trial(run: &Run) -> SummaryInput<'_> {
    let (workload, trial) = (&run.header.plan.arms[0].workloads[0], &run.trials[0]);
    SummaryInput { workload, trial, shared_machine: false, expected: None, mtus: [None; 2] }
}

fn error() -> ErrorInfo {
    ErrorInfo { message: "failed".into(), cause: Some("x".into()), exit_code: 4 }
}

fn envelope<D: Document>() -> Envelope {
    D::envelope(&origin())
}

fn inspected() -> InspectDocument {
    let no_driver = hosts::captured().into_iter().find(|(name, _)| name == "azure-mana-no-driver").unwrap();
    let mut inspection = Inspection::of_hosts(vec![("a".to_owned(), hosts::azure()), no_driver]);
    inspection.failed.push(("c".to_owned(), "no route".to_owned()));
    InspectDocument::of(&inspection, &origin())
}

fn listed() -> RunsDocument {
    let whole = StoredRun {
        id: "demo-20260101-120000-1a2b".into(),
        copy_of: Some("original-1".to_owned()),
        path: "/runs/demo.netduel".into(),
        error: None,
        question: Some("Which path is faster?".into()),
        title: Some("after the update".into()),
        notes: vec![Note { key: "kernel".into(), value: "6.8".into() }],
        overrides: vec!["blocks_max=12".into()],
        started: Some("2026-01-01T12:00:00.000Z".into()),
        started_unix_ms: Some(1_767_268_800_000),
        trials: Some(24),
        state: Some(RunState::Done),
        end: Some(RunEnd { reason: EndReason::BlockLimitReached, detail: None }),
        torn: Some(false),
        damaged_records: Some(0),
    };
    let unreadable = StoredRun {
        error: Some("written by a newer version".into()),
        question: None,
        started: None,
        started_unix_ms: None,
        trials: None,
        state: None,
        end: None,
        torn: None,
        damaged_records: None,
        ..whole.clone()
    };
    RunsDocument { envelope: envelope::<RunsDocument>(), runs: vec![whole, unreadable] }
}

fn lab() -> LabsDocument {
    let spec = PlanLab { rules: 600, cap_bps: None, mtu_bytes: 1500, queues: 1 };
    let interface = LabInterface {
        guest: "a".into(),
        interface: "vf0".into(),
        received_packets: 1,
        received_bytes: 60,
        sent_packets: 2,
        sent_bytes: 120,
    };
    let lab = Lab {
        name: "local".into(),
        spec,
        path: LabPath::Accelerated,
        observed_path: None,
        keeper_pid: 4242,
        standing: true,
        user_namespace: false,
        interfaces: vec![interface],
        policies: vec![LabPolicy { machine: "h1".into(), ipv4_rules: 600, ipv6_rules: 600 }],
    };
    LabsDocument { envelope: envelope::<LabsDocument>(), labs: vec![lab], removed: vec!["old".into()] }
}

fn beds() -> BedsDocument {
    let addresses: Vec<std::net::IpAddr> =
        vec!["10.77.0.4".parse().unwrap(), "fd77:6e64:0:1::4".parse().unwrap()];
    let nics = vec![BedHostNic { name: "vm1-test".into(), addresses }];
    let bed = DeployedBed {
        name: "x".into(),
        group: "netduel-x".into(),
        region: "westeurope".into(),
        created: Some("2026-11-22T10:30:07.000Z".into()),
        created_unix_ms: Some(1_795_343_407_000),
        price_per_hour: Some(Price { amount: 0.5, currency: "EUR".into() }),
        cost_at_most: None,
        shutdown: Some("off".into()),
        is_being_deleted: false,
        hosts: vec![BedHost { name: "vm1".into(), ssh: "netduel@192.0.2.7".into(), nics }],
    };
    BedsDocument { envelope: envelope::<BedsDocument>(), beds: vec![bed], removed: vec!["old".into()] }
}

fn checked() -> CheckedPlan {
    let text = include_str!("../../../../../plans/demo.toml");
    let plan = netduel_model::plan::parse(text, "plans/demo.toml").unwrap();
    let of_vm: Money = "2 EUR".parse().unwrap();
    let price = VmPrice { of_vm: &of_vm, read_unix_s: 1_795_343_407, is_estimate: false };
    let cost = BedCost::of(2, [900.0, 5400.0], Some(&price));
    CheckedPlan::of("plans/demo.toml", &plan, Some(cost), &origin())
}

#[test]
fn reports_of_every_kind_of_workload_fit_the_schema() {
    for workload in ["bulk", "rr", "udp", "crr", "load"] {
        let run = build(&Recipe {
            workloads: vec![workload],
            blocks: 3,
            failed: vec![(0, 1)],
            ..Recipe::default()
        });
        let document = report(&run);
        assert_eq!(document["workloads"][0]["arms"].as_array().unwrap().len(), 2, "{workload}");
    }
    for run in [failover::shown(), packets::swept(), stamps::run([true, true], |_| {})] {
        assert!(!report(&run)["workloads"].as_array().unwrap().is_empty());
    }
}

#[test]
fn comparisons_of_runs_fit_the_schema() {
    let run = build(&Recipe { workloads: vec!["bulk", "udp"], ..Recipe::default() });
    let document = compared(&run);
    assert_eq!([&document["runs"][0]["label"], &document["runs"][1]["label"]], ["A", "B"]);
    assert_eq!(document["runs"][1]["run"]["id"], "later");
    let kernel = &document["differences"][0];
    assert_eq!((&kernel["aspect"], &kernel["text"]), (&"system".into(), &"kernel of host a".into()));
    assert_eq!(kernel["values"][1], serde_json::json!({ "run": "B", "value": "6.19.0-cloud-amd64" }));
    assert_eq!(document["not_compared"][0]["reason"], "missing");
    let metric = &document["comparisons"][0]["metrics"][0];
    assert_eq!((&metric["metric"], &metric["unit"]), (&"throughput".into(), &"bit/s".into()));
    assert_eq!(metric["runs"][0]["values"], metric["runs"][1]["values"]);
    let verdict = &metric["comparisons"][0];
    assert_eq!((&verdict["run"], &verdict["values_own"]), (&"B".into(), &8.into()), "{verdict}");
    assert_eq!(verdict["verdict"]["estimate"]["centre"], 1.0);
}

#[test]
fn reports_contain_the_facts_of_hosts() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    for host in run.header.hosts.values_mut() {
        *host = hosts::azure();
    }
    let document = report(&run);
    let interfaces = document["hosts"][0]["facts"]["interfaces"].as_array().unwrap();
    let interface = interfaces.iter().find(|interface| interface["name"] == "eth0").unwrap();
    assert_eq!(interface["speed_bps"], 50_000_000_000_u64, "{interface}");
    assert_eq!(interface["channels"]["combined"], serde_json::json!({ "now": 8, "max": 8 }));
    assert_eq!(document["hosts"][0]["accelerated_networking"][0]["state"], "active");
}

#[test]
fn every_document_begins_with_its_type_version_program_and_time() {
    let run = build(&Recipe { workloads: vec!["rr"], blocks: 1, ..Recipe::default() });
    let text = serde_json::to_string(&ReportDocument::of(&run, &analyse_run(&run), &origin())).unwrap();
    let head = "{\"document\":\"netduel.report\",\"version\":3,\"program_version\":\"1.2.3\",\
                \"created\":\"2026-11-22T10:30:07.045Z\",\"created_unix_ms\":1795343407045,";
    assert!(text.starts_with(head), "{}", &text[..200]);
    for kind in DOCUMENTS {
        let schema = kind.schema();
        let required = schema["required"].as_array().unwrap();
        for key in ["document", "version", "program_version", "created", "created_unix_ms"] {
            assert!(required.contains(&key.into()), "{}: {key}", kind.name);
        }
    }
}

#[test]
fn seed_beyond_2_to_the_53rd_is_the_same_text() {
    let mut run = build(&Recipe { workloads: vec!["rr"], blocks: 1, ..Recipe::default() });
    run.header.seed = u64::MAX;
    run.header.plan.design.seed = Some(u64::MAX);
    let document = report(&run);
    let max = Value::from("18446744073709551615");
    assert_eq!([&document["run"]["seed"], &document["plan"]["design"]["seed"]], [&max; 2]);
}

#[test]
fn quick_tests_and_their_events_fit_the_schemas() {
    let run = stamps::run([true, true], |_| {});
    let input = first_trial(&run);
    let document = quick_test(&run, input);
    let first = &document["tests"][0]["intervals"][0];
    assert_eq!([&first["start_ns"], &first["end_ns"]], [0, 1_000_000_000]);
    assert_eq!(first["rate_bps"], 1e9);
    assert_eq!([&first["to_server_bytes"], &first["to_client_bytes"]], [100_000_000, 25_000_000]);
    let interval = Interval::of(&quick::Interval {
        start_s: 0.0,
        end_s: 0.0,
        bytes: 0,
        by_direction: None,
        messages: 0,
        retransmits: None,
        cwnd_bytes: None,
        lost: None,
        jitter_ns: None,
        round_trips: None,
        is_drain: false,
    });
    for event in [
        QuickEventKind::start("far:5210", input.workload),
        QuickEventKind::Interval { interval },
        QuickEventKind::End { test: Box::new(quick_test_of(&run, input)) },
        QuickEventKind::Failed { error: error() },
    ] {
        printed(&QuickEvent::of(event, &origin()));
    }
    let half = QuickDocument::of("far", vec![quick_test_of(&run, input)], Some(error()), &origin());
    assert_eq!(printed(&half)["error"]["exit_code"], 4);
    assert_eq!(printed(&ErrorDocument::of(error(), vec![interval], &origin()))["error"]["cause"], "x");
}

#[test]
fn ends_of_a_quick_test_have_names_of_counters_as_values() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    let server = run.trials[0].server.as_mut().unwrap();
    server.observation.interrupts = [("Function call interrupts".to_owned(), 7)].into();
    server.observation.protocol = [("Tcp.RetransSegs".to_owned(), -3)].into();
    server.observation.driver = [("eth0".to_owned(), [("rx out of buffer".to_owned(), 5)].into())].into();
    let tcp = netduel_model::sample::TcpInfo { rtt_us: Some(42), ..Default::default() };
    server.report.streams =
        vec![netduel_model::sample::StreamReport { tcp: Some(tcp), ..Default::default() }];
    let bytes = server.report.received.as_ref().unwrap().bytes;
    let document = quick_test(&run, first_trial(&run));
    let ends = document["tests"][0]["ends"].as_array().unwrap();
    assert_eq!([&ends[0]["role"], &ends[1]["role"]], ["client", "server"]);
    let (end, host) = (&ends[1], &ends[1]["host"]);
    assert_eq!((&end["received"]["bytes"], &end["sent"]), (&bytes.into(), &Value::Null));
    assert_eq!(end["streams"][0]["tcp"]["rtt_ns"], 42_000);
    let counter = |name: &str, value: i64| serde_json::json!([{ "name": name, "value": value }]);
    assert_eq!(host["interrupts"], counter("Function call interrupts", 7));
    assert_eq!(host["protocol"], counter("Tcp.RetransSegs", -3));
    let driver = serde_json::json!([{ "interface": "eth0", "name": "rx out of buffer", "value": 5 }]);
    assert_eq!(host["driver"], driver);
}

#[test]
fn cpu_time_of_messages_has_one_unit_in_metrics_and_counters() {
    let run = build(&Recipe { workloads: vec!["udp"], blocks: 3, ..Recipe::default() });
    let workload = &report(&run)["workloads"][0];
    let of = |list: &str, key: &str, name: &str| {
        let found = workload[list].as_array().unwrap().iter().find(|one| one[key] == name);
        let found = found.unwrap_or_else(|| panic!("no {name} in {workload}"));
        (found["unit"].clone(), found["arms"][0]["median"].as_f64().unwrap())
    };
    let (metric_unit, metric) = of("metrics", "metric", "cpu-per-datagram");
    let (counter_unit, counter) = of("counters", "counter", "busy");
    assert_eq!((&metric_unit, &counter_unit), (&"ns".into(), &"ns/datagram".into()));
    assert!((metric / counter - 1.0).abs() < 1e-9, "{metric} {counter}");
    let analysis = analyse_run(&run);
    let metrics = analysis.workloads[0].judged.iter().chain(&analysis.workloads[0].unjudged);
    let cpu = metrics.into_iter().find(|one| one.metric.key() == "cpu-per-datagram").unwrap();
    let written = cpu.human(metric);
    assert_eq!(written, netduel_model::units::human_nanos(metric), "{metric}");
}

#[test]
fn lines_of_a_server_fit_the_schema() {
    let run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, ..Recipe::default() });
    let workload = &run.header.plan.arms[0].workloads[0];
    let client = "10.0.0.1:4242".parse().unwrap();
    let pairing = ServerPairing { host: "far".into(), port: 5210, string: "netduel1x".into() };
    for event in [
        ServerEventKind::Ready { address: client, pairings: vec![pairing], warning: None },
        ServerEventKind::Ready { address: client, pairings: vec![], warning: Some("no address".into()) },
        ServerEventKind::test(client, workload, [Some(Moved { bytes: 1, rate_bps: None }), None], 0),
        ServerEventKind::failed(client, workload, "closed"),
        ServerEventKind::refused(client, "busy"),
        ServerEventKind::NotPrinted { tests: 0, failed: 1, refused: 2 },
    ] {
        printed(&ServerEvent::of(event, &origin()));
    }
}

#[test]
fn listings_plans_and_beds_fit_the_schemas() {
    printed(&inspected());
    printed(&listed());
    printed(&RemovedRuns { envelope: envelope::<RemovedRuns>(), removed: vec!["x".into()] });
    for action in [RunAction::Tagged, RunAction::Renamed, RunAction::Exported, RunAction::Imported] {
        printed(&ChangedRun {
            envelope: envelope::<ChangedRun>(),
            action,
            id: "new".into(),
            former_id: (action == RunAction::Renamed).then(|| "old".into()),
            file: (action == RunAction::Exported).then(|| "./new.netduel".into()),
            title: Some("x".into()),
            notes: vec![Note { key: "kernel".into(), value: "6.8".into() }],
            was_there: (action == RunAction::Imported).then_some(true),
        });
    }
    let run = RunUsage { id: "x".into(), bytes: 1, disk_bytes: 4096 };
    printed(&RunsUsage {
        envelope: envelope::<RunsUsage>(),
        folder: "/store".into(),
        runs: vec![run],
        disk_bytes: 4096,
        free_bytes: Some(1),
    });
    for torn in [None, Some(true)] {
        let run = VerifiedRun {
            id: "x".into(),
            is_sound: false,
            text: "damaged".into(),
            trials: torn.map(|_| 7),
            damaged_lines: torn.map(|_| 3).into_iter().collect(),
            torn,
        };
        printed(&VerifiedRuns { envelope: envelope::<VerifiedRuns>(), runs: vec![run] });
    }
    printed(&lab());
    printed(&beds());
    let text = include_str!("../../../../../beds/dpdk.toml");
    let bed = netduel_model::bed::parse(text, "beds/dpdk.toml").unwrap();
    let unknown = printed(&CheckedBed::of("beds/dpdk.toml", &bed, None, &origin()));
    assert_eq!((&unknown["price_per_hour"], &unknown["size"]["quota_family"]), (&Value::Null, &Value::Null));
    assert_eq!(unknown["price_is_estimate"], false);
    let of_vm: Money = "2.5 USD".parse().unwrap();
    let price = VmPrice { of_vm: &of_vm, read_unix_s: 1_795_343_407, is_estimate: true };
    let bed = printed(&CheckedBed::of("beds/dpdk.toml", &bed, Some(&price), &origin()));
    assert_eq!(bed["price_per_hour"], serde_json::json!({ "amount": 5.0, "currency": "USD" }));
    assert_eq!(bed["price_read"], "2026-11-22T10:30:07.000Z");
    assert_eq!(bed["price_is_estimate"], true);
    assert_eq!((&bed["type"], &bed["vcpus"]), (&"dpdk".into(), &384.into()));
    assert_eq!(bed["vms"][1]["nics"][1]["accelerated"], true);
    let document = printed(&BedSizes::of(netduel_model::size::table(), &origin()));
    let mut sizes = document["sizes"].as_array().unwrap().iter();
    let size = sizes.find(|size| size["name"] == "Standard_D2s_v5").unwrap();
    assert_eq!((&size["can_be_synthetic"], &size["accelerated_nics"]), (&false.into(), &1.into()));
    assert_eq!(size["bed_types"], serde_json::json!([]));
    let server = PairedServer { name: "far".into(), host: "far".into(), port: 5210 };
    let action = PairingAction::List;
    printed(&Pairings { envelope: envelope::<Pairings>(), action, pairings: vec![server] });
    let plan = printed(&checked());
    let cost = &plan["bed_cost"];
    assert_eq!(cost["time_min_ns"], 900_000_000_000_u64);
    assert_eq!(cost["cost_min"]["amount"], 1.0);
    assert_eq!(cost["cost_max"], serde_json::json!({ "amount": 6.0, "currency": "EUR" }));
    printed(&CheckedPlan { bed_cost: Some(BedCost::of(2, [1.0, 1.0], None)), ..checked() });
    printed(&CheckedPlan { bed_cost: None, ..checked() });
    let workload = &plan["plan"]["arms"][0]["workloads"][0];
    let block = workload["quantities"].as_array().unwrap().iter().find(|one| one["key"] == "block").unwrap();
    assert_eq!((&workload["type"], &block["unit"]), (&"tcp-stream".into(), &"bytes".into()));
}

/// A file of the project.
fn project_file(file: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

fn is_blessed() -> bool {
    std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1")
}
