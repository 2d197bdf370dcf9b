//! Responses of a cloud's metadata service.
use netduel_host::metadata::response::{body, is_whole};

/// Parses a response. It is the same whether it is read until it is complete, or until the connection ends.
pub(crate) fn run(bytes: &[u8]) {
    let read = body(bytes);
    let complete = (0..=bytes.len()).find(|length| is_whole(&bytes[..*length]));
    if let (Ok(read), Some(length)) = (read, complete) {
        assert_eq!(body(&bytes[..length]), Ok(read), "complete after {length} of {} bytes", bytes.len());
    }
}
