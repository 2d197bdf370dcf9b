//! Rule: the product calls no function of the standard library that panics because of its surroundings: a closed or full output, a limit of
//! threads, an argument that is no text. Tests, benches and tools may.
use super::source::Source;
use super::tree::Tree;
use super::violation::Violation;

const RULE: &str = "panic";

/// Crates that are no part of the program that users run.
const TOOLS: [&str; 6] = [
    "netduel-bench",
    "netduel-formats",
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
    for (path, text) in tree.texts(".rs").filter(|(path, _)| is_product(path)) {
        let source = Source::new(text);
        let tests = source.code.find("#[cfg(test)]\nmod ").unwrap_or(source.code.len());
        for (word, next, remedy) in CALLS {
            let calls = source.words(word).filter(|at| source.code[at + word.len()..].starts_with(next));
            found.extend(calls.filter(|at| *at < tests).map(|at| Violation {
                path: path.to_owned(),
                line: source.line_of(at),
                rule: RULE,
                message: format!("`{word}{}` {remedy}", next.trim_end_matches(['(', ')'])),
            }));
        }
    }
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
    fn other_calls_tests_and_tools_are_not_reported() {
        let text = "//! Says println!() only.\nfn a() { writeln!(out, \"print!\"); Builder::new().spawn(f); env::args_os() }\n\
                    #[cfg(test)]\nmod tests { fn b() { thread::spawn(f); println!() } }\n";
        assert_eq!(lines("crates/netduel/src/a.rs", text), [0; 0]);
        for path in ["crates/netduel/tests/it/a.rs", "crates/xtask/src/a.rs", "crates/netduel/src/a/tests.rs"]
        {
            assert_eq!(lines(path, "fn a() { println!() }"), [0; 0], "{path}");
        }
    }
}
