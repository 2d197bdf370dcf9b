//! Rule: a message has a command as `netduel_model::shell::line` writes it, with quotes around words that a shell changes. A person pastes it, and
//! joined by spaces it is another command: `sh -c echo 0 > /x` writes an empty line. A list of words is a command where its name says so.
use super::literals::{self, Literal};
use super::source::is_word;
use super::tree::{Tree, is_product};
use super::violation::Violation;

const RULE: &str = "command-line";

/// Names of lists that have the words of a command.
const NAMES: [&str; 3] = ["argv", "command", "undo"];

const JOINED: &str =
    "a command whose words are joined by spaces loses its quotes: write it with `netduel_model::shell::line`";

/// Checks every source of the program that is no test.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let is_joined = |literal: &Literal<'_>| literal.written == "\" \"" && joins_command(literal.before);
    literals::check((tree, RULE), is_product, |literal| is_joined(literal).then_some(JOINED), found);
}

/// Whether code ends with the start of a call that joins the words of a command.
fn joins_command(code: &str) -> bool {
    let Some(list) = code.strip_suffix(".join(").map(str::trim_end) else { return false };
    NAMES.iter().any(|name| list.strip_suffix(*name).is_some_and(|before| !before.ends_with(is_word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        violation::lines(check, &Tree::of(&[(path, text)]))
    }

    #[test]
    fn command_that_is_joined_by_spaces_is_found() {
        for code in
            ["self.undo.join(\" \")", "command.join(\" \")", "f(&argv.join(\" \"))", "undo\n.join(\" \")"]
        {
            let text = format!("//! A.\nfn a() {{\n    {code}\n}}\n");
            let line = if code.contains('\n') { 4 } else { 3 };
            assert_eq!(lines("crates/netduel/src/a.rs", &text), [line], "{code}");
        }
    }

    #[test]
    fn other_lists_quoted_commands_tests_and_tools_are_not_judged() {
        let joined = "fn a() { command.join(\" \") }\n";
        for (path, text) in [
            ("crates/netduel/src/a.rs", "fn a() { words.join(\" \") }\n"),
            ("crates/netduel/src/a.rs", "fn a() { my_command.join(\" \") }\n"),
            ("crates/netduel/src/a.rs", "fn a() { command.join(\", \") }\n"),
            ("crates/netduel/src/a.rs", "fn a() { shell::line(&command) } // command.join(\" \")\n"),
            ("crates/netduel/src/a/tests.rs", joined),
            ("crates/netduel/tests/it/a.rs", joined),
            ("crates/xtask/src/a.rs", joined),
        ] {
            assert_eq!(lines(path, text), [0; 0], "{path} {text}");
        }
        let test = format!("#[cfg(test)]\nmod tests {{\n    {joined}}}\n");
        assert_eq!(lines("crates/netduel/src/a.rs", &test), [0; 0]);
    }
}
