//! The command line: one definition for the parser, the help, the man pages and the completions. Each command's options are in
//! their own file or beside the command; no command runs here.
pub mod azure;
pub mod azure_undo;
pub mod free_text;
pub mod json;
pub mod keyword;
pub mod lab;
pub mod pair;
pub mod publication;
pub mod range;
pub mod run;
pub mod shared;
pub mod stored;
pub mod unknown;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use self::azure_undo::UndoCommand;
use crate::inspect::args::InspectArgs;
use crate::quick::args::{CrrArgs, PpsArgs, RrArgs, TcpArgs, UdpArgs};
use crate::serve::args::ServeArgs;
use azure::{AzureCommand, BedArg};
use lab::LabCommand;
use pair::PairArgs;
use run::{DemoArgs, RunArgs};
use shared::{BindArgs, JsonArgs, OverrideArgs, PermissionArgs, RedactArgs, StoreArgs};
use stored::{CompareArgs, HistoryArgs, ReportArgs, RunsArgs};

/// A/B-test two network paths: which is faster, by how much, at what cost, and why.
#[derive(Debug, Parser)]
#[command(name = "netduel", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Examples:\n  netduel demo                      two paths on this machine: interleaved A/B, verdict, report\n  \
    netduel run PLAN.toml             a plan of your own; plans/streams.toml is an example\n  \
    netduel serve                     on one host, then on another:\n  \
    netduel tcp HOST"
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two paths in a lab on this machine: verdict on the terminal, report.html.
    ///
    /// Builds two guests and two paths between them from network namespaces of this machine (no root needed where user
    /// namespaces are allowed), checks both paths, compares them in interleaved trials, prints the verdict, writes the report
    /// and removes the lab. The report and the stored run stay.
    #[command(
        after_help = "Examples:\n  netduel demo\n  netduel demo --out /tmp/report\n  netduel demo --json | jq -r '.workloads[].metrics[] | select(.judged).comparisons[].verdict.text'"
    )]
    Demo(DemoArgs),
    /// Run a plan, or resume a run.
    #[command(
        after_help = "Examples:\n  netduel run plans/streams.toml --title \"after the driver update\" --note kernel=6.8\n  \
        netduel run plans/streams.toml --set blocks_max=12 --set duration=\"5 s\"\n  \
        netduel run plans/streams.toml --fail-if 'throughput < -5 %' --out report.html --out netduel.xml\n  \
        netduel run --resume last\n  \
        netduel run plans/demo.toml --aa    A/A run of the baseline: \"no difference\" or \"inconclusive\";\n  \
        \x20                                   \"better\" or \"worse\" in at most 1 of 20 runs"
    )]
    Run(RunArgs),
    /// Measure TCP throughput to a host that runs `netduel serve`.
    ///
    /// Options are named as in iperf3. The result is the receiver's payload rate in the steady window.
    #[command(
        after_help = "Examples:\n  netduel tcp -                     asks for the string of `netduel serve`; it is stored\n  \
        netduel tcp far -P 8 -t 30        8 connections for 30 s\n  netduel tcp far -R --json         the server sends\n  \
        netduel tcp far -P 8 -b 100M      8 connections of 100 Mbit/s each"
    )]
    Tcp(TcpArgs),
    /// Measure UDP throughput, datagram rate, loss and jitter to a host that runs `netduel serve`.
    #[command(
        after_help = "Examples:\n  netduel udp far -b 1G             paced at 1 Gbit/s; the result says where datagrams were lost\n  \
        netduel udp far -P 4 -b 250M      4 flows of 250 Mbit/s each\n  \
        netduel udp far -l 64 --offload none   one packet per 64-byte datagram, at the maximum rate"
    )]
    Udp(UdpArgs),
    /// Measure round-trip latency to a host that runs `netduel serve`: request and response over one connection.
    #[command(after_help = "Examples:\n  netduel rr far                    TCP, one outstanding request\n  \
        netduel rr far -u --rate 20k      UDP, open loop: no coordinated omission\n  netduel rr far --wait spin")]
    Rr(RrArgs),
    /// Measure connections per second to a host that runs `netduel serve`: connect, request, response, close.
    #[command(
        after_help = "Examples:\n  netduel crr far -P 8              8 transactions in flight\n  netduel crr far --rate 5k"
    )]
    Crr(CrrArgs),
    /// Measure packets per second to a host that runs `netduel serve`: from sockets, AF_XDP or the kernel.
    ///
    /// The result is the receiver's: each packet counts once. Packets sent and not received are the loss. The receivers `xdp` and
    /// `count` attach a program to the receiver's interface for the duration of the test; it takes the packets of this test only.
    #[command(
        after_help = "Examples:\n  netduel pps far                       64-byte frames from UDP sockets\n  \
        netduel pps far --rate 200k           paced; the result says where packets were lost\n  \
        netduel pps far --generator xdp --queues 1,2,4\n  \
        netduel pps far --generator kernel    upper bound: generated in the kernel, counted in the driver\n  \
        netduel pps far --frame 64,128,256,512,1024,1280,1518 --generator xdp -t 3"
    )]
    Pps(PpsArgs),
    /// Serve quick tests and paired plans: many clients at a time over one port.
    ///
    /// Control connections are TLS 1.3. Clients without the pairing string that the server prints are rejected. The server changes
    /// no setting of this host.
    #[command(
        after_help = "Examples:\n  netduel serve\n  netduel serve --max-rate 1G --max-duration 60 --advertise bench.example.org"
    )]
    Serve(ServeArgs),
    /// Store, list or delete pairings with `netduel serve`.
    #[command(
        after_help = "Examples:\n  netduel pair -                    for `netduel tcp HOST` and for plans with launch = \"paired\"\n  \
        netduel pair --list\n  netduel pair --forget far"
    )]
    Pair(PairArgs),
    /// Show a host's network and what is wrong with it: NICs, accelerated networking, queues, offloads, NUMA, cloud.
    ///
    /// Prints facts, then findings with severity, evidence, remedy and, where there is one, the command for it. Changes nothing and
    /// runs none of these commands. Several hosts are read at the same time, and pairs of them are compared.
    #[command(after_help = "Examples:\n  netduel inspect                            this host\n  \
        netduel inspect --plan plans/demo.toml     every host of a plan, and its pairs\n  \
        netduel inspect ssh:host-1 ssh:host-2      over your own ssh; netduel is copied there\n  \
        netduel inspect far:5210                   a paired `netduel serve`\n  \
        netduel inspect --plan my.toml --out hosts.html   a page with drawings; or .pdf, .md, .json\n  \
        netduel inspect --json | jq '.hosts[].findings[] | select(.severity == \"problem\")'")]
    Inspect(InspectArgs),
    /// Check a plan without running it, or print the JSON Schema of plans.
    #[command(
        subcommand,
        after_help = "Examples:\n  netduel plan check my.toml\n  netduel plan schema > plan-file.schema.json"
    )]
    Plan(PlanCommand),
    /// Manage a local lab: namespaces as hosts, and three paths between them.
    #[command(
        subcommand,
        after_help = "Examples:\n  netduel lab up\n  netduel lab exec a -- cat /proc/net/dev\n  \
        netduel lab path accelerated\n  netduel lab down"
    )]
    Lab(LabCommand),
    /// Create and delete test beds on Azure with your own `az`: VMs, networks and NICs from one file.
    #[command(
        subcommand,
        after_help = "Examples:\n  netduel azure sizes                                         sizes of VMs, with their NICs\n  \
        netduel azure check beds/two-nic.toml                       no network needed\n  \
        netduel azure up beds/two-nic.toml --ssh-from 192.0.2.1/32  your address as Azure sees it\n  \
        netduel azure run my.toml --out report\n  netduel azure list\n  netduel azure down two-nic"
    )]
    Azure(AzureCommand),
    /// Print or write the report of a stored run: text, html, pdf, md, json, csv and more.
    #[command(after_help = "Examples:\n  netduel report last\n  netduel report last --out report.html\n  \
        netduel report ./from-a-colleague.netduel --format md\n  \
        netduel report last --redact --out report.pdf --out trials.csv")]
    Report(ReportArgs),
    /// Compare stored runs of the same plan: what differs between them, and whether a value changed by more than the noise.
    ///
    /// Each run is compared with the first, for each workload of each arm that both have with the same settings. The trials of
    /// different runs are not paired. To compare two paths, run both as arms of one plan: its blocks cancel out what changes over time.
    /// `published:NAME` shows the figures of a publication beside those of the runs.
    #[command(
        after_help = "Examples:\n  netduel compare before-the-update last\n  netduel compare last published:azure-stress-2018\n  netduel compare monday tuesday wednesday --out compare.html\n  \
        netduel compare baseline.json last --fail-if 'throughput < -5 %' --strict\n  \
        netduel compare ./theirs.netduel last\n  netduel compare before last --json | jq -r '.comparisons[].metrics[].comparisons[].verdict.text'"
    )]
    Compare(CompareArgs),
    /// Show the values of a plan over its stored runs, and where their level changed.
    ///
    /// The runs are those of the plan of a run (the last one by default), with the settings of that run. A change of level is shown where the order
    /// of the runs is not random; the facts that differ between the two runs beside it are listed.
    #[command(
        after_help = "Examples:\n  netduel history\n  netduel history last --tag site=west --metric throughput\n  \
        netduel history --out history.html\n  netduel history --json | jq '.series[] | select(.changes != [])'"
    )]
    History(HistoryArgs),
    /// List, tag, rename, export, import, verify or delete stored runs.
    #[command(
        after_help = "Examples:\n  netduel runs\n  netduel runs --json | jq -r '.runs[].id'\n  netduel runs verify\n  netduel runs rm last"
    )]
    Runs(RunsArgs),
    /// Serve one coordinator over standard input and output; started by launchers.
    #[command(
        hide = true,
        after_help = "Example:\n  ssh HOST netduel agent\n\nA launcher is an argv prefix. The agent ends when its standard input ends."
    )]
    Agent {
        #[command(flatten)]
        bind: BindArgs,
        /// Print the SHA-256 of the program file and end; a host without sha256sum(1) compares its copy with it.
        #[arg(long, hide = true)]
        checksum: bool,
    },
    /// Print shell completions. Those of bash, zsh and fish also complete names of runs and paired hosts, and names in plans and runs.
    #[command(
        after_help = "Examples:\n  netduel completions bash > ~/.local/share/bash-completion/completions/netduel\n  \
        netduel completions zsh > ~/.zfunc/_netduel    with fpath+=~/.zfunc before compinit in .zshrc\n  \
        netduel completions fish > ~/.config/fish/completions/netduel.fish"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    #[command(after_help = "Example:\n  netduel man ~/.local/share/man/man1")]
    Man {
        /// The folder; netduel creates it when it does not exist.
        folder: PathBuf,
    },
    /// Print names for completions, one per line.
    #[command(hide = true)]
    Complete {
        /// Which names.
        what: Completable,
        /// The plan or the run that has them [default: the last run]
        of: Option<PathBuf>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Carries an agent's conversation to a paired `netduel serve`; started by runs.
    #[command(hide = true)]
    Link {
        /// HOST:PORT of the pairing.
        at: String,
        #[command(flatten)]
        bind: BindArgs,
    },
    /// Holds a lab; started by `lab up` and by runs.
    #[command(hide = true, name = "lab-keeper")]
    LabKeeper {
        /// Arguments for the lab crate.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Undoes the changes of an agent or a coordinator when it is gone; started by these.
    #[command(hide = true, name = "undo-guard")]
    UndoGuard {
        /// Keeps the changes of a coordinator to resources of a provider.
        #[arg(long)]
        coordinator: bool,
        /// Names no change in messages.
        #[arg(long)]
        no_names: bool,
    },
    /// Returns a resource of Azure to its original state; started by runs and guards.
    #[command(subcommand, hide = true, name = "azure-undo")]
    AzureUndo(UndoCommand),
}

impl Command {
    /// Whether it measures, so that the first signal ends it with what it has so far.
    pub fn measures(&self) -> bool {
        matches!(
            self,
            Self::Demo(_)
                | Self::Run(_)
                | Self::Tcp(_)
                | Self::Udp(_)
                | Self::Pps(_)
                | Self::Rr(_)
                | Self::Crr(_)
        )
    }
}

/// Names that a shell completes while the user types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Completable {
    /// Stored runs.
    Runs,
    /// Stored runs, and publications with figures: what a comparison takes.
    Compared,
    /// Notes of stored runs.
    Notes,
    /// Paired hosts.
    Hosts,
    /// Hosts of a plan.
    PlanHosts,
    /// Conditions for `--fail-if`, one for each metric and arm of a plan.
    Conditions,
    /// The same for a comparison of runs, which compares the baseline of a run as well.
    RunConditions,
    /// The same for the report of a run, whose baseline has no verdict.
    ArmConditions,
    /// Metrics.
    Metrics,
    /// Workloads of a run.
    Workloads,
    /// Arms of a run.
    Arms,
    /// Labs that are up.
    Labs,
    /// Hosts of a lab.
    LabHosts,
    /// Beds that this user has created here and not deleted.
    Beds,
}

/// `netduel plan`.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Check a plan and show what will run; with --json every default is written out.
    #[command(after_help = "Example:\n  netduel plan check my.toml --json | jq .plan.design")]
    Check {
        /// The plan, a TOML file.
        #[arg(value_name = "PLAN.toml")]
        plan: PathBuf,
        #[command(flatten)]
        overrides: OverrideArgs,
        #[command(flatten)]
        permissions: PermissionArgs,
        /// Check also whether this bed has the VMs and networks that the plan uses, and show what its VMs cost during the run. BED is its file
        /// (NAME.toml), or its name when `netduel azure up` created it from here. Nothing is deployed or looked up.
        #[arg(long, value_name = "BED", value_parser = azure::bed)]
        bed: Option<BedArg>,
        #[command(flatten)]
        redact: RedactArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Print the JSON Schema of plans, for editors that check as you type.
    #[command(after_help = "Example:\n  netduel plan schema > plan-file.schema.json")]
    Schema,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_visible_command_has_a_description_and_an_example() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no description");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Example"), "{name} has no example: {help}");
        }
    }

    #[test]
    fn help_names_the_verdicts_of_an_aa_run_and_what_the_demo_removes() {
        let mut command = Cli::command();
        // Without the ends of lines, which depend on the terminal.
        let mut help = |name: &str| {
            let text = command.find_subcommand_mut(name).expect("a command").render_long_help().to_string();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(help("run").contains("\"no difference\" or \"inconclusive\""), "{}", help("run"));
        assert!(help("demo").contains("removes the lab"), "{}", help("demo"));
    }

    /// A command and the commands below it.
    fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
        std::iter::once(command).chain(command.get_subcommands().flat_map(with_subcommands)).collect()
    }

    #[test]
    fn every_option_json_has_the_same_letter() {
        let command = Cli::command();
        let commands = with_subcommands(&command);
        let options = commands.iter().flat_map(|command| command.get_arguments());
        let json: Vec<_> = options.filter(|option| option.get_long() == Some("json")).collect();
        assert!(json.len() > 10, "{json:?}");
        assert!(json.iter().all(|option| option.get_short() == Some('J')), "{json:?}");
    }

    #[test]
    fn examples_fit_into_the_width_of_help_without_a_terminal() {
        // A command that is wrapped cannot be copied. Without a terminal help has 100 columns.
        let command = Cli::command();
        for command in with_subcommands(&command) {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in examples.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
        }
    }

    #[test]
    fn heading_of_help_has_its_own_options_only() {
        let command = Cli::command();
        let mut options = 0;
        for command in with_subcommands(&command) {
            for option in command.get_arguments() {
                let Some(heading) = option.get_help_heading() else { continue };
                let own: &[&str] = match heading {
                    "Publication" => {
                        &["author", "organization", "purpose", "audience", "commentary", "logo", "accent"]
                    }
                    "PDF" => &["paper", "browser"],
                    _ => &[],
                };
                let long = option.get_long().unwrap_or_default();
                assert!(own.contains(&long), "{} has --{long} below {heading}", command.get_name());
                options += 1;
            }
        }
        assert!(options > 0);
    }

    #[test]
    fn help_of_pps_omits_the_option_that_pps_rejects() {
        let help = |test: &str| {
            let mut command = Cli::command();
            let test = command.find_subcommand_mut(test).expect("a quick test");
            test.render_long_help().to_string()
        };
        assert!(!help("pps").contains("--dscp"), "{}", help("pps"));
        assert!(help("tcp").contains("--dscp"));
    }

    #[test]
    fn letter_stands_for_one_option_in_every_quick_test() {
        let command = Cli::command();
        let mut letters = std::collections::BTreeMap::new();
        for test in ["tcp", "udp", "pps", "rr", "crr"] {
            let test = command.find_subcommand(test).expect("a quick test");
            for option in test.get_arguments() {
                let (Some(letter), Some(long)) = (option.get_short(), option.get_long()) else { continue };
                let first = *letters.entry(letter).or_insert(long);
                assert_eq!(first, long, "-{letter} of {}", test.get_name());
            }
        }
        assert_eq!(letters.get(&'B'), Some(&"bind"));
    }

    #[test]
    fn live_view_and_no_progress_exclude_each_other() {
        let refusal = |words: &str| {
            let parsed = Cli::try_parse_from(words.split(' '));
            parsed.map_or_else(|error| error.to_string(), |_| String::new())
        };
        for words in [
            "netduel run plan.toml --live --quiet",
            "netduel run --resume last -q --live",
            "netduel demo --live -q",
            "netduel azure run plan.toml --live -q",
            "netduel tcp far --live -q",
        ] {
            let refused = refusal(words);
            assert!(refused.contains("cannot be used with"), "{words}: {refused}");
        }
        for words in ["netduel run plan.toml --live", "netduel demo -q --no-live", "netduel tcp far -q"] {
            assert_eq!(refusal(words), "");
        }
    }

    #[test]
    fn arguments_after_the_host_belong_to_the_command() {
        let cli = Cli::parse_from(["netduel", "lab", "exec", "--lab", "x", "a", "--", "ping", "-c", "1"]);
        let Command::Lab(LabCommand::Exec { lab, host, command }) = cli.command else { panic!("not exec") };
        assert_eq!((lab.name.as_str(), host.as_str(), command.len()), ("x", "a", 3));
    }
}
