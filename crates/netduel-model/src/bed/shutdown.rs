//! The time of day at which the VMs of a bed shut down. Pure.
use std::fmt;
use std::str::FromStr;

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// A time of day, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownTime {
    /// Minutes since midnight, below 1440.
    minutes: u32,
}

/// A text is no time of day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no time of day: write HH:MM from 00:00 to 23:59 (UTC), or \"off\"")]
pub struct ShutdownTimeError {
    /// The text.
    pub text: String,
}

impl ShutdownTime {
    /// When a bed does not name a time: after a working day in Europe.
    pub const DEFAULT: Self = Self { minutes: 19 * 60 };

    /// What a bed file and the tags of a bed have in place of a time where there is no shutdown.
    pub const OFF: &str = "off";

    /// A shutdown in fewer minutes may miss VMs that are created now, which have no schedule yet: a deployment takes up to 30.
    pub const CREATION_MIN: u64 = 60;

    /// Minutes that VMs may run which are created or started from a time on, in seconds since 1970-01-01T00:00:00Z. A shutdown in less than
    /// `lead_min` minutes may miss them, and the one of the next day counts.
    pub fn minutes_left(self, unix_s: u64, lead_min: u64) -> u32 {
        match self.minutes_after(unix_s) {
            soon if u64::from(soon) < lead_min => soon + DAY,
            minutes => minutes,
        }
    }

    /// The first shutdown after a time; both in seconds since 1970-01-01T00:00:00Z.
    pub fn next_unix_s(self, unix_s: u64) -> u64 {
        (unix_s / 60 + u64::from(self.minutes_after(unix_s))).saturating_mul(60)
    }

    /// Minutes from a time to the next shutdown; 1 to 1440.
    fn minutes_after(self, unix_s: u64) -> u32 {
        let now = (unix_s / 60 % u64::from(DAY)) as u32;
        match (self.minutes + DAY - now) % DAY {
            0 => DAY,
            minutes => minutes,
        }
    }

    /// Four digits, as the schedule of Azure has it: `1900`.
    pub fn digits(self) -> String {
        format!("{:02}{:02}", self.minutes / 60, self.minutes % 60)
    }
}

impl FromStr for ShutdownTime {
    type Err = ShutdownTimeError;

    fn from_str(text: &str) -> Result<Self, ShutdownTimeError> {
        let error = || ShutdownTimeError { text: text.to_owned() };
        let (hour, minute) = text.split_once(':').ok_or_else(error)?;
        let number = |digits: &str| -> Option<u32> {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number)
        };
        match (number(hour), number(minute)) {
            (Some(hour @ 0..24), Some(minute @ 0..60)) => Ok(Self { minutes: hour * 60 + minute }),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for ShutdownTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_has_two_digits_each() {
        let time: ShutdownTime = "07:05".parse().unwrap();
        assert_eq!((time.to_string(), time.digits()), ("07:05".to_owned(), "0705".to_owned()));
        for text in ["7:05", "24:00", "12:60", "1900", "+1:00", "12:00:00", ""] {
            assert!(text.parse::<ShutdownTime>().is_err(), "{text}");
        }
    }

    #[test]
    fn shutdown_is_at_most_a_day_away() {
        // 1,795,343,407 s is 2026-11-22T10:30:07Z.
        for (time, minutes) in [("10:31", 1), ("10:30", 1440), ("10:29", 1439), ("19:00", 510)] {
            let time: ShutdownTime = time.parse().unwrap();
            assert_eq!(time.minutes_after(1_795_343_407), minutes, "{time}");
            assert_eq!(time.next_unix_s(1_795_343_407), 1_795_343_400 + u64::from(minutes) * 60, "{time}");
        }
    }

    #[test]
    fn shutdown_that_may_miss_the_vms_is_that_of_the_next_day() {
        for (time, of_new, of_started) in [
            ("10:32", 1442, 1442),
            ("10:39", 1449, 1449),
            ("10:40", 1450, 10),
            ("11:29", 1499, 59),
            ("11:30", 60, 60),
            ("10:30", 1440, 1440),
        ] {
            let time: ShutdownTime = time.parse().unwrap();
            let left = [ShutdownTime::CREATION_MIN, 10].map(|lead| time.minutes_left(1_795_343_407, lead));
            assert_eq!(left, [of_new, of_started], "{time}");
        }
    }
}
