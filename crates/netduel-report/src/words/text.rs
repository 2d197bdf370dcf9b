//! Small texts: numbers, shares, dates, and texts from outside without control characters.
pub use netduel_model::plain_text::{controls_output, plain};
use netduel_model::plan::tuning::core_list;
pub use netduel_model::units::human_share as percent;
use netduel_model::units::{almost_whole, three_digits};
use netduel_model::workload::Role;

/// Nothing that is measured differs by less: below it a number is 0 but for rounding.
const FIGURE_MIN: f64 = 1e-9;
/// A larger share of a hundred has more nines than a number shows.
const PERCENT_MAX: f64 = 99.9999;

/// Two or three digits: the precision of an interval over few blocks. A number that is not 0 does not read so.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 9.95 => format!("{value:.0}"),
        v if v >= 0.95 => format!("{value:.1}"),
        v if v >= 0.095 => format!("{value:.2}"),
        v if v >= 0.000_95 => format!("{value:.3}"),
        v if v < FIGURE_MIN => "0".to_owned(),
        v => format!("{value:.*}", 1 + (-v.log10()).ceil() as usize),
    }
}

/// A fall in percent, with as many digits as it takes to be less than 100: `65`, `99.6`, `99.997`. A ratio leaves something, so no fall is
/// 100 %.
pub(super) fn fall(percent: f64) -> String {
    if percent > PERCENT_MAX {
        return format!(">{PERCENT_MAX}");
    }
    almost_whole(percent).unwrap_or_else(|| figure(percent))
}

/// A ratio as a change in percent with its sign: `+37.4 %`, `-99.6 %`; absent where a percentage has too many nines.
pub(crate) fn change_in_percent(ratio: f64) -> Option<String> {
    let percent = (ratio - 1.0) * 100.0;
    let size = percent.abs();
    let sign = if percent < 0.0 { "-" } else { "+" };
    match size {
        _ if percent < -PERCENT_MAX => None,
        _ if percent <= -99.5 => Some(format!("{sign}{} %", fall(size))),
        _ if size < 0.05 => Some(format!("{sign}{} %", figure(size))),
        _ => Some(format!("{sign}{size:.1} %")),
    }
}

/// Three significant digits, also of a number with more digits before the point: `13400`, `1.80`.
pub fn significant(value: f64) -> String {
    if value.abs() < 1000.0 {
        return three_digits(value);
    }
    let size = 10_f64.powf(value.abs().log10().floor() - 2.0);
    format!("{:.0}", (value / size).round() * size)
}

/// A ratio for people: `3.2x`, `0.31x`, `12x`. One that is not 0 does not read so.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 9.95 => format!("{r:.0}x"),
        r if r >= 1.095 => format!("{r:.1}x"),
        r if r >= 0.0095 => format!("{r:.2}x"),
        r if r >= 0.000_95 => format!("{r:.4}x"),
        r => format!("{}x", three_digits(r)),
    }
}

/// An end with its host: `client a`. The hosts of a quick test have the names of the ends.
pub fn end_and_host(role: Role, host: &str) -> String {
    let end = role.to_string();
    if host == end { end } else { format!("{end} {host}") }
}

/// A share rounded down, for "at least": `99 %`.
pub fn percent_at_least(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).floor())
}

/// A round percentage as a plan gives it: `5 %`, `2.5 %`.
pub(crate) fn percent_exact(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

/// A moment for people: `2026-11-21 10:30 UTC`.
pub fn date(unix_ms: u64) -> String {
    let (hour, minute) = (unix_ms / 3_600_000 % 24, unix_ms / 60_000 % 60);
    format!("{} {hour:02}:{minute:02} UTC", day(unix_ms))
}

/// A moment for logs, as RFC 3339 writes it: `2026-11-21T10:30:07Z`.
pub fn date_and_time(unix_ms: u64) -> String {
    let (hour, minute) = (unix_ms / 3_600_000 % 24, unix_ms / 60_000 % 60);
    format!("{}T{hour:02}:{minute:02}:{:02}Z", day(unix_ms), unix_ms / 1000 % 60)
}

/// `2026-11-21`.
fn day(unix_ms: u64) -> String {
    // Days to the civil calendar by eras of 400 years that begin on a first of March, so that the leap day is the last.
    let days = unix_ms / 86_400_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Numbers of cores or queues as the kernel lists them: `0-3,8`.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = u16>) -> String {
    let mut sorted: Vec<u16> = numbers.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    core_list(&sorted)
}

/// `a, b and c`.
pub fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_three_significant_digits() {
        let words = [0.0, 1.804, 387.4, 999.6, 1803.0, 13_392.0, 67_811.0].map(significant);
        assert_eq!(words, ["0", "1.80", "387", "1000", "1800", "13400", "67800"]);
    }

    #[test]
    fn fall_is_never_100_percent() {
        let falls = [0.0, 8.34, 65.4, 99.4, 99.6, 99.997, 99.999_95, 100.0].map(fall);
        assert_eq!(falls, ["0", "8.3", "65", "99", "99.6", "99.997", ">99.9999", ">99.9999"]);
        let changes = [1.374, 0.9, 1.0003, 0.0042, 1e-9].map(change_in_percent);
        let words = ["+37.4 %", "-10.0 %", "+0.030 %", "-99.6 %"].map(|text| Some(text.to_owned()));
        assert_eq!((&changes[..4], &changes[4]), (&words[..], &None));
    }

    #[test]
    fn number_that_is_not_0_does_not_read_so() {
        let figures = [0.0, 1e-15, 0.004, 0.000_3, -0.000_3].map(figure);
        assert_eq!(figures, ["0", "0", "0.004", "0.00030", "-0.00030"]);
        assert_eq!([0.02, 0.0042, 0.000_042].map(times), ["0.02x", "0.0042x", "0.0000420x"]);
    }

    #[test]
    fn core_lists_have_the_kernel_format() {
        assert_eq!(ranges([3, 1, 0, 2, 8, 2]), "0-3,8");
        assert_eq!(ranges([]), "");
        assert_eq!(ranges([5]), "5");
    }

    #[test]
    fn dates_follow_the_gregorian_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_340, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds * 1000), text);
        }
        assert_eq!(date_and_time(1_709_251_199_999), "2024-02-29T23:59:59Z");
    }

    #[test]
    fn share_that_is_at_least_so_large_is_rounded_down() {
        assert_eq!(percent_at_least(0.999_999), "99 %");
    }

    #[test]
    fn host_that_is_called_like_its_end_is_named_once() {
        assert_eq!(end_and_host(Role::Client, "a"), "client a");
        assert_eq!(end_and_host(Role::Client, "client"), "client");
        assert_eq!(end_and_host(Role::Server, "server"), "server");
        assert_eq!(end_and_host(Role::Server, "client"), "server client");
    }
}
