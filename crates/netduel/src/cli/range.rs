//! Ranges of numeric options, from the table that plans have: one for the parser and the help. No option is defined here.
use clap::builder::RangedI64ValueParser;
use netduel_model::workload::{Setting, SettingRange, WorkloadType};

fn range(settings: &[Setting], key: &str) -> Option<SettingRange> {
    settings.iter().find(|setting| setting.key == key)?.range
}

/// Parses an integer setting of a type of workload.
pub fn count(kind: WorkloadType, key: &str) -> RangedI64ValueParser<u32> {
    count_of(kind.settings(), key)
}

/// Parses a whole number within the range of a setting.
pub fn count_of(settings: &[Setting], key: &str) -> RangedI64ValueParser<u32> {
    let bound = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (least, most) =
        range(settings, key).map_or((0, u32::MAX.into()), |range| (bound(range.least), bound(range.most)));
    clap::value_parser!(u32).range(least..=most)
}

/// Help of an option: the text, the range of the setting, and the rest.
pub fn help(text: &str, (settings, key): (&[Setting], &str), rest: &str) -> String {
    let range = range(settings, key).map(|range| format!(", {}", range.words())).unwrap_or_default();
    format!("{text}{range}{rest}")
}

#[cfg(test)]
mod tests {
    use netduel_model::workload::LAB;

    use super::*;

    #[test]
    fn help_has_the_range_of_the_table() {
        let streams = (WorkloadType::TcpStream.settings(), "streams");
        assert_eq!(help("Parallel connections", streams, ""), "Parallel connections, 1 to 20000");
        assert_eq!(help("Rules", (LAB, "rules"), "; none is 0"), "Rules, 0 to 10000; none is 0");
    }
}
