//! The word of a variant, as serde writes it. Plans, JSON, tables and messages show the same word, so it stands in one place: the `rename` of
//! the enum. For enums without data only.
use std::fmt;

use serde::ser::{Error, Impossible, Serialize, Serializer};

/// The word of a variant without data.
///
/// # Panics
/// For a value that is no such variant.
pub fn word(variant: &impl Serialize) -> &'static str {
    variant.serialize(Word).expect("a variant without data")
}

/// Takes nothing but the name of a variant.
struct Word;

/// The value has data.
#[derive(Debug)]
struct HasData;

impl fmt::Display for HasData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is no variant without data")
    }
}

impl std::error::Error for HasData {}

impl Error for HasData {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Refused = Impossible<&'static str, HasData>;

/// Methods that refuse a value.
macro_rules! refuse {
    ($($method:ident($($type:ty),*) -> $given:ty;)+) => {
        $(fn $method(self $(, _: $type)*) -> Result<$given, HasData> {
            Err(HasData)
        })+
    };
}

impl Serializer for Word {
    type Ok = &'static str;
    type Error = HasData;
    type SerializeSeq = Refused;
    type SerializeTuple = Refused;
    type SerializeTupleStruct = Refused;
    type SerializeTupleVariant = Refused;
    type SerializeMap = Refused;
    type SerializeStruct = Refused;
    type SerializeStructVariant = Refused;

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<&'static str, HasData> {
        Ok(variant)
    }

    refuse! {
        serialize_bool(bool) -> &'static str;
        serialize_i8(i8) -> &'static str;
        serialize_i16(i16) -> &'static str;
        serialize_i32(i32) -> &'static str;
        serialize_i64(i64) -> &'static str;
        serialize_u8(u8) -> &'static str;
        serialize_u16(u16) -> &'static str;
        serialize_u32(u32) -> &'static str;
        serialize_u64(u64) -> &'static str;
        serialize_f32(f32) -> &'static str;
        serialize_f64(f64) -> &'static str;
        serialize_char(char) -> &'static str;
        serialize_str(&str) -> &'static str;
        serialize_bytes(&[u8]) -> &'static str;
        serialize_none() -> &'static str;
        serialize_unit() -> &'static str;
        serialize_unit_struct(&'static str) -> &'static str;
        serialize_seq(Option<usize>) -> Refused;
        serialize_tuple(usize) -> Refused;
        serialize_tuple_struct(&'static str, usize) -> Refused;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Refused;
        serialize_map(Option<usize>) -> Refused;
        serialize_struct(&'static str, usize) -> Refused;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Refused;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<&'static str, HasData> {
        Err(HasData)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<&'static str, HasData> {
        Err(HasData)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<&'static str, HasData> {
        Err(HasData)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;

    #[test]
    fn a_word_is_what_stands_in_json() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), word(&metric));
        }
        assert_eq!(word(&Metric::LatencyP999), "latency-p999");
    }

    #[test]
    #[should_panic(expected = "a variant without data")]
    fn a_value_with_data_has_no_word() {
        word(&Some(Metric::Loss));
    }
}
