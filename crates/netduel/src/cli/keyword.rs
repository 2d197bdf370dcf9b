//! Keywords of plans as values of options: the words are those of the types of the model. It defines no option.
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

/// Parses a keyword.
///
/// # Errors
/// The keywords that are allowed.
pub fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).map_err(|error| {
        let error: serde_json::Error = error;
        let text = error.to_string();
        // serde lists the words after "unknown variant `...`, expected".
        text.split_once(", expected ").map_or(text.clone(), |(_, words)| format!("{words} is allowed"))
    })
}

/// A parser of these values only. Help and completions list their keywords, each with what it means.
pub fn keywords<T, const N: usize>(
    values: [(T, &'static str); N],
    keyword: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let listed = values.map(|(value, meaning)| PossibleValue::new(keyword(value)).help(meaning));
    PossibleValuesParser::new(listed).try_map(|text| word(&text))
}
