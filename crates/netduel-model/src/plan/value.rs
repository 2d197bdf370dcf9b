//! Reading of single values from the parsed TOML: texts, numbers, quantities, names, choices, lists.
//!
//! This stands in for serde's `Deserialize`, which stops at the first error and knows no key paths. Nothing here judges
//! whether a value makes sense; that is `check`.
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::de::DeserializeOwned;
use serde::de::value::StrDeserializer;
use toml::Spanned;
use toml::de::DeValue;

use super::examples;
use super::problem::{Problems, element_path, key_path, one_of};
use crate::data_ports::{DataPorts, NotPorts};
use crate::ids::{ArmName, HostName, NameError, WorkloadName};
use crate::nearest::nearest;
use crate::units::{BitRate, Bytes, Nanos, PerSecond, Percent, UnitError};

/// Elements of a list, and names in a table of names, at most: more than any key has a use for.
const ELEMENTS_MAX: usize = 1024;

/// Bytes of a text at most. Scripts in an argument of a command are the longest.
const TEXT_VALUE_LEN_MAX: usize = 16 << 10;

/// Notes a list or a table of names that is too long; its elements are not read then.
fn is_too_long(count: usize, path: &str, problems: &mut Problems<'_>) -> bool {
    let is_too_long = count > ELEMENTS_MAX;
    if is_too_long {
        problems.add(path, format!("has {count} elements"), format!("at most {ELEMENTS_MAX} are allowed"));
    }
    is_too_long
}

/// A value as the TOML parser gives it, with its place in the text.
pub(crate) type Raw<'i> = Spanned<DeValue<'i>>;

/// Something that can stand behind a key of a plan.
pub(crate) trait Value: Sized {
    /// Reads it, or notes why it cannot be read.
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self>;
}

/// What stands there instead, for example `is the text "8"`.
pub(crate) fn found(raw: &Raw<'_>) -> String {
    match raw.get_ref() {
        DeValue::String(text) => format!("is the text {text:?}"),
        DeValue::Integer(number) => format!("is the number {number}"),
        DeValue::Float(number) => format!("is the number {number}"),
        DeValue::Boolean(value) => format!("is {value}"),
        DeValue::Datetime(value) => format!("is the date {value}"),
        DeValue::Array(_) => "is a list".to_owned(),
        DeValue::Table(_) => "is a table".to_owned(),
    }
}

impl Value for String {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        let DeValue::String(text) = raw.get_ref() else {
            problems.add(path, found(raw), text_needed(raw, path));
            return None;
        };
        if text.len() > TEXT_VALUE_LEN_MAX {
            let wrong = format!("is a text of {} bytes", text.len());
            problems.add(path, wrong, format!("at most {TEXT_VALUE_LEN_MAX} bytes are allowed"));
            return None;
        }
        Some(text.clone().into_owned())
    }
}

/// What is needed in place of a value that is no text. The value of a treatment is a text also where it is a switch or a number.
fn text_needed(raw: &Raw<'_>, path: &str) -> String {
    let needed = "a text in quotes is needed";
    match raw.get_ref() {
        _ if path.rsplit('.').next() != Some("value") => needed.to_owned(),
        DeValue::Boolean(is_on) => {
            let (word, digit) = (if *is_on { "on" } else { "off" }, u8::from(*is_on));
            format!("{needed}: value = \"{word}\" for a switch, value = \"{digit}\" for a sysctl")
        }
        DeValue::Integer(number) => format!("{needed}: value = \"{number}\""),
        _ => needed.to_owned(),
    }
}

impl Value for DataPorts {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        let text = match raw.get_ref() {
            DeValue::String(text) => text.as_ref(),
            _ => "",
        };
        text.parse().inspect_err(|error: &NotPorts| problems.add(path, found(raw), error.to_string())).ok()
    }
}

impl Value for bool {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        if let DeValue::Boolean(value) = raw.get_ref() {
            return Some(*value);
        }
        problems.add(path, found(raw), "`true` or `false` is needed, without quotes");
        None
    }
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
                if let DeValue::Integer(number) = raw.get_ref()
                    && let Ok(number) = <$type>::from_str_radix(number.as_str(), number.radix())
                {
                    return Some(number);
                }
                let most = <$type>::MAX;
                problems.add(path, found(raw), format!("a whole number from 0 to {most} is needed, without quotes"));
                None
            }
        }
    )+};
}
whole_numbers!(u16, u32, u64);

macro_rules! quantities {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
                // A bare number is parsed as a text without a unit: the error then says which units there are.
                let text = match raw.get_ref() {
                    DeValue::String(text) => text.clone().into_owned(),
                    DeValue::Integer(number) => number.to_string(),
                    DeValue::Float(number) => number.to_string(),
                    _ => String::new(),
                };
                match <$type>::read_text(&text, examples::quantity(path)) {
                    Ok(quantity) => return Some(quantity),
                    Err(UnitError { what, remedy, .. }) => {
                        problems.add(path, format!("{}, which is not {what}", found(raw)), remedy);
                    }
                }
                None
            }
        }
    )+};
}
quantities!(BitRate, Bytes, Nanos, PerSecond, Percent);

/// What is allowed in a name, as a sentence of its own.
pub(crate) fn name_rule(error: &NameError) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or(text.clone(), |(_, rule)| rule.to_owned())
}

macro_rules! names {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
                match <$type>::new(String::read(raw, path, problems)?) {
                    Ok(name) => Some(name),
                    Err(error) => {
                        problems.add(path, format!("{}, which is not a name", found(raw)), name_rule(&error));
                        None
                    }
                }
            }
        }
    )+};
}
names!(HostName, ArmName, WorkloadName);

impl Value for IpAddr {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        let address = match raw.get_ref() {
            DeValue::String(text) => text.parse().ok(),
            _ => None,
        };
        if address.is_none() {
            let example =
                "write an IPv4 or IPv6 address as text, for example \"192.0.2.1\" or \"2001:db8::1\"";
            problems.add(path, format!("{}, which is not an address", found(raw)), example);
        }
        address
    }
}

/// A list. When one element cannot be read the list is not read, but every element is tried.
impl<T: Value> Value for Vec<T> {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        let DeValue::Array(array) = raw.get_ref() else {
            problems.add(path, found(raw), "a list in [ ] is needed");
            return None;
        };
        if is_too_long(array.len(), path, problems) {
            return None;
        }
        let mut elements = Vec::with_capacity(array.len());
        for (index, element) in array.iter().enumerate() {
            let path = element_path(path, index);
            problems.place(&path, element.span().start);
            elements.push(T::read(element, &path, problems));
        }
        elements.into_iter().collect()
    }
}

/// A table whose keys are names that the author chose.
impl<T: Value> Value for BTreeMap<String, T> {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        let DeValue::Table(table) = raw.get_ref() else {
            problems.add(path, found(raw), "a table is needed");
            return None;
        };
        if is_too_long(table.len(), path, problems) {
            return None;
        }
        let mut entries = Self::new();
        for (key, value) in table {
            let path = key_path(path, key.get_ref());
            problems.place(&path, key.span().start);
            if let Some(value) = T::read(value, &path, problems) {
                entries.insert(key.get_ref().clone().into_owned(), value);
            }
        }
        Some(entries)
    }
}

/// Reads one of the words of an enum that has only words.
pub(crate) fn read_choice<T: DeserializeOwned>(
    raw: &Raw<'_>,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<T> {
    let text = match raw.get_ref() {
        DeValue::String(text) => text.as_ref(),
        // No enum of a plan has an empty word, so the error lists the allowed words.
        _ => "",
    };
    match T::deserialize(StrDeserializer::<ChoiceError>::new(text)) {
        Ok(value) => Some(value),
        Err(ChoiceError { words }) => {
            let meant = nearest(text, words.iter().copied());
            let meant = meant.map(|word| format!("did you mean \"{word}\"? ")).unwrap_or_default();
            problems.add(path, found(raw), format!("{meant}allowed: {}", one_of(words.iter().copied())));
            None
        }
    }
}

/// Makes enums that have only words readable.
macro_rules! choices {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::plan::value::Value for $type {
            fn read(
                raw: &$crate::plan::value::Raw<'_>,
                path: &str,
                problems: &mut $crate::plan::problem::Problems<'_>,
            ) -> Option<Self> {
                $crate::plan::value::read_choice(raw, path, problems)
            }
        }
    )+};
}
pub(crate) use choices;

/// A deserialiser's error that keeps the list of words that an enum takes.
#[derive(Debug)]
struct ChoiceError {
    words: &'static [&'static str],
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allowed: {}", one_of(self.words.iter().copied()))
    }
}

impl std::error::Error for ChoiceError {}

impl serde::de::Error for ChoiceError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self { words: &[] }
    }
    fn unknown_variant(_: &str, words: &'static [&'static str]) -> Self {
        Self { words }
    }
}
