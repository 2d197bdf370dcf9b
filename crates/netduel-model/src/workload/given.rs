//! What a plan says of the traffic of a workload, and where it says it: what a type resolves its settings from, and names in problems.
use crate::plan::problem::{Problems, key_path};
use crate::plan::search::SearchSpec;
use crate::plan::settings::SettingsSpec;
use crate::units::Nanos;

/// What a plan says of the traffic of a workload, with the settings of an arm laid over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    /// The settings.
    pub settings: &'a SettingsSpec,
    /// What it searches for.
    pub search: Option<&'a SearchSpec>,
    /// Its duration, with the default.
    pub duration: Nanos,
}

/// Where the keys of a workload stand in a plan: in its own table, or in that of an arm, which goes before it.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    /// The workload's table, and the keys that it has.
    pub workload: (&'a str, Vec<&'static str>),
    /// The arm's table of settings, and the keys that it has.
    pub arm: (&'a str, Vec<&'static str>),
}

impl Places<'_> {
    /// The place of a key; that of the workload when it is written nowhere.
    pub(crate) fn at(&self, key: &str) -> String {
        if self.is_overridden(key) {
            return nested(self.arm.0, key);
        }
        // A list of sizes makes a workload of each.
        let key = if key == "frame" && self.is_of_workload("frames") { "frames" } else { key };
        nested(self.workload.0, key)
    }

    /// Whether the arm has the key.
    pub(crate) fn is_overridden(&self, key: &str) -> bool {
        self.arm.1.contains(&top(key))
    }

    /// Whether the workload's own table has the key.
    pub(crate) fn is_of_workload(&self, key: &str) -> bool {
        self.workload.1.contains(&top(key))
    }
}

/// The key of a table, when a key is in a table of its own: `dpdk` of `dpdk.queues`.
fn top(key: &str) -> &str {
    key.split_once('.').map_or(key, |(table, _)| table)
}

/// The path of a key, or of one in a table of its own.
pub(crate) fn nested(table: &str, key: &str) -> String {
    key.split('.').fold(table.to_owned(), |path, key| key_path(&path, key))
}

/// The check of a type whose settings go together whatever they are.
pub(super) fn unchecked<S>(_: &S, _: &Given<'_>, _: &Places<'_>, _: &mut Problems<'_>) {}
