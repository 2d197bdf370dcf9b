//! The options of `netduel inspect`.
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use netduel_report::findings::Severity;

use crate::cli::publication::PrintingArgs;
use crate::cli::shared::{JsonArgs, RedactArgs, RemoteProgramArgs};

/// `netduel inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Hosts [default: this one]: HOST or HOST:PORT of a paired `netduel serve`, ssh:DESTINATION, netns:NAME, lab:GUEST or lab:LAB/GUEST, local;
    /// with --plan names of its hosts [default: all]
    #[arg(value_name = "HOST")]
    pub hosts: Vec<String>,
    /// The hosts of this plan, started as in a run; the pairs of its arms are compared.
    #[arg(long, value_name = "PLAN.toml")]
    pub plan: Option<PathBuf>,
    /// Refuse a plan that names programs, as `netduel run --no-commands` does.
    #[arg(long, requires = "plan")]
    pub no_commands: bool,
    #[command(flatten)]
    pub remote_program: RemoteProgramArgs,
    /// Write facts and findings to this file (.html, .pdf, .md, .txt or .json) and print its name; a name without an extension is a folder for
    /// report.html, and `-` is standard output. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub out: Vec<PathBuf>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub redact: RedactArgs,
    /// Do not query the cloud's metadata service.
    #[arg(long)]
    pub no_metadata: bool,
    /// Exit with code 8 when there is a finding at or above this severity.
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Problem)]
    pub fail_on: FailOn,
    #[command(flatten)]
    pub printing: PrintingArgs,
}

/// The lowest severity that is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Warnings and problems.
    Warning,
    /// Problems only.
    Problem,
    /// No finding is a failure.
    Never,
}

impl FailOn {
    /// Whether the most severe finding is a failure.
    pub fn is_failed_by(self, worst: Option<Severity>) -> bool {
        let limit = match self {
            Self::Warning => Severity::Warning,
            Self::Problem => Severity::Problem,
            Self::Never => return false,
        };
        // Severities are ordered, the most severe first.
        worst.is_some_and(|worst| worst <= limit)
    }
}
