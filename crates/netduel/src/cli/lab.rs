//! The options of `netduel lab`. Every subcommand names its lab with `--lab`.
use std::ffi::OsString;

use clap::{Args, Subcommand};
use netduel_model::ids::LabName;
use netduel_model::lab::DEFAULT_NAME;
use netduel_model::plan::Lab;
use netduel_model::plan::spec::LabPath;
use netduel_model::units::BitRate;
use netduel_model::workload::LAB;

use super::keyword::keywords;
use super::range::{count_of, help, rate_of};
use super::shared::JsonArgs;

/// Which lab.
#[derive(Debug, Clone, Args)]
pub struct LabNameArgs {
    /// Name of the lab; several labs with different names can be up at a time.
    #[arg(long = "lab", value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: LabName,
}

/// Which lab, for commands that took the name as a word in earlier versions.
#[derive(Debug, Clone, Args)]
pub struct LabNameOrWordArgs {
    #[command(flatten)]
    pub option: LabNameArgs,
    /// The name as a word, as earlier versions had it.
    #[arg(value_name = "NAME", hide = true, conflicts_with = "name")]
    pub word: Option<LabName>,
}

impl LabNameOrWordArgs {
    /// The name, however it was given.
    pub fn name(&self) -> &LabName {
        self.word.as_ref().unwrap_or(&self.option.name)
    }
}

/// `netduel lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Build a lab that stays up until `lab down`.
    #[command(
        after_help = "Examples:\n  netduel lab up\n  netduel lab up --lab slow --cap \"1 Gbit/s\" --rules 2000"
    )]
    Up {
        #[command(flatten)]
        lab: LabNameOrWordArgs,
        #[arg(long, default_value_t = Lab::RULES, value_parser = count_of(LAB, "rules"), help = help("Policy rules that the synthetic path evaluates per packet (per GSO packet with segmentation offload)", (LAB, "rules"), ""))]
        rules: u32,
        #[arg(long, value_name = "RATE", value_parser = rate_of(LAB, "cap"), help = help("Emulated rate cap on the wire, for example \"10 Gbit/s\"", (LAB, "cap"), " [default: none]"))]
        cap: Option<BitRate>,
        #[arg(long, default_value_t = Lab::MTU, value_parser = count_of(LAB, "mtu"), help = help("MTU of the guests", (LAB, "mtu"), ""))]
        mtu: u32,
        #[arg(long, default_value_t = Lab::QUEUES, value_parser = count_of(LAB, "queues"), help = help("Transmit and receive queues of each end of the direct path", (LAB, "queues"), ""))]
        queues: u32,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Remove a lab and every process in it.
    #[command(after_help = "Examples:\n  netduel lab down\n  netduel lab down --all")]
    Down {
        #[command(flatten)]
        lab: LabNameOrWordArgs,
        /// Remove every lab of this user.
        #[arg(long, conflicts_with_all = ["name", "word"])]
        all: bool,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Show which labs are up, and the counters of their interfaces.
    #[command(
        after_help = "Examples:\n  netduel lab status\n  netduel lab status --json | jq -r '.labs[].name'"
    )]
    Status {
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Run a command in the lab: in guest `a` or `b`, or on the machine below it, `h1` (of a) or `h2` (of b), which has the switch.
    ///
    /// The lab shares the file system of this machine: any program that is installed here can be run.
    #[command(after_help = "Examples:\n  netduel lab exec a -- ping -c 1 10.77.0.2\n  \
        netduel lab exec --lab slow b -- ss -tin")]
    Exec {
        #[command(flatten)]
        lab: LabNameArgs,
        /// The host.
        host: String,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Choose the path between the guests.
    #[command(after_help = "Example:\n  netduel lab path accelerated")]
    Path {
        #[command(flatten)]
        lab: LabNameArgs,
        /// The path.
        #[arg(value_parser = keywords(PATHS, LabPath::word))]
        path: LabPath,
        #[command(flatten)]
        json: JsonArgs,
    },
}

/// The paths of a lab, and what they are.
const PATHS: [(LabPath, &str); 3] = [
    (LabPath::Synthetic, "Through the software switch"),
    (LabPath::Accelerated, "Past the switch, through a virtual function"),
    (LabPath::Direct, "One veth pair straight between the guests, with the lab's queues"),
];
