//! Netlink messages: lists of links, addresses, queueing disciplines, routes and XDP features.
use std::io;

use netduel_sys::netlink::{attributes, messages};

use super::host::check_snapshot;

/// Attributes within attributes that a reader may enter.
const DEPTH: u32 = 4;

/// Parses messages with all their attributes, and takes a snapshot of a host whose kernel sends them.
pub(crate) fn run(bytes: &[u8]) {
    let mut length = 0;
    for message in messages(bytes) {
        length += message.raw.len();
        check_attributes(message.payload, DEPTH);
    }
    assert!(length <= bytes.len(), "messages are longer than what was received");
    check_snapshot(bytes.to_vec(), Box::new(|_| Err(io::ErrorKind::Unsupported.into())));
}

fn check_attributes(bytes: &[u8], depth: u32) {
    let mut length = 0;
    for (_, value) in attributes(bytes) {
        length += value.len();
        if depth > 0 {
            check_attributes(value, depth - 1);
        }
    }
    assert!(length <= bytes.len(), "attributes are longer than their message");
}
