//! Rule: the product calls no function of the standard library that panics because of its surroundings: a closed or full output, a limit of
//! threads, an argument that is no text. What panics where the program would contradict itself (`expect`, `panic!`) or where a bound is
//! wrong (slices, indices) is counted in lists by file, so that each new one is a decision. Tests, benches and tools may.
use super::ratchet::Ratchet;
use super::source::{Source, is_word};
use super::tree::{Tree, is_product};
use super::violation::Violation;

const RULE: &str = "panic";

/// Code that can panic and that no other code replaces everywhere: counted by file.
struct Counted {
    /// The list of files with such code: each with its number of places.
    list: &'static str,
    /// The form of its lines.
    form: &'static str,
    /// How a violation calls it.
    name: &'static str,
    remedy: &'static str,
    /// Its places before an offset.
    places: fn(&Source, usize) -> Vec<usize>,
}

const COUNTED: [Counted; 3] = [
    Counted {
        list: "crates/xtask/expects.txt",
        form: "path calls",
        name: "calls of `expect`, `panic!` or `unreachable!`",
        remedy: "return an error; where no input and no environment can reach it, state why in its text",
        places: contradictions,
    },
    Counted {
        list: "crates/xtask/slices.txt",
        form: "path slices",
        name: "slices with a bound (`x[a..b]`)",
        remedy: "use `get`, `split_at_checked` or `strip_prefix`; where no input can be outside of the bounds or within a character",
        places: slices,
    },
    Counted {
        list: "crates/xtask/indices.txt",
        form: "path indices",
        name: "indexed places (`x[i]`)",
        remedy: "use `get`, `first`, an iterator or a pattern; where no input can lead outside of it",
        places: indices,
    },
];

/// Calls that panic where the program would contradict itself: the code before the word, the word, the code after it.
const CONTRADICTIONS: [(&str, &str, &str); 3] =
    [(".", "expect", "("), ("", "panic", "!("), ("", "unreachable", "!(")];

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
    let mut lists = COUNTED.map(|counted| {
        let known = Ratchet::read(counted.list, RULE, counted.form, tree, found);
        (counted, known)
    });
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
        for (counted, known) in &mut lists {
            let places = (counted.places)(&source, tests);
            let allowed = if places.is_empty() { 0 } else { known.take(path).unwrap_or(0) };
            let lines: Vec<usize> = places.iter().map(|at| source.line_of(*at)).collect();
            found.extend(counted.violation(path, &lines, allowed));
        }
    }
    for (_, known) in &lists {
        known.report_stale(found);
    }
}

impl Counted {
    /// The violation of a file that has such code in these lines, of which so many may be.
    fn violation(&self, path: &str, lines: &[usize], allowed: usize) -> Option<Violation> {
        let (count, Self { list, name, remedy, .. }) = (lines.len(), self);
        if count > allowed {
            let message =
                format!("{count} {name}, {allowed} may: {remedy}, and write `{path} {count}` into {list}");
            let line = lines.last().copied().unwrap_or(1);
            return Some(Violation { path: path.to_owned(), line, rule: RULE, message });
        }
        (count < allowed).then(|| {
            let message = format!("{path} has {count} {name}: write this number");
            Violation { path: (*list).to_owned(), line: 1, rule: RULE, message }
        })
    }
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

/// Places of the slices before the tests of a file: `x[a..b]` panics when a bound is outside, or within a character. `x[..]` cannot.
fn slices(source: &Source, tests: usize) -> Vec<usize> {
    brackets(source, tests, |inside| inside.is_range)
}

/// Places of the indices before the tests of a file: `x[i]` panics where it has no such place. A key in quotes is that of
/// JSON, which has a value for every key.
fn indices(source: &Source, tests: usize) -> Vec<usize> {
    brackets(source, tests, |inside| !inside.is_range)
}

/// Places of the brackets behind a value before the tests of a file that enclose code of this kind.
fn brackets(source: &Source, tests: usize, is_meant: impl Fn(&Inside) -> bool) -> Vec<usize> {
    let code = &source.code[..tests];
    // A bracket behind anything else begins an array, a pattern or an attribute.
    let is_index = |at: &usize| {
        code[..*at].ends_with(|before: char| is_word(before) || matches!(before, ')' | ']' | '?'))
    };
    let brackets = code.match_indices('[').map(|(at, _)| at).filter(is_index);
    let encloses = |at: &usize| {
        let inside = Inside::of(&code[at + 1..]);
        inside.has_value && is_meant(&inside)
    };
    brackets.filter(encloses).collect()
}

/// What a bracket encloses.
struct Inside {
    /// A range; one within another bracket is not its own.
    is_range: bool,
    /// Code beside the dots of a range.
    has_value: bool,
}

impl Inside {
    /// Of a bracket that was opened before this code.
    fn of(code: &str) -> Self {
        let (mut depth, mut previous) = (0_usize, ' ');
        let mut inside = Self { is_range: false, has_value: false };
        for c in code.chars() {
            match c {
                ']' | ')' | '}' if depth == 0 => break,
                ']' | ')' | '}' => depth -= 1,
                '[' | '(' | '{' => depth += 1,
                '.' if depth == 0 && previous == '.' => inside.is_range = true,
                _ => {}
            }
            inside.has_value |= c != '.' && !c.is_whitespace();
            previous = c;
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation;

    const EXPECTS: &str = "crates/xtask/expects.txt";

    fn lines(path: &str, text: &str) -> Vec<usize> {
        violation::lines(check, &Tree::of(&[(path, text)]))
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
            check(&Tree::of(&[(path, text), (EXPECTS, list)]), &mut found);
            found.into_iter().map(|violation| (violation.path, violation.line)).collect()
        };
        let path = "crates/netduel/src/a.rs";
        assert_eq!(lines("", path), [(path.to_owned(), 5)]);
        assert_eq!(lines("crates/netduel/src/a.rs 1\n", path), [(path.to_owned(), 5)]);
        assert_eq!(lines("# why\ncrates/netduel/src/a.rs 2\n", path), []);
        assert_eq!(lines("crates/netduel/src/a.rs 3\n", path), [(EXPECTS.to_owned(), 1)]);
        assert_eq!(
            lines("crates/netduel/src/gone.rs 1\n", "crates/xtask/src/a.rs"),
            [(EXPECTS.to_owned(), 1)]
        );
        let declared = ("crates/netduel/src/b/mod.rs", "//! B.\n#[cfg(test)]\nmod a;\n");
        let mut found = Vec::new();
        check(&Tree::of(&[("crates/netduel/src/b/a.rs", text), declared]), &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    /// Where a file breaks the rule, or a list of it with this text.
    fn places_with((path, text): (&str, &str), list: (&str, &str)) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        check(&Tree::of(&[(path, text), list]), &mut found);
        found.into_iter().map(|violation| (violation.path, violation.line)).collect()
    }

    #[test]
    fn new_index_is_reported_and_a_listed_one_is_not() {
        let text = "//! A.\nfn a(b: &[u8]) {\n    b[0];\n    c(d)[b[1]];\n    e[\"key\"]; e[..]; [0]; vec![0];\n}\n\
                    #[cfg(test)]\nmod tests {\nfn b() { c[1] }\n}\n";
        let (path, list) = ("crates/netduel/src/a.rs", "crates/xtask/indices.txt");
        let places = |known: &str| places_with((path, text), (list, known));
        assert_eq!(places(""), [(path.to_owned(), 4)]);
        assert_eq!(places("crates/netduel/src/a.rs 2\n"), [(path.to_owned(), 4)]);
        assert_eq!(places("crates/netduel/src/a.rs 3\n"), []);
        assert_eq!(places("crates/netduel/src/a.rs 4\n"), [(list.to_owned(), 1)]);
        assert_eq!(lines("crates/netduel/src/b/tests/a.rs", text), [0; 0]);
    }

    #[test]
    fn new_slice_is_reported_and_a_listed_one_is_not() {
        let text = "//! A.\nfn a(b: &[u8]) {\n    b[1..];\n    f(b)?[[0].len()\n        ..b.len()];\n}\n\
                    #[cfg(test)]\nmod tests {\nfn b() { c[1..] }\n}\n";
        let (path, list) = ("crates/netduel/src/a.rs", "crates/xtask/slices.txt");
        let places = |known: &str| places_with((path, text), (list, known));
        assert_eq!(places(""), [(path.to_owned(), 4)]);
        assert_eq!(places("crates/netduel/src/a.rs 1\n"), [(path.to_owned(), 4)]);
        assert_eq!(places("crates/netduel/src/a.rs 2\n"), []);
        assert_eq!(places("crates/netduel/src/a.rs 3\n"), [(list.to_owned(), 1)]);
        // The whole, arrays, patterns and attributes. An index that contains a range is none.
        let others = "//! B.\n#[a(..)]\nfn a([b, ..]: [u8; 2]) {\n    b[..]; [0..1]; vec![0..1];\n}\n";
        assert_eq!(lines("crates/netduel/src/b.rs", others), [0; 0]);
        let index = ("crates/netduel/src/b.rs", "//! B.\nfn a() { b[f(0..1)] }\n");
        assert_eq!(places_with(index, ("crates/xtask/indices.txt", "crates/netduel/src/b.rs 1\n")), []);
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
