//! Ranges of numeric options, from the table that plans have: one for the parser and the help. No option is defined here.
use netduel_model::units::{BitRate, UnitError};
use netduel_model::workload::{Setting, SettingRange, WorkloadType};

/// The range of a setting; absent when it is no quantity.
pub fn range(settings: &[Setting], key: &str) -> Option<SettingRange> {
    settings.iter().find(|setting| setting.key == key)?.range
}

/// Parses an integer setting of a type of workload.
pub fn count(kind: WorkloadType, key: &str) -> impl Fn(&str) -> Result<u32, String> + Clone + use<> {
    count_of(kind.settings(), key)
}

/// Parses a whole number within the range of a setting.
pub fn count_of(settings: &[Setting], key: &str) -> impl Fn(&str) -> Result<u32, String> + Clone + use<> {
    let range = range(settings, key);
    move |text| {
        let number = text.parse().map_err(|error| format!("{error}"))?;
        match range {
            Some(range) if !(range.least..=range.most).contains(&u64::from(number)) => {
                Err(format!("{} is allowed", range.words()))
            }
            _ => Ok(number),
        }
    }
}

/// Parses a bit rate within the range of a setting.
pub fn rate_of(settings: &[Setting], key: &str) -> impl Fn(&str) -> Result<BitRate, String> + Clone + use<> {
    let range = range(settings, key);
    move |text| {
        let rate: BitRate = text.parse().map_err(|error: UnitError| error.to_string())?;
        match range {
            Some(range) if !range.contains(rate.0) => Err(format!("{} is allowed", range.words())),
            _ => Ok(rate),
        }
    }
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

    #[test]
    fn number_outside_the_range_is_refused_with_the_range() {
        let streams = count(WorkloadType::TcpStream, "streams");
        assert_eq!((streams("1"), streams("20000")), (Ok(1), Ok(20_000)));
        for outside in ["0", "20001"] {
            assert_eq!(streams(outside).unwrap_err(), "1 to 20000 is allowed");
        }
        let cap = rate_of(LAB, "cap");
        assert_eq!(cap("8 kbit/s"), Ok(BitRate(8_000)));
        for outside in ["7 bit/s", "8001 bit/s", "10 Tbit/s"] {
            assert_eq!(cap(outside).unwrap_err(), "8 kbit/s to 100 Gbit/s in steps of 8 bit/s is allowed");
        }
        assert!(streams("-1").is_err() && streams("many").is_err() && streams("4294967296").is_err());
    }
}
