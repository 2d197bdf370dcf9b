//! The command line.
use std::fmt;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::record::Placement;

/// Our engines against other tools, side by side on one path.
#[derive(Debug, Parser)]
#[command(name = "peers", args_override_self = true)]
pub struct Arguments {
    /// Cases to run, by name or beginning of a name; all when absent.
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    pub only: Vec<String>,
    /// Pairs of each comparison; an interval of 95 % needs 6.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..1000))]
    pub pairs: u32,
    /// Seconds of traffic in each run.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..600))]
    pub seconds: u32,
    /// Where the two ends may run, for both tools alike.
    #[arg(long, value_enum, default_value_t = Pin::Both)]
    pub pin: Pin,
    /// Seed of the order; a new one, which is printed, when absent.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The file for all raw figures.
    #[arg(long, default_value = "target/peers.json", value_name = "FILE")]
    pub json: PathBuf,
    /// Measure nothing: write the tables of docs/performance.md, and docs/performance.json, from the JSON file.
    #[arg(long)]
    pub write_docs: bool,
    /// Measure nothing: list the cases.
    #[arg(long)]
    pub list: bool,
    /// End when standard input ends (for whoever started this program).
    #[arg(long, hide = true)]
    pub lifeline: bool,
}

/// `--pin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pin {
    /// Wherever the kernel puts them.
    Free,
    /// Client on core 0, server on core 1.
    Apart,
    /// Both on core 0: a round trip then has no wake-up of another core in it.
    Together,
    /// Free and apart.
    Both,
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Apart => "apart",
            Self::Together => "together",
            Self::Both => "both",
        })
    }
}

impl Pin {
    /// The placements to measure.
    pub fn placements(self) -> &'static [Placement] {
        match self {
            Self::Free => &[Placement::Free],
            Self::Apart => &[Placement::Apart],
            Self::Together => &[Placement::Together],
            Self::Both => &[Placement::Free, Placement::Apart],
        }
    }
}
