//! Errors of testpmd. Each message completes "failed to ...".
use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::version::Version;

/// An error of testpmd.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DpdkError {
    /// The program does not exist, or cannot be executed.
    #[error(
        "start {program}: {source}; install DPDK's test program (Debian 12: `apt-get install dpdk-dev`; Ubuntu: `dpdk-dev` and \
         `dpdk`), or set its path with `program` in the workload's [dpdk]"
    )]
    Start {
        /// The program.
        program: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation.
        doing: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// testpmd ended unexpectedly.
    #[error("{doing}: testpmd ended with {ending}; its last output: {text}{}", hint(text))]
    Ended {
        /// The request.
        doing: &'static str,
        /// How it ended.
        ending: Ending,
        /// Its last lines.
        text: String,
    },
    /// testpmd did not do in time what was awaited.
    #[error(
        "{doing}: testpmd {missed} within {:.1} s; its last output: {text}{}", .within.as_secs_f64(), hint(text)
    )]
    Silent {
        /// The request.
        doing: &'static str,
        /// What it did not do: `did not come to its prompt`.
        missed: &'static str,
        /// The time limit.
        within: Duration,
        /// Its last lines.
        text: String,
    },
    /// testpmd rejected a request.
    #[error("{doing}: testpmd answered: {text}{}", hint(text))]
    Refused {
        /// The request.
        doing: &'static str,
        /// Its output.
        text: String,
    },
    /// Its output has an unknown format.
    #[error(
        "read {what} of testpmd {version}: `{line}` has an unknown format; please report it with this line"
    )]
    Unreadable {
        /// The expected content.
        what: &'static str,
        /// Its version, if known.
        version: String,
        /// The unknown text.
        line: String,
    },
    /// The reported version has an unknown format.
    #[error("read the version of DPDK: `{words}` is not of the form `DPDK 24.11.0`")]
    UnknownVersion {
        /// The reported text.
        words: String,
    },
    /// The version is too old.
    #[error("use DPDK {found}: its telemetry lacks required values; {} or newer is needed", Version::OLDEST)]
    TooOld {
        /// The version.
        found: Version,
    },
    /// The port does not match the command line.
    #[error("use port 0 of testpmd: {why}")]
    Port {
        /// The difference, and the remedy.
        why: String,
    },
    /// It finished without any packet.
    #[error("{doing} with testpmd on {port}: its statistics show no packet at all. {why}")]
    Nothing {
        /// `send` or `receive`.
        doing: &'static str,
        /// DPDK's name of the port.
        port: String,
        /// Possible causes and remedies.
        why: String,
    },
}

impl DpdkError {
    pub(super) fn system(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { doing: doing.into(), source: source.into() }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending(pub ExitStatus);

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::os::unix::process::ExitStatusExt as _;
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, signal) => write!(f, "signal {}", signal.unwrap_or_default()),
        }
    }
}

/// Messages of DPDK with one known cause, and the remedy.
const HINTS: [(&str, &str); 10] = [
    ("(SIOCGIFINDEX)", "there is no such interface in this network namespace"),
    (
        "Peer MTU is too large",
        "DPDK's XDP program takes no frames of several pages, and the other end of this veth may send some: give that end an MTU of 3500 or \
         less, or use net_af_packet",
    ),
    (
        "Cannot get hugepage information",
        "no huge pages are free here: reserve some (`echo 1024 > /proc/sys/vm/nr_hugepages`), or use a device that needs none",
    ),
    (
        "No free 2048 kB hugepages",
        "no huge pages are free here: reserve some (`echo 1024 > /proc/sys/vm/nr_hugepages`)",
    ),
    (
        "Creation of mbuf pool",
        "there is too little memory for its buffers: reserve more huge pages, or ask for fewer queues or descriptors",
    ),
    (
        "failed to parse device",
        "this DPDK has no driver for the device: install the one it needs (Debian 12: `librte-net-af-xdp23` and the like)",
    ),
    (
        "No probed ethernet devices",
        "no driver of this DPDK took the device: see whether it has one, and the device's binding",
    ),
    ("Cannot create lock on", "another DPDK program uses the same prefix"),
    ("Operation not permitted", "DPDK needs root, or CAP_NET_RAW, CAP_NET_ADMIN and, for AF_XDP, CAP_BPF"),
    (
        "Failed to create xsk socket",
        "the interface or one of its queues is in use by another AF_XDP program, or has fewer queues",
    ),
];

fn hint(text: &str) -> String {
    HINTS
        .iter()
        .find(|(words, _)| text.contains(words))
        .map(|(_, remedy)| format!(" ({remedy})"))
        .unwrap_or_default()
}

/// Prefixes of lines that every start prints.
const ORDINARY: [&str; 9] = [
    "EAL: Detected",
    "EAL: Selected",
    "EAL: Multi-process",
    "EAL: Physical addresses",
    "testpmd: create a new",
    "testpmd: preferred",
    "Interactive-mode",
    "Set ",
    "Warning! port-topology",
];

/// The most relevant lines of an output, usually the last ones, joined.
pub(super) fn last_words(output: &str) -> String {
    const MOST: usize = 12;
    let says_little = |line: &&str| line.is_empty() || ORDINARY.iter().any(|begin| line.starts_with(begin));
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !says_little(line)).collect();
    // The usage text is long and follows the error.
    let relevant: Vec<&str> = match lines.iter().position(|line| line.starts_with("Usage:")) {
        Some(usage) => {
            let relevant = |line: &&&str| {
                line.starts_with("EAL:") || line.contains("unrecognized option") || line.starts_with("Cause:")
            };
            lines[..usage].iter().chain(lines[usage..].iter().filter(relevant)).copied().collect()
        }
        None => lines,
    };
    if relevant.is_empty() {
        return "none".to_owned();
    }
    relevant[relevant.len().saturating_sub(MOST)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_an_invalid_command_line_omits_the_usage_text() {
        let output = "EAL: Detected CPU lcores: 2\ndpdk-testpmd: unrecognized option '--version'\n\nUsage: dpdk-testpmd [options]\n  \
                      -c COREMASK  Hexadecimal\nEAL: Error - exiting with code: 1\n  Cause: Cannot init EAL: Invalid argument\n";
        assert_eq!(
            last_words(output),
            "dpdk-testpmd: unrecognized option '--version' | EAL: Error - exiting with code: 1 | \
             Cause: Cannot init EAL: Invalid argument"
        );
        assert_eq!(last_words(" \n"), "none");
    }

    #[test]
    fn known_messages_have_a_remedy() {
        let text = "EAL: FATAL: Cannot get hugepage information.";
        let error = DpdkError::Refused { doing: "start", text: text.to_owned() };
        assert!(error.to_string().contains("nr_hugepages"), "{error}");
    }
}
