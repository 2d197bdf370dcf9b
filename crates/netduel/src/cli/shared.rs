//! Options that several commands share, each defined once. Nothing here runs a command.
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, PathBufValueParser, TypedValueParser as _};
use netduel_model::file_error;
use netduel_model::plan::{Permissions, SshHost};
use netduel_model::publication::Publication;
use netduel_model::run::Annotations;
use netduel_report::checks::Rules;
use netduel_report::gate::Condition;
use netduel_sys::local_bind::LocalBind;

use super::free_text::free_text;

/// Where runs are kept.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// Folder of the store [default: $XDG_DATA_HOME/netduel or ~/.local/share/netduel]
    // The environment's may be empty, which is as if it were not set; clap's own parser of paths refuses that.
    #[arg(long, value_name = "DIR", env = "NETDUEL_STORE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub store: Option<PathBuf>,
}

/// Whether the value of `--out` is `-`, standard output. A file or folder of this name is `./-`.
pub fn is_standard_output(out: &Path) -> bool {
    out.as_os_str() == "-"
}

/// The file or folder that `--out` names; absent without it and for `-`, which both are standard output.
pub fn named_place(out: Option<&Path>) -> Option<&Path> {
    out.filter(|out| !is_standard_output(out))
}

/// The files and folders of an `--out` that may be repeated; none for a single `-`. Beside other names `-` is refused where they are read.
pub fn named_places(outs: &[PathBuf]) -> impl Iterator<Item = &Path> {
    let is_output = matches!(outs, [only] if is_standard_output(only));
    outs.iter().filter(move |_| !is_output).map(PathBuf::as_path)
}

/// JSON in place of text.
#[derive(Debug, Clone, Copy, Args)]
pub struct JsonArgs {
    /// Print the result as one JSON document on standard output; progress goes to standard error.
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// The address of this end, for the processes of a quick test.
#[derive(Debug, Clone, Args)]
pub struct BindArgs {
    /// Bind the sockets of this end to this address, interface, or ADDRESS%INTERFACE.
    #[arg(long, value_name = "ADDRESS|INTERFACE")]
    pub bind: Option<LocalBind>,
}

/// A deletion without a question.
#[derive(Debug, Clone, Copy, Args)]
pub struct ConfirmationArgs {
    /// Do not ask for confirmation.
    #[arg(short = 'y', long)]
    pub yes: bool,
}

/// Conditions under which a command fails.
#[derive(Debug, Clone, Default, Args)]
pub struct GateArgs {
    /// Fail with exit code 11 when the interval of a verdict proves a regression: 'METRIC [of WORKLOAD] [on ARM] < -5 %', for example
    /// --fail-if 'latency-p99 of rr > 10 %'; may be repeated.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Condition>,
    /// Fail also when the interval does not rule out such a regression.
    #[arg(long, requires = "fail_if")]
    pub strict: bool,
}

impl GateArgs {
    /// The conditions for reports.
    pub fn rules(&self) -> Rules<'_> {
        Rules { conditions: &self.fail_if, strict: self.strict }
    }
}

/// The live view.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct LiveArgs {
    /// Show the run on the whole terminal while it works; press ? for its keys [default: on a terminal of at least 100 columns and 30 lines]
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,
    /// Print progress in lines, also on a large terminal.
    #[arg(long, conflicts_with = "live")]
    pub no_live: bool,
}

/// Pseudonyms.
#[derive(Debug, Clone, Copy, Args)]
pub struct RedactArgs {
    /// Replace names of hosts and users, addresses, MACs, UUIDs and home folders by pseudonyms in everything that is printed and written.
    #[arg(long)]
    pub redact: bool,
}

/// No progress.
#[derive(Debug, Clone, Copy, Args)]
pub struct QuietArgs {
    /// Print the result only: no progress and no interval lines. Warnings and errors remain.
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// Settings in place of those of a plan.
#[derive(Debug, Clone, Default, Args)]
pub struct OverrideArgs {
    /// Override a setting of the plan: KEY=VALUE of the design or of every workload that has the key, WORKLOAD.KEY=VALUE of one
    /// workload, for example --set blocks_max=12 --set bulk.duration="5 s"; may be repeated. Settings of an arm have precedence.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// What a plan may do.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct PermissionArgs {
    /// Refuse a plan that names programs: `launch = "command"`, treatments and events with `command`, and testpmd with a program or
    /// arguments of its own. Nothing of such a plan is started.
    #[arg(long)]
    pub no_commands: bool,
    /// Let the plan change any sysctl. Without this option it may change those of the network (net.*) and a few that cannot run a program.
    #[arg(long)]
    pub allow_sysctl: bool,
}

impl PermissionArgs {
    /// What the plan may do.
    pub fn permissions(self) -> Permissions {
        Permissions { commands: !self.no_commands, every_sysctl: self.allow_sysctl }
    }
}

/// Whether treatments may stop VMs.
#[derive(Debug, Clone, Copy, Args)]
pub struct DeallocateArgs {
    /// Let treatments of Azure's NICs and VMs stop (deallocate) a VM: `azure-nic` where a switch has no effect while the VM runs, and
    /// `azure-placement`. The VM may start on another physical host.
    #[arg(long)]
    pub allow_deallocate: bool,
}

/// The programs for hosts by ssh, and their folder there.
#[derive(Debug, Clone, Default, Args)]
pub struct RemoteProgramArgs {
    /// Copy FILE, a netduel program, to the hosts reached by ssh (`launch = "ssh"`, `bed`) whose machine it is built for, for example
    /// aarch64; may be repeated [default: the running program]
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(program_file))]
    pub remote_program: Vec<PathBuf>,
    /// Copy netduel into this folder on the hosts reached by ssh, for example because programs may not run from their home (noexec). It
    /// replaces `folder` of all hosts of the plan. Absolute, or beginning with '~/' in quotes [default: that of the plan, or ~/.cache/netduel]
    #[arg(long, value_name = "DIR", value_parser = remote_folder)]
    pub remote_folder: Option<String>,
}

/// Largest program for hosts, MiB: it is read into memory. A build with debug information has a few hundred.
pub const PROGRAM_MIB_MAX: u64 = 1024;

/// A program file: what it is built for is checked when a host needs it.
fn program_file(path: PathBuf) -> Result<PathBuf, String> {
    match std::fs::metadata(&path) {
        Ok(data) if data.is_file() && data.len() > PROGRAM_MIB_MAX << 20 => {
            Err(format!("it is larger than {PROGRAM_MIB_MAX} MiB, so it is no netduel program"))
        }
        Ok(data) if data.is_file() => Ok(path),
        Ok(_) => {
            Err("it is not a file; name a netduel program, for example one that `cargo xtask dist` makes"
                .to_owned())
        }
        Err(error) => {
            let remedy = file_error::remedy(file_error::to_read(&error), "name another netduel program");
            Err(format!("{error}; {remedy}"))
        }
    }
}

/// A folder on hosts, after the rule for the key of a plan.
fn remote_folder(word: &str) -> Result<String, String> {
    if SshHost::is_folder(word) {
        return Ok(word.to_owned());
    }
    Err(format!("it is no folder of a host; write {}", SshHost::FOLDERS_ALLOWED))
}

/// What a user writes about a run.
#[derive(Debug, Clone, Default, Args)]
pub struct TagArgs {
    /// A title for the run; `netduel runs` and every report show it.
    #[arg(long, value_name = "TEXT", value_parser = title)]
    pub title: Option<String>,
    /// A note about the run, for example kernel=6.8; may be repeated; the last value of a key applies.
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = note)]
    pub notes: Vec<(String, String)>,
}

impl TagArgs {
    /// What is stored with the run, with the settings that it overrides.
    pub fn annotations(&self, overrides: &[String]) -> Annotations {
        Annotations {
            title: self.title.clone(),
            notes: self.notes.iter().cloned().collect(),
            overrides: overrides.to_vec(),
            publication: Publication::default(),
        }
    }
}

/// Longest title and longest value of a note, characters: a listing and a heading stay readable.
const TEXT_MAX: usize = 200;
/// Longest key of a note, characters.
const KEY_MAX: usize = 40;

fn title(text: &str) -> Result<String, String> {
    free_text(text, TEXT_MAX)
}

/// A note, KEY=VALUE.
pub fn note(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| "write KEY=VALUE, for example kernel=6.8".to_owned())?;
    let key = key.trim();
    let is_key = (1..=KEY_MAX).contains(&key.len())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !is_key {
        return Err(format!("the key is {key:?}; 1 to {KEY_MAX} of a-z A-Z 0-9 . _ - are allowed"));
    }
    Ok((key.to_owned(), free_text(value, TEXT_MAX)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_is_a_key_and_one_line_of_text() {
        assert_eq!(note("kernel=6.8 = new"), Ok(("kernel".to_owned(), "6.8 = new".to_owned())));
        for wrong in ["kernel", "=x", "a b=x", "k=", "k=a\nb"] {
            assert!(note(wrong).is_err(), "{wrong:?}");
        }
        assert!(title("of netduel1abcdefgh").is_err() && note("k=netduel1abcdefgh").is_err());
        assert!(title(&"x".repeat(TEXT_MAX)).is_ok() && title(&"x".repeat(TEXT_MAX + 1)).is_err());
    }
}
