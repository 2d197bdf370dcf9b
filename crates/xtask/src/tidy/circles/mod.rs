//! Rule: no circle of imports has more than three files, because a file in a large circle can be neither read nor changed by
//! itself. Checks files below `src` of each crate. Test code does not count, and an import through a `pub use` counts for the
//! file that defines the name.
mod graph;
mod imports;
mod modules;
mod ties;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::ratchet::Ratchet;
use super::tree::Tree;
use super::violation::Violation;
use graph::circles;
use modules::Modules;
use ties::{Tie, Ties};

/// Maximum number of files in a circle of imports.
const FILES_MAX: usize = 3;
/// Crates with larger circles, which must not grow: one `crate files` per line. Ideally empty.
const KNOWN: &str = "crates/xtask/import-circles.txt";
const RULE: &str = "import-circle";

/// Checks every crate.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let mut known = Ratchet::read(KNOWN, RULE, "crate files", tree, found);
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in tree.texts(".rs") {
        let mut parts = path.splitn(4, '/');
        if let (Some("crates"), Some(name), Some("src"), Some(_)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        {
            crates.entry(name).or_default().push((path, text));
        }
    }
    for (name, files) in crates {
        let ties = Modules::read(name, &files).ties();
        let mut large: Vec<Vec<String>> =
            circles(&ties).into_iter().filter(|circle| circle.len() > FILES_MAX).collect();
        large.sort_by_key(Vec::len);
        let Some(largest) = large.last().map(Vec::len) else { continue };
        let allowed = known.take(name).unwrap_or(FILES_MAX);
        if largest > allowed {
            let broken = large.iter().filter(|circle| circle.len() > allowed);
            found.extend(broken.map(|circle| violation(name, circle, allowed, &ties)));
        }
    }
    known.report_stale(found);
}

/// The files of a circle and the imported names between them, one import per line.
fn violation(name: &str, circle: &[String], allowed: usize, ties: &Ties) -> Violation {
    let inner: Vec<(&(String, String), &Tie)> =
        ties.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to)).collect();
    let short = |path: &str| path.trim_start_matches(&format!("crates/{name}/src/")).to_owned();
    let mut message = format!(
        "{} files of `{name}` import each other in a circle, {allowed} may: move what they share to a file that imports none \
         of them",
        circle.len()
    );
    for ((from, to), tie) in &inner {
        let names: Vec<&str> = tie.names.iter().map(String::as_str).collect();
        // Writing to a string does not fail.
        let _ = write!(message, "\n    {} -> {}: {}", short(from), short(to), names.join(", "));
    }
    let (path, line) =
        inner.first().map_or((name.to_owned(), 1), |((from, _), tie)| (from.clone(), tie.line));
    Violation { path, line, rule: RULE, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/{path}"), *text)).collect();
        let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        files.extend([("crates/a/src/lib.rs", "pub mod m;\n"), ("crates/x/src/lib.rs", "pub mod m;\n")]);
        let mut found = Vec::new();
        check(&Tree::of(&files), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    /// A ring of files, each of which imports the next one.
    fn ring(size: usize) -> Vec<(String, String)> {
        (0..size)
            .map(|index| {
                let next = (index + 1) % size;
                let text = format!("use crate::m{next}::S{next};\npub struct S{index};\n");
                (format!("a/src/m{index}.rs"), text)
            })
            .collect()
    }

    fn found_in_ring(size: usize, list: &str) -> Vec<String> {
        let files = ring(size);
        let mut files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("xtask/import-circles.txt", list));
        found(&files)
    }

    #[test]
    fn circle_of_three_files_is_allowed_and_of_four_is_not() {
        assert_eq!(found_in_ring(3, ""), Vec::<String>::new());
        let found = found_in_ring(4, "");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/a/src/m0.rs:1: [import-circle] 4 files of `a`"), "{found:?}");
        for tie in ["m0.rs -> m1.rs: S1", "m3.rs -> m0.rs: S0"] {
            assert!(found[0].contains(tie), "{tie}: {found:?}");
        }
    }

    #[test]
    fn listed_circle_may_stay_but_not_grow() {
        assert_eq!(found_in_ring(5, "# Known.\na 5\n"), Vec::<String>::new());
        assert_eq!(found_in_ring(6, "a 5\n").len(), 1);
        let stale = found_in_ring(3, "a 5\n");
        assert!(stale[0].starts_with("crates/xtask/import-circles.txt:1: "), "{stale:?}");
        assert!(found_in_ring(3, "a\n")[0].contains("write `crate files`"));
    }

    #[test]
    fn every_circle_above_the_limit_is_reported() {
        let files = ring(4);
        let mut both: Vec<(String, String)> = files.clone();
        both.extend(
            files.into_iter().map(|(path, text)| (path.replace("/m", "/n"), text.replace("::m", "::n"))),
        );
        let both: Vec<(&str, &str)> =
            both.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(found(&both).len(), 2);
    }

    #[test]
    fn reexporting_root_module_closes_no_circle() {
        let face = "mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::B;\npub use c::C;\n";
        let leaf = ("x/src/m/c.rs", "pub struct C;\n");
        let through_face = [
            ("x/src/m/mod.rs", face),
            ("x/src/m/a.rs", "use super::B;\npub struct A;\n"),
            ("x/src/m/b.rs", "use super::C;\npub struct B;\n"),
            leaf,
        ];
        assert_eq!(found(&through_face), Vec::<String>::new());
        // The same with a type in the root module: every child imports it, and it imports every child.
        let holding = format!("{face}pub struct Shared;\n");
        let with_type = [
            ("x/src/m/mod.rs", holding.as_str()),
            ("x/src/m/a.rs", "use super::Shared;\npub struct A;\n"),
            ("x/src/m/b.rs", "use super::Shared;\npub struct B;\n"),
            ("x/src/m/c.rs", "use crate::m::Shared;\npub struct C;\n"),
        ];
        assert_eq!(found(&with_type).len(), 1);
    }
}
