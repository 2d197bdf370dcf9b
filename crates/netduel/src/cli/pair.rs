//! The options of `netduel pair`.
use clap::Args;

use super::shared::JsonArgs;

/// `netduel pair`.
#[derive(Debug, Args)]
pub struct PairArgs {
    #[command(flatten)]
    pub action: PairAction,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// What to do with pairings: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PairAction {
    /// The pairing string that `netduel serve` printed; `-` reads it from NETDUEL_PAIRING, or from standard input, where a terminal
    /// does not show it.
    #[arg(value_name = "STRING")]
    pub string: Option<String>,
    /// List the stored pairings, without their secrets.
    #[arg(long)]
    pub list: bool,
    /// Delete the pairing with this HOST or HOST:PORT; also one of an earlier version that `--list` warns of.
    #[arg(long, value_name = "HOST")]
    pub forget: Option<String>,
}
