//! Options that several commands share, each defined once. Nothing here runs a command.
use std::path::PathBuf;

use clap::Args;

/// Where runs are kept.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// Folder of the store [default: $XDG_DATA_HOME/netduel or ~/.local/share/netduel]
    #[arg(long, value_name = "DIR", env = "NETDUEL_STORE")]
    pub store: Option<PathBuf>,
}

/// JSON in place of text.
#[derive(Debug, Clone, Copy, Args)]
pub struct JsonArgs {
    /// Print the result as one JSON document on standard output; progress goes to standard error.
    #[arg(short = 'J', long)]
    pub json: bool,
}
