//! Checks of single values that several tables share.
use crate::plan::problem::{Problems, element_path, key_path};
use crate::size;

/// Notes a value that is not in its range.
pub(super) fn range<T: Copy + PartialOrd + std::fmt::Display>(
    problems: &mut Problems<'_>,
    path: &str,
    value: T,
    least: T,
    most: T,
) {
    if value < least || value > most {
        problems.add(path, format!("is {value}"), format!("{least} to {most} is allowed"));
    }
}

/// Why a text cannot be the name of a network interface (`dev_valid_name` in net/core/dev.c).
pub(super) fn check_interface(problems: &mut Problems<'_>, path: &str, name: &str) {
    let bad = name.is_empty()
        || name.len() > 15
        || matches!(name, "." | "..")
        || name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace());
    if bad {
        let rule = "1 to 15 bytes without space, `/` and `:` are allowed, as `ip link` shows it";
        problems.add(path, format!("{name:?} is not the name of an interface"), rule);
    }
}

/// A known cap in its range, Mbit/s.
pub(super) fn check_mbps(mbps: Option<u32>, path: &str, problems: &mut Problems<'_>) -> Option<u32> {
    let mbps = mbps?;
    range(problems, &key_path(path, "expect_mbps"), mbps, 1, size::MBPS_MOST);
    Some(mbps)
}

/// Notes a command without a first word.
pub(super) fn check_command(problems: &mut Problems<'_>, path: &str, words: &[String]) {
    if words.first().is_none_or(|word| word.trim().is_empty()) {
        problems.add(
            path,
            "names no program",
            "write a list of words, the program first, for example [\"ssh\", \"host-1\"]",
        );
    } else if let Some(index) = words.iter().position(|word| word.contains('\0')) {
        let path = element_path(path, index);
        problems.add(&path, "holds a zero byte", "no argument of a program may hold one");
    }
}
