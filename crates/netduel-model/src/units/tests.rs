//! How values with units are read and written.
use super::*;

#[test]
fn shares_are_never_rounded_to_0_or_100_percent() {
    for (share, text) in [
        (1.0, "100 %"),
        (0.999_999_9, "more than 99.99 %"),
        (0.999_87, "99.9 %"),
        (0.998_9, "99 %"),
        (0.990_4, "99 %"),
        (0.986, "99 %"),
        (0.083_4, "8.3 %"),
        (0.42, "42 %"),
        (0.004, "0.4 %"),
        (1.502, "150 %"),
        (1.001, "100 %"),
        (1e-9, "less than 0.001 %"),
        (0.0, "0 %"),
    ] {
        assert_eq!(human_share(share), text);
    }
}

#[test]
fn part_of_a_whole_never_reads_100() {
    for (percent, text) in [
        (99.5, None),
        (99.6, Some("99.6")),
        (99.94, Some("99.94")),
        (99.99, Some("99.99")),
        (99.996, Some("99.996")),
        (99.999_96, Some("99.99996")),
        (100.0, None),
        (65.0, None),
    ] {
        assert_eq!(almost_whole(percent).as_deref(), text, "{percent}");
    }
    let near = (1..400).map(|step| 100.0 - 0.5 * 0.93_f64.powi(step));
    assert!(near.filter_map(almost_whole).all(|text| text.starts_with("99.")));
}

#[test]
fn number_that_is_not_0_does_not_read_so() {
    let words = [0.0, 0.012, 0.0012, 0.000_94, 0.000_012_34, -0.000_012_34].map(three_digits);
    assert_eq!(words, ["0", "0.0120", "0.0012", "0.000940", "0.0000123", "-0.0000123"]);
    assert!(three_digits(1e-300).starts_with("0.0000"));
}

#[test]
fn a_quantity_is_parsed_with_its_unit() {
    assert_eq!("10 Gbit/s".parse(), Ok(BitRate(10_000_000_000)));
    assert_eq!("2.5Gbit/s".parse(), Ok(BitRate(2_500_000_000)));
    assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
    assert_eq!("1_000 kB".parse(), Ok(Bytes(1_000_000)));
    assert_eq!("1.5 s".parse(), Ok(Nanos(1_500_000_000)));
    assert_eq!("20 k/s".parse(), Ok(PerSecond(20_000)));
    assert_eq!("2.5 %".parse(), Ok(Percent(2.5)));
}

#[test]
fn part_of_a_byte_bit_or_event_is_refused() {
    for text in ["1.5 kB", "1.1 kB", "0.5 MiB", "0.3 GB", "2.3 GB", "1.000 B", "0 B", "0.000001 MB"] {
        assert!(text.parse::<Bytes>().is_ok(), "{text}");
    }
    assert_eq!("0.1 Gbit/s".parse(), Ok(BitRate(100_000_000)));
    assert_eq!("1.005 k/s".parse(), Ok(PerSecond(1005)));
    for text in ["10.5 /s", "0.5 /s", "0.4 /s", "1.0005 k/s"] {
        let error = text.parse::<PerSecond>().unwrap_err().to_string();
        let expected = "is not a whole number of events per second: write one, for example \"20000 /s\"";
        assert_eq!(error, format!("`{text}` {expected}"));
    }
    for text in ["1.5 B", "0.4 B", "0.1 KiB", "1.0001 kB"] {
        let error = text.parse::<Bytes>().unwrap_err();
        assert_eq!(error.what, "a whole number of bytes", "{text}");
    }
    assert_eq!("1.5 bit/s".parse::<BitRate>().unwrap_err().what, "a whole number of bits per second");
    assert_eq!("0.3333333333333 s".parse(), Ok(Nanos(333_333_333)), "times are measured to the nanosecond");
}

#[test]
fn a_wrong_unit_is_refused_with_the_right_one_named() {
    let gb = "10Gb".parse::<BitRate>().unwrap_err().to_string();
    assert!(gb.contains("Gbit/s") && gb.contains("`10Gb`"), "{gb}");
    let gbps = "10 GB/s".parse::<BitRate>().unwrap_err().to_string();
    assert!(gbps.contains("multiply bytes per second by 8"), "{gbps}");
    let bare = "5".parse::<Nanos>().unwrap_err().to_string();
    assert!(bare.contains("ambiguous"), "{bare}");
    let short = "200k".parse::<PerSecond>().unwrap_err().to_string();
    assert!(short.contains("/s, k/s, M/s (a letter alone is for options of quick tests)"), "{short}");
    let short = "100M".parse::<BitRate>().unwrap_err().to_string();
    assert!(short.contains("(bits per second are written kbit/s, Mbit/s, Gbit/s)"), "{short}");
    assert!("-1 s".parse::<Nanos>().is_err());
    assert!("nan s".parse::<Nanos>().is_err());
    assert!("99999999999 h".parse::<Nanos>().is_err());
}

#[test]
fn refused_text_is_answered_with_the_example_of_the_caller() {
    let remedy = |example: Option<&str>| Nanos::read_text("5", example).unwrap_err().remedy;
    assert!(remedy(None).ends_with("for example \"100 ms\""), "{}", remedy(None));
    assert!(remedy(Some("20 min")).ends_with("for example \"20 min\""), "{}", remedy(Some("20 min")));
    let percent = Percent::read_text("x", Some("95 %")).unwrap_err().remedy;
    assert!(percent.ends_with("for example \"95 %\""), "{percent}");
    assert_eq!(Nanos::read_text("5 s", Some("20 min")), Ok(Nanos(5_000_000_000)));
}

#[test]
fn what_is_printed_is_parsed_back_to_the_same_value() {
    for value in
        [0, 1, 999, 1000, 1024, 1500, 1_000_000_000, 1_500_000_000, 60_000_000_000, u64::from(u32::MAX)]
    {
        assert_eq!(BitRate(value).to_string().parse(), Ok(BitRate(value)));
        assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
    }
}

#[test]
fn people_get_three_significant_digits() {
    assert_eq!(human_bit_rate(9_412_000_000.0), "9.41 Gbit/s");
    assert_eq!(human_bit_rate(27_300_000_000.0), "27.3 Gbit/s");
    assert_eq!(human_nanos(54_321.0), "54.3 us");
    assert_eq!(human_si(0.0, "B"), "0 B");
    assert_eq!([count(0.0), count(12.0), count(2.5)], ["0", "12", "2.50"]);
}
