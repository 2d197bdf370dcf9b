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

/// Until when its VM is started again.
#[derive(Debug, Args)]
pub struct ShutdownArgs {
    /// The daily shutdown of the VM, seconds since 1970-01-01T00:00:00Z. After it the VM is not started: it would run until the next one.
    #[arg(long, value_name = "SECONDS")]
    pub shutdown_at: Option<u64>,
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
        #[command(flatten)]
        shutdown: ShutdownArgs,
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
        #[command(flatten)]
        shutdown: ShutdownArgs,
    },
    /// Start a VM that was stopped.
    Start {
        /// The VM.
        vm: String,
        #[command(flatten)]
        place: PlaceArgs,
        #[command(flatten)]
        shutdown: ShutdownArgs,
    },
}
