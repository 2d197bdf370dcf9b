//! Rule: only `netduel_model::user_folder` names the variables of the user's folders. Other code that reads one of them forgets that a relative
//! path is no folder. Variables that are set for a child process are not judged.
use super::literals::{self, Literal};
use super::source::is_word;
use super::tree::{Tree, is_product};
use super::violation::Violation;

const RULE: &str = "user-folder";

/// The file with the names.
const FILE: &str = "crates/netduel-model/src/user_folder.rs";

const READ: &str = "a relative path in this variable is no folder: read it by `netduel_model::user_folder`";

/// Checks every source of the program that is no test.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    let is_judged = |path: &str| is_product(path) && path != FILE;
    literals::check((tree, RULE), is_judged, |literal| is_read(literal).then_some(READ), found);
}

/// Whether a literal is the name of such a variable, and not set.
fn is_read(literal: &Literal<'_>) -> bool {
    let name = literal.written.trim_matches('"');
    let is_folder = name == "HOME" || name.strip_prefix("XDG_").is_some_and(|rest| rest.chars().all(is_word));
    is_folder && !literal.before.ends_with(".env(")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        violation::lines(check, &Tree::of(&[(path, text)]))
    }

    #[test]
    fn variable_of_a_folder_is_read_in_one_place() {
        let path = "crates/netduel/src/a.rs";
        for code in ["var_os(\"HOME\")", "folder(\"XDG_CACHE_HOME\")"] {
            let text = format!("//! A.\nfn a() {{\n    {code}\n}}\n");
            assert_eq!(lines(path, &text), [3], "{code}");
            assert_eq!(lines(FILE, &text), [0; 0]);
        }
        for code in
            ["command.env(\"HOME\", folder)", "f(\"set XDG_STATE_HOME\")", "f(\"XDG_STATE_HOME or x\")"]
        {
            assert_eq!(lines(path, &format!("fn a() {{ {code} }}\n")), [0; 0], "{code}");
        }
    }
}
