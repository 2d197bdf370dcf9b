//! Rule: no message of the program names a file below `docs`, because an installed program has none. Raw strings, tests and the crates that are no
//! part of the program are not judged, nor are paths that the compiler reads (`../../docs/page.md`).
use super::literals::{self, Literal};
use super::tree::{Tree, is_product};
use super::violation::Violation;

const RULE: &str = "messages";

const NAMED: &str = "a message names a file below `docs`, which an installed program does not have: write the content, or name a command \
                     that prints it";

/// Checks every source of the program that is no test.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let fault = |literal: &Literal<'_>| names_document(literal.written).then_some(NAMED);
    literals::check((tree, RULE), is_product, fault, found);
}

/// Whether a literal, as it is written with its quotes, names a page below `docs`.
fn names_document(written: &str) -> bool {
    let mut places = written.match_indices("docs/").map(|(at, _)| written.split_at(at));
    places.any(|(before, rest)| {
        let name = rest.split([' ', '#', '`', '"', ',', ';', ')']).next().unwrap_or_default();
        !before.ends_with('/') && name.trim_end_matches('.').strip_suffix(".md").is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        violation::lines(check, &Tree::of(&[(path, text)]))
    }

    #[test]
    fn message_that_names_a_page_of_docs_is_found() {
        for written in ["see docs/beds.md", "read `docs/limits.md`.", "No HTTP: docs/methodology.md."] {
            let text = format!("//! A.\nconst A: &str = \"{written}\";\n");
            assert_eq!(lines("crates/netduel/src/a.rs", &text), [2], "{written}");
        }
    }

    #[test]
    fn paths_of_the_compiler_comments_tests_and_tools_are_not_judged() {
        let message = "const A: &str = \"see docs/beds.md\";\n";
        for (path, text) in [
            ("crates/netduel/src/a.rs", "const A: &str = include_str!(\"../../../docs/beds.md\");\n"),
            ("crates/netduel/src/a.rs", "//! As docs/beds.md says.\n"),
            ("crates/netduel/src/a.rs", "const A: &str = \"docs.rs has docs/ of all\";\n"),
            ("crates/netduel/src/a/tests.rs", message),
            ("crates/netduel/tests/it/a.rs", message),
            ("crates/xtask/src/a.rs", message),
        ] {
            assert_eq!(lines(path, text), [0; 0], "{path} {text}");
        }
        let test = format!("#[cfg(test)]\nmod tests {{\n    {message}}}\n");
        assert_eq!(lines("crates/netduel/src/a.rs", &test), [0; 0]);
    }
}
