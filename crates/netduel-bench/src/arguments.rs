//! The command line.
use std::fmt;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::record::Placement;

/// netduel's engines against other tools on one path.
#[derive(Debug, Parser)]
#[command(name = "peers", args_override_self = true)]
pub struct Arguments {
    /// Cases to run, by name or beginning of a name [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    pub only: Vec<String>,
    /// Pairs per comparison; a 95 % interval needs 6.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..1000))]
    pub pairs: u32,
    /// Seconds of traffic in each run.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..600))]
    pub seconds: u32,
    /// Placement of the two ends, equal for both tools.
    #[arg(long, value_enum, default_value_t = Pin::Both)]
    pub pin: Pin,
    /// Seed of the order [default: random; always printed].
    #[arg(long)]
    pub seed: Option<u64>,
    /// The file for all raw figures.
    #[arg(long, default_value = "target/peers.json", value_name = "FILE")]
    pub json: PathBuf,
    /// Do not measure; write the tables of docs/performance.md, and docs/performance.json, from the JSON file.
    #[arg(long)]
    pub write_docs: bool,
    /// Do not measure; list the cases.
    #[arg(long)]
    pub list: bool,
    /// End when standard input ends (for the program that started this one).
    #[arg(long, hide = true)]
    pub lifeline: bool,
}

/// `--pin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pin {
    /// No placement: the kernel chooses.
    Free,
    /// Client on core 0, server on core 1.
    Apart,
    /// Both on core 0, so that a round trip wakes no other core.
    Together,
    /// `free`, then `apart`.
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
