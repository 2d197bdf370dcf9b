//! The frames of a connection that carries load and round trips.
use netduel_load::in_band::{FrameParser, InvalidFrame};

/// Parses a stream of frames. The messages in it are the same however its bytes arrive.
pub(crate) fn run(bytes: &[u8]) {
    let whole = parsed(bytes, bytes.len().max(1));
    assert_eq!(whole, parsed(bytes, 1), "frames depend on the pieces in which they arrive");
    assert_eq!(whole, parsed(bytes, 5), "frames depend on the pieces in which they arrive");
}

/// The kinds of all messages, and whether the stream is valid to its end.
fn parsed(bytes: &[u8], piece_len: usize) -> (Vec<u32>, Result<(), InvalidFrame>) {
    let mut frames = FrameParser::default();
    let mut kinds = Vec::new();
    let valid = bytes.chunks(piece_len).try_for_each(|piece| frames.parse(piece, |kind| kinds.push(kind)));
    (kinds, valid)
}
