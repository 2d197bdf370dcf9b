//! What the counters of the loopback interface contain. Warnings about counts that disagree are elsewhere.
use netduel_model::snapshot::LOOPBACK;

/// The note beside counters of these interfaces; absent unless the loopback interface is one of them, which all programs of a host share.
pub(crate) fn loopback_counters<'a>(mut interfaces: impl Iterator<Item = &'a str>) -> Option<String> {
    interfaces.any(|name| name == LOOPBACK).then(|| {
        format!(
            "{LOOPBACK} carries the traffic between all programs of a host; its counters contain that of other programs"
        )
    })
}
