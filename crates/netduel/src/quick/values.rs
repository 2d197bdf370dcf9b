//! Values of the options of quick tests, as text: times, volumes, rates and cores, with the suffixes of iperf3. No option is defined here.
use netduel_model::plan::CoresSpec;
use netduel_model::plan::tuning::cores_in_order;
use netduel_model::units::{BitRate, Bytes, Nanos, PerSecond, whole};
use netduel_model::workload::{DURATION, SettingRange, Unit, WorkloadType};

use crate::cli::range::range;

/// Duration of a test, in the range of a plan's `duration`.
pub fn test_time(text: &str) -> Result<Nanos, String> {
    let length = match seconds(text) {
        // A number that no duration has becomes the least or the largest, which are out of the range, too.
        Some(seconds) => (seconds * 1e9).round() as u64,
        None => time(text)?.0,
    };
    within(range(&[DURATION], DURATION.key), length).map(Nanos)
}

/// A bare number. Rust reads `nan` and `inf` as numbers, too.
fn seconds(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

/// A length of time: bare numbers are seconds, at most the longest duration.
pub fn time(text: &str) -> Result<Nanos, String> {
    let Some(seconds) = seconds(text) else {
        return text.parse::<Nanos>().map_err(|error| error.to_string());
    };
    let most = range(&[DURATION], DURATION.key).map_or(u64::MAX, |range| range.most);
    if (0.0..=most as f64 / 1e9).contains(&seconds) {
        Ok(Nanos((seconds * 1e9).round() as u64))
    } else {
        Err(format!("0 s to {} is allowed", Unit::Duration.show(most)))
    }
}

/// A value that is in the range of a setting; any value of a setting without one.
fn within(range: Option<SettingRange>, value: u64) -> Result<u64, String> {
    match range {
        Some(range) if !range.contains(value) => Err(format!("{} is allowed", range.words())),
        _ => Ok(value),
    }
}

/// A number with a suffix of iperf3: K, M, G, T, as powers of `base`.
fn with_suffix(text: &str, base: u64) -> Option<Result<u64, String>> {
    let text = text.trim();
    let (number, suffix) = match text.char_indices().last()? {
        (at, letter) if letter.is_ascii_alphabetic() => (&text[..at], Some(letter.to_ascii_uppercase())),
        _ => (text, None),
    };
    let power = match suffix {
        None => 0,
        Some('K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some(_) => return None,
    };
    let number: f64 = number.parse().ok()?;
    let value = number * (base as f64).powi(power);
    // 2^63 and more do not fit signed numbers; no test needs them.
    Some(if value.is_finite() && (0.0..9.2e18).contains(&value) {
        whole(value).ok_or_else(|| format!("{text} is not a whole number"))
    } else {
        Err(format!("{text} is out of range: 0 to 9.2e18"))
    })
}

/// A volume: `128K` is 128 x 1024 as in iperf3, "128 kB" is 128,000, "128 KiB" is 131,072.
pub(super) fn bytes(text: &str) -> Result<Bytes, String> {
    match with_suffix(text, 1024) {
        Some(value) => value.map(Bytes),
        None => text.parse::<Bytes>().map_err(|error| error.to_string()),
    }
}

/// A bit rate: `100M` is 100,000,000 bit/s as in iperf3.
pub fn rate(text: &str) -> Result<BitRate, String> {
    match with_suffix(text, 1000) {
        Some(Ok(0)) => Err("0 is not a rate; leave the option out for an unlimited rate".to_owned()),
        Some(value) => value.map(BitRate),
        None => text.parse::<BitRate>().map_err(|error| error.to_string()),
    }
}

/// What to write as cores.
const CORES_EXAMPLE: &str = "write the numbers of cores, for example 0,2 or 0-3, or auto";

/// Cores and ranges of cores as the kernel lists them, or the word `auto`.
pub(super) fn cores(text: &str) -> Result<CoresSpec, String> {
    if text == "auto" {
        return Ok(CoresSpec::Auto);
    }
    let list = cores_in_order(text).map(CoresSpec::List);
    list.map_err(|wrong| format!("{wrong}; {CORES_EXAMPLE}"))
}

/// Events per second in the range of a setting: `20k` or "20 k/s".
pub(super) fn per_second(
    kind: WorkloadType,
    key: &'static str,
) -> impl Fn(&str) -> Result<PerSecond, String> + Clone + Send + Sync {
    move |text| {
        let value = match with_suffix(text, 1000) {
            Some(value) => value?,
            None => text.parse::<PerSecond>().map_err(|error| error.to_string())?.0,
        };
        within(range(kind.settings(), key), value).map(PerSecond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_mean_the_same_as_in_iperf3() {
        assert_eq!(bytes("128K"), Ok(Bytes(131_072)));
        assert_eq!(bytes("1g"), Ok(Bytes(1 << 30)));
        assert_eq!(bytes("1448"), Ok(Bytes(1448)));
        assert_eq!(rate("100M"), Ok(BitRate(100_000_000)));
        assert_eq!(rate("2.5g"), Ok(BitRate(2_500_000_000)));
        assert_eq!(time("10"), Ok(Nanos(10_000_000_000)));
        assert_eq!(time("0.5"), Ok(Nanos(500_000_000)));
        let per_second = per_second(WorkloadType::TcpRr, "request_rate");
        assert_eq!(per_second("20k"), Ok(PerSecond(20_000)));
    }

    #[test]
    fn rates_have_the_range_of_the_plan() {
        for (kind, key, most) in [
            (WorkloadType::TcpRr, "request_rate", 10_000_000),
            (WorkloadType::TcpCrr, "request_rate", 10_000_000),
            (WorkloadType::Pps, "packet_rate", 1_000_000_000),
        ] {
            let rate = per_second(kind, key);
            assert_eq!(rate(&most.to_string()), Ok(PerSecond(most)), "{kind:?}");
            let error = rate(&(most + 1).to_string()).unwrap_err();
            assert_eq!(error, format!("1 /s to {} M/s is allowed", most / 1_000_000), "{kind:?}");
            assert!(rate("0").is_err(), "{kind:?}");
        }
    }

    #[test]
    fn tests_have_the_durations_of_the_plan() {
        assert_eq!(test_time("100 ms"), Ok(Nanos::from_millis(100)));
        assert_eq!(test_time("86400"), test_time("24 h"));
        for text in ["0", "-1", "0.09", "50 ms", "86401", "1e30", "25 h"] {
            assert_eq!(test_time(text), Err("100 ms to 24 h is allowed".to_owned()), "{text}");
        }
    }

    #[test]
    fn cores_are_listed_as_the_kernel_lists_them() {
        let list = |text: &str| match cores(text).unwrap() {
            CoresSpec::List(list) => list,
            CoresSpec::Auto => panic!("{text} is a list"),
        };
        assert_eq!(list("2"), [2]);
        assert_eq!(list("0,2"), [0, 2]);
        assert_eq!(list("0-3, 8"), [0, 1, 2, 3, 8]);
        assert_eq!(list("2,0"), [2, 0]);
        for wrong in ["", "a", "5-2", "0-", "-1", "0-1-2", "0,"] {
            let expected = format!("{wrong:?} is no list of cores; {CORES_EXAMPLE}");
            assert_eq!(cores(wrong).unwrap_err(), expected);
        }
        let beyond = cores("70000").unwrap_err();
        assert!(beyond.contains("core 70000; the range of a core is 0 to 8191"), "{beyond}");
    }

    #[test]
    fn spelled_out_units_are_exact() {
        assert_eq!(bytes("128 kB"), Ok(Bytes(128_000)));
        assert_eq!(bytes("128 KiB"), Ok(Bytes(131_072)));
        assert_eq!(rate("1 Gbit/s"), Ok(BitRate(1_000_000_000)));
        assert_eq!(time("200 ms"), Ok(Nanos(200_000_000)));
    }

    #[test]
    fn cores_are_a_list_or_auto() {
        assert_eq!(cores("auto"), Ok(CoresSpec::Auto));
        assert_eq!(cores("0,2"), Ok(CoresSpec::List(vec![0, 2])));
        for text in ["", "automatic", "0,", "65536", "-1"] {
            assert!(cores(text).unwrap_err().ends_with("or auto"), "{text}");
        }
    }

    #[test]
    fn values_are_whole_numbers() {
        let rate_of_requests = per_second(WorkloadType::TcpRr, "request_rate");
        assert_eq!(rate_of_requests("1.5k"), Ok(PerSecond(1500)));
        assert_eq!(bytes("1.5K"), Ok(Bytes(1536)));
        assert_eq!(rate("0.1G"), Ok(BitRate(100_000_000)));
        for error in
            [rate_of_requests("10.5").unwrap_err(), bytes("10.5").unwrap_err(), rate("10.5").unwrap_err()]
        {
            assert_eq!(error, "10.5 is not a whole number");
        }
        assert!(rate_of_requests("10.5 /s").unwrap_err().contains("a whole number of events per second"));
    }

    #[test]
    fn values_out_of_range_are_rejected_and_never_wrap() {
        for text in ["9223372036854775808", "1e30", "99999999999G", "-1", "nan", "inf", ""] {
            assert!(bytes(text).is_err(), "{text}");
            assert!(rate(text).is_err(), "{text}");
            assert!(per_second(WorkloadType::Pps, "packet_rate")(text).is_err(), "{text}");
        }
        for text in ["-1", "nan", "1e9", "x", ""] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(rate("0").is_err());
        assert!(rate("1 GB/s").is_err());
    }
}
