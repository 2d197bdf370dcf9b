//! The command line: one definition for the parser, the help, the man pages and the completions.
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use netduel_model::ids::LabName;
use netduel_model::plan::spec::LabPath;
use netduel_model::units::BitRate;

use crate::inspect::args::InspectArgs;
use crate::quick::args::{CrrArgs, PpsArgs, RrArgs, TcpArgs, UdpArgs};
use crate::serve::args::ServeArgs;

/// netduel puts two network paths to the test, side by side, and says with evidence which is faster, by how much, at what cost, and why.
#[derive(Debug, Parser)]
#[command(name = "netduel", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Begin with `netduel demo`: two paths on this machine, an interleaved A/B, a verdict and a report.\n\
    Exit codes: 0 done, 1 bug, 2 usage or plan, 3 environment, 4 host or agent, 5 store, 6 no verdict possible, 7 lab, \
    8 findings, 130 interrupted (docs/exit-codes.md)."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The main job on a local lab: two paths, A/B, verdict on the terminal, report.html.
    ///
    /// Builds two guests and two paths between them out of network namespaces of this machine (no root needed where user
    /// namespaces are allowed), checks both, compares them in interleaved trials, prints the verdict, writes the report
    /// and removes everything.
    #[command(
        after_help = "Example:\n  netduel demo\n  netduel demo --out /tmp/report --json | jq -r '.workloads[].metrics[] | select(.judged).comparisons[].verdict.text'"
    )]
    Demo(DemoArgs),
    /// Run a plan, or go on with a run that was stopped.
    #[command(after_help = "Examples:\n  netduel run plans/streams.toml\n  netduel run --resume last\n  \
        netduel run plans/demo.toml --aa        the baseline against itself: ought to say \"no difference\"")]
    Run(RunArgs),
    /// Throughput of TCP to a host that runs `netduel serve`.
    ///
    /// Options are named as iperf3 names them. The figure is the receiver's payload in the steady window.
    #[command(
        after_help = "Examples:\n  netduel tcp netduel1...            the pairing string that `netduel serve` printed; it is kept\n  \
        netduel tcp far -P 8 -t 30        8 connections for 30 s\n  netduel tcp far -R --json         the server sends\n  \
        netduel tcp far -b 500M -C cubic"
    )]
    Tcp(TcpArgs),
    /// Throughput, packet rate, loss and jitter of UDP to a host that runs `netduel serve`.
    #[command(
        after_help = "Examples:\n  netduel udp far -b 1G             paced: what is lost was lost on the way\n  \
        netduel udp far -l 64             small packets, as fast as it can"
    )]
    Udp(UdpArgs),
    /// Round trips to a host that runs `netduel serve`: request and response over one connection.
    #[command(after_help = "Examples:\n  netduel rr far                    TCP, one request at a time\n  \
        netduel rr far -u --rate 20k      UDP on schedule, no coordinated omission\n  netduel rr far --wait spin")]
    Rr(RrArgs),
    /// Connections to a host that runs `netduel serve`: connect, request, response, close.
    #[command(after_help = "Example:\n  netduel crr far -P 8")]
    Crr(CrrArgs),
    /// Packets a second to a host that runs `netduel serve`: small frames, by sockets, past the network stack, or from the kernel.
    ///
    /// The figure is that of the receiver, each packet counted once; what was sent and not received is the loss. `xdp` and
    /// `count` put a program on the receiver's interface that knows this test's packets alone, and goes with it.
    #[command(
        after_help = "Examples:\n  netduel pps far                       64-byte frames by UDP sockets\n  \
        netduel pps far -b 200k               paced: what is lost was lost on the way\n  \
        netduel pps far --generator xdp --queues 1,2,4\n  \
        netduel pps far --generator kernel    the ceiling of the path: made in the kernel, counted in the driver\n  \
        netduel pps far -l 64,128,256,512,1024,1280,1518 --generator xdp -t 3"
    )]
    Pps(PpsArgs),
    /// Serve quick tests and paired plans: many clients at once over one port, which pair with the string that is printed.
    ///
    /// Control is TLS 1.3 to a certificate that the string names; whoever does not know the string's secret gets a closed
    /// connection. Nothing of this host is changed.
    #[command(
        after_help = "Examples:\n  netduel serve\n  netduel serve --max-rate 1G --max-duration 60 --advertise bench.example.org"
    )]
    Serve(ServeArgs),
    /// Keep, list or forget the pairing with a `netduel serve`.
    #[command(
        after_help = "Examples:\n  netduel pair netduel1...          kept for `netduel tcp HOST` and for plans with launch = \"paired\"\n  \
        netduel pair --list\n  netduel pair --forget far"
    )]
    Pair(PairArgs),
    /// What a host's network is, and what is wrong with it: NICs, accelerated networking, queues and cores, offloads, NUMA, cloud.
    ///
    /// States facts, then findings with severity, evidence, remedy and the command that mends it. Changes nothing and runs none of
    /// these commands. Several hosts describe themselves at the same time, and pairs of them are compared.
    #[command(after_help = "Examples:\n  netduel inspect                            this host\n  \
        netduel inspect --plan plans/demo.toml     every host of a plan, and its pairs\n  \
        netduel inspect ssh:host-1 ssh:host-2      over your own ssh; netduel is in the path there\n  \
        netduel inspect far:5210                   a `netduel serve` that you are paired with\n  \
        netduel inspect --json | jq '.hosts[].findings[] | select(.severity == \"problem\")'\n\
        Ends with 8 when something as grave as --fail-on says was found, and with 4 when a host could not be asked.")]
    Inspect(InspectArgs),
    /// Check a plan without running it, or print the JSON Schema of plans.
    #[command(
        subcommand,
        after_help = "Examples:\n  netduel plan check my.toml\n  netduel plan schema > plan.schema.json"
    )]
    Plan(PlanCommand),
    /// The local lab by hand: namespaces as hosts and three paths between them.
    #[command(
        subcommand,
        after_help = "Example:\n  netduel lab up\n  netduel lab exec a -- cat /proc/net/dev\n  \
        netduel lab path accelerated\n  netduel lab down"
    )]
    Lab(LabCommand),
    /// A report of a stored run: html, md, json, csv, or text for the terminal.
    #[command(
        after_help = "Examples:\n  netduel report last\n  netduel report last --format html --out report.html\n  \
        netduel report ./from-a-colleague.netduel --format md"
    )]
    Report(ReportArgs),
    /// What is stored.
    #[command(after_help = "Example:\n  netduel runs --json | jq -r '.[].id'")]
    Runs(RunsArgs),
    /// Serve one coordinator over standard input and output; started by a launcher, not by hand.
    #[command(
        after_help = "A launcher is an argv prefix: `ip netns exec NS netduel agent`, `ssh HOST netduel agent`, ... \
        The agent ends when its standard input ends."
    )]
    Agent,
    /// Print shell completions.
    #[command(
        after_help = "Example:\n  netduel completions bash > ~/.local/share/bash-completion/completions/netduel"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    Man {
        /// The folder; it is made when it is missing.
        folder: PathBuf,
    },
    /// Carries an agent's conversation to a paired `netduel serve`; started by tests and runs, not by hand.
    #[command(hide = true)]
    Link {
        /// HOST:PORT of the pairing.
        at: String,
    },
    /// Holds a lab; started by `lab up` and by runs, not by hand.
    #[command(hide = true, name = "lab-keeper")]
    LabKeeper {
        /// Words of the lab crate.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Undoes an agent's treatments when the agent is gone; started by agents, not by hand.
    #[command(hide = true, name = "undo-guard")]
    UndoGuard,
}

/// Where runs are kept.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// Folder of the store [default: $XDG_DATA_HOME/netduel or ~/.local/share/netduel]
    #[arg(long, value_name = "DIR", env = "NETDUEL_STORE")]
    pub store: Option<PathBuf>,
}

/// `netduel demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Folder for report.html; it is made when it is missing.
    #[arg(long, value_name = "DIR", default_value = "netduel-report")]
    pub out: PathBuf,
    /// Print the result as one JSON document on standard output; progress goes to standard error.
    #[arg(long)]
    pub json: bool,
}

/// `netduel run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan, a TOML file.
    #[arg(required_unless_present = "resume", conflicts_with = "resume", value_name = "PLAN.toml")]
    pub plan: Option<PathBuf>,
    /// Go on where this run stopped: its name, the beginning of its name, or `last`.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["aa", "seed"])]
    pub resume: Option<String>,
    /// Run the plan's baseline against a copy of itself.
    #[arg(long)]
    pub aa: bool,
    /// The seed of the order of trials [default: the plan's, else drawn; always recorded]
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Write report.html into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the result as one JSON document on standard output; progress goes to standard error.
    #[arg(long)]
    pub json: bool,
}

/// `netduel plan`.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Check a plan and say what will run; with --json every default is written out.
    Check {
        /// The plan, a TOML file.
        #[arg(value_name = "PLAN.toml")]
        plan: PathBuf,
        /// Print the resolved plan as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of plans, for editors that check while one types.
    Schema,
}

/// Which lab.
#[derive(Debug, Clone, Args)]
pub struct LabNameArg {
    /// The lab's name.
    #[arg(long = "lab", value_name = "NAME", default_value = "local")]
    pub name: LabName,
}

/// `netduel lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Build a lab that stays up until `lab down`.
    Up {
        /// The lab's name; several labs with different names can be up at a time.
        #[arg(default_value = "local")]
        name: LabName,
        /// Policy rules that the synthetic path walks for every packet, 0 to 10000.
        #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(0..=10_000))]
        rules: u32,
        /// Emulated rate cap on the wire, for example "10 Gbit/s".
        #[arg(long, value_name = "RATE")]
        cap: Option<BitRate>,
        /// MTU of the guests in bytes, 1280 to 9000.
        #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9000))]
        mtu: u32,
        /// Transmit and receive queues of each end of the direct path, 1 to 64.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
        queues: u32,
    },
    /// Remove a lab with everything that runs in it.
    Down {
        /// The lab's name.
        #[arg(default_value = "local")]
        name: LabName,
        /// Every lab of this user.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// What labs are up, and what their interfaces counted.
    Status {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a command on a host of the lab: guest `a` or `b`, machine `h1` or `h2`.
    Exec {
        #[command(flatten)]
        name: LabNameArg,
        /// The host.
        host: String,
        /// The command and its words.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Choose the path beneath the guests' address.
    Path {
        #[command(flatten)]
        name: LabNameArg,
        /// The path.
        path: PathArg,
    },
}

/// A path of the lab on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PathArg {
    /// Through the software switch.
    Synthetic,
    /// Past it.
    Accelerated,
    /// One veth pair straight between the guests, with the lab's queues.
    Direct,
}

impl From<PathArg> for LabPath {
    fn from(path: PathArg) -> Self {
        match path {
            PathArg::Synthetic => Self::Synthetic,
            PathArg::Accelerated => Self::Accelerated,
            PathArg::Direct => Self::Direct,
        }
    }
}

/// `netduel report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: its name, the beginning of its name, a file, or `last`.
    pub run: String,
    /// The format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The verdict table, for a terminal.
    Text,
    /// One self-contained page with pictures.
    Html,
    /// Markdown.
    Md,
    /// One JSON document.
    Json,
    /// A row for each trial and metric.
    Csv,
}

/// `netduel pair`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PairArgs {
    /// The pairing string that `netduel serve` printed; `-` reads it from standard input.
    #[arg(value_name = "STRING")]
    pub string: Option<String>,
    /// Show the kept pairings, without their secrets.
    #[arg(long)]
    pub list: bool,
    /// Forget the pairing with this HOST or HOST:PORT.
    #[arg(long, value_name = "HOST")]
    pub forget: Option<String>,
}

/// `netduel runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_visible_command_teaches_with_an_example_or_a_sentence() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
        }
    }

    #[test]
    fn words_after_the_host_belong_to_the_command_also_when_they_look_like_options() {
        let cli = Cli::parse_from(["netduel", "lab", "exec", "--lab", "x", "a", "--", "ping", "-c", "1"]);
        let Command::Lab(LabCommand::Exec { name, host, command }) = cli.command else { panic!("not exec") };
        assert_eq!((name.name.as_str(), host.as_str(), command.len()), ("x", "a", 3));
    }
}
