//! The options of `netduel azure`. Nothing here runs a command.
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use netduel_model::bed::BedType;
use netduel_model::bed::prefix::Prefix;
use netduel_model::resource_name::{is_name, is_subscription};
use netduel_model::word::word;

use super::keyword::keywords;
use super::run::OutcomeArgs;
use super::shared::{
    ConfirmationArgs, DeallocateArgs, GateArgs, JsonArgs, OverrideArgs, PermissionArgs, RemoteProgramArgs,
};

/// Which subscription, for commands that need no bed file.
#[derive(Debug, Clone, Args)]
pub struct SubscriptionArgs {
    /// Id or name of the subscription [default: the key `subscription` of the bed file if a file names the bed and has the key, or else the
    /// current one of `az account show`]
    #[arg(long, value_name = "ID", value_parser = subscription)]
    pub subscription: Option<String>,
}

/// A bed that exists: by its file or its name.
#[derive(Debug, Clone)]
pub enum BedArg {
    /// The file.
    File(PathBuf),
    /// The name.
    Name(String),
}

/// `netduel azure`.
#[derive(Debug, Subcommand)]
pub enum AzureCommand {
    /// Check a bed: keys, size, NICs, vCPUs for the quota, accelerated networking; uses no network without --price.
    #[command(
        after_help = "Examples:\n  netduel azure check beds/two-nic.toml\n  netduel azure check beds/dpdk.toml --price --json"
    )]
    Check {
        /// The bed, a TOML file.
        #[arg(value_name = "BED.toml")]
        bed: PathBuf,
        /// Look up the price with your own `az` and the network, and keep it for later checks. It needs no login.
        #[arg(long)]
        price: bool,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Print the ARM template of a bed, for those who deploy by other means.
    ///
    /// Its parameters are the public key, the prefixes that may connect by ssh, the tags, the user and the region.
    #[command(after_help = "Example:\n  netduel azure template beds/two-nic.toml > template.json")]
    Template {
        /// The bed, a TOML file.
        #[arg(value_name = "BED.toml")]
        bed: PathBuf,
    },
    /// Create a bed, or complete one that failed, with your own `az`. It costs money until `netduel azure down`.
    ///
    /// Checks version and login of `az`, size, quota, price and budget before anything is created. Then it prints the price of an hour and
    /// creates the bed without a question. Ctrl-C ends the command and not the deployment. The subscription is the key `subscription` of the
    /// bed file, or else the current one of `az account show`.
    #[command(after_help = "Example:\n  netduel azure up beds/two-nic.toml --ssh-from 192.0.2.1/32")]
    Up {
        /// The bed, a TOML file.
        #[arg(value_name = "BED.toml")]
        bed: PathBuf,
        /// IPv4 address prefix that may connect by ssh, in place of those of the bed: the address with which this machine appears to Azure;
        /// may be repeated [default: `ssh_from` of the bed, or else the address of this machine where it is public]
        #[arg(long, value_name = "ADDRESS/LENGTH")]
        ssh_from: Vec<Prefix>,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Delete a bed: its resource group with everything in it. Asks for confirmation; without a terminal --yes is needed.
    ///
    /// The question names resources in the group that netduel did not create. With --yes such a group is deleted only with --with-everything,
    /// and a bed of another user of the subscription is not deleted. The bed is looked for in one subscription: see --subscription.
    #[command(
        after_help = "Examples:\n  netduel azure down\n  netduel azure down two-nic\n  netduel azure down beds/two-nic.toml --yes --no-wait"
    )]
    Down {
        /// The bed: its name, or its file (NAME.toml) [default: the only bed of the subscription]
        #[arg(value_name = "BED", value_parser = bed)]
        bed: Option<BedArg>,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
        /// With --yes: delete also resources in the group that netduel did not create.
        #[arg(long, requires = "yes")]
        with_everything: bool,
        /// Do not wait until everything is deleted.
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        subscription: SubscriptionArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Run plans on a deployed bed, one after the other. Their hosts are VMs of it: `[hosts.client] bed = "vm1"`.
    ///
    /// Finds the bed by its tag, waits until cloud-init has ended in the VMs, and compares what Azure claims of them with what they show before
    /// each plan runs. A contradiction that an arm depends on, for example a NIC that is accelerated and has no virtual function, stops the run.
    /// Of several plans those that need what the bed does not have are skipped, with the reason. The bed is looked for in one subscription: see
    /// --subscription.
    #[command(
        after_help = "Examples:\n  netduel azure run my.toml --out report\n  netduel azure run one.toml other.toml --bed two-nic --start"
    )]
    Run(Box<AzureRunArgs>),
    /// List the beds of a subscription with age and cost.
    ///
    /// It is the subscription of --subscription, or else the current one of `az account show`.
    #[command(after_help = "Example:\n  netduel azure list")]
    List {
        /// Id or name of the subscription [default: the current one of `az account show`]
        #[arg(long, value_name = "ID", value_parser = subscription)]
        subscription: Option<String>,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// List the sizes of VMs that beds can have: vCPUs, NICs, accelerated networking, bandwidth limit, types of beds. Uses no network.
    ///
    /// `netduel azure check` checks beds by the same table. A size that requires accelerated networking suits no bed with an arm without it. The
    /// limit is what all NICs of a VM send together at most, as Azure's pages state it.
    #[command(
        after_help = "Examples:\n  netduel azure sizes\n  netduel azure sizes --type toggle\n  netduel azure sizes --json"
    )]
    Sizes {
        /// Only sizes that a bed of this type can have.
        #[arg(long = "type", value_name = "TYPE", value_parser = bed_types())]
        kind: Option<BedType>,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Print the JSON Schema of beds, for editors that check as you type.
    #[command(after_help = "Example:\n  netduel azure schema > bed-file.schema.json")]
    Schema,
}

/// A parser of the types of beds. Help has what each is.
fn bed_types() -> impl TypedValueParser<Value = BedType> {
    keywords(BedType::ALL.map(|kind| (kind, kind.meaning())), |kind| word(&kind))
}

/// `netduel azure run`.
#[derive(Debug, Args)]
pub struct AzureRunArgs {
    /// The plans, TOML files.
    #[arg(required = true, value_name = "PLAN.toml")]
    pub plans: Vec<PathBuf>,
    /// The bed: its name, or its file (NAME.toml) [default: the only bed of the subscription]
    #[arg(long, value_name = "BED", value_parser = bed)]
    pub bed: Option<BedArg>,
    #[command(flatten)]
    pub subscription: SubscriptionArgs,
    /// Start VMs that do not run, for example after the daily shutdown. They cost money again.
    #[arg(long)]
    pub start: bool,
    /// Run although a guest contradicts what Azure claims of a NIC that an arm depends on; the report has a warning.
    #[arg(long)]
    pub allow_disagreement: bool,
    #[command(flatten)]
    pub deallocate: DeallocateArgs,
    #[command(flatten)]
    pub overrides: OverrideArgs,
    #[command(flatten)]
    pub permissions: PermissionArgs,
    #[command(flatten)]
    pub remote_program: RemoteProgramArgs,
    /// Write report.html into this folder; with several plans, into a folder there for each, by the name of the plan. With one plan, a name
    /// with the extension of a format (.html, .pdf, .md, .json, .xml for JUnit ...) is the file to write. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub out: Vec<PathBuf>,
    #[command(flatten)]
    pub gate: GateArgs,
    #[command(flatten)]
    pub outcome: OutcomeArgs,
}

fn subscription(text: &str) -> Result<String, String> {
    if is_subscription(text) {
        return Ok(text.to_owned());
    }
    Err("write the id, or the name when it has letters, digits, spaces and . _ - ( ) only".to_owned())
}

pub(super) fn bed(text: &str) -> Result<BedArg, String> {
    if text.to_ascii_lowercase().ends_with(".toml") {
        return Ok(BedArg::File(PathBuf::from(text)));
    }
    if is_name(text) {
        return Ok(BedArg::Name(text.to_owned()));
    }
    Err("write the name of the bed (a-z 0-9 -), or its file, whose name ends with .toml".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn help_of_commands_that_ask_azure_says_which_subscription() {
        let mut cli = crate::cli::Cli::command();
        let azure = cli.find_subcommand_mut("azure").unwrap();
        for name in ["up", "run", "down", "list"] {
            let help = azure.find_subcommand_mut(name).unwrap().render_long_help().to_string();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(help.contains("current one of `az account show`"), "{name}: {help}");
            // `list` takes no bed file.
            assert_eq!(help.contains("key `subscription` of the bed file"), name != "list", "{name}: {help}");
        }
    }

    #[test]
    fn help_of_up_says_that_it_creates_without_a_question() {
        let mut cli = crate::cli::Cli::command();
        let up = cli.find_subcommand_mut("azure").and_then(|azure| azure.find_subcommand_mut("up")).unwrap();
        let help = up.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("the price of an hour and creates the bed without a question"), "{help}");
    }

    #[test]
    fn help_of_sizes_has_what_each_type_of_bed_is() {
        let mut cli = crate::cli::Cli::command();
        let azure = cli.find_subcommand_mut("azure").unwrap();
        let help = azure.find_subcommand_mut("sizes").unwrap().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for kind in BedType::ALL {
            let line = format!("- {kind}: {}", kind.meaning());
            assert!(help.contains(&line), "{line}: {help}");
        }
        assert!(help.contains("- toggle: Two VMs with one test NIC each, whose accelerated"), "{help}");
    }

    #[test]
    fn bed_is_a_file_or_a_name() {
        assert!(matches!(bed("beds/x.toml"), Ok(BedArg::File(_))));
        assert!(matches!(bed("two-nic"), Ok(BedArg::Name(name)) if name == "two-nic"));
        for text in ["-x", "x;y", "", "X", "../x"] {
            assert!(bed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn subscription_that_would_be_an_option_is_refused() {
        assert!(
            subscription("22222222-2222-2222-2222-222222222222").is_ok()
                && subscription("Pay as you go (1)").is_ok()
        );
        for text in ["--debug", "", "a\nb", "$(id)"] {
            assert!(subscription(text).is_err(), "{text}");
        }
    }
}
