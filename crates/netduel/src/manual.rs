//! Shell completions and man pages, from the same definition as the parser.
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use netduel_model::metric::Metric;
use netduel_model::plan::{Permissions, ResolvedPlan};
use netduel_model::{published, shell};
use netduel_report::document::verdicts::Sides;
use netduel_report::gate::example_limit;
use netduel_store::LAST;

use crate::cli::shared::StoreArgs;
use crate::cli::{Cli, Completable};
use crate::compare::PUBLISHED;
use crate::console::{print, print_exact};
use crate::exit::{EXIT_STATUS, Failure, Kind, OrFail as _, unwritten};
use crate::output_file::{self, Readers};
use crate::quick::known;
use crate::run_store::{open_store, store_failure};

/// Wrap the generated completions, to complete names that are known on this machine only.
const BASH_NAMES: &str = include_str!("manual/names.bash");
const ZSH_NAMES: &str = include_str!("manual/names.zsh");
const FISH_NAMES: &str = include_str!("manual/names.fish");

/// Prints the completions of a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible(&Cli::command()), "netduel", &mut text);
    let text = String::from_utf8(text).kind(Kind::Internal)?;
    print_exact(&match shell {
        clap_complete::Shell::Bash => text + BASH_NAMES,
        clap_complete::Shell::Zsh => zsh_options(&text) + ZSH_NAMES,
        clap_complete::Shell::Fish => text + FISH_NAMES,
        _ => text,
    })
}

/// The command line without internal commands, which the generators would complete as well.
fn visible(command: &Command) -> Command {
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("netduel").version(env!("CARGO_PKG_VERSION")).propagate_version(true).subcommands(commands)
}

/// The generated completions of zsh with their function under another name: zsh calls `_netduel` for `netduel`, and loads it from a file of
/// this name, whose end then runs or registers it.
fn zsh_options(text: &str) -> String {
    let options = text.split("\nif [ \"$funcstack[1]\"").next().unwrap_or(text);
    format!("{}\n", options.replace("\n_netduel() {", "\n_netduel_options() {"))
}

/// Prints names for the completions, one per line. `of`: the plan or run that has them.
pub fn names(what: Completable, of: Option<&Path>, store: &StoreArgs) -> Result<(), Failure> {
    let names: Vec<String> = match what {
        Completable::Runs => runs(store)?,
        Completable::Compared => {
            let publications = published::publications().iter().map(|one| format!("{PUBLISHED}{}", one.id));
            runs(store)?.into_iter().chain(publications).collect()
        }
        Completable::Notes => notes(store)?,
        Completable::Hosts => known::list()?.iter().map(ToString::to_string).collect(),
        Completable::PlanHosts => plan_of(of)?.hosts.keys().map(ToString::to_string).collect(),
        Completable::Conditions => conditions(&plan_of(of)?, Sides::Arms),
        Completable::RunConditions => conditions(&plan_of_run(of, store)?, Sides::Runs),
        Completable::ArmConditions => conditions(&plan_of_run(of, store)?, Sides::Arms),
        Completable::Metrics => Metric::ALL.into_iter().map(|metric| metric.key().to_owned()).collect(),
        Completable::Workloads => plan_of_run(of, store)?.workloads.iter().map(ToString::to_string).collect(),
        Completable::Arms => plan_of_run(of, store)?.arms.iter().map(|arm| arm.name.to_string()).collect(),
        Completable::Labs => {
            netduel_lab::list().map_err(crate::lab::failed)?.iter().map(ToString::to_string).collect()
        }
        Completable::LabHosts => netduel_model::lab::HOSTS.map(str::to_owned).into(),
        Completable::Beds => crate::azure::known::list()?,
    };
    if names.is_empty() { Ok(()) } else { print(&(names.join("\n") + "\n")) }
}

/// The names of the stored runs.
fn runs(store: &StoreArgs) -> Result<Vec<String>, Failure> {
    let runs = open_store(store)?.list().kind(Kind::Store)?;
    Ok(std::iter::once(LAST.to_owned()).chain(runs.iter().map(|run| run.id.to_string())).collect())
}

/// The notes of the stored runs, as an option takes them. One that needs quotes is left out: bash would insert it without them.
fn notes(store: &StoreArgs) -> Result<Vec<String>, Failure> {
    let runs = open_store(store)?.list().kind(Kind::Store)?;
    let by_run = runs.iter().filter_map(|run| Some(&run.contents.as_ref().ok()?.header.annotations.notes));
    let all: BTreeSet<String> = by_run.flatten().map(|(key, value)| format!("{key}={value}")).collect();
    Ok(all.into_iter().filter(|note| shell::word(note) == *note).collect())
}

/// The plan on the command line that is completed.
fn plan_of(plan: Option<&Path>) -> Result<ResolvedPlan, Failure> {
    let path = plan.ok_or_else(|| Failure::message(Kind::Usage, "no plan was named"))?;
    let every = Permissions { commands: true, every_sysctl: true };
    crate::run::read_plan(path, &[], every).map(|(_, plan)| plan)
}

/// The plan of the stored run on the command line that is completed, or of the last run.
fn plan_of_run(run: Option<&Path>, store: &StoreArgs) -> Result<ResolvedPlan, Failure> {
    let name = run.unwrap_or(Path::new(LAST));
    open_store(store)?.read(name).map(|run| run.header.plan).map_err(store_failure)
}

/// A condition for each metric of each arm that is compared, with a limit to be edited.
fn conditions(plan: &ResolvedPlan, sides: Sides) -> Vec<String> {
    // Within a run the baseline has no verdict.
    let without = match sides {
        Sides::Arms => 1,
        Sides::Runs => 0,
    };
    let mut conditions = Vec::new();
    for arm in plan.arms.iter().skip(without) {
        for metric in arm.workloads.iter().flat_map(|workload| &workload.metrics) {
            let condition = format!("{} on {} {}", metric.key(), arm.name, example_limit(*metric));
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
    }
    conditions
}

/// Writes a man page for the program and for each command.
pub fn pages(folder: &Path) -> Result<(), Failure> {
    output_file::create_folder(folder).and_then(|()| write_pages(folder)).map_err(|error| {
        unwritten(
            Kind::Store,
            format!("write man pages to {}", folder.display()),
            error,
            "name another folder",
        )
    })?;
    print(&format!("man pages are in {}\n", folder.display()))
}

fn write_pages(folder: &Path) -> io::Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    for command in with_subcommands(&command) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let mut page = Vec::new();
        write_page(command, &mut page)?;
        output_file::write(&folder.join(format!("{name}.1")), &page, Readers::Umask)?;
    }
    Ok(())
}

/// A command and all visible ones below it.
fn with_subcommands(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|command| !command.is_hide_set());
    std::iter::once(command).chain(below.flat_map(with_subcommands)).collect()
}

fn write_page(command: &Command, page: &mut dyn Write) -> io::Result<()> {
    let man = Man::new(command.clone()).source(netduel_model::PROGRAM).manual("netduel manual".to_owned());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.get_subcommands().any(|command| !command.is_hide_set()) {
        man.render_subcommands_section(page)?;
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some((_, lines)) = examples.split_once('\n') {
        write!(page, ".SH EXAMPLES\n.nf\n")?;
        for line in lines.lines() {
            writeln!(page, "{}", roff(line))?;
        }
        writeln!(page, ".fi")?;
    }
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    for (code, meaning) in EXIT_STATUS {
        writeln!(page, ".TP\n{code}\n{}", roff(meaning))?;
    }
    Ok(())
}

/// A line of text escaped for roff.
fn roff(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use netduel_model::plan;
    use netduel_report::gate::Condition;

    use super::*;

    #[test]
    fn completed_conditions_are_valid_for_every_kind_of_metric() {
        let plans =
            [include_str!("../../../plans/datagrams.toml"), include_str!("../../../plans/failover.toml")];
        let plans = plans.map(|text| plan::parse(text, "plan.toml").expect("a valid plan"));
        let completed: Vec<String> = plans.iter().flat_map(|plan| conditions(plan, Sides::Arms)).collect();
        for text in &completed {
            let condition = text.parse::<Condition>();
            assert!(condition.is_ok(), "{text}: {condition:?}");
        }
        for (metric, limit) in [("loss", "> 0.5 points"), ("outage", "> 50 ms"), ("lost-in-outage", "> 10")] {
            let start = format!("{metric} on ");
            let is_of_metric = |text: &String| text.starts_with(&start) && text.ends_with(limit);
            assert!(completed.iter().any(is_of_metric), "{metric}: {completed:?}");
        }
    }

    #[test]
    fn completions_of_every_shell_have_visible_commands_only() {
        let command = Cli::command();
        let hidden = || command.get_subcommands().filter(|command| command.is_hide_set());
        assert!(hidden().any(|command| command.get_name() == "lab-keeper"));
        for shell in clap_complete::Shell::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut visible(&command), "netduel", &mut text);
            let text = String::from_utf8(text).expect("text");
            assert!(text.contains("compare") && text.contains("version"), "{shell}: {text}");
            // Their names are parts of other words: `link` of links.
            for about in hidden().filter_map(Command::get_about) {
                assert!(!text.contains(&about.to_string()), "{shell} completes: {about}");
            }
            for name in ["lab-keeper", "undo-guard", "azure-undo"] {
                assert!(!text.contains(name), "{shell} completes {name}");
            }
        }
    }

    #[test]
    fn every_page_has_examples_exit_status_and_the_version_of_the_program() {
        let folder = tempfile::tempdir().expect("a folder");
        write_pages(folder.path()).expect("written");
        let footer = format!("\"{}\"", netduel_model::PROGRAM);
        for entry in std::fs::read_dir(folder.path()).expect("a listing").flatten() {
            let text = std::fs::read_to_string(entry.path()).expect("a page");
            let heading = text.lines().find(|line| line.starts_with(".TH")).unwrap_or_default();
            let has = |part: &str| assert!(text.contains(part), "{:?} has no {part}", entry.file_name());
            assert!(heading.contains(&footer), "{heading}");
            ["\n.SH EXAMPLES\n.nf\n", "\n.SH \"EXIT STATUS\"\n"].into_iter().for_each(has);
        }
        let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a page");
        let tcp = page("netduel-tcp.1");
        assert!(tcp.contains(&format!("\"{}\"", netduel_model::PROGRAM)), "{tcp}");
        assert!(!tcp.contains("EXTRA"), "{tcp}");
        assert!(tcp.contains(".SH EXAMPLES") && tcp.contains("netduel tcp far \\-R \\-\\-json"), "{tcp}");
        assert!(page("netduel-lab-up.1").contains(".SH \"EXIT STATUS\""));
        assert!(page("netduel.1").contains(".TP\n130\ninterrupted"));
        assert!(!folder.path().join("netduel-lab-keeper.1").exists());
    }

    #[test]
    fn text_is_escaped_for_roff() {
        assert_eq!(roff(".so x"), "\\&.so x");
        assert_eq!(roff("'a' -b \\c"), "\\(aqa\\(aq \\-b \\ec");
    }
}
