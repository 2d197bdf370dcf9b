//! Rule: the product calls no function of the standard library that panics because of its surroundings: a closed or full output, a limit of
//! threads, an argument that is no text. What panics where the program would contradict itself (`expect`, `panic!`) is counted in a list by
//! file, so that each new one is a decision. Tests, benches and tools may.
use super::ratchet::Ratchet;
use super::source::Source;
use super::tree::Tree;
use super::violation::Violation;

const RULE: &str = "panic";

/// The list of files with such calls: each with its number of them.
const KNOWN: &str = "crates/xtask/expects.txt";

/// Calls that panic where the program would contradict itself: the code before the word, the word, the code after it.
const CONTRADICTIONS: [(&str, &str, &str); 3] =
    [(".", "expect", "("), ("", "panic", "!("), ("", "unreachable", "!(")];

/// Crates that are no part of the program that users run.
const TOOLS: [&str; 7] = [
    "netduel-bench",
    "netduel-formats",
    "netduel-fuzz",
    "netduel-guests",
    "netduel-simulation",
    "netduel-test-support",
    "xtask",
];

/// Calls with the word that begins each, the code that follows the word, and the remedy.
const CALLS: [(&str, &str, &str); 6] = [
    ("print", "!", PRINT),
    ("println", "!", PRINT),
    ("eprint", "!", PRINT),
    ("eprintln", "!", PRINT),
    (
        "thread",
        "::spawn(",
        "panics without a thread: start it with `thread::Builder`, which returns the error",
    ),
    ("env", "::args()", "panics at an argument that is no UTF-8: read `env::args_os()`"),
];
const PRINT: &str = "panics when its output is closed or full: print with `netduel`'s `console`, or write and handle the error";

/// Checks every source of the product.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let mut known = Ratchet::read(KNOWN, RULE, "path calls", tree, found);
    for (path, text) in tree.texts(".rs").filter(|(path, _)| is_product(path) && !tree.is_test_module(path)) {
        let source = Source::new(text);
        let tests = source.start_of_tests();
        for (word, next, remedy) in CALLS {
            let calls = source.words(word).filter(|at| source.code[at + word.len()..].starts_with(next));
            found.extend(calls.filter(|at| *at < tests).map(|at| Violation {
                path: path.to_owned(),
                line: source.line_of(at),
                rule: RULE,
                message: format!("`{word}{}` {remedy}", next.trim_end_matches(['(', ')'])),
            }));
        }
        let calls = contradictions(&source, tests);
        let allowed = if calls.is_empty() { 0 } else { known.take(path).unwrap_or(0) };
        if calls.len() > allowed {
            let message = format!(
                "{} calls of `expect`, `panic!` or `unreachable!`, {allowed} may: return an error; where no input and no environment can reach \
                 it, state why in its text and write `{path} {}` into {KNOWN}",
                calls.len(),
                calls.len()
            );
            let line = calls.last().map_or(1, |at| source.line_of(*at));
            found.push(Violation { path: path.to_owned(), line, rule: RULE, message });
        } else if calls.len() < allowed {
            let message = format!("{path} has {} such calls: write this number", calls.len());
            found.push(Violation { path: KNOWN.to_owned(), line: 1, rule: RULE, message });
        }
    }
    known.report_stale(found);
}

/// Places of the calls of [`CONTRADICTIONS`] before the tests of a file.
fn contradictions(source: &Source, tests: usize) -> Vec<usize> {
    let mut places = Vec::new();
    for (before, word, next) in CONTRADICTIONS {
        let calls = source.words(word).filter(|at| {
            source.code[..*at].ends_with(before) && source.code[at + word.len()..].starts_with(next)
        });
        places.extend(calls.filter(|at| *at < tests));
    }
    places.sort_unstable();
    places
}

/// Whether a file is code of the product: below `src` of its crate, and no file of tests.
fn is_product(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", name, "src", ..] if !TOOLS.contains(&name)) && !path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut found = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut found);
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn call_that_panics_because_of_its_surroundings_is_reported() {
        let text = "//! Sample.\nfn a() {\n    println!(\"x\");\n    std::thread::spawn(f);\n    eprint!();\n    std::env::args();\n}\n";
        assert_eq!(lines("crates/netduel/src/a.rs", text).len(), 4);
        assert_eq!(lines("crates/netduel-load/src/b/a.rs", "//! A.\nfn a() { eprintln!() }\n"), [2]);
    }

    #[test]
    fn new_call_for_a_contradiction_is_reported_and_a_listed_one_is_not() {
        let text = "//! A.\nfn a() {\n    b.expect(\"it is there\");\n    self_expect(b);\n    unreachable!(\"no\");\n}\n";
        let lines = |list: &str, path: &str| -> Vec<(String, usize)> {
            let mut found = Vec::new();
            check(&Tree::of(&[(path, text), (KNOWN, list)]), &mut found);
            found.into_iter().map(|violation| (violation.path, violation.line)).collect()
        };
        let path = "crates/netduel/src/a.rs";
        assert_eq!(lines("", path), [(path.to_owned(), 5)]);
        assert_eq!(lines("crates/netduel/src/a.rs 1\n", path), [(path.to_owned(), 5)]);
        assert_eq!(lines("# why\ncrates/netduel/src/a.rs 2\n", path), []);
        assert_eq!(lines("crates/netduel/src/a.rs 3\n", path), [(KNOWN.to_owned(), 1)]);
        assert_eq!(lines("crates/netduel/src/gone.rs 1\n", "crates/xtask/src/a.rs"), [(KNOWN.to_owned(), 1)]);
        let declared = ("crates/netduel/src/b/mod.rs", "//! B.\n#[cfg(test)]\nmod a;\n");
        let mut found = Vec::new();
        check(&Tree::of(&[("crates/netduel/src/b/a.rs", text), declared]), &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn other_calls_tests_and_tools_are_not_reported() {
        let text = "//! Says println!() only.\nfn a() { writeln!(out, \"print!\"); Builder::new().spawn(f); env::args_os() }\n\
                    #[cfg(test)]\nmod tests {\nfn b() { thread::spawn(f); println!() }\n}\n";
        assert_eq!(lines("crates/netduel/src/a.rs", text), [0; 0]);
        for path in ["crates/netduel/tests/it/a.rs", "crates/xtask/src/a.rs", "crates/netduel/src/a/tests.rs"]
        {
            assert_eq!(lines(path, "fn a() { println!() }"), [0; 0], "{path}");
        }
    }
}
