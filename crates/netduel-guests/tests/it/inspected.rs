//! What `netduel inspect` says of guests, and whether its remedies work there.
use netduel_guests::Bed;
use serde_json::Value;

use super::coordinator::Coordinator;

/// Findings whose command sets what they are about: they are gone afterwards. Other commands show something, or lessen what stays.
const GONE_AFTERWARDS: [&str; 7] = [
    "small-rings",
    "offload-off",
    "few-queues",
    "rss-imbalance",
    "rps-beside-queues",
    "small-buffers",
    "interrupts-on-other-node",
];

/// The words of `netduel inspect` for both guests.
pub const BOTH: [&str; 2] = ["ssh:a", "ssh:b"];

/// Runs the command of each finding of both guests, which these words of `netduel inspect` name, guest a first. The guest's programs accept all of
/// them, and the finding is gone. `beside` gets what is inspected before, and may change more. Returns what is inspected afterwards.
pub fn check_remedies(
    bed: &mut Bed,
    coordinator: &Coordinator,
    words: &[&str],
    beside: impl FnOnce(&mut Bed, &Value),
) -> Value {
    let document = coordinator.inspect(bed, words);
    let mut tried = Vec::new();
    for (number, host) in document["hosts"].as_array().unwrap().iter().enumerate() {
        for finding in host["findings"].as_array().unwrap() {
            let Some(command) = finding["command"].as_str() else { continue };
            let output = bed.guests()[number].ssh_output(command).unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{command}: {message}\n{finding:#}");
            tried.push((number, &finding["id"], &finding["interface"]));
        }
        // The management interface has one queue for two cores, in each scene.
        let is_sure = (number, &Value::from("one-queue"), &Value::from("mgmt"));
        assert!(tried.contains(&is_sure), "{:#}", host["findings"]);
    }
    beside(bed, &document);
    let afterwards = coordinator.inspect(bed, words);
    for (number, host) in afterwards["hosts"].as_array().unwrap().iter().enumerate() {
        for finding in host["findings"].as_array().unwrap() {
            let is_remedied = GONE_AFTERWARDS.iter().any(|id| finding["id"] == *id)
                && tried.contains(&(number, &finding["id"], &finding["interface"]));
            assert!(!is_remedied, "its command did not help: {finding:#}");
        }
    }
    afterwards
}

/// The interface of a host of an `inspect` document.
#[track_caller]
pub fn interface<'a>(host: &'a Value, name: &str) -> &'a Value {
    let interfaces = host["facts"]["interfaces"].as_array().unwrap();
    let found = interfaces.iter().find(|interface| interface["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {interfaces:#?}"))
}

/// The lines of `netduel inspect` about an interface, without its name: until the next line that is indented as little.
#[track_caller]
pub fn interface_of<'a>(text: &'a str, name: &str) -> &'a str {
    let is_head =
        |line: &str| line.trim_start().split(' ').next() == Some(name) && line.len() > name.len() + 4;
    let head = text.lines().find(|line| is_head(line)).unwrap_or_else(|| panic!("no {name} in {text}"));
    let start = head.as_ptr().addr() - text.as_ptr().addr();
    let after = start + head.len();
    let is_detail = |line: &&str| line.starts_with("        ");
    let len: usize = text[after + 1..].lines().take_while(is_detail).map(|line| line.len() + 1).sum();
    text[start..=after + len].trim_start().trim_start_matches(name).trim_start()
}
