//! Every message of the newest protocol in its form on the wire: a changed type fails here and needs a new version.
use std::path::{Path, PathBuf};

use netduel_control::protocol::{
    FromAgent, PROTOCOL, PROTOCOL_FINGERPRINTS, PROTOCOL_RELEASED, ToAgent, decode, encode,
};
use netduel_formats::{examples, fingerprint, uncovered, violations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::messages::{answers, requests};

#[test]
fn every_message_has_the_form_of_its_version() {
    let written: String = requests().iter().map(encode).chain(answers().iter().map(encode)).collect();
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/protocol-{PROTOCOL}.jsonl"));
    let golden = current(&path, &written);
    let lines: Vec<&str> = golden.lines().collect();
    let (to_agent, from_agent) = lines.split_at(requests().len());
    let decoded: Vec<ToAgent> = to_agent.iter().map(|line| decode(line.as_bytes()).unwrap()).collect();
    assert_eq!(decoded, requests());
    let decoded: Vec<FromAgent> = from_agent.iter().map(|line| decode(line.as_bytes()).unwrap()).collect();
    assert_eq!(decoded, answers());
}

/// Both directions contain every place of their schema, fit it, and have not changed without a new version.
#[test]
fn changed_message_needs_a_new_version_and_golden_files_contain_every_place() {
    let found = [every::<ToAgent>("to-agent"), every::<FromAgent>("from-agent")];
    assert_eq!(
        found,
        PROTOCOL_FINGERPRINTS,
        "a message changed: {}; the fingerprints are {found:?}",
        remedy()
    );
}

fn every<M: JsonSchema + Serialize + DeserializeOwned>(direction: &str) -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<M>().to_value();
    let examples = examples(&schema, &hint);
    let read = |example: &Value| -> M {
        serde_json::from_value(example.clone()).unwrap_or_else(|error| panic!("{error} in {example}"))
    };
    let written: String = examples.iter().map(|example| encode(&read(example))).collect();
    let golden = current(&golden_file(&format!("protocol-{PROTOCOL}-{direction}")), &written);
    let lines: Vec<Value> = golden.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert_eq!(violations(&schema, line), [""; 0], "{line}");
    }
    let mut missing = uncovered(&schema, &lines);
    missing.retain(|place| !NEVER_WRITTEN.contains(&place.as_str()));
    assert!(missing.is_empty(), "no golden file of protocol {PROTOCOL} contains {missing:#?}: {}", remedy());
    fingerprint(&schema)
}

/// Defaults that are omitted.
const NEVER_WRITTEN: [&str; 1] = ["UdpOffload=none"];

/// Texts that readers check further than the schema says.
fn hint(place: &str, number: u64) -> Option<Value> {
    Some(match place {
        "HostName" | "ArmName" | "WorkloadName" | "RunId" => format!("name-{number}").into(),
        "StreamReport.local:string" | "StreamReport.peer:string" => format!("192.0.2.1:{number}").into(),
        _ => return None,
    })
}

fn golden_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.jsonl"))
}

/// Compares a golden file with the messages as they are written now.
fn current(path: &Path, written: &str) -> String {
    let is_blessed = std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1");
    if is_blessed && PROTOCOL > PROTOCOL_RELEASED {
        std::fs::write(path, written).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    for (index, (now, then)) in written.lines().zip(golden.lines()).enumerate() {
        assert_eq!(now, then, "line {} of {} changed: {}", index + 1, path.display(), remedy());
    }
    assert_eq!(written, golden, "{} changed: {}", path.display(), remedy());
    golden
}

/// What to do when the messages are not those of the golden files.
fn remedy() -> String {
    if PROTOCOL > PROTOCOL_RELEASED {
        format!(
            "protocol {PROTOCOL} is unreleased: run `cargo xtask bless`, look at the difference and commit it"
        )
    } else {
        format!(
            "protocol {PROTOCOL} is released and must not change: raise PROTOCOL and keep its golden files; \
             docs/design/0029-formats.md has the rules"
        )
    }
}
