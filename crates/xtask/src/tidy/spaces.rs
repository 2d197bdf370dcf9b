//! Rule: a message has one space between two words, and no indentation of the code in it. Both are left behind where a text is wrapped or
//! shortened, and nothing else finds them: rustfmt changes no literal.
//!
//! Columns are no fault: they begin at a placeholder, at the label or the comment of a line, or their line begins with two spaces. Raw strings
//! and tests are not judged, nor are literals that begin with a continued line break, in which the source shows the layout.
use super::literals::{self, Literal};
use super::tree::Tree;
use super::violation::Violation;

const RULE: &str = "spaces";

/// A `\` at the end of a line: the literal goes on at the first character of the next one.
const CONTINUATION: &str = "\\\n";
/// A line break of the message, as it is written.
const BREAK: &str = "\\n";

const SEVERAL: &str = "several spaces between two words of a message: write one";
const INDENTED: &str = "a line break and the indentation of the code are part of a message: end the line with `\\`, or begin the literal \
                        with `\\` and a line break where the layout is meant";

/// Checks every source that is no test.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let fault = |literal: &Literal<'_>| fault(literal.written.trim_matches('"'));
    literals::check((tree, RULE), is_code, fault, found);
}

/// Whether a file is below `src` of its crate, and no file of tests.
fn is_code(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("src") && !path.ends_with("/tests.rs")
}

/// What is wrong with a literal, as it is written between its quotes.
fn fault(written: &str) -> Option<&'static str> {
    let mut lines = written.split(CONTINUATION);
    let first = lines.next().unwrap_or_default().to_owned();
    let text = lines.fold(first, |text, line| text + line.trim_start());
    let shows_layout = written.starts_with(CONTINUATION);
    if !shows_layout && text.lines().skip(1).any(|line| line.starts_with([' ', '\t'])) {
        return Some(INDENTED);
    }
    text.split(BREAK).flat_map(str::lines).any(has_run).then_some(SEVERAL)
}

/// Whether a line of a message has several spaces between two words that are no columns.
fn has_run(line: &str) -> bool {
    let is_row = line.starts_with("  ");
    !is_row
        && line.match_indices("  ").any(|(at, _)| {
            let (before, after) = (line[..at].trim_end(), line[at..].trim_start());
            let is_label = before.ends_with(':') && !before.contains(' ');
            let is_column = is_label || before.ends_with('}') || after.starts_with(['{', '#']);
            !before.is_empty() && !after.is_empty() && !is_column
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut found = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut found);
        found.iter().map(|violation| (violation.rule, violation.line)).collect()
    }

    #[test]
    fn several_spaces_between_words_are_found() {
        for written in [
            "failed to open  the file",
            "failed to open {path}: there  is none",
            "0 s gone,  left",
            "one line\\nand  another",
            "wrapped  \\\n        without need",
            "a sentence.   Another one",
            " and the end  of one",
            "failed to read x:  it is gone",
        ] {
            assert_eq!(fault(written), Some(SEVERAL), "{written:?}");
        }
    }

    #[test]
    fn line_break_with_the_indentation_of_the_code_is_found() {
        for written in ["failed to open\n        the file", "a \\\n    b\n\tc", "several  spaces\n    too"] {
            assert_eq!(fault(written), Some(INDENTED), "{written:?}");
        }
    }

    #[test]
    fn wrapped_messages_and_columns_are_no_fault() {
        for written in [
            "",
            "  ",
            "one space",
            "wrapped \\\n        text",
            "{peer}  refused: {}",
            "connect time {}  max {longest}",
            "Report:  {}",
            "try:  netduel lab exec",
            "netduel azure up        # some minutes",
            "Examples:\\n  netduel run PLAN        two arms\\n  \\\n    netduel demo           a demo",
            "  q        stop the run",
            "the rule is:\\n    nft list ruleset",
            "\\\nusage: cargo xtask x\n\n  --quick   fast",
            "lines\nwithout indentation",
        ] {
            assert_eq!(fault(written), None, "{written:?}");
        }
    }

    #[test]
    fn sources_are_judged_without_raw_strings_comments_and_tests() {
        let bad = "//! A.\nconst A: &str = r\"a  b\"; // \"a  b\"\nconst B: &str = \"x\";\nconst C: &str = \"a  b\";\n";
        assert_eq!(lines("crates/netduel/src/a.rs", bad), [(RULE, 4)]);
        assert_eq!(lines("crates/netduel/src/b/a.rs", "const C: &str = \"a\n  b\";\n"), [(RULE, 1)]);
        assert_eq!(lines("crates/xtask/src/a.rs", bad), [(RULE, 4)]);
        for path in ["crates/netduel/tests/it/a.rs", "crates/netduel/src/a/tests.rs", "docs/examples/a.rs"] {
            assert_eq!(lines(path, bad), [], "{path}");
        }
        let test = "//! A.\n#[cfg(test)]\nmod tests {\n    const C: &str = \"a  b\";\n}\n";
        assert_eq!(lines("crates/netduel/src/a.rs", test), []);
        let tree = Tree::of(&[
            ("crates/netduel/src/b/a.rs", bad),
            ("crates/netduel/src/b/mod.rs", "//! B.\n#[cfg(test)]\nmod a;\n"),
        ]);
        let mut found = Vec::new();
        check(&tree, &mut found);
        assert_eq!(found, []);
    }
}
