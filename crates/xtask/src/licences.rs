//! The licences of all dependencies against the list in `deny.toml`, without cargo-deny, which CI and most users do not have. Judges neither
//! advisories nor sources: cargo-deny does, where it is installed.
use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{step, workspace};

const LIST: &str = "deny.toml";
/// The list is for the machines that netduel runs on.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Prints each dependency whose licence is not on the list, or that is refused by name; `false` when there is one.
pub fn check() -> Result<bool> {
    let list = List::read()?;
    let mut packages = BTreeSet::new();
    for target in TARGETS {
        packages.extend(packages_for(target)?);
    }
    ensure!(!packages.is_empty(), "`cargo metadata` lists no dependency");
    let faults: Vec<String> = packages.iter().filter_map(|package| list.fault(package)).collect();
    for fault in &faults {
        println!("{fault}");
    }
    if faults.is_empty() {
        println!("licences: {} dependencies, all allowed by {LIST}", packages.len());
    }
    Ok(faults.is_empty())
}

/// A dependency from outside the workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    /// Its expression; absent without one.
    licence: Option<String>,
}

fn packages_for(target: &str) -> Result<Vec<Package>> {
    let mut command =
        step::cargo(["metadata", "--locked", "--format-version", "1", "--filter-platform", target]);
    let shown = step::shown(&command);
    let output = command.output().with_context(|| format!("failed to start `{shown}`"))?;
    ensure!(output.status.success(), "`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("`{shown}` printed no JSON"))?;
    // `packages` has those of other systems, too; the resolved graph has not.
    let used: BTreeSet<&str> =
        members(&metadata["resolve"]["nodes"]).filter_map(|node| node["id"].as_str()).collect();
    let outside = members(&metadata["packages"])
        .filter(|package| !package["source"].is_null())
        .filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    outside
        .map(|package| {
            Some(Package {
                name: text(&package["name"])?,
                version: text(&package["version"])?,
                licence: text(&package["license"]),
            })
        })
        .collect::<Option<_>>()
        .context("`cargo metadata` has a package without a name or a version")
}

fn members(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// What `deny.toml` allows and refuses.
struct List {
    allowed: BTreeSet<String>,
    refused: Vec<(String, String)>,
}

impl List {
    fn read() -> Result<Self> {
        let path = workspace::root().join(LIST);
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not a list for cargo-deny", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse()?;
        let words = |section: &str, key: &str| -> Vec<toml::Value> {
            let list = table.get(section).and_then(|section| section.get(key));
            list.and_then(toml::Value::as_array).cloned().unwrap_or_default()
        };
        let allowed: BTreeSet<String> =
            words("licenses", "allow").iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect();
        ensure!(!allowed.is_empty(), "licenses.allow is empty");
        let refused = words("bans", "deny")
            .iter()
            .filter_map(|ban| {
                let text = |key| ban.get(key).and_then(toml::Value::as_str).map(str::to_owned);
                Some((text("crate")?, text("reason").unwrap_or_default()))
            })
            .collect();
        Ok(Self { allowed, refused })
    }

    /// Why a dependency is not accepted.
    fn fault(&self, package: &Package) -> Option<String> {
        let Package { name, version, licence } = package;
        if let Some((_, reason)) = self.refused.iter().find(|(refused, _)| refused == name) {
            return Some(format!("{name} {version}: {LIST} refuses it: {reason}"));
        }
        let Some(licence) = licence else {
            return Some(format!("{name} {version}: it names no licence; look at it, and use another crate"));
        };
        match Expression::parse(licence) {
            Some(expression) if expression.is_allowed(&self.allowed) => None,
            Some(_) => Some(format!(
                "{name} {version}: its licence, {licence}, is not allowed by licenses.allow in {LIST}; use another crate, or add the licence with a reason"
            )),
            None => Some(format!("{name} {version}: its licence, {licence}, is not an expression of SPDX")),
        }
    }
}

/// A licence expression (SPDX 2.3, annex D). `/` is the older form of `OR`.
#[derive(Debug, PartialEq, Eq)]
enum Expression {
    /// An identifier, with its exception when it has one.
    Licence(String),
    Any(Vec<Expression>),
    All(Vec<Expression>),
}

impl Expression {
    fn parse(text: &str) -> Option<Self> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut rest = words.as_slice();
        let expression = Self::any(&mut rest)?;
        rest.is_empty().then_some(expression)
    }

    fn any(words: &mut &[&str]) -> Option<Self> {
        let parts = Self::parts(words, "OR", Self::all)?;
        Some(Self::joined(parts, Self::Any))
    }

    fn all(words: &mut &[&str]) -> Option<Self> {
        let parts = Self::parts(words, "AND", Self::one)?;
        Some(Self::joined(parts, Self::All))
    }

    fn parts(
        words: &mut &[&str],
        operator: &str,
        part: fn(&mut &[&str]) -> Option<Self>,
    ) -> Option<Vec<Self>> {
        let mut parts = vec![part(words)?];
        while let [first, rest @ ..] = *words
            && *first == operator
        {
            *words = rest;
            parts.push(part(words)?);
        }
        Some(parts)
    }

    fn joined(mut parts: Vec<Self>, join: fn(Vec<Self>) -> Self) -> Self {
        if parts.len() == 1 { parts.remove(0) } else { join(parts) }
    }

    fn one(words: &mut &[&str]) -> Option<Self> {
        match *words {
            ["(", rest @ ..] => {
                *words = rest;
                let inner = Self::any(words)?;
                let [")", rest @ ..] = *words else { return None };
                *words = rest;
                Some(inner)
            }
            [licence, "WITH", exception, rest @ ..] if is_identifier(licence) && is_identifier(exception) => {
                *words = rest;
                Some(Self::Licence(format!("{licence} WITH {exception}")))
            }
            [licence, rest @ ..] if is_identifier(licence) => {
                *words = rest;
                Some(Self::Licence((*licence).to_owned()))
            }
            _ => None,
        }
    }

    fn is_allowed(&self, allowed: &BTreeSet<String>) -> bool {
        match self {
            Self::Licence(licence) => allowed.contains(licence),
            Self::Any(parts) => parts.iter().any(|part| part.is_allowed(allowed)),
            Self::All(parts) => parts.iter().all(|part| part.is_allowed(allowed)),
        }
    }
}

fn is_identifier(word: &str) -> bool {
    !matches!(word, "(" | ")" | "OR" | "AND" | "WITH")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[licenses]\nallow = [\"MIT\", \"ISC\"]\n[bans]\ndeny = [{ crate = \"tokio\", reason = \"threads\" }]\n";

    fn fault(name: &str, licence: Option<&str>) -> Option<String> {
        let licence = licence.map(str::to_owned);
        let package = Package { name: name.to_owned(), version: "1.0.0".to_owned(), licence };
        List::parse(TEXT).unwrap().fault(&package)
    }

    #[test]
    fn expression_needs_one_allowed_choice_and_each_of_its_parts() {
        for (licence, is_allowed) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only/MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT AND ISC", true),
            ("(GPL-3.0-only OR MIT) AND ISC", true),
            ("GPL-3.0-only OR MIT AND ISC", true),
            ("(GPL-3.0-only OR MIT) AND (GPL-2.0-only)", false),
            ("MIT WITH LLVM-exception", false),
        ] {
            assert_eq!(fault("x", Some(licence)).is_none(), is_allowed, "{licence}");
        }
        for licence in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "OR MIT"] {
            assert!(fault("x", Some(licence)).unwrap().contains("not an expression"), "{licence}");
        }
        assert!(fault("x", None).unwrap().contains("names no licence"));
    }

    #[test]
    fn crate_that_is_refused_by_name_is_named_with_the_reason() {
        assert_eq!(fault("tokio", Some("MIT")).unwrap(), "tokio 1.0.0: deny.toml refuses it: threads");
    }

    #[test]
    fn dependencies_of_this_workspace_are_allowed() {
        assert!(check().unwrap(), "the dependencies are printed above");
    }
}
