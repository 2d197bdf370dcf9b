//! Quantities with their units. Bits and bytes never share a type; SI prefixes mean 1000, IEC prefixes mean 1024.
//!
//! In a plan a quantity is a text with its unit (`"10 Gbit/s"`, `"64 KiB"`, `"100 ms"`, `"5 %"`); in a record it is a
//! plain number whose field name ends in the unit.
use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not a quantity of the required kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: {remedy}")]
pub struct UnitError {
    /// The refused text.
    pub text: String,
    /// The required kind, with its article.
    pub what: &'static str,
    /// What to write instead.
    pub remedy: String,
}

type Scale = (&'static str, f64);

/// How much a decimal number times the scale of its unit may be wrong, as a share of it: the number and the product are rounded by half of
/// this at most, together.
const PRODUCT_ERROR: f64 = 2.0 * f64::EPSILON;

/// The whole number that a decimal number times the scale of its unit is; absent when it is none.
pub fn whole(value: f64) -> Option<u64> {
    let rounded = value.round();
    ((value - rounded).abs() <= value.abs() * PRODUCT_ERROR).then_some(rounded as u64)
}

/// Splits `12.5 Gbit/s` in number and unit, and multiplies by the unit's scale.
fn scaled(text: &str, what: &'static str, scales: &[Scale], example: &str) -> Result<f64, UnitError> {
    let error = |remedy: String| UnitError { text: text.to_owned(), what, remedy };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let allowed = || scales.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let number: f64 =
        number.parse().map_err(|_| error(format!("write a number and a unit, for example \"{example}\"")))?;
    let scale = scales.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(|| {
        let is_bit_rate = scales.iter().any(|(name, _)| *name == "bit/s");
        let hint = unit_hint(unit, is_bit_rate);
        error(format!("the unit must be one of {}{hint}; for example \"{example}\"", allowed()))
    })?;
    let value = number * scale;
    if value > 9.0e18 {
        return Err(error("it is larger than this program can count (9 x 10^18)".to_owned()));
    }
    Ok(value)
}

/// A word on the mix-ups that happen: `Gb` for a bit rate, `GB/s` for `Gbit/s`, the `k` of a quick test, a missing unit.
fn unit_hint(unit: &str, is_bit_rate: bool) -> &'static str {
    match unit {
        "" => " (a number without a unit is ambiguous)",
        "K" | "k" | "M" | "G" if !is_bit_rate => " (a letter alone is for options of quick tests)",
        _ if !is_bit_rate => "",
        "Kb" | "kb" | "Mb" | "Gb" | "Kbps" | "kbps" | "Mbps" | "Gbps" | "bps" | "K" | "k" | "M" | "G" => {
            " (bits per second are written kbit/s, Mbit/s, Gbit/s)"
        }
        "KB/s" | "MB/s" | "GB/s" | "B/s" => " (this is a bit rate: multiply bytes per second by 8)",
        _ => "",
    }
}

/// A value in whole base units. A kind that has a word for those refuses parts of one: a rounded value is another than the one that was written.
fn in_base_units(
    text: &str,
    value: f64,
    required: Option<&'static str>,
    example: &str,
) -> Result<u64, UnitError> {
    match (whole(value), required) {
        (Some(value), _) => Ok(value),
        (None, None) => Ok(value.round() as u64),
        (None, Some(what)) => {
            let remedy = format!("write one, for example \"{example}\"");
            Err(UnitError { text: text.to_owned(), what, remedy })
        }
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $what:literal, $whole:expr, $example:literal, $pattern:literal, [$(($unit:literal, $scale:expr)),+ $(,)?]) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            const SCALES: &'static [Scale] = &[$(($unit, $scale)),+];

            /// Reads a text with its unit. `example`: the value that a refusal shows, when it is not the usual one.
            ///
            /// # Errors
            /// [`UnitError`] when the text is no such quantity.
            pub(crate) fn read_text(text: &str, example: Option<&str>) -> Result<Self, UnitError> {
                let example = example.unwrap_or($example);
                let value = scaled(text, $what, Self::SCALES, example)?;
                in_base_units(text, value, $whole, example).map(Self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                Self::read_text(text, None)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} as text with its unit, for example \"{}\"", $what, $example)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "examples": [$example] })
            }
        }
    };
}

quantity! {
    /// A rate in bit/s. Range: 1 bit/s to 9 x 10^18 bit/s.
    BitRate, "a bit rate", Some("a whole number of bits per second"), "10 Gbit/s", r"^[0-9._]+ *(bit/s|kbit/s|Mbit/s|Gbit/s|Tbit/s)$",
    [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)]
}
quantity! {
    /// An amount of data in bytes.
    Bytes, "an amount of data", Some("a whole number of bytes"), "64 KiB", r"^[0-9._]+ *(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$",
    [
        ("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12),
        ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("TiB", 1_099_511_627_776.0),
    ]
}
quantity! {
    /// A length of time in nanoseconds, to the nearest: a third of a second has no other.
    Nanos, "a length of time", None, "100 ms", r"^[0-9._]+ *(ns|us|ms|s|min|h)$",
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)]
}
quantity! {
    /// Events in a second: requests or datagrams.
    PerSecond, "a rate of events", Some("a whole number of events per second"), "20000 /s", r"^[0-9._]+ *(/s|k/s|M/s)$",
    [("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6)]
}

impl Nanos {
    /// Seconds as a floating-point number.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// As the standard library's type.
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

/// Writes `value` in the largest unit that keeps it exact, so that parsing the text gives the same value back.
fn fmt_exact(f: &mut fmt::Formatter<'_>, value: u64, scales: &[(u64, &str)]) -> fmt::Result {
    let (scale, unit) = scales
        .iter()
        .rev()
        .find(|(scale, _)| value >= *scale && value.is_multiple_of(*scale))
        .unwrap_or(&scales[0]);
    f.pad(&format!("{} {unit}", value / scale))
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scales = [
            (1, "bit/s"),
            (1_000, "kbit/s"),
            (1_000_000, "Mbit/s"),
            (1_000_000_000, "Gbit/s"),
            (1_000_000_000_000, "Tbit/s"),
        ];
        fmt_exact(f, self.0, &scales)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_exact(
            f,
            self.0,
            &[(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB")],
        )
    }
}
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_exact(
            f,
            self.0,
            &[(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s"), (60_000_000_000, "min")],
        )
    }
}
impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} /s", self.0))
    }
}

/// A share in percent.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Percent(pub f64);

impl Percent {
    /// As a fraction: 5 % is 0.05.
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }

    /// Reads a text with its unit. `example`: the value that a refusal shows, when it is not the usual one.
    ///
    /// # Errors
    /// [`UnitError`] when the text is no percentage.
    pub(crate) fn read_text(text: &str, example: Option<&str>) -> Result<Self, UnitError> {
        Ok(Self(scaled(text, "a percentage", &[("%", 1.0)], example.unwrap_or("5 %"))?))
    }
}
impl std::str::FromStr for Percent {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        Self::read_text(text, None)
    }
}
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} %", self.0))
    }
}
impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Percent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentage as text, for example \"5 %\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Percent, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}
impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^[0-9._]+ *%$", "examples": ["5 %"] })
    }
}

/// A bit rate for people: three significant digits and an SI prefix, for example `9.41 Gbit/s`.
pub fn human_bit_rate(bits_per_s: f64) -> String {
    human_si(bits_per_s, "bit/s")
}

/// A number for people with three significant digits and an SI prefix before `unit`.
pub fn human_si(value: f64, unit: &str) -> String {
    let (scaled, prefix) = match value.abs() {
        v if v >= 1e12 => (value / 1e12, "T"),
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{} {prefix}{unit}", three_digits(scaled))
}

/// Bits of a megabit.
pub const BITS_PER_MEGABIT: u64 = 1_000_000;

/// A share for people, with at most two digits: `64 %`, `8.3 %`, `0.3 %`. From 99 % on, only the leading nines: `99 %`, `99.9 %`. Never
/// rounds a share up to 100 % or down to 0 %. What exceeds its whole, such as a published value, has more than 100 %: `150 %`.
pub fn human_share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0 %".to_owned(),
        p if p >= 100.0 => format!("{p:.0} %"),
        p if p > 99.99 => "more than 99.99 %".to_owned(),
        p if p >= 99.9 => "99.9 %".to_owned(),
        p if p >= 99.0 => "99 %".to_owned(),
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.095 => format!("{p:.1} %"),
        p if p >= 0.001 => format!("{p:.3} %"),
        _ => "less than 0.001 %".to_owned(),
    }
}

/// A percentage of a whole that would read 100 although it is less, with as many digits as it takes: `99.6`, `99.997`. Absent for others.
pub fn almost_whole(percent: f64) -> Option<String> {
    let rest = 100.0 - percent;
    (percent > 99.5 && rest > 0.0).then(|| format!("{percent:.*}", (-rest.log10()).ceil().max(1.0) as usize))
}

/// A length of time for people, for example `12.4 us`.
pub fn human_nanos(nanos: f64) -> String {
    let (scaled, unit) = match nanos.abs() {
        v if v >= 60e9 => (nanos / 60e9, "min"),
        v if v >= 1e9 => (nanos / 1e9, "s"),
        v if v >= 1e6 => (nanos / 1e6, "ms"),
        v if v >= 1e3 => (nanos / 1e3, "us"),
        _ => (nanos, "ns"),
    };
    format!("{} {unit}", three_digits(scaled))
}

/// A count with its noun.
pub fn plural<N: Copy + PartialEq + From<u8> + fmt::Display>(count: N, one: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {one}{ending}")
}

/// Three significant digits, without an exponent; two of numbers from 0.001 to 0.01. Zero is `0`, and no other number reads so.
pub fn three_digits(value: f64) -> String {
    /// Beyond these decimals there is nothing to measure.
    const DECIMALS_MAX: usize = 15;
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.09995 => format!("{value:.3}"),
        v if v >= 0.000_95 => format!("{value:.4}"),
        v => format!("{value:.*}", ((-v.log10()).ceil() as usize).saturating_add(2).min(DECIMALS_MAX)),
    }
}

/// A number of things: a whole number without decimals, a mean or median between two with [`three_digits`].
pub fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { three_digits(value) }
}

#[cfg(test)]
mod tests;
