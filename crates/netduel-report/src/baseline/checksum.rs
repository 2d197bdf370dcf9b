//! The checksum of a baseline file: a changed digit would change a verdict silently.
use std::fmt::Write as _;

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// Removes the checksum of a document, and returns it.
pub fn take_checksum(document: &mut Value) -> Option<Value> {
    document.as_object_mut()?.remove("checksum")
}

/// The checksum of a document without it. Numbers and texts are compared, not their layout: other programs lay files of a repository out anew.
pub fn checksum(document: &Value) -> String {
    let mut document = document.clone();
    unify_numbers(&mut document);
    let mut digits = String::new();
    for byte in Sha256::digest(document.to_string()) {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// 2^53: all integers below it are exact in a double. Programs that have no other numbers write `3` for `3.0`.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes numbers without a fraction as integers.
fn unify_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|whole| whole.fract() == 0.0 && whole.abs() < EXACT_MAX);
            if let Some(whole) = whole.filter(|_| number.is_f64()) {
                *number = Number::from(whole as i64);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(unify_numbers),
        Value::Object(map) => map.values_mut().for_each(unify_numbers),
        _ => {}
    }
}
