//! Documents of a lab's keeper and of its clients.
use netduel_lab::rewritten;

/// Reads a document. What is written of it can be read again.
pub(crate) fn run(bytes: &[u8]) {
    for (index, written) in rewritten(bytes).into_iter().enumerate() {
        if let Some(written) = written {
            assert!(rewritten(&written)[index].is_some(), "{}", String::from_utf8_lossy(&written));
        }
    }
}
