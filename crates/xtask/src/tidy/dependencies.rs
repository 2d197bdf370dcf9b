//! Rules for manifests: allowed imports between crates, inherited lints, and a reason for each external dependency.
use std::collections::{BTreeMap, BTreeSet};

use super::tree::Tree;
use super::violation::Violation;

/// The document with a line for each direct dependency.
const REASONS: &str = "docs/dependencies.md";

/// The allowed imports between crates of the workspace. Each missing edge is a boundary.
const ROOMS: [(&str, &[&str]); 20] = [
    ("netduel-model", &[]),
    // Statistics compute with the records and terms of the model; the model never computes.
    ("netduel-stats", &["netduel-model"]),
    ("netduel-sys", &[]),
    ("netduel-load", &["netduel-model", "netduel-stats", "netduel-sys"]),
    ("netduel-host", &["netduel-model", "netduel-sys"]),
    ("netduel-lab", &["netduel-model", "netduel-sys"]),
    ("netduel-control", &["netduel-model", "netduel-stats"]),
    ("netduel-store", &["netduel-model"]),
    ("netduel-report", &["netduel-model", "netduel-stats"]),
    ("netduel-interop", &["netduel-model", "netduel-sys"]),
    // Beds on Azure: nothing that measures, stores or reports needs it.
    ("netduel-azure", &["netduel-model", "netduel-sys"]),
    // Never lab, store or report: hosts with an agent have none of them.
    (
        "netduel-agent",
        &[
            "netduel-model",
            "netduel-sys",
            "netduel-load",
            "netduel-host",
            "netduel-control",
            "netduel-interop",
        ],
    ),
    (
        "netduel",
        &[
            "netduel-model",
            "netduel-stats",
            "netduel-sys",
            "netduel-load",
            "netduel-host",
            "netduel-lab",
            "netduel-control",
            "netduel-store",
            "netduel-report",
            "netduel-agent",
            "netduel-azure",
        ],
    ),
    // Measures the engines against other tools. Nothing imports it, so that parsers of other tools' output and benchmark code
    // stay out of the product.
    (
        "netduel-bench",
        &["netduel-model", "netduel-stats", "netduel-sys", "netduel-host", "netduel-load", "netduel-interop"],
    ),
    // Runs in virtual time. Nothing imports it, so that simulated hosts stay out of the product.
    ("netduel-simulation", &["netduel-control", "netduel-model"]),
    // Calls the parsers of the product with bytes of a fuzzer. Nothing imports it, so that libFuzzer stays out of the product.
    (
        "netduel-fuzz",
        &[
            "netduel-model",
            "netduel-sys",
            "netduel-load",
            "netduel-host",
            "netduel-control",
            "netduel-store",
            "netduel-report",
            "netduel-interop",
            "netduel-agent",
            "netduel-azure",
            "netduel-lab",
        ],
    ),
    // Walks schemas in tests of the crates with a stored or transmitted format; no dependency outside of tests.
    ("netduel-formats", &[]),
    // The line of a skipped test, which xtask reads; otherwise a dependency of tests only.
    ("netduel-test-support", &[]),
    // Boots guests with real NIC drivers for tests; a dependency of its own tests and of xtask only.
    ("netduel-guests", &[]),
    ("xtask", &["netduel-guests", "netduel-test-support"]),
];

/// The only crates that tests of every crate may import.
const TEST_SUPPORT: [&str; 2] = ["netduel-formats", "netduel-test-support"];

/// What tests of a crate may import beside what the crate itself may.
const ROOMS_OF_TESTS: [(&str, &[&str]); 2] = [
    // A report is tested with runs that were stored; the crate has them from its caller.
    ("netduel-report", &["netduel-store"]),
    // Tests of treatments start testpmd themselves.
    ("netduel", &["netduel-interop"]),
];

/// The page with the table of crates. Its last column is the same as [`ROOMS`].
const CODE_MAP: &str = "ARCHITECTURE.md";

/// The tables of a manifest that name dependencies. Tests have the limits of the code that they test, but for [`ROOMS_OF_TESTS`].
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// A dependency as a manifest names it.
struct Dependency {
    name: String,
    line: usize,
    /// Whether it is a dependency of tests only.
    is_of_tests: bool,
}

/// Checks every manifest.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let mut foreign: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in tree.texts("Cargo.toml").filter(|(path, _)| path.starts_with("crates/")) {
        let manifest = match text.parse::<toml::Table>() {
            Ok(manifest) => manifest,
            Err(error) => {
                found.push(violation(path, 1, "manifest", format!("cannot be read: {error}")));
                continue;
            }
        };
        let name =
            manifest.get("package").and_then(|package| package.get("name")?.as_str()).unwrap_or_default();
        check_folder(path, name, found);
        check_lints(path, &manifest, found);
        let (own, others): (Vec<_>, Vec<_>) =
            dependencies(&manifest, text).into_iter().partition(|dependency| is_ours(&dependency.name));
        check_edges(path, name, &own, found);
        let of_code = own.into_iter().filter(|dependency| !dependency.is_of_tests);
        imports.insert(name.to_owned(), of_code.map(|dependency| dependency.name).collect());
        for dependency in others {
            foreign.entry(dependency.name).or_insert_with(|| (path.to_owned(), dependency.line));
        }
    }
    check_reasons(tree, &foreign, found);
    if let Some(text) = tree.text(CODE_MAP) {
        check_code_map(text, found);
        check_use(&imports, found);
    }
}

/// A crate has every import that it may have: a list that is longer than its use is no boundary.
fn check_use(imports: &BTreeMap<String, BTreeSet<String>>, found: &mut Vec<Violation>) {
    for (room, allowed) in ROOMS {
        let Some(own) = imports.get(room) else { continue };
        for name in allowed.iter().filter(|name| !own.contains(**name)) {
            let message =
                format!("`{room}` may import `{name}` and does not: remove it from ROOMS and this table");
            found.push(violation(CODE_MAP, 1, "import", message));
        }
    }
}

/// Every crate has a row in the code map, whose last column lists the crates that it may import, by their names without `netduel-`.
fn check_code_map(text: &str, found: &mut Vec<Violation>) {
    let rows: BTreeMap<&str, (usize, BTreeSet<&str>)> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let cells: Vec<&str> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
            let [name, _, imports] = cells[..] else { return None };
            let name = name.trim().strip_prefix('`')?.strip_suffix('`')?;
            let imports = imports.split(',').map(str::trim).filter(|word| *word != "none").collect();
            ROOMS.iter().any(|(room, _)| *room == name).then_some((name, (index + 1, imports)))
        })
        .collect();
    for (room, allowed) in ROOMS {
        let Some((line, documented)) = rows.get(room) else {
            let message =
                format!("the code map has no row for `{room}`: add it, with the crates that it may import");
            found.push(violation(CODE_MAP, 1, "code map", message));
            continue;
        };
        let allowed: BTreeSet<&str> =
            allowed.iter().map(|name| name.strip_prefix("netduel-").unwrap_or(name)).collect();
        if *documented != allowed {
            let allowed: Vec<&str> = allowed.into_iter().collect();
            let message = format!(
                "`{room}` may import {}, but its row has another list: make the row equal to ROOMS",
                if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") }
            );
            found.push(violation(CODE_MAP, *line, "code map", message));
        }
    }
}

fn check_folder(path: &str, name: &str, found: &mut Vec<Violation>) {
    let folder = path.split('/').nth(1).unwrap_or_default();
    if folder != name {
        let message = format!("the crate `{name}` lies in the folder `{folder}`: give both one name");
        found.push(violation(path, 1, "room", message));
    }
}

/// The lints of the compiler and clippy are in the workspace's manifest and apply only to crates that inherit them.
fn check_lints(path: &str, manifest: &toml::Table, found: &mut Vec<Violation>) {
    let inherited = manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
    if inherited != Some(true) {
        let message = "the lints of the workspace do not hold here: add `[lints]` with `workspace = true`";
        found.push(violation(path, 1, "lints", message.to_owned()));
    }
}

fn check_edges(path: &str, name: &str, own: &[Dependency], found: &mut Vec<Violation>) {
    let Some((_, allowed)) = ROOMS.iter().find(|(room, _)| *room == name) else {
        let message = format!(
            "no room is planned for `{name}`: make it a module, or add it to ROOMS in tidy with its reason"
        );
        found.push(violation(path, 1, "room", message));
        return;
    };
    let of_tests = ROOMS_OF_TESTS.iter().filter(|(room, _)| *room == name).flat_map(|(_, names)| *names);
    let of_tests: Vec<&str> = of_tests.chain(&TEST_SUPPORT).copied().collect();
    let is_allowed = |dependency: &&Dependency| {
        allowed.contains(&dependency.name.as_str())
            || (dependency.is_of_tests && of_tests.contains(&dependency.name.as_str()))
    };
    for dependency in own.iter().filter(|dependency| !is_allowed(dependency)) {
        let allowed = if allowed.is_empty() { "none of ours".to_owned() } else { allowed.join(", ") };
        let message = format!(
            "`{name}` must not import `{}`, it may import {allowed}: hand the thing over through a trait or a type of \
             netduel-model",
            dependency.name
        );
        found.push(violation(path, dependency.line, "import", message));
    }
}

/// A reason is a table row or list entry that begins with the name in backticks.
fn check_reasons(tree: &Tree, foreign: &BTreeMap<String, (String, usize)>, found: &mut Vec<Violation>) {
    let text = tree.text(REASONS).unwrap_or_default();
    let mut explained = BTreeSet::new();
    let workspace = tree.text("Cargo.toml").and_then(|text| text.parse::<toml::Table>().ok());
    let planned: BTreeSet<String> = workspace
        .as_ref()
        .and_then(|manifest| manifest.get("workspace")?.get("dependencies")?.as_table())
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default();
    for (index, line) in text.lines().enumerate() {
        let Some((name, reason)) = line
            .strip_prefix("| `")
            .or_else(|| line.strip_prefix("- `"))
            .and_then(|rest| rest.split_once('`'))
        else {
            continue;
        };
        if !reason.chars().any(char::is_alphabetic) {
            found.push(violation(REASONS, index + 1, "dependency", format!("say why `{name}` is used")));
        }
        if !foreign.contains_key(name) && !planned.contains(name) {
            let message = format!("nothing depends on `{name}`: take the line out");
            found.push(violation(REASONS, index + 1, "dependency", message));
        }
        explained.insert(name);
    }
    for (name, (path, line)) in foreign.iter().filter(|(name, _)| !explained.contains(name.as_str())) {
        let message = format!("say in one line of {REASONS} why `{name}` is used: | `{name}` | ... |");
        found.push(violation(path, *line, "dependency", message));
    }
}

fn is_ours(name: &str) -> bool {
    name == "netduel" || name.starts_with("netduel-") || name == "xtask"
}

/// All dependencies of a manifest, including those for one platform, under the names of their packages.
fn dependencies(manifest: &toml::Table, text: &str) -> Vec<Dependency> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let platforms = platforms.into_iter().flat_map(|table| table.values().filter_map(toml::Value::as_table));
    std::iter::once(manifest)
        .chain(platforms)
        .flat_map(|table| TABLES.iter().filter_map(|name| Some((*name, table.get(*name)?.as_table()?))))
        .flat_map(|(name, table)| table.iter().map(move |entry| (name == "dev-dependencies", entry)))
        .map(|(is_of_tests, (key, value))| {
            let package = value.get("package").and_then(toml::Value::as_str);
            let line = text.lines().position(|line| begins_with_key(line, key));
            let line = line.map_or(1, |line| line + 1);
            Dependency { name: package.unwrap_or(key).to_owned(), line, is_of_tests }
        })
        .collect()
}

fn begins_with_key(line: &str, key: &str) -> bool {
    line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '=', '.']))
}

fn violation(path: &str, line: usize, rule: &'static str, message: String) -> Violation {
    Violation { path: path.to_owned(), line, rule, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n\n{rest}\n[lints]\nworkspace = true\n")
    }

    fn rules(samples: &[(&str, &str)]) -> Vec<(&'static str, String, usize)> {
        let mut found = Vec::new();
        check(&Tree::of(samples), &mut found);
        found.into_iter().map(|violation| (violation.rule, violation.path, violation.line)).collect()
    }

    fn of_manifest(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        rules(&[(path, text)]).into_iter().map(|(rule, _, line)| (rule, line)).collect()
    }

    const CONTROL: &str = "crates/netduel-control/Cargo.toml";

    #[test]
    fn forbidden_import_is_reported_with_its_line() {
        let good = manifest("netduel-control", "[dependencies]\nnetduel-model.workspace = true\n");
        assert_eq!(of_manifest(CONTROL, &good), []);
        let bad =
            manifest("netduel-control", "[dependencies]\nnetduel-load = { path = \"../netduel-load\" }\n");
        assert_eq!(of_manifest(CONTROL, &bad), [("import", 5)]);
    }

    #[test]
    fn tests_build_scripts_and_platforms_obey_the_same_table() {
        for table in ["dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let text = manifest("netduel-control", &format!("[{table}]\nnetduel-host.workspace = true\n"));
            assert_eq!(of_manifest(CONTROL, &text), [("import", 5)], "{table}");
        }
    }

    #[test]
    fn test_support_is_for_tests_alone() {
        let with = |table: &str| {
            manifest("netduel-control", &format!("[{table}]\nnetduel-formats.workspace = true\n"))
        };
        assert_eq!(of_manifest(CONTROL, &with("dev-dependencies")), []);
        assert_eq!(of_manifest(CONTROL, &with("dependencies")), [("import", 5)]);
    }

    #[test]
    fn renamed_crate_obeys_the_same_table() {
        let text = manifest(
            "netduel-control",
            "[dependencies]\nfoo = { package = \"netduel-load\", path = \"x\" }\n",
        );
        assert_eq!(of_manifest(CONTROL, &text), [("import", 5)]);
    }

    #[test]
    fn tests_of_a_crate_may_import_more_than_the_crate() {
        let with =
            |table: &str| manifest("netduel-report", &format!("[{table}]\nnetduel-store.workspace = true\n"));
        let path = "crates/netduel-report/Cargo.toml";
        assert_eq!(of_manifest(path, &with("dev-dependencies")), []);
        assert_eq!(of_manifest(path, &with("dependencies")), [("import", 5)]);
    }

    #[test]
    fn allowed_import_that_a_crate_does_not_have_is_reported() {
        let map = code_map();
        let with = |table: &str| {
            let stats = format!("[{table}]\nnetduel-stats.workspace = true\n");
            let model = "[build-dependencies]\nnetduel-model.workspace = true\n";
            rules(&[(CONTROL, &manifest("netduel-control", &format!("{model}{stats}"))), (CODE_MAP, &map)])
        };
        assert_eq!(with("dependencies"), []);
        assert_eq!(with("dev-dependencies"), [("import", CODE_MAP.to_owned(), 1)]);
    }

    /// A code map with the rows of the table.
    fn code_map() -> String {
        let mut rows = String::new();
        for (name, allowed) in ROOMS {
            let short: Vec<&str> =
                allowed.iter().map(|name| name.strip_prefix("netduel-").unwrap()).collect();
            let list = if short.is_empty() { "none".to_owned() } else { short.join(", ") };
            rows += &["| `", name, "` | words and `control`, lab | ", &list, " |\n"].concat();
        }
        rows
    }

    #[test]
    fn code_map_has_the_same_imports_as_the_table() {
        let rows = code_map();
        let found = |text: &str| rules(&[(CODE_MAP, text)]);
        assert_eq!(found(&rows), []);
        let (first, rest) = rows.split_once('\n').unwrap();
        assert!(first.contains("netduel-model"));
        assert_eq!(found(rest), [("code map", CODE_MAP.to_owned(), 1)]);
        let other = rows.replacen("| none |", "| sys |", 1);
        assert_eq!(found(&other), [("code map", CODE_MAP.to_owned(), 1)]);
    }

    #[test]
    fn every_crate_inherits_the_lints_of_the_workspace() {
        let own = "[package]\nname = \"netduel-control\"\n\n[lints.clippy]\npedantic = \"warn\"\n";
        assert_eq!(of_manifest(CONTROL, own), [("lints", 1)]);
    }

    #[test]
    fn crate_missing_in_the_table_is_reported() {
        assert_eq!(
            of_manifest("crates/netduel-extra/Cargo.toml", &manifest("netduel-extra", "")),
            [("room", 1)]
        );
        assert_eq!(of_manifest("crates/model/Cargo.toml", &manifest("netduel-model", "")), [("room", 1)]);
    }

    #[test]
    fn every_external_crate_has_exactly_one_reason() {
        let text = manifest("netduel-stats", "[dependencies]\nhdrhistogram.workspace = true\n");
        let path = "crates/netduel-stats/Cargo.toml";
        assert_eq!(rules(&[(path, &text)]), [("dependency", path.to_owned(), 5)]);
        let explained = "# Why\n\n| `hdrhistogram` | percentiles that merge |\n";
        assert_eq!(rules(&[(path, &text), (REASONS, explained)]), []);
        let left_over = format!("{explained}| `gone` | a reason |\n");
        assert_eq!(rules(&[(path, &text), (REASONS, &left_over)]), [("dependency", REASONS.to_owned(), 4)]);
        let silent = "| `hdrhistogram` | |\n";
        assert_eq!(rules(&[(path, &text), (REASONS, silent)]), [("dependency", REASONS.to_owned(), 1)]);
    }
}
