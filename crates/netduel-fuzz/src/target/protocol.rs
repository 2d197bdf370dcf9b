//! The lines between coordinator and agent, in both directions.
use std::fmt::Debug;

use netduel_control::protocol::{FromAgent, Lines, ToAgent, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The output of an agent, as the coordinator reads it.
pub(crate) fn from_agent(bytes: &[u8]) {
    read::<FromAgent>(bytes);
}

/// The requests of a coordinator, as an agent reads them.
pub(crate) fn to_agent(bytes: &[u8]) {
    read::<ToAgent>(bytes);
}

/// Splits bytes into lines and decodes them. Lines are the same however their bytes arrive; a message is the same after it was sent on.
fn read<M: Debug + PartialEq + Serialize + DeserializeOwned>(bytes: &[u8]) {
    let lines = lines(bytes, bytes.len().max(1));
    assert_eq!(lines, self::lines(bytes, 7), "lines depend on the pieces in which they arrive");
    for line in lines {
        match decode::<M>(&line) {
            Ok(message) => {
                let sent = encode(&message);
                let line = sent.strip_suffix('\n').expect("a line end");
                assert!(!line.contains('\n'), "a message is one line");
                let again: M = decode(line.as_bytes()).expect("a sent message is read");
                // Compared as text: a message may contain a number that is not equal to itself.
                assert_eq!(encode(&again), sent);
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
        }
    }
}

fn lines(bytes: &[u8], piece_len: usize) -> Vec<Vec<u8>> {
    let mut lines = Lines::default();
    let mut found = Vec::new();
    for piece in bytes.chunks(piece_len) {
        lines.push(piece);
        while let Some(line) = lines.next_line().expect("an input is shorter than the limit of a line") {
            found.push(line);
        }
    }
    found
}
