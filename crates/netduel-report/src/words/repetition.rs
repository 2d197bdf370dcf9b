//! The commands that repeat a run. Nothing is run here.
use netduel_model::bed::RunBed;
use netduel_model::resource_name::is_name;
use netduel_model::run::Run;
use netduel_model::shell;

use super::run::has_plan_file;
use super::text::plain;

/// The commands that repeat the run, one per line, with the seed of the order. A quick test is repeated by its own command. No line contains a line break from the plan,
/// because people paste them into a shell.
pub fn commands(run: &Run) -> Vec<String> {
    let own = own_command(&run.header.command);
    if !has_plan_file(run) {
        return vec![own];
    }
    let plan = format!("{}.toml", run.header.plan.name);
    let mut lines = vec![format!("# save the plan of the appendix as {plan}")];
    let bed = run.header.bed.as_ref();
    let mut command = vec!["netduel".to_owned()];
    command.extend(bed.map(|_| "azure".to_owned()));
    command.extend(["run".to_owned(), plan]);
    command.extend(bed.into_iter().flat_map(|bed| ["--bed".to_owned(), bed_word(bed)]));
    // The text of the plan has neither the options of the command line nor the second arm of an A/A run. On a bed the overrides have it.
    if bed.is_none() && run.header.plan.design.aa && !sets_aa(&run.header.plan_text) {
        command.push("--aa".to_owned());
    }
    for setting in &run.header.annotations.overrides {
        command.extend(["--set".to_owned(), setting.clone()]);
    }
    if run.header.plan.design.seed != Some(run.header.seed) {
        let words = seed(run.header.seed, bed.is_some());
        if !words.is_empty() {
            lines.push("# the seed repeats the order of the trials, not their values".to_owned());
        }
        command.extend(words);
    }
    lines.push(shell::line(&command));
    if run.header.plan.compares() {
        let budget = if run.header.plan.design.budget.is_some() { " --set budget=TIME" } else { "" };
        lines.push(format!("# for more blocks append: --set blocks_max=NUMBER{budget}"));
    }
    lines.push(format!("# this run was: {own}"));
    lines.iter().map(|line| plain(line)).collect()
}

/// A stored command line as one line. Its program is netduel: the run file may be from elsewhere, and name any other.
pub fn own_command(words: &[String]) -> String {
    plain(&shell::line(std::iter::once("netduel").chain(words.iter().skip(1).map(String::as_str))))
}

/// The words that set the seed: `netduel azure run` has no option for it, and a number of TOML is at most 2^63 - 1.
fn seed(seed: u64, is_on_bed: bool) -> Vec<String> {
    match (is_on_bed, i64::try_from(seed)) {
        (false, _) => vec!["--seed".to_owned(), seed.to_string()],
        (true, Ok(seed)) => vec!["--set".to_owned(), format!("seed={seed}")],
        (true, Err(_)) => Vec::new(),
    }
}

/// The name of a bed as a word of a command. The run file may be from elsewhere, and people paste commands into a shell.
pub fn bed_name(bed: &RunBed) -> &str {
    if is_name(&bed.name) { &bed.name } else { "NAME" }
}

/// The bed as an argument: its file, which names the subscription where its user has to, because a run does not keep that; the name of a bed that
/// was deployed by other means, which has no file.
fn bed_word(bed: &RunBed) -> String {
    let name = bed_name(bed);
    if bed.kind.is_some() { format!("{name}.toml") } else { name.to_owned() }
}

/// Whether the text of a plan makes every run of it an A/A run.
fn sets_aa(plan: &str) -> bool {
    plan.lines().any(|line| line.split('#').next().unwrap_or_default().replace(' ', "") == "aa=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_command_is_one_line_of_netduel_that_is_quoted_for_a_shell() {
        let words =
            ["/usr/bin/netduel", "tcp", "[fd77::2]:5210", "--note", "a=it's b", ""].map(str::to_owned);
        assert_eq!(own_command(&words), "netduel tcp '[fd77::2]:5210' --note 'a=it'\\''s b' ''");
        let words = ["netduel", "tcp", "far\nnightly  40 trials  done"].map(str::to_owned);
        assert_eq!(own_command(&words), "netduel tcp 'far nightly  40 trials  done'");
        assert_eq!(own_command(&["sh", "-c", "reboot"].map(str::to_owned)), "netduel -c reboot");
        assert_eq!(own_command(&[]), "netduel");
    }
}
