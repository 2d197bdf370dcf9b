//! The compressed form of a program, for hosts with gzip(1). It is made once for all hosts that get the same program. It sends nothing.
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The lowest level of the library that looks for a longer match before it takes one. Higher levels only compare more candidates:
/// docs/design/0033-ssh.md has the trade and its measurement.
const LEVEL: Compression = Compression::new(4);
/// Bytes between two looks for a reason to stop.
const PIECE: usize = 256 << 10;

/// The program cannot be compressed.
#[derive(Debug, thiserror::Error)]
#[error("failed to compress netduel: {0}")]
pub struct CompressionFailed(#[from] io::Error);

/// The gzip form of one program; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Compressed(Arc<Mutex<Option<Arc<Vec<u8>>>>>);

impl Compressed {
    /// The compressed bytes of `plain`. The first host compresses them, and the others wait for it. `check` returns a reason to stop.
    pub fn of<E: From<CompressionFailed>>(
        &self,
        plain: &[u8],
        check: impl Fn() -> Result<(), E>,
    ) -> Result<Arc<Vec<u8>>, E> {
        // A host that waits here returns as soon as the one that compresses sees the same reason to stop.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = kept.as_ref() {
            return Ok(Arc::clone(bytes));
        }
        let mut encoder = GzEncoder::new(Vec::new(), LEVEL);
        for piece in plain.chunks(PIECE) {
            check()?;
            encoder.write_all(piece).map_err(CompressionFailed)?;
        }
        let bytes = Arc::new(encoder.finish().map_err(CompressionFailed)?);
        *kept = Some(Arc::clone(&bytes));
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn program_is_compressed_once_and_is_the_same_when_it_is_decompressed() {
        let plain = b"netduel".repeat(100_000);
        let compressed = Compressed::default();
        let go_on = || Ok::<(), CompressionFailed>(());
        let first = compressed.of(&plain, go_on).expect("it is compressed");
        assert!(first.len() < plain.len() / 10, "{}", first.len());
        let second = compressed.clone().of(&plain, go_on).expect("it is kept");
        assert!(Arc::ptr_eq(&first, &second));
        let mut decompressed = Vec::new();
        GzDecoder::new(&first[..]).read_to_end(&mut decompressed).expect("it is gzip");
        assert!(decompressed == plain, "{} bytes", decompressed.len());
    }

    #[test]
    fn compression_ends_when_another_host_fails() {
        let compressed = Compressed::default();
        let stopped =
            compressed.of(b"netduel", || Err(CompressionFailed(io::Error::other("stopped")))).unwrap_err();
        assert!(stopped.to_string().ends_with("stopped"), "{stopped}");
        compressed.of(b"netduel", || Ok::<(), CompressionFailed>(())).expect("a later host gets it");
    }
}
