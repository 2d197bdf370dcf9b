//! Plans: what a user writes (`spec`), how it is read (`value`, `shape`) and judged (`check`), and what is run
//! (`resolved`, every default written out). No file is opened here: the caller hands in the text and its name.
mod bed_fault;
mod bed_interfaces;
mod blocks;
mod check;
mod cores;
mod crossover;
mod examples;
mod limits;
mod nic_state;
pub mod offload;
pub mod on_bed;
pub mod permissions;
mod place;
pub(crate) mod problem;
mod proximity;
pub mod resolved;
mod schema;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod shape;
pub mod spec;
mod stored_size;
mod stored_words;
mod tables;
mod treatment_effects;
mod treatment_ranges;
mod treatment_words;
pub mod tuning;
mod uses;
pub(crate) mod value;

pub use bed_fault::BedFault;
pub use blocks::guarded;
pub use check::traffic;
pub use cores::CoresSpec;
pub use limits::{ARMS_MAX, HOSTS_MAX, WORKLOADS_MAX};
pub use permissions::Permissions;
pub use problem::{PlanErrors, Problem};
pub use resolved::{Arm, Design, Host, Lab, Launch, Pair, ResolvedPlan, SshHost, Treatment, TreatmentAction};
pub use schema::schema;
pub use spec::PlanSpec;
pub use uses::{HostCommand, HostUses};

use problem::Problems;

use crate::units::Bytes;

/// Maximum length of a plan's text: hundreds of times that of a long plan. The text is stored with each run.
pub const TEXT_LEN_MAX: Bytes = Bytes(1 << 20);

/// Reads and checks a plan, and writes out every default. `file` is how the text is named in errors.
///
/// # Errors
/// [`PlanErrors`] with every problem that was found. A text that is not TOML is not judged any further, because what was
/// meant by the rest of it is a guess.
pub fn parse(text: &str, file: &str) -> Result<ResolvedPlan, PlanErrors> {
    parse_with(text, file, &[], Permissions::default())
}

/// As [`parse`], with settings that take the place of those that the text has; each is `KEY=VALUE` or `WORKLOAD.KEY=VALUE`. They are
/// read and checked as the plan's own keys are. What the plan does without one of the `permissions` is a problem.
///
/// # Errors
/// As [`parse`]; problems of an override name the override in place of a line.
pub fn parse_with(
    text: &str,
    file: &str,
    overrides: &[String],
    permissions: Permissions,
) -> Result<ResolvedPlan, PlanErrors> {
    let mut problems = Problems::new(text).knowing(tables::with_key);
    let Some(mut spec) = shape::read_text::<PlanSpec>(text, &mut problems) else {
        return Err(problems.into_errors(file));
    };
    check::apply_overrides(&mut spec, overrides, &mut problems);
    judged(&spec, permissions, problems, file)
}

/// Checks a plan that a program made, and writes out every default. `source` stands for the file in errors, whose lines are all 1.
///
/// # Errors
/// As [`parse`].
pub fn check(spec: &PlanSpec, source: &str) -> Result<ResolvedPlan, PlanErrors> {
    judged(spec, Permissions::default(), Problems::new(""), source)
}

/// A plan that a program made as the text of a plan file, which [`parse`] reads back. Absent when a number exceeds the range of TOML,
/// 2^63 - 1.
pub fn text_of(spec: &PlanSpec) -> Option<String> {
    // A table has its values before its tables, as TOML requires.
    toml::Table::try_from(spec).ok().and_then(|table| toml::to_string(&table).ok())
}

/// The line of a key in the text of a plan, from 1; `None` when it is not written. A problem that is found after the plan was read, as a
/// [`BedFault`], is shown with it.
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    let mut problems = Problems::new(text);
    shape::read_text::<PlanSpec>(text, &mut problems)?;
    problems.line_of(key)
}

fn judged(
    spec: &PlanSpec,
    permissions: Permissions,
    mut problems: Problems<'_>,
    file: &str,
) -> Result<ResolvedPlan, PlanErrors> {
    match check::resolve(spec, permissions, &mut problems) {
        Some(plan) if problems.len() == 0 => Ok(plan),
        _ => Err(problems.into_errors(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_plan_is_read_as_the_same_plan() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let read = |text: &str| {
                let mut problems = Problems::new(text);
                let spec = shape::read_text::<PlanSpec>(text, &mut problems).unwrap();
                assert_eq!(problems.len(), 0, "{}: {text}", path.display());
                spec
            };
            let spec = read(&text);
            assert_eq!(read(&text_of(&spec).unwrap()), spec, "{}", path.display());
            count += 1;
        }
        assert!(count > 10, "{count}");
    }

    #[test]
    fn key_of_a_plan_has_the_line_on_which_it_stands() {
        let text = "name = \"x\"\nbed_type = \"toggle\"\n[hosts.client]\nsudo = false\nbed = \"vm1\"\n";
        let keys = ["bed_type", "hosts.client.bed", "hosts.server.bed"];
        assert_eq!(keys.map(|key| line_of(text, key)), [Some(2), Some(5), None]);
        assert_eq!(line_of("name =", "name"), None);
    }

    #[test]
    fn number_beyond_the_range_of_toml_is_not_written() {
        let mut spec = PlanSpec { name: Some("p".to_owned()), ..PlanSpec::default() };
        spec.design = Some(spec::DesignSpec { seed: Some(i64::MAX as u64), ..spec::DesignSpec::default() });
        assert!(text_of(&spec).unwrap().contains("seed = 9223372036854775807"));
        spec.design = Some(spec::DesignSpec { seed: Some(u64::MAX), ..spec::DesignSpec::default() });
        assert_eq!(text_of(&spec), None);
    }
}
