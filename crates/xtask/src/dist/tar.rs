//! Writes tar archives in the format `ustar` (pax(1), POSIX.1-2017). It reads none. The same entries give the same bytes: every entry
//! belongs to root and has the time of the archive.
use std::collections::BTreeSet;

use anyhow::{Result, bail};

const BLOCK_BYTES: usize = 512;
/// The field of the name; longer paths would need a second field, and no path here is near it.
const NAME_BYTES: usize = 100;
/// The fields of the header that have the same content in every entry, by offset: magic and version, names of user and group.
const CONSTANTS: [(usize, &[u8]); 3] = [(257, b"ustar\x0000"), (265, b"root"), (297, b"root")];
/// Offset and length of the checksum.
const CHECKSUM: (usize, usize) = (148, 8);
/// The types of entries.
const FILE: u8 = b'0';
const FOLDER: u8 = b'5';

/// An archive in memory.
#[derive(Debug)]
pub struct Tar {
    bytes: Vec<u8>,
    time_s: u64,
    folders: BTreeSet<String>,
}

impl Tar {
    /// An empty archive; the time of its entries is in seconds since 1970.
    pub fn new(time_s: u64) -> Self {
        Self { bytes: Vec::new(), time_s, folders: BTreeSet::new() }
    }

    /// Adds a folder after those around it that are missing; `path` has no slash at its end.
    pub fn folder(&mut self, path: &str, permissions: u32) -> Result<()> {
        self.parents(path)?;
        if self.folders.insert(path.to_owned()) {
            self.entry(&format!("{path}/"), FOLDER, permissions, &[])?;
        }
        Ok(())
    }

    /// Adds a file after the folders around it that are missing.
    pub fn file(&mut self, path: &str, permissions: u32, contents: &[u8]) -> Result<()> {
        self.parents(path)?;
        self.entry(path, FILE, permissions, contents)
    }

    /// The whole archive.
    pub fn finished(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK_BYTES, 0);
        self.bytes
    }

    fn parents(&mut self, path: &str) -> Result<()> {
        path.rsplit_once('/').map_or(Ok(()), |(parent, _)| self.folder(parent, 0o755))
    }

    fn entry(&mut self, name: &str, kind: u8, permissions: u32, contents: &[u8]) -> Result<()> {
        if name.len() >= NAME_BYTES {
            bail!("failed to add {name} to an archive: the name has more than {} bytes", NAME_BYTES - 1);
        }
        let mut header = [0; BLOCK_BYTES];
        let mut put = |offset: usize, text: &[u8]| header[offset..offset + text.len()].copy_from_slice(text);
        put(0, name.as_bytes());
        put(100, format!("{permissions:07o}").as_bytes());
        // User and group.
        put(108, b"0000000");
        put(116, b"0000000");
        put(124, format!("{:011o}", contents.len()).as_bytes());
        put(136, format!("{:011o}", self.time_s).as_bytes());
        put(156, &[kind]);
        for (offset, text) in CONSTANTS {
            put(offset, text);
        }
        // The sum of all bytes, with the checksum as spaces.
        let (start, len) = CHECKSUM;
        header[start..start + len].fill(b' ');
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[start..start + len].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(contents);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let mut tar = Tar::new(86_400);
        tar.file("./usr/bin/program", 0o755, &[7; 513]).unwrap();
        tar.file("./usr/text", 0o644, b"a line\n").unwrap();
        tar.folder("./tmp", 0o1777).unwrap();
        tar.finished()
    }

    #[test]
    fn system_tar_lists_what_was_written() {
        let folder = std::env::temp_dir().join(format!("netduel-tar-{}", std::process::id()));
        std::fs::write(&folder, example()).unwrap();
        let listed = std::process::Command::new("tar")
            .args(["--list", "--verbose", "--utc", "--file"])
            .arg(&folder)
            .env("LC_ALL", "C")
            .output();
        std::fs::remove_file(&folder).unwrap();
        let Ok(listed) = listed else { return netduel_test_support::skip("tar is not installed") };
        let text = String::from_utf8(listed.stdout).unwrap();
        let rows: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "drwxr-xr-x root/root 0 1970-01-02 00:00 ./",
            "drwxr-xr-x root/root 0 1970-01-02 00:00 ./usr/",
            "drwxr-xr-x root/root 0 1970-01-02 00:00 ./usr/bin/",
            "-rwxr-xr-x root/root 513 1970-01-02 00:00 ./usr/bin/program",
            "-rw-r--r-- root/root 7 1970-01-02 00:00 ./usr/text",
            "drwxrwxrwt root/root 0 1970-01-02 00:00 ./tmp/",
        ];
        assert_eq!(rows, expected, "{}", String::from_utf8_lossy(&listed.stderr));
    }

    #[test]
    fn archive_is_whole_blocks_and_ends_with_two_empty_ones() {
        let bytes = example();
        // Six headers, two blocks of the program, one of the text, and the end.
        assert_eq!(bytes.len(), (6 + 2 + 1 + 2) * BLOCK_BYTES);
        assert!(bytes[bytes.len() - 2 * BLOCK_BYTES..].iter().all(|byte| *byte == 0));
        assert_eq!(&bytes[3 * BLOCK_BYTES..][..17], b"./usr/bin/program");
        assert_eq!(&bytes[4 * BLOCK_BYTES..][..513], &[7; 513]);
    }

    #[test]
    fn name_that_does_not_fit_is_an_error() {
        let mut tar = Tar::new(0);
        tar.file(&"n".repeat(99), 0o644, b"").unwrap();
        let error = tar.file(&"n".repeat(100), 0o644, b"").unwrap_err();
        assert!(error.to_string().contains("more than 99 bytes"), "{error}");
    }
}
