//! The tools that are compared: how each is started, and what its output says. One file each.
mod iperf3;
mod nuttcp;
mod ours;
mod qperf;
mod sockperf;

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cost::Counters;
use crate::launch::Site;
use crate::record::{Outcome, Peer, Reading};

pub use ours::{Ours, workload};

/// Programs of the other tools, with the word that asks for the version.
const PROGRAMS: [(&str, &str); 4] =
    [("iperf3", "--version"), ("sockperf", "--version"), ("qperf", "--version"), ("nuttcp", "-V")];

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tool {
    /// Ours.
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
    /// In tables: what one would type, without addresses and duration.
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

    /// Its program; absent for ours.
    pub fn program(&self) -> Option<&'static str> {
        match self {
            Self::Ours(_) => None,
            Self::Iperf3(_) => Some("iperf3"),
            Self::Sockperf(_) => Some("sockperf"),
            Self::Qperf(..) => Some("qperf"),
            Self::Nuttcp(_) => Some("nuttcp"),
        }
    }

    /// Runs it once.
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

/// A run that is over.
#[derive(Debug)]
pub struct Ran {
    /// What the tool says.
    pub reading: Reading,
    /// CPU time of the client's process, seconds.
    pub client_cpu_s: f64,
    /// CPU time of the server's process, seconds.
    pub server_cpu_s: f64,
}

/// Asks every tool for its version.
pub fn peers() -> Vec<Peer> {
    PROGRAMS
        .iter()
        .map(|&(program, word)| Peer { program: program.to_owned(), version: version(program, word) })
        .collect()
}

/// The first line that a program says of itself; absent when there is no such program.
fn version(program: &str, word: &str) -> Option<String> {
    let output = Command::new(program).arg(word).stdin(Stdio::null()).output().ok()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    text.lines().map(plain).map(|line| line.trim().to_owned()).find(|line| !line.is_empty())
}

/// A line without the colours of a terminal (ECMA-48 SGR sequences).
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    text + rest
}

/// The number after `key` up to white space or a comma, for output of the form `key=1.5, other = 2`.
fn number_after(text: &str, key: &str) -> Result<f64> {
    let (_, rest) = text.split_once(key).with_context(|| format!("its output has no `{}`", key.trim()))?;
    let rest = rest.trim_start().trim_start_matches('=').trim_start();
    let end = rest.find(|c: char| c.is_whitespace() || c == ',' || c == ';').unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("`{}` after `{}` is not a number", &rest[..end], key.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(plain("a: \u{1b}[2;35m== version #3.7 == \u{1b}[0m"), "a: == version #3.7 == ");
        assert_eq!(plain("plain"), "plain");
    }

    #[test]
    fn numbers_are_found_by_their_key() {
        let text = "megabytes=2981.0000 real_seconds=1.00\n latency  =  26723.7 ns";
        assert!((number_after(text, "megabytes=").unwrap() - 2981.0).abs() < 1e-9);
        assert!((number_after(text, "latency").unwrap() - 26723.7).abs() < 1e-9);
        assert!(number_after(text, "drop=").unwrap_err().to_string().contains("no `drop=`"));
        assert!(number_after("a=b", "a=").unwrap_err().to_string().contains("not a number"));
    }

    #[test]
    fn a_program_that_nobody_has_has_no_version() {
        assert_eq!(version("no-such-program-at-all", "--version"), None);
    }
}
