//! Versions of DPDK, which are year, month and patch level, and of rdma-core, whose library some of its drivers use.
use std::fmt;

/// A version, for example 22.11.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Year of the release, two digits.
    pub year: u32,
    /// Month of the release.
    pub month: u32,
    /// Patch level.
    pub minor: u32,
}

impl Version {
    /// The first version whose telemetry has everything used here: `/ethdev/info` and queue statistics.
    pub const OLDEST: Self = Self { year: 22, month: 11, minor: 0 };
    /// The first version in which `--txonly-multi-flow` varies the source port. Older versions vary the source address, in 256
    /// values, and so send from addresses that are not the sender's.
    pub const PORTS_VARY: Self = Self { year: 23, month: 11, minor: 0 };

    /// Parses the version that DPDK reports: `DPDK 22.11.11`, `DPDK 24.11.0-rc1`; `None` for another format.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.trim().strip_prefix("DPDK ")?;
        let mut parts = number.split(['-', '+', ' ']).next()?.split('.').map(str::parse::<u32>);
        let mut part = || parts.next().and_then(Result::ok);
        let (year, month) = (part()?, part()?);
        (1..=12).contains(&month).then(|| Self { year, month, minor: part().unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}.{:02}.{}", self.year, self.month, self.minor)
    }
}

/// The version of rdma-core whose `libibverbs` a process has mapped (`/proc/PID/maps`); `None` without one. rdma-core ends the names of its
/// libraries with its version, after that of the interface: `libibverbs.so.1.14.44.0` is from rdma-core 44.0
/// ([versioning.md](https://github.com/linux-rdma/rdma-core/blob/06cf90a0e1e7fb2d19b5833dc9d52a8cf67e7889/Documentation/versioning.md)).
pub fn rdma_core(maps: &str) -> Option<String> {
    maps.lines().find_map(|line| {
        let (_, numbers) = line.rsplit_once("/libibverbs.so.")?;
        // A library that was replaced since has ` (deleted)` after its name.
        let version = numbers.split(' ').next()?.splitn(3, '.').nth(2)?;
        let is_version = version.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        is_version.then(|| version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpdk_versions_are_parsed() {
        for (words, expected) in [
            ("DPDK 22.11.11", (22, 11, 11)),
            ("DPDK 24.11.0-rc1", (24, 11, 0)),
            ("DPDK 25.03", (25, 3, 0)),
            ("DPDK 23.11.2 (vendor)", (23, 11, 2)),
        ] {
            let (year, month, minor) = expected;
            assert_eq!(Version::parse(words).unwrap(), Version { year, month, minor }, "{words}");
        }
        assert!(Version::parse("DPDK 23.07.1").unwrap() < Version::PORTS_VARY);
        assert_eq!(Version::parse("DPDK 24.3.1").unwrap().to_string(), "24.03.1");
    }

    #[test]
    fn unknown_version_formats_are_rejected() {
        for text in ["", "testpmd 3", "DPDK main", "DPDK 24.13.0", "22.11"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn version_of_rdma_core_is_that_of_the_mapped_library() {
        let line = |file: &str| format!("7f10-7f20 r-xp 00004000 00:2a 193 \t{file}\n");
        for (file, expected) in [
            ("/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0", Some("44.0")),
            ("/usr/lib64/libibverbs.so.1.14.2410mlnx54 (deleted)", Some("2410mlnx54")),
            ("/opt/rdma/libibverbs.so.1.5.17", Some("17")),
            ("/opt/rdma/libibverbs.so.1", None),
            ("/opt/rdma/libibverbs.so.1.14.\u{1b}[2J", None),
            ("/usr/lib/libmlx5.so.1.24.44.0", None),
        ] {
            let maps = [line("/usr/bin/dpdk-testpmd"), line(file), line("[stack]")].concat();
            assert_eq!(rdma_core(&maps).as_deref(), expected, "{file}");
        }
        assert_eq!(rdma_core(""), None);
    }
}
