//! DPDK versions: year, month, and patch level.
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
}
