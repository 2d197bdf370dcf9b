//! Tables with a fixed set of keys: one declaration gives the Rust type, the reader, the writer, the list of keys and the JSON Schema.
use schemars::{Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::examples;
use super::problem::{Problems, TablesWith, any_of, key_path};
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
    /// Whether a table with the keys that were read can have this one as well; messages list no others.
    fn is_possible(&self, _key: &str) -> bool {
        true
    }
}

/// Reads a whole text. `None` when it is not TOML, which is noted once: what was meant by the rest of it is a guess, and further errors of
/// the parser may come from the first.
pub(crate) fn read_text<S: Shape>(text: &str, problems: &mut Problems<'_>) -> Option<S> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let start = |error: &toml::de::Error| error.span().map_or(text.len(), |span| span.start);
    if let Some(error) = errors.iter().min_by_key(|error| start(error)) {
        let there = error.span().and_then(|span| text.get(span)).unwrap_or_default().trim();
        let there = match there.chars().count() {
            1..=40 if !there.contains('\n') => format!(" at `{there}`"),
            _ => String::new(),
        };
        let wrong = format!("this is not TOML: {}{there}", error.message());
        let allowed = "see https://toml.io for what is allowed; nothing else was checked".to_owned();
        problems.add_at(start(error), "", wrong, allowed);
        return None;
    }
    let root = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
    Some(read_shape(&root, "", problems))
}

/// Reads a table. Whatever is wrong with it is noted; the keys that are right are there.
pub(crate) fn read_shape<S: Shape>(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> S {
    let mut shape = S::default();
    let DeValue::Table(table) = raw.get_ref() else {
        let example = examples::table(path).map(|table| format!(", for example {table}")).unwrap_or_default();
        problems.add(path, found(raw), format!("a table is needed{example}"));
        return shape;
    };
    let mut unknown = Vec::new();
    for (key, value) in table {
        let name = key.get_ref();
        let place = key_path(path, name);
        problems.place(&place, key.span().start);
        if let ("name", DeValue::String(text)) = (&**name, value.get_ref()) {
            problems.name_element(path, text);
        }
        if !shape.fill(name, value, &place, problems) {
            unknown.push((name, place));
        }
    }
    let (document, tables_with) = (problems.document(), problems.tables_with());
    for (name, place) in unknown {
        problems.add_made(&place, || {
            (format!("is not a key that a {document} has here"), allowed_keys(&shape, name, tables_with))
        });
    }
    for key in S::keys().iter().filter(|key| key.required) {
        if !table.keys().any(|written| written.get_ref() == key.name) {
            let addition = examples::addition(key.name).map(|addition| format!("add {addition}"));
            let allowed = addition.unwrap_or_else(|| describe(key.doc));
            problems.add(&key_path(path, key.name), "is missing", allowed);
        }
    }
    shape
}

/// What to do with a key that a table does not have: where it belongs, or what was meant, and the keys that the table can have.
fn allowed_keys<S: Shape>(shape: &S, name: &str, tables_with: TablesWith) -> String {
    let keys = S::keys();
    let possible = keys.iter().map(|key| key.name).filter(|key| shape.is_possible(key));
    let elsewhere = tables_with(name);
    let hint = if elsewhere.is_empty() {
        nearest(name, possible.clone()).map(|key| format!("did you mean `{key}`? ")).unwrap_or_default()
    } else {
        format!("it belongs in {}; ", any_of(elsewhere.into_iter().map(str::to_owned)))
    };
    format!("{hint}keys of this table: {}", possible.collect::<Vec<_>>().join(", "))
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

/// Declares a table. Its values implement serde's `Serialize` as a plan writes them. `required` and `optional` say whether the key must be
/// written; a field is `None` when the key is absent or could not be read. `flat`, behind the braces, takes the keys of another table
/// into this one; `where` names a function that decides whether a table with the keys that were read can have another key.
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
        $(where $possible:path)?
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
            $(
                fn is_possible(&self, key: &str) -> bool {
                    $possible(self, key)
                }
            )?
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
