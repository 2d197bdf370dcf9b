//! The options of `netduel demo` and `netduel run`.
use std::path::PathBuf;

use clap::Args;

use super::publication::{PrintingArgs, PublicationArgs};
use super::range::whole;
use super::shared::{
    DeallocateArgs, GateArgs, JsonArgs, LiveArgs, OverrideArgs, PermissionArgs, QuietArgs, RedactArgs,
    RemoteProgramArgs, StoreArgs, TagArgs,
};

/// What is printed and stored of a run.
#[derive(Debug, Args)]
pub struct OutcomeArgs {
    /// Print the whole report at the end, not only the verdicts.
    #[arg(short, long, conflicts_with = "json")]
    pub verbose: bool,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub quiet: QuietArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub redact: RedactArgs,
    #[command(flatten)]
    pub tags: TagArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `netduel demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Folder for report.html, which netduel creates when it does not exist; or, with an extension, the file to write (report.html,
    /// report.md ...). May be repeated.
    #[arg(long, value_name = "PATH", default_value = "netduel-report")]
    pub out: Vec<PathBuf>,
    #[command(flatten)]
    pub outcome: OutcomeArgs,
}

/// `netduel run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan, a TOML file.
    #[arg(required_unless_present = "resume", conflicts_with = "resume", value_name = "PLAN.toml")]
    pub plan: Option<PathBuf>,
    /// Resume this run: its name, the beginning of its name, or `last`.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["aa", "seed", "set", "title", "notes", "author", "organization", "purpose", "audience", "commentary", "logo", "accent"])]
    pub resume: Option<String>,
    /// Run the plan's baseline against a copy of itself.
    #[arg(long)]
    pub aa: bool,
    /// Seed of the order of trials [default: the plan's, else random; always recorded]
    #[arg(long, value_parser = whole(0, u64::MAX))]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub overrides: OverrideArgs,
    #[command(flatten)]
    pub permissions: PermissionArgs,
    #[command(flatten)]
    pub deallocate: DeallocateArgs,
    #[command(flatten)]
    pub remote_program: RemoteProgramArgs,
    /// Write report.html into this folder. A name with the extension of a format (.html, .pdf, .md, .json, .xml for JUnit ...) is the file to
    /// write. May be repeated, for example --out report.html --out results.json.
    #[arg(long, value_name = "PATH")]
    pub out: Vec<PathBuf>,
    #[command(flatten)]
    pub gate: GateArgs,
    #[command(flatten)]
    pub outcome: OutcomeArgs,
    #[command(flatten)]
    pub publication: PublicationArgs,
    #[command(flatten)]
    pub printing: PrintingArgs,
}
