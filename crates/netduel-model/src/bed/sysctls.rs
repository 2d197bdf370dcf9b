//! The sysctls of a bed, which cloud-init sets in each VM: as the bed file has them, and as one line for a tag. Which there may be is that of plans.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use toml::de::DeValue;

use crate::plan::problem::{Problems, key_path, one_of};
use crate::plan::value::{Raw, Value, found};
use crate::sysctl::{BESIDE_NET, NET, effect_of, interface_of, is_name, is_permitted};

/// Bytes of the line of all sysctls at most: those of the value of a tag of Azure.
const LINE_LEN_MAX: usize = 256;
/// What a sysctl looks like in a bed file.
const EXAMPLE: &str = "for example \"net.core.rmem_max\" = \"134217728\"";

/// Sysctls with their values, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Sysctls(pub BTreeMap<String, String>);

impl Sysctls {
    /// One line with all of them, for a tag: `NAME VALUE; NAME VALUE`. No name has a space, and no value a semicolon.
    pub fn line(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("; ")
    }

    /// Reads such a line. It may have been changed: the check of its bed refuses what is no sysctl.
    pub fn of_line(line: &str) -> Self {
        let read = |one: &str| {
            let (name, value) = one.split_once(' ').unwrap_or((one, ""));
            (name.to_owned(), value.to_owned())
        };
        Self(line.split("; ").map(read).collect())
    }
}

impl Value for Sysctls {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        if let DeValue::Table(table) = raw.get_ref() {
            let before = problems.len();
            // A dot outside of quotes begins a table.
            let tables = table.iter().filter(|(_, value)| matches!(value.get_ref(), DeValue::Table(_)));
            for (key, value) in tables {
                let path = key_path(path, key.get_ref());
                problems.place(&path, key.span().start);
                problems.add(&path, found(value), format!("write the whole name in quotes, {EXAMPLE}"));
            }
            if problems.len() > before {
                return None;
            }
        }
        BTreeMap::<String, String>::read(raw, path, problems).map(Self)
    }
}

/// Notes each sysctl that a bed cannot have.
pub(super) fn check_sysctls(sysctls: &Sysctls, problems: &mut Problems<'_>) {
    for (name, value) in &sysctls.0 {
        let path = key_path("sysctls", name);
        if let Some((wrong, allowed)) = wrong_name(name) {
            problems.add(&path, wrong, allowed);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | ',' | '_' | '-');
        if value.is_empty() || value.trim() != value || !value.chars().all(is_plain) {
            let allowed = "letters, digits, . , _ - and spaces between them are allowed";
            problems.add(&path, format!("{value:?} is not the value of a sysctl"), allowed);
        }
    }
    let len = sysctls.line().len();
    if len > LINE_LEN_MAX {
        let allowed = format!("at most {LINE_LEN_MAX} are allowed, because all are in one tag of Azure");
        problems.add("sysctls", format!("has {len} bytes of names and values"), allowed);
    }
}

/// What is wrong with a name, and what is allowed.
fn wrong_name(name: &str) -> Option<(String, String)> {
    if !is_name(name) {
        let allowed = format!("write its dotted name in quotes, {EXAMPLE}");
        return Some(("is not the name of a sysctl".to_owned(), allowed));
    }
    if !is_permitted(name) {
        let allowed = format!("a bed sets {NET}* and {}", one_of(BESIDE_NET));
        return Some(("is no sysctl of the network".to_owned(), allowed));
    }
    if interface_of(name).is_some() {
        let wrong = "is a sysctl of one interface, and names of interfaces differ between sizes and images";
        let allowed = "write `all` or `default` in place of the interface, or use a treatment of a plan";
        return Some((wrong.to_owned(), allowed.to_owned()));
    }
    let effect = effect_of(name)?;
    Some((format!("changes more than its value: {effect}"), "leave it out".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_read_as_it_was_written_and_a_changed_one_is_no_valid_bed() {
        let pairs = [("net.core.rmem_max", "134217728"), ("net.ipv4.tcp_rmem", "4096 131072 67108864")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sysctls = Sysctls(BTreeMap::from(pairs));
        let line = sysctls.line();
        assert_eq!(line, "net.core.rmem_max 134217728; net.ipv4.tcp_rmem 4096 131072 67108864");
        assert_eq!(Sysctls::of_line(&line), sysctls);
        for changed in ["", "x", "x y", "net.core.somaxconn", "net.a.b $(id)", "net.a.b 1;net.a.c 2"] {
            let mut problems = Problems::of("", "bed");
            check_sysctls(&Sysctls::of_line(changed), &mut problems);
            assert!(problems.len() > 0, "{changed:?}");
        }
    }
}
