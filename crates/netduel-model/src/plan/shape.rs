//! Tables with a fixed set of keys: one declaration gives the Rust type, the reader, the writer, the list of keys and the JSON Schema.
use schemars::{Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problems, key_path};
use super::value::{Raw, found};
use crate::nearest::nearest;

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// As it is written.
    pub name: &'static str,
    /// Whether a table without it is wrong.
    pub required: bool,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
    /// The schema of its value.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// A table with a fixed set of keys.
pub(crate) trait Shape: Default {
    /// Its keys, in the order of the documentation.
    fn keys() -> Vec<Key>;
    /// Reads one key into its field; false when the table has no such key.
    fn fill(&mut self, key: &str, raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> bool;
}

/// Reads a whole text. `None` when it is not TOML, which is noted: what was meant by the rest of it is a guess.
pub(crate) fn read_text<S: Shape>(text: &str, problems: &mut Problems<'_>) -> Option<S> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let offset = error.span().map_or(text.len(), |span| span.start);
        let there = error.span().and_then(|span| text.get(span)).unwrap_or_default().trim();
        let there = match there.chars().count() {
            1..=40 if !there.contains('\n') => format!(" at `{there}`"),
            _ => String::new(),
        };
        let wrong = format!("this is not TOML: {}{there}", error.message());
        problems.add_at(offset, "", wrong, "see https://toml.io for what is allowed".to_owned());
    }
    if !errors.is_empty() {
        return None;
    }
    let root = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
    Some(read_shape(&root, "", problems))
}

/// Reads a table. Whatever is wrong with it is noted; the keys that are right are there.
pub(crate) fn read_shape<S: Shape>(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> S {
    let mut shape = S::default();
    let DeValue::Table(table) = raw.get_ref() else {
        problems.add(path, found(raw), "a table is needed");
        return shape;
    };
    let keys = S::keys();
    let document = problems.document();
    for (key, value) in table {
        let name = key.get_ref();
        let path = key_path(path, name);
        problems.place(&path, key.span().start);
        if !shape.fill(name, value, &path, problems) {
            problems.add_made(&path, || {
                let names = keys.iter().map(|key| key.name);
                let meant = nearest(name, names.clone()).map(|key| format!("did you mean `{key}`? "));
                let allowed = names.collect::<Vec<_>>().join(", ");
                let allowed = format!("{}keys of this table: {allowed}", meant.unwrap_or_default());
                (format!("is not a key that a {document} has here"), allowed)
            });
        }
    }
    for key in keys.iter().filter(|key| key.required) {
        if !table.keys().any(|written| written.get_ref() == key.name) {
            problems.add(&key_path(path, key.name), "is missing", describe(key.doc));
        }
    }
    shape
}

/// Documentation as one paragraph.
pub(crate) fn describe(doc: &[&str]) -> String {
    doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The JSON Schema of a table.
pub(crate) fn shape_schema<S: Shape>(generator: &mut SchemaGenerator, doc: &[&str]) -> Schema {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for key in S::keys() {
        let mut schema = (key.schema)(generator);
        schema.insert("description".to_owned(), describe(key.doc).into());
        properties.insert(key.name.to_owned(), schema.to_value());
        if key.required {
            required.push(key.name);
        }
    }
    json_schema!({
        "description": describe(doc),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Declares a table. Its values implement serde's `Serialize` as a plan writes them. `required` and `optional` say whether the key must be written; a field is `None` when the key is
/// absent or could not be read. `flat`, behind the braces, takes the
/// keys of another table into this one.
macro_rules! shape {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@required required) => { true };
    (@required optional) => { false };
    (
        $(#[doc = $doc:literal])+
        pub struct $type:ident {
            $(
                $(#[doc = $key_doc:literal])+
                $need:ident $field:ident $(as $name:literal)?: $value:ty,
            )*
        }
        $(flat $flat:ident: $flat_type:ty)?
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $type {
            $(
                $(#[doc = $key_doc])+
                pub $field: Option<$value>,
            )*
            $(
                /// Keys of another table that are written in this one.
                pub $flat: $flat_type,
            )?
        }

        impl $crate::plan::shape::Shape for $type {
            fn keys() -> Vec<$crate::plan::shape::Key> {
                let own = vec![$($crate::plan::shape::Key {
                    name: shape!(@name $field $($name)?),
                    required: shape!(@required $need),
                    doc: &[$($key_doc),+],
                    schema: |generator| generator.subschema_for::<$value>(),
                }),*];
                [own, $(<$flat_type as $crate::plan::shape::Shape>::keys())?].concat()
            }

            fn fill(
                &mut self,
                key: &str,
                raw: &$crate::plan::value::Raw<'_>,
                path: &str,
                problems: &mut $crate::plan::problem::Problems<'_>,
            ) -> bool {
                $(
                    if key == shape!(@name $field $($name)?) {
                        self.$field = $crate::plan::value::Value::read(raw, path, problems);
                        return true;
                    }
                )*
                false $(|| $crate::plan::shape::Shape::fill(&mut self.$flat, key, raw, path, problems))?
            }
        }

        impl $type {
            /// This table laid over another: what it does not have is that of the other.
            #[must_use]
            pub fn over(&self, other: &Self) -> Self {
                Self {
                    $($field: self.$field.clone().or_else(|| other.$field.clone()),)*
                    $($flat: self.$flat.over(&other.$flat),)?
                }
            }

            /// Writes the keys that are given into a table.
            pub(crate) fn write_keys<M: serde::ser::SerializeMap>(&self, table: &mut M) -> Result<(), M::Error> {
                $(
                    if let Some(value) = &self.$field {
                        table.serialize_entry(shape!(@name $field $($name)?), value)?;
                    }
                )*
                $(self.$flat.write_keys(table)?;)?
                Ok(())
            }

            /// The keys of this table that are written and readable, keys of a flattened table left out.
            pub fn given(&self) -> Vec<&'static str> {
                let mut given = Vec::new();
                $(if self.$field.is_some() { given.push(shape!(@name $field $($name)?)); })*
                given
            }
        }

        impl $crate::plan::value::Value for $type {
            fn read(
                raw: &$crate::plan::value::Raw<'_>,
                path: &str,
                problems: &mut $crate::plan::problem::Problems<'_>,
            ) -> Option<Self> {
                Some($crate::plan::shape::read_shape(raw, path, problems))
            }
        }

        /// As it is read: the keys that are given, in their order.
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut table = serializer.serialize_map(None)?;
                self.write_keys(&mut table)?;
                serde::ser::SerializeMap::end(table)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::plan::shape::shape_schema::<Self>(generator, &[$($doc),+])
            }
        }
    };
}
pub(crate) use shape;
