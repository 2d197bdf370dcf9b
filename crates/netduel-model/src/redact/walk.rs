//! A walk over every string of a serializable value, with the type and field that hold it. The result is the value as JSON with the
//! strings that the visitor returned. Nothing here knows what a string means.
use std::cell::RefCell;
use std::fmt::Display;

use serde::ser::{self, Serialize, Serializer};
use serde_json::{Map, Value};

/// Where a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The innermost struct, newtype or enum, by its name in serde.
    pub holder: &'static str,
    /// The field of a struct; empty in a newtype.
    pub field: &'static str,
    /// Whether it is a word of the format, as the name of a variant: it has to stay as it is.
    pub is_word: bool,
}

/// Returns what replaces a string.
pub type Visitor<'v> = dyn FnMut(Place, &str) -> String + 'v;

/// The value as JSON, with its strings replaced.
///
/// # Errors
/// That of a value that JSON cannot represent.
pub fn walk(value: &impl Serialize, visitor: &mut Visitor<'_>) -> Result<Value, serde_json::Error> {
    let visitor = RefCell::new(visitor);
    value.serialize(Walk { at: Place { holder: "", field: "", is_word: false }, visitor: &visitor })
}

#[derive(Clone, Copy)]
struct Walk<'r, 'v> {
    at: Place,
    visitor: &'r RefCell<&'r mut Visitor<'v>>,
}

impl Walk<'_, '_> {
    fn replaced(&self, text: &str) -> String {
        (*self.visitor.borrow_mut())(self.at, text)
    }

    /// A name of a variant: seen, but not replaced.
    fn word(&self, variant: &str) -> String {
        (*self.visitor.borrow_mut())(Place { is_word: true, ..self.at }, variant);
        variant.to_owned()
    }

    fn in_type(self, holder: &'static str) -> Self {
        Self { at: Place { holder, field: "", is_word: false }, ..self }
    }

    fn in_field(self, field: &'static str) -> Self {
        Self { at: Place { field, is_word: is_tag(self.at.holder, field), ..self.at }, ..self }
    }
}

/// Whether a field is the tag of an enum: serde passes its word as a string. Fields of that name in other types are of a fixed
/// vocabulary too, such as the kind of an interface.
fn is_tag(holder: &str, field: &str) -> bool {
    matches!(field, "kind" | "state" | "choice" | "spread" | "type")
        || (holder, field) == ("RunEnd", "reason")
}

type Ended = Result<Value, serde_json::Error>;

/// Elements of a sequence, and of the variant that holds them.
struct Elements<'r, 'v> {
    walk: Walk<'r, 'v>,
    values: Vec<Value>,
    variant: Option<&'static str>,
}

/// Members of an object, and of the variant that holds it.
struct Members<'r, 'v> {
    walk: Walk<'r, 'v>,
    object: Map<String, Value>,
    key: String,
    variant: Option<&'static str>,
}

fn in_variant(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(variant) => Value::Object(Map::from_iter([(variant.to_owned(), value)])),
        None => value,
    }
}

impl<'r, 'v> Walk<'r, 'v> {
    fn elements(self, variant: Option<&'static str>) -> Elements<'r, 'v> {
        Elements { walk: self, values: Vec::new(), variant }
    }

    fn members(self, variant: Option<&'static str>) -> Members<'r, 'v> {
        Members { walk: self, object: Map::new(), key: String::new(), variant }
    }
}

/// Methods for values without strings, which `serde_json` represents.
macro_rules! as_json {
    ($($method:ident($type:ty))+) => {
        $(fn $method(self, value: $type) -> Ended {
            serde_json::value::Serializer.$method(value)
        })+
    };
}

impl<'r, 'v> Serializer for Walk<'r, 'v> {
    type Ok = Value;
    type Error = serde_json::Error;
    type SerializeSeq = Elements<'r, 'v>;
    type SerializeTuple = Elements<'r, 'v>;
    type SerializeTupleStruct = Elements<'r, 'v>;
    type SerializeTupleVariant = Elements<'r, 'v>;
    type SerializeMap = Members<'r, 'v>;
    type SerializeStruct = Members<'r, 'v>;
    type SerializeStructVariant = Members<'r, 'v>;

    as_json! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_bytes(&[u8])
    }

    fn serialize_str(self, text: &str) -> Ended {
        Ok(Value::String(if self.at.is_word { self.word(text) } else { self.replaced(text) }))
    }
    fn collect_str<T: ?Sized + Display>(self, value: &T) -> Ended {
        self.serialize_str(&value.to_string())
    }
    fn serialize_none(self) -> Ended {
        Ok(Value::Null)
    }
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Ended {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Ended {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Ended {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Ended {
        Ok(Value::String(self.word(variant)))
    }
    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, name: &'static str, value: &T) -> Ended {
        value.serialize(self.in_type(name))
    }
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Ended {
        Ok(in_variant(Some(variant), value.serialize(self.in_type(name))?))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Self::Error> {
        Ok(self.elements(None))
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Self::Error> {
        Ok(self.elements(None))
    }
    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Self::Error> {
        Ok(self.in_type(name).elements(None))
    }
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Self::Error> {
        Ok(self.in_type(name).elements(Some(variant)))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Self::Error> {
        Ok(self.members(None))
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeStruct, Self::Error> {
        Ok(self.in_type(name).members(None))
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Self::Error> {
        Ok(self.in_type(name).members(Some(variant)))
    }
}

impl Elements<'_, '_> {
    fn push(&mut self, value: &(impl ?Sized + Serialize)) -> Result<(), serde_json::Error> {
        self.values.push(value.serialize(self.walk)?);
        Ok(())
    }
}

impl ser::SerializeSeq for Elements<'_, '_> {
    type Ok = Value;
    type Error = serde_json::Error;
    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.push(value)
    }
    fn end(self) -> Ended {
        Ok(in_variant(self.variant, Value::Array(self.values)))
    }
}

impl ser::SerializeTuple for Elements<'_, '_> {
    type Ok = Value;
    type Error = serde_json::Error;
    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.push(value)
    }
    fn end(self) -> Ended {
        ser::SerializeSeq::end(self)
    }
}

impl ser::SerializeTupleStruct for Elements<'_, '_> {
    type Ok = Value;
    type Error = serde_json::Error;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.push(value)
    }
    fn end(self) -> Ended {
        ser::SerializeSeq::end(self)
    }
}

impl ser::SerializeTupleVariant for Elements<'_, '_> {
    type Ok = Value;
    type Error = serde_json::Error;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.push(value)
    }
    fn end(self) -> Ended {
        ser::SerializeSeq::end(self)
    }
}

impl Members<'_, '_> {
    fn insert(
        &mut self,
        field: &'static str,
        value: &(impl ?Sized + Serialize),
    ) -> Result<(), serde_json::Error> {
        let value = value.serialize(self.walk.in_field(field))?;
        self.object.insert(field.to_owned(), value);
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_, '_> {
    type Ok = Value;
    type Error = serde_json::Error;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Self::Error> {
        self.key = match key.serialize(self.walk)? {
            Value::String(key) => key,
            // As serde_json writes keys that are numbers.
            other => other.to_string(),
        };
        Ok(())
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Self::Error> {
        let value = value.serialize(self.walk)?;
        self.object.insert(std::mem::take(&mut self.key), value);
        Ok(())
    }
    fn end(self) -> Ended {
        Ok(in_variant(self.variant, Value::Object(self.object)))
    }
}

impl ser::SerializeStruct for Members<'_, '_> {
    type Ok = Value;
    type Error = serde_json::Error;
    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<(), Self::Error> {
        self.insert(field, value)
    }
    fn end(self) -> Ended {
        ser::SerializeMap::end(self)
    }
}

impl ser::SerializeStructVariant for Members<'_, '_> {
    type Ok = Value;
    type Error = serde_json::Error;
    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<(), Self::Error> {
        self.insert(field, value)
    }
    fn end(self) -> Ended {
        ser::SerializeMap::end(self)
    }
}
