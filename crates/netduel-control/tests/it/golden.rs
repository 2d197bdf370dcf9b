//! Every message of the newest protocol as it goes over the wire: a type that changes its form fails here, and needs a new version.
use std::path::PathBuf;

use netduel_control::protocol::{FromAgent, PROTOCOL, ToAgent, decode, encode};

use crate::messages::{answers, requests};

#[test]
fn every_message_has_the_form_of_its_version() {
    let written: String = requests().iter().map(encode).chain(answers().iter().map(encode)).collect();
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/protocol-{PROTOCOL}.jsonl"));
    if std::env::var_os("NETDUEL_BLESS").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        written, golden,
        "a message changed: raise PROTOCOL, keep this file, and add one for the new version"
    );
    let lines: Vec<&str> = golden.lines().collect();
    let (to_agent, from_agent) = lines.split_at(requests().len());
    let decoded: Vec<ToAgent> = to_agent.iter().map(|line| decode(line.as_bytes()).unwrap()).collect();
    assert_eq!(decoded, requests());
    let decoded: Vec<FromAgent> = from_agent.iter().map(|line| decode(line.as_bytes()).unwrap()).collect();
    assert_eq!(decoded, answers());
}
