//! Fuzz targets: one for each kind of bytes that come from outside the program. Each calls the parser of the product, and checks what
//! holds for every input.
//!
//! The program of this crate runs one of them under libFuzzer; `cargo xtask fuzz` builds and starts it. The tests of this crate call
//! every target with every file of its corpus, in a normal build. Must not contain a parser: what a target needs is public in the crate of
//! the parser.
#![forbid(unsafe_code)]

mod target;

/// A parser, or parsers of one kind of input.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: that of its folder in `corpus/`, and an argument of `cargo xtask fuzz`.
    pub name: &'static str,
    /// Parses one input. A panic is a fault, of the parser or of what is promised of it.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 24] = [
    Target { name: "azure", run: target::azure::run },
    Target { name: "baseline", run: target::baseline::run },
    Target { name: "bed", run: target::bed::run },
    Target { name: "cloud", run: target::cloud::run },
    Target { name: "commentary", run: target::commentary::run },
    Target { name: "data-socket", run: target::data_socket::run },
    Target { name: "ethtool", run: target::ethtool::run },
    Target { name: "icmp", run: target::icmp::run },
    Target { name: "in-band", run: target::in_band::run },
    Target { name: "journal", run: target::journal::run },
    Target { name: "keeper", run: target::keeper::run },
    Target { name: "logo", run: target::logo::run },
    Target { name: "metadata", run: target::metadata::run },
    Target { name: "netlink", run: target::netlink::run },
    Target { name: "option", run: target::option::run },
    Target { name: "pairing", run: target::pairing::run },
    Target { name: "plan", run: target::plan::run },
    Target { name: "protocol-from-agent", run: target::protocol::from_agent },
    Target { name: "protocol-to-agent", run: target::protocol::to_agent },
    Target { name: "redact", run: target::redact::run },
    Target { name: "report", run: target::run_file::report },
    Target { name: "run-file", run: target::run_file::run },
    Target { name: "testpmd-prompt", run: target::testpmd::prompt },
    Target { name: "testpmd-telemetry", run: target::testpmd::telemetry },
];

/// The variable of the environment that names the target for the program: libFuzzer has the arguments.
pub const TARGET_VARIABLE: &str = "NETDUEL_FUZZ_TARGET";

/// The target with this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
