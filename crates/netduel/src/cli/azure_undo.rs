//! The options of `netduel azure-undo`, which runs and their guards start. Nothing here runs a command.
use clap::{Args, Subcommand};

/// Where it is.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The resource group.
    #[arg(long)]
    pub resource_group: String,
    /// The subscription.
    #[arg(long)]
    pub subscription: Option<String>,
}

/// `netduel azure-undo`.
#[derive(Debug, Subcommand)]
pub enum UndoCommand {
    /// Return accelerated networking of a NIC to a state.
    Nic {
        /// The NIC.
        name: String,
        /// The state.
        #[arg(long, action = clap::ArgAction::Set)]
        accelerated: bool,
        /// Stop the VM for it, and start it again.
        #[arg(long)]
        stop: bool,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Return a VM to a proximity placement group, or to none.
    Placement {
        /// The VM.
        vm: String,
        /// The group.
        #[arg(long)]
        group: Option<String>,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Start a VM that was stopped.
    Start {
        /// The VM.
        vm: String,
        #[command(flatten)]
        place: PlaceArgs,
    },
}
