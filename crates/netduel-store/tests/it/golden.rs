//! Golden files of older formats are read as the records that they were written from, and newer formats are rejected. Those of
//! the current format are checked with its schema.
use std::path::PathBuf;

use netduel_model::metric::Metric;
use netduel_model::run::{Run, RunEnd, RunHeader};
use netduel_model::sample::{TransactionParts, UnderLoad};
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::units::Bytes;
use netduel_model::warning::Warning;
use netduel_model::workload::{TcpEngine, TcpStream, Traffic};
use netduel_store::format::FORMAT;
use netduel_store::{Store, StoreError};

use crate::sample::{self, arm, header, host, workload};

fn golden_file(name: impl std::fmt::Display) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/format-{name}.netduel"))
}

/// Trials with every field.
fn trials() -> Vec<Trial> {
    let bare = |position, validity| Trial {
        lab_events: None,
        search: None,
        slot: Slot { block: 0, position, arm: arm("near"), workload: workload("latency") },
        attempt: 0,
        started_unix_ms: 1_795_257_903_000,
        validity,
        client: None,
        server: None,
        proofs: Vec::new(),
    };
    vec![
        sample::trial(0),
        bare(1, Validity::WrongPath { reason: "at the client 1.0 % went through vf0".to_owned() }),
        bare(2, Validity::Failed { reason: "host far does not answer".to_owned() }),
    ]
}

/// Trials with fields that the first format lacks.
fn newer_trials() -> Vec<Trial> {
    let mut transactions = sample::trial(0);
    let mut loaded = sample::trial(0);
    for (position, trial) in [(3, &mut transactions), (4, &mut loaded)] {
        trial.slot.position = position;
    }
    let parts = TransactionParts {
        attempted: 10,
        failed: 1,
        connect: sample::histogram(),
        exchange: sample::histogram(),
        congestion: None,
    };
    let under_load = UnderLoad { foreign: parts.clone(), in_band_requests: 12, in_band: sample::histogram() };
    for end in [&mut transactions.client, &mut transactions.server].into_iter().flatten() {
        end.report.round_trips.as_mut().expect("it has some").parts = Some(parts.clone());
    }
    for end in [&mut loaded.client, &mut loaded.server].into_iter().flatten() {
        end.report.round_trips.as_mut().expect("it has some").idle = Some(sample::histogram());
        end.report.under_load = Some(under_load.clone());
    }
    vec![transactions, loaded]
}

/// Warnings that the first format lacks.
fn newer_warnings() -> Vec<Warning> {
    let (arm, workload) = (arm("near"), workload("transactions"));
    let cause = "connect: ECONNREFUSED: connection refused (3 times)".to_owned();
    vec![Warning::TransactionsFailed { arm, workload, failed: 3, attempted: 1000, cause }]
}

/// All warnings of the first format.
fn warnings() -> Vec<Warning> {
    let (arm, workload) = (arm("near"), workload("bulk"));
    let pair = || (arm.clone(), workload.clone());
    let metric = Metric::Throughput;
    vec![
        {
            let (arm, workload) = pair();
            Warning::Drift { arm, workload, metric, change: -0.123_456_789_012_345_68 }
        },
        {
            let (arm, workload) = pair();
            Warning::Autocorrelation { arm, workload, metric, lag1: 0.7 }
        },
        {
            let (arm, workload) = pair();
            Warning::Bimodal { arm, workload, metric, low: 1e9, high: 2.5e9 }
        },
        {
            let (arm, workload) = pair();
            Warning::OutlierBlock { arm, workload, metric, block: 4, ratio_to_median: 0.1 }
        },
        Warning::StealTime { host: host("a"), share_max: 0.25, trials: 3 },
        Warning::ClockStep { host: host("a"), step_ns: -1_000_000 },
        Warning::PathChanged { arm: arm.clone(), trials: 2, detail: "vf0 went".to_owned() },
        Warning::ArmNotProven { arm: arm.clone() },
        {
            let (arm, workload) = pair();
            Warning::RateCapped { arm, workload, rate_bps: 5e9 }
        },
        {
            let (arm, workload) = pair();
            Warning::TokenBucketBurst { arm, workload, before_bps: 5e9, after_bps: 1e9 }
        },
        Warning::SharedMachine { client: host("near"), server: host("far") },
        {
            let (arm, workload) = pair();
            Warning::ReceiverOverrun { arm, workload, datagrams: 12, lost: None }
        },
        {
            let (arm, workload) = pair();
            Warning::ScheduleMissed { arm, workload, pacing_error_p99_ns: 150_000 }
        },
        Warning::TrialsExcluded { arm: arm.clone(), trials: 1, reason: "no answer".to_owned() },
        Warning::UndoFailed {
            host: host("far"),
            detail: "mtu of eth0: ip link set eth0 mtu 1500".to_owned(),
            reports: 1,
        },
    ]
}

/// The header of the golden files of formats 1 and 2. The programs that wrote them had another default block of the engine `copy`.
fn old_header() -> RunHeader {
    let mut header = header("golden");
    header.plan = sample::plan();
    for workload in header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
        if let Traffic::TcpStream(TcpStream { engine: TcpEngine::Copy, block, .. }) = &mut workload.traffic {
            *block = Bytes(128 << 10);
        }
    }
    header
}

#[test]
fn format_1_is_read_as_the_original_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let (run, torn) =
        store.read_with_note(golden_file(1).to_str().expect("a plain path")).expect("it can be read");
    let expected = Run {
        header: old_header(),
        trials: trials(),
        warnings: warnings(),
        end: Some(RunEnd::PrecisionReached),
    };
    assert_eq!(run, expected);
    assert_eq!(torn, None);
}

#[test]
fn format_2_is_read_as_the_original_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let file = golden_file(2);
    let run = store.read(file.to_str().expect("a plain path")).expect("it can be read");
    assert_eq!(run.header, old_header());
    assert_eq!(run.trials, [trials(), newer_trials()].concat());
    assert_eq!(run.warnings, [warnings(), newer_warnings()].concat());
}

/// The files were written by programs of these formats and shortened by whole trials.
#[test]
fn runs_of_a_program_of_format_1_are_read_whole() {
    let types = types_of_whole_runs(1, &["excluded", "resumed", "types"]);
    assert_eq!(types, ["tcp-rr", "tcp-stream", "udp-rr", "udp-stream"]);
}

#[test]
fn runs_of_a_program_of_format_2_are_read_whole() {
    let names = ["dpdk", "failover", "latency", "packets", "resumed", "search", "treatments"];
    let types = types_of_whole_runs(2, &names);
    let expected =
        ["failover", "loaded-latency", "pps", "tcp-crr", "tcp-rr", "tcp-stream", "udp-rr", "udp-stream"];
    assert_eq!(types, expected);
}

/// Reads runs of a program of this format and checks that no record is missing. Returns the types of their workloads.
fn types_of_whole_runs(format: u32, names: &[&str]) -> Vec<&'static str> {
    let store =
        Store::open(golden_file(2).parent().expect("it is in a folder")).expect("the folder is there");
    let mut types = std::collections::BTreeSet::new();
    for name in names {
        let file = golden_file(format!("{format}-real-{name}"));
        let text = std::fs::read_to_string(&file).expect("it is there");
        let (run, torn) = store.read_with_note(file.to_str().expect("a plain path")).expect("it can be read");
        assert_eq!(
            run.trials.len(),
            text.lines().filter(|line| line.starts_with("{\"trial\"")).count(),
            "{name}"
        );
        assert_eq!(run.warnings.len(), text.lines().filter(|line| line.starts_with("{\"warning\"")).count());
        assert!(torn.is_none() && run.end.is_some(), "{name}");
        types.extend(run.header.plan.arms[0].workloads.iter().map(|workload| workload.traffic.kind().word()));
    }
    types.into_iter().collect()
}

/// In format 2, packets were a flag of `udp-stream`.
#[test]
fn pps_run_of_format_2_is_read_as_type_pps() {
    let folder = tempfile::tempdir().expect("a folder");
    let golden = std::fs::read_to_string(golden_file(2)).expect("it is there");
    let (first, _) = golden.split_once('\n').expect("it has lines");
    let mut first: serde_json::Value = serde_json::from_str(first).expect("its first line is JSON");
    first["header"]["plan"]["arms"][0]["workloads"][0]["traffic"] = serde_json::json!({
        "type": "udp-stream", "flows": 16, "direction": "up", "size": "18 B", "rate": null, "offload": "gso-gro",
        "packets": {"engine": "socket", "receiver": "socket", "frame": 64},
    });
    let path = folder.path().join("old.netduel");
    std::fs::write(&path, format!("{first}\n")).expect("it can be written");
    let store = Store::open(folder.path()).expect("the folder is there");
    let run = store.read("old").expect("it can be read");
    let Traffic::Pps(pps) = &run.header.plan.arms[0].workloads[0].traffic else {
        panic!("{:?}", run.header.plan.arms[0].workloads[0])
    };
    assert_eq!((pps.udp.flows, pps.udp.size, pps.packets.frame), (16, Bytes(18), 64));
}

/// Records of both versions in one file are each read in their version.
#[test]
fn resumed_run_of_format_2_continues_in_the_newest_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = header("golden");
    let path = folder.path().join(format!("{}.netduel", header.id));
    std::fs::copy(golden_file(2), &path).expect("it can be copied");
    let store = Store::open(folder.path()).expect("the folder is there");
    for round in 1..=2 {
        let (_, mut writer) = store.resume(&header.id).expect("it can be resumed");
        writer.trial(&sample::trial(3)).expect("stored");
        drop(writer);
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(text.matches(&format!("\"format\":{FORMAT}")).count(), 1, "resumed {round} times");
        let run = store.read(header.id.as_str()).expect("it can be read");
        assert_eq!(run.trials.len(), trials().len() + newer_trials().len() + round);
    }
}

/// A file with the first line of the newest golden file, changed.
fn edited(
    store: &Store,
    folder: &std::path::Path,
    edit: impl Fn(&mut serde_json::Value),
) -> Result<Run, StoreError> {
    let golden = std::fs::read_to_string(golden_file("3-1")).expect("it is there");
    let mut first: serde_json::Value =
        serde_json::from_str(golden.lines().next().expect("it has lines")).expect("JSON");
    first.as_object_mut().expect("an object").remove("crc32");
    edit(&mut first);
    let line = sample::with_checksum(&first.to_string()) + "\n";
    std::fs::write(folder.join("edited.netduel"), line).expect("it can be written");
    store.read("edited")
}

#[test]
fn newer_format_is_rejected_with_file_format_and_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let newer = |first: &mut serde_json::Value| first["format"] = (FORMAT + 1).into();
    let named = edited(&store, folder.path(), |first| {
        newer(first);
        first["header"]["program"] = "netduel 9.8.7".into();
    });
    let unnamed = edited(&store, folder.path(), |first| {
        newer(first);
        first["header"] = "of another form".into();
    });
    for (result, parts) in [
        (named, ["edited.netduel", "written by netduel 9.8.7", "update to netduel 9.8.7 or later"]),
        (unnamed, ["edited.netduel", "written by a newer netduel", "update to the version that wrote it"]),
    ] {
        let error = result.expect_err("it is newer").to_string();
        let format = format!("it has format {}", FORMAT + 1);
        assert!(parts.iter().all(|part| error.contains(part)) && error.contains(&format), "{error}");
    }
}

#[test]
fn run_resumed_by_a_newer_program_is_rejected_with_that_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let golden = std::fs::read_to_string(golden_file("3-2")).expect("it is there");
    let resumed =
        format!(r#"{{"resumed":{{"trials":0,"format":{},"program":"netduel 9.8.7"}}}}"#, FORMAT + 1);
    std::fs::write(folder.path().join("later.netduel"), format!("{golden}{resumed}\n"))
        .expect("it can be written");
    let error = store.read("later").expect_err("it is newer").to_string();
    assert!(error.contains("written by netduel 9.8.7"), "{error}");
}

#[test]
fn unknown_fields_are_ignored_and_unknown_words_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let same = edited(&store, folder.path(), |_| ()).expect("it can be read");
    let more = edited(&store, folder.path(), |first| {
        first["comment"] = "mine".into();
        first["header"]["comment"] = "mine".into();
    });
    assert_eq!(more.expect("it can be read"), same);
    let unknown = edited(&store, folder.path(), |first| {
        let workload = &mut first["header"]["plan"]["arms"][0]["workloads"][0];
        workload["traffic"]["type"] = "pigeon".into();
    });
    let error = unknown.expect_err("the word is unknown").to_string();
    assert!(error.contains("line 1") && error.contains("pigeon"), "{error}");
}
