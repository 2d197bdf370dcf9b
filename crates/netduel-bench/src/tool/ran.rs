//! A finished run of a tool, and functions that find numbers in its output. Independent of each tool.
use anyhow::{Context as _, Result};

use crate::outcome::Reading;

/// A finished run.
#[derive(Debug)]
pub struct Ran {
    /// The values that the tool reports.
    pub reading: Reading,
    /// CPU time of the client's process, seconds.
    pub client_cpu_s: f64,
    /// CPU time of the server's process, seconds.
    pub server_cpu_s: f64,
}

/// A line without the colours of a terminal (ECMA-48 SGR sequences).
pub fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    text + rest
}

/// The number after `key` up to white space or a comma, for output of the form `key=1.5, other = 2`.
pub fn number_after(text: &str, key: &str) -> Result<f64> {
    let (_, rest) = text.split_once(key).with_context(|| format!("its output has no `{}`", key.trim()))?;
    let rest = rest.trim_start().trim_start_matches('=').trim_start();
    let end = rest.find(|c: char| c.is_whitespace() || c == ',' || c == ';').unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("`{}` after `{}` is not a number", &rest[..end], key.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed() {
        assert_eq!(plain("a: \u{1b}[2;35m== version #3.7 == \u{1b}[0m"), "a: == version #3.7 == ");
        assert_eq!(plain("plain"), "plain");
    }

    #[test]
    fn numbers_are_parsed_by_key() {
        let text = "megabytes=2981.0000 real_seconds=1.00\n latency  =  26723.7 ns";
        assert!((number_after(text, "megabytes=").unwrap() - 2981.0).abs() < 1e-9);
        assert!((number_after(text, "latency").unwrap() - 26723.7).abs() < 1e-9);
        assert!(number_after(text, "drop=").unwrap_err().to_string().contains("no `drop=`"));
        assert!(number_after("a=b", "a=").unwrap_err().to_string().contains("not a number"));
    }
}
