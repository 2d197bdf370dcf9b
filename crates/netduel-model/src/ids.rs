//! Names and identifiers. A name is checked once, where it enters; afterwards its type says that it is good.
use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// Longest name of a host, arm, workload or lab: it has to fit a table column and a file name.
pub const NAME_LEN_MAX: usize = 40;

/// The form of what follows the name of the plan in the name of a run: date and time in UTC, and random digits. A `0` is a decimal digit, an
/// `f` a hexadecimal one.
const RUN_STAMP: &str = "-00000000-000000-ffff";

/// What the name of a run begins with: the name of its plan as far as it fits. Characters that a name may not contain become `-`.
pub fn start_of_run_name(plan: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let plan: String = plan.chars().map(allowed).collect();
    let plan = plan.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let plan = if plan.is_empty() { "run" } else { plan };
    plan.chars().take(NAME_LEN_MAX - RUN_STAMP.len()).collect()
}

/// Whether a text begins with what follows the name of the plan in the name of a run, as `-20261121-104501-7f3a`.
pub fn is_run_stamp(text: &str) -> bool {
    let has_form = |(form, byte): (u8, u8)| match form {
        b'0' => byte.is_ascii_digit(),
        b'f' => byte.is_ascii_hexdigit(),
        form => byte == form,
    };
    text.len() >= RUN_STAMP.len() && RUN_STAMP.bytes().zip(text.bytes()).all(has_form)
}

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a name: 1 to {NAME_LEN_MAX} of a-z A-Z 0-9 . _ - are allowed, beginning with a letter or a digit"
)]
pub struct NameError {
    /// The refused text.
    pub text: String,
}

fn check_name(text: &str) -> Result<(), NameError> {
    let good = !text.is_empty()
        && text.len() <= NAME_LEN_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if good { Ok(()) } else { Err(NameError { text: text.to_owned() }) }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        pub struct $name(String);

        impl $name {
            /// Checks and takes a name.
            ///
            /// # Errors
            /// [`NameError`] when the text is empty, too long or holds a character that is not allowed.
            pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                check_name(&text)?;
                Ok(Self(text))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_type! {
    /// A host of a plan.
    HostName
}
name_type! {
    /// An arm of a plan: one setting under test.
    ArmName
}
name_type! {
    /// A workload of a plan.
    WorkloadName
}
name_type! {
    /// A local lab. Several labs with different names can be up at a time.
    LabName
}
name_type! {
    /// A run in the store, for example `demo-20261121-104501-7f3a`.
    RunId
}

/// A trial's secret: both ends present it before the first byte of traffic (`docs/methodology.md`, "Consent").
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub [u8; 16]);

impl Token {
    /// Compares without telling by the time taken where the first difference is.
    pub fn matches(&self, other: &[u8]) -> bool {
        other.len() == 16 && self.0.iter().zip(other).fold(0, |acc, (a, b)| acc | (a ^ b)) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

impl Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hex = format!("{:032x}", u128::from_be_bytes(self.0));
        serializer.serialize_str(&hex)
    }
}

impl JsonSchema for Token {
    fn schema_name() -> Cow<'static, str> {
        "Token".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let example = "0123456789abcdef0123456789abcdef";
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{32}$", "examples": [example] })
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("a token is 32 hexadecimal digits");
        // The conversion takes a sign, too.
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_that_would_break_a_table_or_a_file_name() {
        for bad in ["", "a b", "../x", "-x", "ä", &"x".repeat(NAME_LEN_MAX + 1)] {
            assert!(HostName::new(bad).is_err(), "{bad:?} was taken");
        }
        for good in ["a", "host-1.example", "10GbE", &"x".repeat(NAME_LEN_MAX)] {
            assert_eq!(HostName::new(good).map(|n| n.to_string()).as_deref(), Ok(good));
        }
    }

    #[test]
    fn name_of_a_run_has_the_start_of_that_of_its_plan() {
        assert_eq!(start_of_run_name("../ä b"), "b");
        assert_eq!(start_of_run_name(""), "run");
        assert_eq!(start_of_run_name(&"y".repeat(90)), "y".repeat(19));
        for stamp in ["-20261121-104501-7f3a", "-20261121-104501-7f3a.netduel"] {
            assert!(is_run_stamp(stamp), "{stamp}");
        }
        for other in ["", "-20261121-104501-7f3", "-20261121-104501-7f3g", "-2026112a-104501-7f3a", "x"] {
            assert!(!is_run_stamp(other), "{other}");
        }
    }

    #[test]
    fn a_token_survives_json_and_is_not_printed() {
        let token = Token([0xab; 16]);
        let json = serde_json::to_string(&token).unwrap();
        assert_eq!(serde_json::from_str::<Token>(&json).unwrap(), token);
        assert!(!format!("{token:?}").contains("ab"));
        for wrong in ["abc".to_owned(), "+1".repeat(16), "é".repeat(16)] {
            assert!(serde_json::from_str::<Token>(&format!("\"{wrong}\"")).is_err(), "{wrong}");
        }
        assert!(!token.matches(&[0xab; 15]));
        assert!(token.matches(&[0xab; 16]));
    }
}
