//! Checks of single values that several tables share.
use crate::plan::problem::{Problems, element_path, key_path};
use crate::workload::{BANDWIDTH_LIMIT, Setting};

/// Notes the values of a table that are not in the ranges of its settings. `number`: a value by its key, in the unit of its range.
pub(super) fn check_table(
    problems: &mut Problems<'_>,
    path: &str,
    settings: &[Setting],
    number: impl Fn(&str) -> Option<u64>,
) {
    for setting in settings {
        let (Some(range), Some(value)) = (setting.range, number(setting.key)) else { continue };
        if !range.contains(value) {
            let advice = if setting.advice.is_empty() { "" } else { "; " };
            let allowed = format!("{}{advice}{}", range.allowed(), setting.advice);
            problems.add(&key_path(path, setting.key), format!("is {}", range.unit.toml(value)), allowed);
        }
    }
}

/// Why a text cannot be the name of a network interface (`dev_valid_name` in net/core/dev.c).
pub(super) fn check_interface(problems: &mut Problems<'_>, path: &str, name: &str) {
    let bad = name.is_empty()
        || name.len() > 15
        || matches!(name, "." | "..")
        || name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control());
    if bad {
        let rule = "1 to 15 bytes without space, `/` and `:` are allowed, as `ip link` shows it";
        problems.add(path, format!("{name:?} is not the name of an interface"), rule);
    }
}

/// A known bandwidth limit in its range, Mbit/s.
pub(super) fn check_bandwidth_limit(
    mbps: Option<u32>,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<u32> {
    check_table(problems, path, BANDWIDTH_LIMIT, |_| mbps.map(u64::from));
    mbps
}

/// Notes a command without a first word.
pub(super) fn check_command(problems: &mut Problems<'_>, path: &str, words: &[String]) {
    if words.first().is_none_or(|word| word.trim().is_empty()) {
        problems.add(
            path,
            "names no program",
            "write a list of words, the program first, for example [\"kubectl\", \"exec\", \"-i\", \"pod-1\", \"--\"]",
        );
    } else if let Some(index) = words.iter().position(|word| word.contains('\0')) {
        let path = element_path(path, index);
        problems.add(&path, "holds a zero byte", "no argument of a program may hold one");
    }
}
