//! Huge pages of 2 MiB: total, free, and the number still needed (Documentation/admin-guide/mm/hugetlbpage.rst).
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Size of a page, KiB.
pub const PAGE_KIB: u64 = 2048;

/// The huge pages of one node, or of the machine without a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HugePages {
    /// The file with their number, which is writable.
    pub file: PathBuf,
    /// Total number.
    pub total: u64,
    /// Number of free pages.
    pub free: u64,
}

impl HugePages {
    /// Reads the huge pages of a NUMA node, or of the machine.
    ///
    /// # Errors
    /// When this kernel has no huge pages of 2 MiB, or its files cannot be read.
    pub fn read(sys: &Path, node: Option<u32>) -> io::Result<Self> {
        let pages = format!("hugepages-{PAGE_KIB}kB");
        let folder = match node {
            Some(node) => sys.join(format!("devices/system/node/node{node}/hugepages")).join(pages),
            None => sys.join("kernel/mm/hugepages").join(pages),
        };
        let number = |name: &str| {
            let text = fs::read_to_string(folder.join(name))?;
            text.trim()
                .parse()
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("{name} holds {text:?}")))
        };
        Ok(Self {
            file: folder.join("nr_hugepages"),
            total: number("nr_hugepages")?,
            free: number("free_hugepages")?,
        })
    }

    /// Number of free pages required for this memory, MiB.
    pub fn needed(mib: u64) -> u64 {
        mib.div_ceil(PAGE_KIB / 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_of_node_and_machine_are_read_and_missing_ones_computed() {
        let sys = tempfile::tempdir().unwrap();
        for (folder, total, free) in [
            ("devices/system/node/node1/hugepages/hugepages-2048kB", 512, 100),
            ("kernel/mm/hugepages/hugepages-2048kB", 1024, 1000),
        ] {
            let folder = sys.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("nr_hugepages"), format!("{total}\n")).unwrap();
            fs::write(folder.join("free_hugepages"), format!("{free}\n")).unwrap();
        }
        let node = HugePages::read(sys.path(), Some(1)).unwrap();
        assert_eq!((node.total, node.free), (512, 100));
        // 201 MiB are 100.5 pages.
        assert_eq!([200, 201].map(HugePages::needed), [100, 101]);
        assert_eq!(HugePages::needed(u64::MAX), u64::MAX / 2 + 1);
        assert_eq!(HugePages::read(sys.path(), None).unwrap().free, 1000);
        assert_eq!(HugePages::read(sys.path(), Some(0)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
