//! Names of runs: the name of the plan, the time in UTC, and four random digits that distinguish runs of one second; and the names that commands
//! take for something else.
use netduel_model::ids::{RunId, start_of_run_name};

use crate::format::EXTENSION;

/// The name for the run that was begun last, as far as it is known: a run whose start lies in the future is never it.
pub const LAST: &str = "last";
/// The last second of the year 9999, milliseconds: the year of a name has four digits.
const UNIX_MS_MAX: u64 = 253_402_300_799_000;

/// Why no run may be stored under a name: commands would take it for another run or for a file, and never find the run. Absent for a usable name.
pub fn unusable_name(name: &str) -> Option<&'static str> {
    if name == LAST {
        return Some("`last` is the newest run in every command");
    }
    // A baseline is a JSON file.
    let is_file = |extension: &str| name.rsplit_once('.').is_some_and(|(_, end)| end == extension);
    [EXTENSION, "json"]
        .into_iter()
        .any(is_file)
        .then_some("commands take a name that ends with .netduel or .json for a file")
}

/// The name of a run. That of its plan is shortened if necessary.
pub(crate) fn run_id(plan: &str, unix_ms: u64, random: u16) -> RunId {
    let plan = start_of_run_name(plan);
    let seconds = unix_ms.min(UNIX_MS_MAX) / 1000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    RunId::new(format!("{plan}-{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{random:04x}"))
        .expect("its start is one of a name, and leaves room for the stamp")
}

/// Year, month and day of a number of days since the Unix epoch, by Howard Hinnant's `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>), which counts years from March so that leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use netduel_model::ids::{NAME_LEN_MAX, is_run_stamp};

    use super::*;

    #[test]
    fn run_is_named_after_its_plan_and_its_time_in_utc() {
        assert_eq!(run_id("demo", 1_795_257_901_234, 0x7f3a).as_str(), "demo-20261121-104501-7f3a");
        assert_eq!(run_id("x", 0, 0).as_str(), "x-19700101-000000-0000");
        assert_eq!(run_id("leap", 1_709_164_800_000, 1).as_str(), "leap-20240229-000000-0001");
    }

    #[test]
    fn every_plan_name_and_time_has_a_valid_run_name() {
        assert_eq!(run_id("../ä b", 0, 0).as_str(), "b-19700101-000000-0000");
        assert_eq!(run_id("", u64::MAX, 0xffff).as_str(), "run-99991231-235959-ffff");
        let plan = "y".repeat(90);
        let id = run_id(&plan, 0, 0);
        assert_eq!(id.as_str().len(), NAME_LEN_MAX);
        let stamp = id.as_str().strip_prefix(&start_of_run_name(&plan));
        assert!(stamp.is_some_and(is_run_stamp), "{id}");
    }

    #[test]
    fn every_day_follows_the_day_before() {
        let length = |year: u64, month: u64| match month {
            2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let mut expected = (1970, 1, 1);
        for days in 0..300_000 {
            assert_eq!(civil(days), expected);
            let (year, month, day) = expected;
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == length(year, month) => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }
}
