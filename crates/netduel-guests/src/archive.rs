//! Writes cpio archives in the format `newc`, which the kernel unpacks as its first file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst). It reads none, and every file belongs to root.
use std::collections::BTreeSet;

/// The type bits of a mode (inode(7)).
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// The name of the entry that ends an archive.
const END: &str = "TRAILER!!!";

/// An archive in memory.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
    names: BTreeSet<String>,
}

impl Archive {
    /// Adds a folder and those around it that are missing; `path` has no slash at its start.
    pub fn folder(&mut self, path: &str, permissions: u32) {
        self.parents(path);
        self.entry(path, DIRECTORY | permissions, &[]);
    }

    /// Adds a file, unless one of this name exists.
    pub fn file(&mut self, path: &str, permissions: u32, contents: &[u8]) {
        self.parents(path);
        self.entry(path, REGULAR | permissions, contents);
    }

    /// Adds a symbolic link, unless a file of this name exists.
    pub fn link(&mut self, path: &str, target: &str) {
        self.parents(path);
        self.entry(path, LINK | 0o777, target.as_bytes());
    }

    /// Whether there is a file of this name.
    pub fn contains(&self, path: &str) -> bool {
        self.names.contains(path)
    }

    /// The whole archive.
    pub fn finished(mut self) -> Vec<u8> {
        self.entry(END, 0, &[]);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.parents(parent);
            self.entry(parent, DIRECTORY | 0o755, &[]);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, contents: &[u8]) {
        if !self.names.insert(path.to_owned()) {
            return;
        }
        self.inode += 1;
        let links = if mode & DIRECTORY == 0 { 1 } else { 2 };
        // inode, mode, uid, gid, links, mtime, size, four device numbers, length of the name with its zero, checksum (unused)
        let fields =
            [self.inode, mode, 0, 0, links, 0, contents.len() as u32, 0, 0, 0, 0, path.len() as u32 + 1, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mode, contents and name of each entry, by the offsets of the format.
    fn entries(mut bytes: &[u8]) -> Vec<(u32, String, String)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            assert_eq!(&bytes[..6], b"070701");
            let field = |index: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * index..14 + 8 * index]).unwrap();
                u32::from_str_radix(text, 16).unwrap() as usize
            };
            let (mode, size, name_len) = (field(1) as u32, field(6), field(11));
            let start = (110 + name_len).next_multiple_of(4);
            let text = |range: std::ops::Range<usize>| String::from_utf8(bytes[range].to_vec()).unwrap();
            assert_eq!(bytes[110 + name_len - 1], 0);
            found.push((mode, text(start..start + size), text(110..110 + name_len - 1)));
            bytes = &bytes[(start + size).next_multiple_of(4)..];
        }
        found
    }

    #[test]
    fn archive_contains_each_name_once_after_its_folders() {
        let mut archive = Archive::default();
        archive.file("a/b/file", 0o755, b"12345");
        archive.file("a/b/file", 0o644, b"a second file of one name");
        archive.link("a/link", "b/file");
        archive.folder("private", 0o700);
        assert!(archive.contains("a/b") && !archive.contains("b"));
        let rows = entries(&archive.finished());
        let rows: Vec<(u32, &str, &str)> =
            rows.iter().map(|(mode, text, name)| (*mode, &**text, &**name)).collect();
        let expected = [
            (0o040_755, "", "a"),
            (0o040_755, "", "a/b"),
            (0o100_755, "12345", "a/b/file"),
            (0o120_777, "b/file", "a/link"),
            (0o040_700, "", "private"),
            (0, "", "TRAILER!!!"),
        ];
        assert_eq!(rows, expected);
    }
}
