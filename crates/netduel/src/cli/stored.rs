//! The options of `netduel report`, `netduel compare` and `netduel runs`.
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use netduel_model::ids::{ArmName, NAME_LEN_MAX, RunId, WorkloadName};
use netduel_model::metric::Metric;

use super::publication::{PrintingArgs, PublicationArgs, text_of_report};
use super::shared::{
    ConfirmationArgs, GateArgs, JsonArgs, RedactArgs, StoreArgs, TagArgs, named_places, note,
};

/// Where the document of a command with `--format` goes, and the short form of its JSON.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Write to this file, in place of standard output (`-`); a name without an extension is a folder for report.EXTENSION. May be repeated: each
    /// file then has the format of its extension.
    #[arg(long, value_name = "PATH")]
    out: Vec<PathBuf>,
    /// The same as `--format json`.
    #[arg(short = 'J', long, conflicts_with = "format")]
    pub json: bool,
}

impl OutputArgs {
    /// The format that the command line names: by `--json`, or as the value of `--format`.
    pub fn format(&self, named: Option<Format>) -> Option<Format> {
        if self.json { Some(Format::Json) } else { named }
    }

    /// The files or folders for the document; none when it goes to standard output.
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        named_places(&self.out)
    }

    /// Whether standard output gets one JSON document.
    pub fn prints_json(&self, named: Option<Format>) -> bool {
        self.places().next().is_none() && self.format(named) == Some(Format::Json)
    }
}

/// `netduel report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: its name, the beginning of its name, a file, or `last`.
    pub run: String,
    /// The format [default: from the extension of --out, else text]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Title of the report [default: of the run, else the question]
    #[arg(long, value_name = "TEXT", value_parser = text_of_report)]
    pub title: Option<String>,
    #[command(flatten)]
    pub redact: RedactArgs,
    #[command(flatten)]
    pub gate: GateArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub publication: PublicationArgs,
    #[command(flatten)]
    pub printing: PrintingArgs,
}

/// `netduel compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The run that the others are compared with: its name, the beginning of its name, a file, `last`, or a baseline file (NAME.json).
    #[arg(value_name = "A")]
    pub first: String,
    /// The runs or baseline files that are compared with it, or `published:NAME` for the figures of a publication.
    #[arg(value_name = "B", required = true)]
    pub others: Vec<String>,
    /// The format [default: from the extension of --out, else text]
    #[arg(long, value_parser = formats_of_a_comparison())]
    pub format: Option<Format>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Title of the page [default: the question of the first run]
    #[arg(long, value_name = "TEXT", value_parser = text_of_report)]
    pub title: Option<String>,
    #[command(flatten)]
    pub gate: GateArgs,
    #[command(flatten)]
    pub redact: RedactArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub publication: PublicationArgs,
    #[command(flatten)]
    pub printing: PrintingArgs,
}

/// `netduel history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// A run of the plan: its name, the beginning of its name, a file, or `last`. Later runs are left out. The beginning of several names is
    /// the newest of these runs, where all are of one plan.
    #[arg(default_value = "last")]
    pub run: String,
    /// Only runs with this note (see `netduel run --note`), `last` among them; may be repeated: runs with all of them.
    #[arg(long = "note", visible_alias = "tag", value_name = "KEY=VALUE", value_parser = note)]
    pub notes: Vec<(String, String)>,
    /// Only this metric [default: those that the run judges]
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    pub metric: Option<Metric>,
    /// Only this workload.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<WorkloadName>,
    /// Only this arm.
    #[arg(long, value_name = "NAME")]
    pub arm: Option<ArmName>,
    /// The format [default: from the extension of --out, else text]
    #[arg(long, value_parser = formats_of_a_history())]
    pub format: Option<Format>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub redact: RedactArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub printing: PrintingArgs,
}

fn metric(key: &str) -> Result<Metric, String> {
    Metric::ALL.into_iter().find(|metric| metric.key() == key).ok_or_else(|| {
        let keys: Vec<&str> = Metric::ALL.into_iter().map(Metric::key).collect();
        format!("there is no such metric (metrics: {})", keys.join(", "))
    })
}

fn formats_of_a_history() -> impl TypedValueParser<Value = Format> {
    let formats = Format::value_variants().iter().filter(|format| format.is_document());
    PossibleValuesParser::new(formats.filter_map(ValueEnum::to_possible_value))
        .try_map(|name| Format::from_str(&name, false))
}

/// Every format that a comparison has.
fn formats_of_a_comparison() -> impl TypedValueParser<Value = Format> {
    let formats = Format::value_variants().iter().filter(|format| format.is_of_comparisons());
    PossibleValuesParser::new(formats.filter_map(ValueEnum::to_possible_value))
        .try_map(|name| Format::from_str(&name, false))
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for a terminal.
    #[value(alias = "txt")]
    Text,
    /// One self-contained page with charts.
    Html,
    /// The page with charts, printed by an installed Chromium, Chrome or Edge; to a file only.
    Pdf,
    /// Markdown.
    Md,
    /// One JSON document.
    Json,
    /// A row for each trial and metric.
    Csv,
    /// JUnit XML: a test case for each verdict, which fails by --fail-if.
    #[value(alias = "xml")]
    Junit,
    /// Annotations of a GitHub workflow; the Markdown goes to $GITHUB_STEP_SUMMARY.
    Github,
    /// The result for the textfile collector of Prometheus' node exporter.
    #[value(alias = "prom")]
    Prometheus,
    /// A line of InfluxDB's line protocol for each trial and metric.
    Influx,
    /// Parquet: a file with a row for each trial and metric, and a file of series beside it. Only in builds with the feature `parquet`.
    Parquet,
}

impl Format {
    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Text | Self::Github => "txt",
            Self::Html => "html",
            Self::Pdf => "pdf",
            Self::Md => "md",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Junit => "xml",
            Self::Prometheus => "prom",
            Self::Influx => "lp",
            Self::Parquet => "parquet",
        }
    }

    /// The format whose files have this extension.
    pub fn of_extension(extension: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|format| format.extension() == extension)
    }

    /// The extensions of the formats that a command has: `.txt, .html, ... or .xml`.
    pub fn extensions(is_of_command: fn(Self) -> bool) -> String {
        let formats = Self::value_variants().iter().filter(|format| is_of_command(**format));
        let own = formats.filter(|format| Self::of_extension(format.extension()) == Some(**format));
        alternatives(own.map(|format| format!(".{}", format.extension())))
    }

    /// The names of the formats that a command has: `text, html, ... or junit`.
    pub fn names(is_of_command: fn(Self) -> bool) -> String {
        let formats = Self::value_variants().iter().filter(|format| is_of_command(**format));
        let named = formats.filter_map(ValueEnum::to_possible_value);
        alternatives(named.map(|value| value.get_name().to_owned()))
    }

    /// Whether it is a whole document, for people or as JSON: every format of a history and of an inspection of hosts. A document has the
    /// warnings of its runs. The other formats are values or verdicts alone, beside which a command states the warnings.
    pub fn is_document(self) -> bool {
        match self {
            Self::Text | Self::Html | Self::Pdf | Self::Md | Self::Json => true,
            Self::Csv | Self::Junit | Self::Prometheus | Self::Influx | Self::Github | Self::Parquet => false,
        }
    }

    /// Whether it is several files, which are never one text.
    pub fn is_several_files(self) -> bool {
        self == Self::Parquet
    }

    /// Whether a comparison of runs has it: a document or its verdicts. The others are values of the trials of one run.
    pub fn is_of_comparisons(self) -> bool {
        self.is_document() || matches!(self, Self::Junit | Self::Github)
    }
}

/// `a, b or c`.
fn alternatives(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// `netduel runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// What to do with runs [default: list them]
    #[command(subcommand)]
    pub action: Option<RunsAction>,
    #[command(flatten)]
    pub redact: RedactArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// `netduel runs ...`.
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// Delete runs. Asks for confirmation; without a terminal --yes is needed. A run in progress is not deleted.
    #[command(
        after_help = "Examples:\n  netduel runs rm last\n  netduel runs rm --yes demo-20260101-120000-1a2b"
    )]
    Rm {
        /// The runs: names, beginnings of names, or `last`.
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Write what a comparison needs of a run into a small JSON file that can be kept in a repository; `netduel compare` takes it as a run.
    #[command(after_help = "Example:\n  netduel runs baseline last --out baseline.json\n  \
        netduel compare baseline.json last --fail-if 'throughput < -5 %'")]
    Baseline {
        /// The run: its name, the beginning of its name, a file, or `last`.
        run: String,
        /// Write to this file, in place of standard output (`-`).
        #[arg(long, value_name = "FILE.json")]
        out: Option<PathBuf>,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Check every record of runs against its checksum; exit code 5 when one is damaged or incomplete.
    #[command(
        after_help = "Examples:\n  netduel runs verify\n  netduel runs verify last\n  netduel runs verify ./copy.netduel\n  netduel runs verify --redact"
    )]
    Verify {
        /// The runs: names, beginnings of names, `last`, or paths of files [default: all of the store].
        #[arg(value_name = "RUN")]
        runs: Vec<String>,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Change the title and the notes of a run. Its trials stay as they are.
    #[command(
        after_help = "Examples:\n  netduel runs tag last --title \"after the driver update\" --note kernel=6.8\n  netduel runs tag last --unset kernel --no-title"
    )]
    Tag {
        /// The run: its name, the beginning of its name, or `last`.
        run: String,
        #[command(flatten)]
        tags: TagArgs,
        /// Remove the title.
        #[arg(long, conflicts_with = "title")]
        no_title: bool,
        /// Remove the note with this key; may be repeated.
        #[arg(long, value_name = "KEY")]
        unset: Vec<String>,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Give a run another name.
    #[command(after_help = "Example:\n  netduel runs rename last before-the-update")]
    Rename {
        /// The run: its name, the beginning of its name, or `last`.
        run: String,
        #[arg(value_name = "NAME", value_parser = new_name, help = format!("The new name: 1 to {NAME_LEN_MAX} of a-z A-Z 0-9 . _ -, beginning with a letter or a digit"))]
        to: RunId,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Write a run to one file, for another machine or person. `netduel report FILE` opens it, `netduel runs import FILE` stores it.
    #[command(
        after_help = "Examples:\n  netduel runs export last\n  netduel runs export last --out for-the-vendor.netduel --redact"
    )]
    Export {
        /// The run: its name, the beginning of its name, a file, or `last`.
        run: String,
        /// The file [default: RUN.netduel in this folder]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Copy the file of a run into the store. A run of the same name is not replaced.
    #[command(
        after_help = "Examples:\n  netduel runs import ./from-a-colleague.netduel\n  netduel runs import ./from-a-colleague.netduel --name theirs"
    )]
    Import {
        /// The file.
        file: PathBuf,
        /// Its name in the store [default: the name that the run has]
        #[arg(long, value_name = "NAME", value_parser = new_name)]
        name: Option<RunId>,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show the disk space of the stored runs, the largest first.
    #[command(after_help = "Examples:\n  netduel runs du\n  netduel runs du --json | jq '.disk_bytes'")]
    Du {
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
}

impl RunsAction {
    /// Whether its output has pseudonyms.
    pub fn is_redacted(&self) -> bool {
        match self {
            Self::Rm { redact, .. }
            | Self::Baseline { redact, .. }
            | Self::Verify { redact, .. }
            | Self::Tag { redact, .. }
            | Self::Rename { redact, .. }
            | Self::Export { redact, .. }
            | Self::Import { redact, .. }
            | Self::Du { redact, .. } => redact.redact,
        }
    }
}

/// A name for a stored run that commands find.
fn new_name(text: &str) -> Result<RunId, String> {
    if let Some(reason) = netduel_store::unusable_name(text) {
        return Err(reason.to_owned());
    }
    RunId::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_list_the_formats_that_the_options_of_a_command_take() {
        assert_eq!(Format::names(Format::is_of_comparisons), "text, html, pdf, md, json, junit or github");
        assert_eq!(Format::names(Format::is_document), "text, html, pdf, md or json");
        assert_eq!(Format::extensions(Format::is_document), ".txt, .html, .pdf, .md or .json");
    }
}
