//! What `netduel inspect` says of guests, and whether its remedies work there.
use netduel_guests::Bed;
use serde_json::Value;

use super::coordinator::Coordinator;

/// Runs the command of each finding of both guests; the guest's programs accept all of them.
pub fn check_remedies(bed: &mut Bed, coordinator: &Coordinator) {
    let document = coordinator.inspect(bed, &["ssh:a", "ssh:b"]);
    for host in document["hosts"].as_array().unwrap() {
        let number = usize::from(host["name"].as_str().unwrap().ends_with('b'));
        for finding in host["findings"].as_array().unwrap() {
            let Some(command) = finding["command"].as_str() else { continue };
            let tried = bed.guests()[number].ssh_output(command).unwrap();
            let said = String::from_utf8_lossy(&tried.stderr).into_owned();
            assert!(tried.status.success(), "{command}: {said}\n{finding:#}");
        }
    }
}

/// The interface of a host of an `inspect` document.
#[track_caller]
pub fn interface<'a>(host: &'a Value, name: &str) -> &'a Value {
    let interfaces = host["facts"]["interfaces"].as_array().unwrap();
    let found = interfaces.iter().find(|interface| interface["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {interfaces:#?}"))
}
