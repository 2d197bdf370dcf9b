//! Reads the string literals of sources for the rules about messages: without raw strings and those of tests.
use super::source::Source;
use super::tree::Tree;
use super::violation::Violation;

/// A literal of a source.
pub struct Literal<'a> {
    /// The literal as it is written, with its quotes.
    pub written: &'a str,
    /// The code before it.
    pub before: &'a str,
}

/// Reports what `fault` finds wrong with literals of the sources whose paths `is_judged` selects.
pub fn check(
    (tree, rule): (&Tree, &'static str),
    is_judged: impl Fn(&str) -> bool,
    fault: impl Fn(&Literal<'_>) -> Option<&'static str>,
    found: &mut Vec<Violation>,
) {
    for (path, text) in tree.texts(".rs").filter(|(path, _)| is_judged(path) && !tree.is_test_module(path)) {
        let source = Source::new(text);
        let tests = source.start_of_tests();
        for string in source.strings.iter().filter(|string| string.start < tests) {
            let parts = text.get(string.clone()).zip(source.code.get(..string.start));
            if let Some(message) = parts.and_then(|(written, before)| fault(&Literal { written, before })) {
                let line = source.line_of(string.start);
                found.push(Violation { path: path.to_owned(), line, rule, message: message.to_owned() });
            }
        }
    }
}
