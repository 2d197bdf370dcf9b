//! Rules for Rust sources: header, lengths, unsafe, words and names that are not used here.
use std::collections::BTreeMap;

use super::Violation;
use super::source::{Source, is_word};
use super::tree::Tree;

/// Longest file without and with a reason at its top, exclusive.
const FILE_LINES: usize = 500;
const FILE_LINES_WITH_REASON: usize = 800;
/// How the reason of a long file begins.
const REASON: &str = "//! Long because:";
/// Longest function, exclusive.
const FUNCTION_LINES: usize = 70;
/// Functions that are longer and may not grow: `path function lines` a line. Best empty.
const LONG_FUNCTIONS: &str = "crates/xtask/long-functions.txt";
/// The crate that may hold unsafe code.
const UNSAFE_CRATE: &str = "crates/netduel-sys/";
/// Names of modules that say nothing.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "misc", "imp", "helpers"];
/// Macros that are not committed.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Checks every Rust source.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let mut known = LongFunctions::read(tree.text(LONG_FUNCTIONS).unwrap_or_default(), found);
    for (path, text) in tree.texts(".rs") {
        let source = Source::new(text);
        let mut report = |line: usize, rule: &'static str, message: String| {
            found.push(Violation { path: path.to_owned(), line, rule, message });
        };
        check_header(&source, &mut report);
        check_file_length(&source, &mut report);
        check_functions(path, &source, &mut known, &mut report);
        check_unsafe(path, &source, &mut report);
        check_words(&source, &mut report);
        check_names(path, &source, &mut report);
    }
    known.report_stale(found);
}

/// Takes line, rule and message.
type Report<'a> = dyn FnMut(usize, &'static str, String) + 'a;

fn check_header(source: &Source, report: &mut Report<'_>) {
    if !source.lines.first().is_some_and(|line| line.starts_with("//!")) {
        let message =
            "the file does not say what it is for: open it with `//!`, its purpose and what it must not do";
        report(1, "header", message.to_owned());
    }
}

fn check_file_length(source: &Source, report: &mut Report<'_>) {
    let has_reason = source
        .lines
        .iter()
        .take_while(|line| line.starts_with("//!"))
        .any(|line| line.strip_prefix(REASON).is_some_and(|reason| !reason.trim().is_empty()));
    let (bound, remedy) = if has_reason {
        (FILE_LINES_WITH_REASON, "split it".to_owned())
    } else {
        (
            FILE_LINES,
            format!(
                "split it, one noun a file, or say `{REASON} ...` at its top (then {FILE_LINES_WITH_REASON})"
            ),
        )
    };
    let lines = source.lines.len();
    if lines >= bound {
        report(lines, "file-length", format!("{lines} lines, fewer than {bound} are allowed: {remedy}"));
    }
}

fn check_functions(path: &str, source: &Source, known: &mut LongFunctions, report: &mut Report<'_>) {
    for function in source.functions() {
        if function.length < FUNCTION_LINES {
            continue;
        }
        let allowed = known.take(path, &function.name);
        if allowed.is_none_or(|lines| function.length > lines) {
            report(
                function.line,
                "function-length",
                format!(
                    "`{}` has {} lines, fewer than {} are allowed: cut it where its comments say what comes next",
                    function.name,
                    function.length,
                    allowed.map_or(FUNCTION_LINES, |lines| lines + 1)
                ),
            );
        }
    }
}

fn check_unsafe(path: &str, source: &Source, report: &mut Report<'_>) {
    for at in source.words("unsafe") {
        let line = source.line_of(at);
        if !path.starts_with(UNSAFE_CRATE) {
            let message = "unsafe code outside netduel-sys: wrap the call there and use the wrapper";
            report(line, "unsafe", message.to_owned());
            continue;
        }
        let after = source.after(at + "unsafe".len());
        let needs_reason = after.starts_with('{') || after.starts_with("impl");
        if needs_reason && !has_safety_comment(source, line) {
            let message =
                "unsafe without a reason: put `// SAFETY: ...` above it, the invariant and who upholds it";
            report(line, "safety-comment", message.to_owned());
        }
    }
}

/// Whether a comment with `SAFETY:` stands directly above the statement that the line belongs to.
fn has_safety_comment(source: &Source, line: usize) -> bool {
    let mut above = source.lines[..line - 1].iter().rev().map(|text| text.trim()).peekable();
    // Up to the beginning of the statement: its earlier lines end neither a statement nor a block.
    while above.next_if(|text| !text.is_empty() && !text.starts_with("//") && !ends_something(text)).is_some()
    {
    }
    above.take_while(|text| text.starts_with("//")).any(|text| text.contains("SAFETY:"))
}

fn ends_something(line: &str) -> bool {
    line.ends_with([';', '{', '}'])
}

fn check_words(source: &Source, report: &mut Report<'_>) {
    for name in UNFINISHED {
        for at in source.words(name).filter(|at| source.after(at + name.len()).starts_with('!')) {
            let message = format!("`{name}!` is for work under way: finish it or take it out");
            report(source.line_of(at), "unfinished", message);
        }
    }
    for at in source.words("allow") {
        let before = source.code[..at].trim_end();
        let is_attribute = before.ends_with('[') || (before.ends_with(',') && in_attribute(before));
        if is_attribute && source.after(at + "allow".len()).starts_with('(') {
            let message = "`allow` stays when its cause is gone: write `#[expect(lint, reason = \"...\")]`";
            report(source.line_of(at), "allow", message.to_owned());
        }
    }
}

/// Whether the code ends within `#[...`, as in `#[cfg_attr(test, `.
fn in_attribute(before: &str) -> bool {
    before.rfind("#[").max(before.rfind("#![")).is_some_and(|at| !before[at..].contains(']'))
}

fn check_names(path: &str, source: &Source, report: &mut Report<'_>) {
    let named_so = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    // The module's own declaration would be reported again for its file, so a file stands for both.
    if let Some(name) = named_so.skip(1).find(|part| EMPTY_NAMES.contains(part)) {
        report(1, "name", empty_name(name));
    }
    for at in source.words("mod") {
        let after = source.after(at + "mod".len());
        let name: String = after.chars().take_while(|c| is_word(*c)).collect();
        let is_inline = after[name.len()..].trim_start().starts_with('{');
        if is_inline && EMPTY_NAMES.contains(&name.as_str()) {
            report(source.line_of(at), "name", empty_name(&name));
        }
    }
}

fn empty_name(name: &str) -> String {
    format!("`{name}` says nothing of what is inside: name it after the noun that it holds")
}

/// The ratchet: functions that were too long when the rule came.
struct LongFunctions {
    /// Line of the list, allowed lines and whether one was met, by path and name.
    entries: BTreeMap<(String, String), (usize, usize, bool)>,
}

impl LongFunctions {
    fn read(text: &str, found: &mut Vec<Violation>) -> Self {
        let mut entries = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [path, name, lines] if lines.parse::<usize>().is_ok() => {
                    let lines = lines.parse().unwrap_or_default();
                    entries.insert((path.to_owned(), name.to_owned()), (index + 1, lines, false));
                }
                _ => found.push(Self::violation(index + 1, "write `path function lines`".to_owned())),
            }
        }
        Self { entries }
    }

    fn take(&mut self, path: &str, name: &str) -> Option<usize> {
        let entry = self.entries.get_mut(&(path.to_owned(), name.to_owned()))?;
        entry.2 = true;
        Some(entry.1)
    }

    fn report_stale(&self, found: &mut Vec<Violation>) {
        for ((path, name), (line, _, was_met)) in &self.entries {
            if !was_met {
                let message = format!("`{name}` in {path} is short enough or gone: take it off the list");
                found.push(Self::violation(*line, message));
            }
        }
    }

    fn violation(line: usize, message: String) -> Violation {
        Violation { path: LONG_FUNCTIONS.to_owned(), line, rule: "function-length", message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "crates/netduel-stats/src/interval.rs";
    const SYS: &str = "crates/netduel-sys/src/udp.rs";

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut found = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut found);
        found.into_iter().map(|violation| (violation.rule, violation.line)).collect()
    }

    fn long_function(lines: usize) -> String {
        format!("//! Sample.\nfn long() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    #[test]
    fn a_good_source_passes() {
        let text = "//! Sample.\n\n/// Says `todo!()` and unsafe { } in a comment.\nfn a() -> &'static str {\n    \
                    \"unsafe { dbg!(1) } #[allow(x)]\"\n}\n";
        assert_eq!(rules(PLAIN, text), []);
    }

    #[test]
    fn a_file_must_say_what_it_is_for() {
        for text in ["", "\n//! Late.\n", "// Plain.\n", "use std::fmt;\n"] {
            assert_eq!(rules(PLAIN, text), [("header", 1)], "{text:?}");
        }
    }

    #[test]
    fn a_long_file_needs_a_reason_and_a_longer_one_is_refused() {
        let file = |header: &str, lines: usize| format!("{header}\n{}", "\n".repeat(lines - 1));
        assert_eq!(rules(PLAIN, &file("//! A.", 499)), []);
        assert_eq!(rules(PLAIN, &file("//! A.", 500)), [("file-length", 500)]);
        assert_eq!(rules(PLAIN, &file("//! Long because: a table.", 799)), []);
        assert_eq!(rules(PLAIN, &file("//! Long because: a table.", 800)), [("file-length", 800)]);
        assert_eq!(rules(PLAIN, &file("//! Long because:", 500)), [("file-length", 500)]);
    }

    #[test]
    fn a_function_of_seventy_lines_is_too_long() {
        assert_eq!(rules(PLAIN, &long_function(69)), []);
        assert_eq!(rules(PLAIN, &long_function(70)), [("function-length", 2)]);
    }

    #[test]
    fn the_ratchet_lets_a_known_function_stay_but_not_grow_and_forgets_nothing() {
        let with_list = |function: &str, list: &str| {
            let mut found = Vec::new();
            check(&Tree::of(&[(PLAIN, function), (LONG_FUNCTIONS, list)]), &mut found);
            found.into_iter().map(|violation| (violation.path, violation.line)).collect::<Vec<_>>()
        };
        let list = format!("# Known.\n{PLAIN} long 80\n");
        assert_eq!(with_list(&long_function(80), &list), []);
        assert_eq!(with_list(&long_function(81), &list), [(PLAIN.to_owned(), 2)]);
        assert_eq!(with_list(&long_function(30), &list), [(LONG_FUNCTIONS.to_owned(), 2)]);
        assert_eq!(with_list(&long_function(30), "long 80\n"), [(LONG_FUNCTIONS.to_owned(), 1)]);
    }

    #[test]
    fn unsafe_code_lives_in_one_crate_with_a_reason() {
        let block = "//! Sample.\nfn a() {\n    unsafe { f() }\n}\n";
        assert_eq!(rules(PLAIN, block), [("unsafe", 3)]);
        assert_eq!(rules(SYS, block), [("safety-comment", 3)]);
        assert_eq!(rules(SYS, "//! Sample.\nunsafe impl Send for A {}\n"), [("safety-comment", 2)]);
        for good in [
            "//! Sample.\nfn a() {\n    // SAFETY: f has no precondition.\n    unsafe { f() }\n}\n",
            "//! Sample.\nfn a() {\n    // SAFETY: f has none,\n    // whoever calls.\n    let x =\n        unsafe { f() };\n}\n",
            "//! Sample.\n/// # Safety\n/// None.\nunsafe fn a() {}\n",
        ] {
            assert_eq!(rules(SYS, good), [], "{good}");
        }
        let other = "//! Sample.\nfn a() {\n    // SAFETY: of f.\n    let y = 1;\n    unsafe { f() }\n}\n";
        assert_eq!(rules(SYS, other), [("safety-comment", 5)]);
    }

    #[test]
    fn unfinished_work_and_allow_are_found() {
        let text =
            "//! Sample.\n#[allow(dead_code)]\nfn a() {\n    todo!()\n}\n#![cfg_attr(test, allow(x))]\n";
        assert_eq!(rules(PLAIN, text), [("unfinished", 4), ("allow", 2), ("allow", 6)]);
        assert_eq!(rules(PLAIN, "//! Sample.\nfn a() { x.allow(1); todo(); allow(2) }\n"), []);
    }

    #[test]
    fn a_module_is_named_after_what_it_holds() {
        assert_eq!(rules("crates/a/tests/it/common.rs", "//! Sample.\n"), [("name", 1)]);
        assert_eq!(rules("crates/a/src/util/mod.rs", "//! Sample.\n"), [("name", 1)]);
        assert_eq!(rules(PLAIN, "//! Sample.\nmod helpers {}\n"), [("name", 2)]);
        assert_eq!(rules(PLAIN, "//! Sample.\nmod simple {}\n"), []);
    }
}
