//! The compared tools: how each is started, and how its output is parsed. One file each.
mod iperf3;
mod nuttcp;
mod ours;
mod qperf;
mod ran;
mod sockperf;

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::cost::Counters;
use crate::launch::Site;
use crate::outcome::Outcome;
use crate::record::Peer;

pub use ours::{Ours, workload};
use ran::plain;

/// Programs of the other tools, with the option that prints the version.
const PROGRAMS: [(&str, &str); 4] =
    [("iperf3", "--version"), ("sockperf", "--version"), ("qperf", "--version"), ("nuttcp", "-V")];

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
        .map(|&(program, word)| Peer { program: program.to_owned(), version: version(program, word) })
        .collect()
}

/// The first line of a program's version output; absent when there is no such program.
fn version(program: &str, word: &str) -> Option<String> {
    let output = Command::new(program).arg(word).stdin(Stdio::null()).output().ok()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    text.lines().map(plain).map(|line| line.trim().to_owned()).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_installed_has_no_version() {
        assert_eq!(version("no-such-program-at-all", "--version"), None);
    }
}
