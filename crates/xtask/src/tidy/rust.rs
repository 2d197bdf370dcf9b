//! Rules for Rust sources: header, file length, location of `unsafe`, file-wide `allow`, module names. Clippy checks the rest
//! (`clippy.toml` and the lints of the workspace).
use super::source::{Source, is_word};
use super::tree::Tree;
use super::violation::Violation;

/// Maximum file length without and with a reason at its top, exclusive.
const FILE_LINES: usize = 500;
const FILE_LINES_WITH_REASON: usize = 800;
/// Prefix of the reason of a long file.
const REASON: &str = "//! Long because:";
/// The crate that may hold unsafe code.
const UNSAFE_CRATE: &str = "crates/netduel-sys/";
/// Module names without meaning.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "misc", "imp", "helpers"];
/// Checks every Rust source.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    for (path, text) in tree.texts(".rs") {
        let source = Source::new(text);
        let mut report = |line: usize, rule: &'static str, message: String| {
            found.push(Violation { path: path.to_owned(), line, rule, message });
        };
        check_header(&source, &mut report);
        check_file_length(&source, &mut report);
        check_unsafe(path, &source, &mut report);
        check_allow(&source, &mut report);
        check_names(path, &source, &mut report);
    }
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

/// The compiler rejects unsafe code unless the lint is lifted; this rule keeps the lint from being lifted.
fn check_unsafe(path: &str, source: &Source, report: &mut Report<'_>) {
    if path.starts_with(UNSAFE_CRATE) {
        return;
    }
    for at in source.words("unsafe") {
        let message = "unsafe code outside netduel-sys: wrap the call there and use the wrapper";
        report(source.line_of(at), "unsafe", message.to_owned());
    }
}

/// Clippy's `allow_attributes` does not check attributes of a whole file or module, `#![allow(...)]`.
fn check_allow(source: &Source, report: &mut Report<'_>) {
    for at in source.words("allow") {
        let before = source.code[..at].trim_end();
        let is_inner = before.rfind("#![").is_some_and(|start| !before[start..].contains(']'));
        if is_inner && source.after(at + "allow".len()).starts_with('(') {
            let message = "`allow` stays when its cause is gone: write `#![expect(lint, reason = \"...\")]`";
            report(source.line_of(at), "allow", message.to_owned());
        }
    }
}

fn check_names(path: &str, source: &Source, report: &mut Report<'_>) {
    let named_so = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    // The declaration of a module would be reported again for its file, so the file is reported only.
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
    format!("`{name}` does not describe the contents: name the module after the noun that it holds")
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

    #[test]
    fn a_good_source_passes() {
        let text = "//! Sample.\n\n/// Says unsafe { } in a comment.\nfn a() -> &'static str {\n    \
                    \"unsafe { f() } #![allow(x)]\"\n}\n";
        assert_eq!(rules(PLAIN, text), []);
    }

    #[test]
    fn file_without_a_header_is_reported() {
        for text in ["", "\n//! Late.\n", "// Plain.\n", "use std::fmt;\n"] {
            assert_eq!(rules(PLAIN, text), [("header", 1)], "{text:?}");
        }
    }

    #[test]
    fn long_file_needs_a_reason_and_has_a_limit() {
        let file = |header: &str, lines: usize| format!("{header}\n{}", "\n".repeat(lines - 1));
        assert_eq!(rules(PLAIN, &file("//! A.", 499)), []);
        assert_eq!(rules(PLAIN, &file("//! A.", 500)), [("file-length", 500)]);
        assert_eq!(rules(PLAIN, &file("//! Long because: a table.", 799)), []);
        assert_eq!(rules(PLAIN, &file("//! Long because: a table.", 800)), [("file-length", 800)]);
        assert_eq!(rules(PLAIN, &file("//! Long because:", 500)), [("file-length", 500)]);
    }

    #[test]
    fn unsafe_code_lives_in_one_crate() {
        let block = "//! Sample.\nfn a() {\n    unsafe { f() }\n}\n";
        assert_eq!(rules(PLAIN, block), [("unsafe", 3)]);
        assert_eq!(rules(SYS, block), []);
    }

    #[test]
    fn allow_for_a_whole_file_is_found() {
        let text = "//! Sample.\n#![allow(dead_code)]\n#![cfg_attr(test, allow(x))]\nfn a() { x.allow(1); allow(2) }\n";
        assert_eq!(rules(PLAIN, text), [("allow", 2), ("allow", 3)]);
        assert_eq!(rules(PLAIN, "//! Sample.\n#![expect(dead_code)]\nfn a() { x.allow(1) }\n"), []);
    }

    #[test]
    fn meaningless_module_names_are_reported() {
        assert_eq!(rules("crates/a/tests/it/common.rs", "//! Sample.\n"), [("name", 1)]);
        assert_eq!(rules("crates/a/src/util/mod.rs", "//! Sample.\n"), [("name", 1)]);
        assert_eq!(rules(PLAIN, "//! Sample.\nmod helpers {}\n"), [("name", 2)]);
        assert_eq!(rules(PLAIN, "//! Sample.\nmod simple {}\n"), []);
    }
}
