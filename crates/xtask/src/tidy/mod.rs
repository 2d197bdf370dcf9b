//! `tidy`: the rules of this workspace that no other tool checks. Reads files and changes nothing.
mod circles;
mod command_lines;
mod dependencies;
mod documents;
mod everywhere;
mod literals;
mod messages;
mod panics;
mod ratchet;
mod rust;
mod source;
mod spaces;
mod tree;
mod user_folders;
mod violation;

use anyhow::Result;

use crate::workspace;
use tree::Tree;
use violation::Violation;

/// A group of rules.
type Rules = fn(&Tree, &mut Vec<Violation>);

/// Every group. Each is a file of this module.
const RULES: [Rules; 10] = [
    rust::check,
    panics::check,
    spaces::check,
    messages::check,
    command_lines::check,
    user_folders::check,
    circles::check,
    dependencies::check,
    documents::check,
    everywhere::check,
];

/// Prints every violation; `false` when there is one.
pub fn run() -> Result<bool> {
    let tree = Tree::read(&workspace::root())?;
    let violations = violations(&tree);
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => println!("tidy: {} files, nothing to mend", tree.files.len()),
        count => println!("tidy: {count} places to mend"),
    }
    Ok(violations.is_empty())
}

fn violations(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for rules in RULES {
        rules(tree, &mut violations);
    }
    violations.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        let tree = Tree::read(&workspace::root()).unwrap();
        let found: Vec<String> = violations(&tree).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "cargo xtask tidy:\n{}", found.join("\n"));
    }

    #[test]
    fn violation_contains_location_rule_and_remedy() {
        let tree = Tree::of(&[("crates/netduel-stats/src/util.rs", "fn main() {}\n")]);
        let shown: Vec<String> = violations(&tree).iter().map(ToString::to_string).collect();
        assert!(shown[0].starts_with("crates/netduel-stats/src/util.rs:1: ["), "{shown:?}");
        assert_eq!(shown.len(), 2, "the header and the name: {shown:?}");
    }
}
