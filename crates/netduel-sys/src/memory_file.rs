//! Memory with a descriptor (memfd_create(2)), the source of sends without a copy.
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{MemfdFlags, memfd_create};

/// A file that lives in memory and ends with its descriptor. Its length does not change.
#[derive(Debug)]
pub struct MemoryFile {
    file: File,
    length: usize,
}

impl MemoryFile {
    /// A file of `length` bytes that hold a pattern which neither a compressing path nor the zero page makes cheap.
    ///
    /// # Errors
    /// `ENOMEM`, or `EMFILE` when the process has no descriptor left.
    pub fn with_pattern(length: usize) -> io::Result<Self> {
        let mut file = File::from(memfd_create("netduel-source", MemfdFlags::CLOEXEC)?);
        let mut chunk = vec![0; length.min(64 * 1024)];
        fill_with_pattern(&mut chunk);
        let mut left = length;
        while left > 0 {
            let count = left.min(chunk.len());
            file.write_all(&chunk[..count])?;
            left -= count;
        }
        Ok(Self { file, length })
    }

    /// Bytes.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Fills `bytes` with a fixed pseudo-random sequence (xorshift64, Marsaglia 2003), the same each time.
pub fn fill_with_pattern(bytes: &mut [u8]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for part in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let length = part.len();
        part.copy_from_slice(&state.to_le_bytes()[..length]);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn the_file_holds_the_pattern_to_its_last_byte() {
        let file = MemoryFile::with_pattern(100_001).unwrap();
        let mut bytes = vec![0; 100_001];
        file.file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(file.length(), 100_001);
        assert_eq!(file.file.metadata().unwrap().len(), 100_001);
        assert_eq!(bytes[..1000], bytes[64 * 1024..64 * 1024 + 1000]);
        assert!(!bytes.windows(16).any(|part| part == [0; 16]), "no run of zeros");
    }
}
