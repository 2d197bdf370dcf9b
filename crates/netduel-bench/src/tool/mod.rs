//! The compared tools: how each is started, and how its output is parsed. One file each.
mod iperf3;
mod neper;
mod nuttcp;
mod ours;
mod qperf;
mod ran;
mod sockperf;
mod testpmd;

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::cost::Counters;
use crate::launch::Site;
use crate::outcome::Outcome;
use crate::record::Peer;

pub use ours::{Ours, workload};
use ran::plain;

/// A program of another tool.
struct Program {
    name: &'static str,
    /// Arguments that print the version, and nothing else that takes long.
    words: &'static [&'static str],
    /// The line with the version contains it.
    line: &'static str,
    /// Where it comes from, if no system package has it.
    source: Option<&'static str>,
}

impl Program {
    const fn packaged(name: &'static str, words: &'static [&'static str]) -> Self {
        Self { name, words, line: "", source: None }
    }
}

/// Programs of the other tools.
const PROGRAMS: [Program; 6] = [
    Program::packaged("iperf3", &["--version"]),
    Program::packaged("sockperf", &["--version"]),
    Program::packaged("qperf", &["--version"]),
    Program::packaged("nuttcp", &["-V"]),
    Program {
        name: "tcp_crr",
        words: &["--nolog", "--version"],
        line: "",
        source: Some("build it with `make tcp_crr` from https://github.com/google/neper, put it into PATH"),
    },
    // It has no option that only prints the version: `-v` adds it to the output of `--help`.
    Program {
        name: "dpdk-testpmd",
        words: &["-v", "--no-huge", "--no-pci", "--help"],
        line: "RTE Version",
        source: None,
    },
];

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tool {
    /// netduel.
    Ours(Ours),
    /// iperf3, with options of the client.
    Iperf3(&'static [&'static str]),
    /// sockperf ping-pong, with options of both ends.
    Sockperf(&'static [&'static str]),
    /// qperf: a test, and its message size in bytes when it is not the default.
    Qperf(&'static str, Option<u32>),
    /// nuttcp, with options of the client.
    Nuttcp(&'static [&'static str]),
    /// neper's `tcp_crr`, with options of both ends.
    Neper(&'static [&'static str]),
    /// DPDK's testpmd over AF_XDP, with frames of this length, bytes.
    Testpmd(u32),
}

impl Tool {
    /// Label in tables: the command line without addresses and duration.
    pub fn label(&self) -> String {
        let words = |name: &str, options: &[&str]| {
            std::iter::once(name).chain(options.iter().copied()).collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::Ours(ours) => ours.name.to_owned(),
            Self::Iperf3(options) => words("iperf3", options),
            Self::Sockperf(options) => words("sockperf ping-pong", options),
            Self::Qperf(test, Some(size)) => format!("qperf -m {size} {test}"),
            Self::Qperf(test, None) => format!("qperf {test}"),
            Self::Nuttcp(options) => words("nuttcp", options),
            Self::Neper(options) => words("neper tcp_crr", options),
            Self::Testpmd(frame) => format!("testpmd net_af_xdp, {frame} B"),
        }
    }

    /// Its program; absent for netduel.
    pub fn program(&self) -> Option<&'static str> {
        match self {
            Self::Ours(_) => None,
            Self::Iperf3(_) => Some("iperf3"),
            Self::Sockperf(_) => Some("sockperf"),
            Self::Qperf(..) => Some("qperf"),
            Self::Nuttcp(_) => Some("nuttcp"),
            Self::Neper(_) => Some("tcp_crr"),
            Self::Testpmd(_) => Some("dpdk-testpmd"),
        }
    }

    /// One run.
    pub fn run(&self, site: &Site<'_>, counters: &Counters, seconds: u32) -> Result<Outcome> {
        let (before, interface_before) = (counters.now()?, site.hosts.counters()?);
        let ran = match self {
            Self::Ours(ours) => ours.run(site, seconds),
            Self::Iperf3(options) => iperf3::run(site, options, seconds),
            Self::Sockperf(options) => sockperf::run(site, options, seconds),
            Self::Qperf(test, size) => qperf::run(site, test, *size, seconds),
            Self::Nuttcp(options) => nuttcp::run(site, options, seconds),
            Self::Neper(options) => neper::run(site, options, seconds),
            Self::Testpmd(frame) => testpmd::run(site, *frame, seconds),
        };
        let ran = ran.with_context(|| format!("failed to run {}", self.label()))?;
        let after = counters.now()?;
        Ok(Outcome {
            reading: ran.reading,
            cost: before.until(&after, ran.client_cpu_s, ran.server_cpu_s),
            interface: site.hosts.counters()?.since(&interface_before),
        })
    }
}

/// The version of each tool.
pub fn peers() -> Vec<Peer> {
    PROGRAMS
        .iter()
        .map(|program| Peer { program: program.name.to_owned(), version: version(program) })
        .collect()
}

/// The reason why a program that is not installed cannot be compared, with its source if no system package has it.
pub fn not_installed(name: &str) -> String {
    let source = PROGRAMS.iter().find(|program| program.name == name).and_then(|program| program.source);
    source.map_or_else(
        || format!("{name} is not installed"),
        |source| format!("{name} is not installed: {source}"),
    )
}

/// The line of a program's output with the version, by default the first one; absent when there is no such program.
fn version(program: &Program) -> Option<String> {
    let output = Command::new(program.name).args(program.words).stdin(Stdio::null()).output().ok()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let mut lines = text.lines().map(plain).map(|line| line.trim().to_owned());
    lines.find(|line| !line.is_empty() && line.contains(program.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_installed_has_no_version() {
        assert_eq!(version(&Program::packaged("no-such-program-at-all", &["--version"])), None);
    }

    #[test]
    fn every_program_of_a_case_has_a_version() {
        for case in crate::cases::CASES {
            if let Some(name) = case.against.and_then(|tool| tool.program()) {
                assert!(PROGRAMS.iter().any(|program| program.name == name), "{name}");
            }
        }
    }

    #[test]
    fn program_without_a_package_is_reported_with_its_source() {
        assert_eq!(not_installed("sockperf"), "sockperf is not installed");
        let neper = not_installed("tcp_crr");
        assert!(neper.starts_with("tcp_crr is not installed: ") && neper.contains("google/neper"), "{neper}");
    }
}
