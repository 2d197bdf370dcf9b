//! Rules for documents: links and paths lead to existing files, every plan is mentioned, the README names the test command.
use super::tree::Tree;
use super::violation::Violation;

/// The test command of the README, which CI also runs.
const TEST_COMMAND: &str = "cargo xtask test";
/// What stands in backticks and begins with one of these is a path.
const FOLDERS: [&str; 4] = ["beds/", "crates/", "docs/", "plans/"];
/// Its entries stay as they are when a later release removes a file that they name.
const CHANGELOG: &str = "CHANGELOG.md";

/// Checks every document.
pub fn check(tree: &Tree, found: &mut Vec<Violation>) {
    for (path, text) in tree.texts(".md") {
        for (line, target) in links(text) {
            if let Some(file) = file_of(path, &target)
                && !tree.has(&file)
            {
                let message = format!(
                    "the link leads to `{file}`, which is not there: mend the path or write the file"
                );
                found.push(violation(path, line, "link", message));
            }
        }
    }
    check_paths(tree, found);
    check_plans(tree, found);
    if let Some(readme) = tree.text("README.md")
        && !readme.contains(TEST_COMMAND)
    {
        let message = format!("the command that runs all tests is missing: `{TEST_COMMAND}`");
        found.push(violation("README.md", 1, "readme", message));
    }
}

fn check_paths(tree: &Tree, found: &mut Vec<Violation>) {
    for (document, text) in tree.texts(".md").filter(|(document, _)| *document != CHANGELOG) {
        for (line, path) in paths(text) {
            if !tree.has(path) {
                let message =
                    format!("`{path}` is not there: mend the path, or write a placeholder in capitals");
                found.push(violation(document, line, "path", message));
            }
        }
    }
}

fn check_plans(tree: &Tree, found: &mut Vec<Violation>) {
    let plans = tree.texts(".toml").map(|(path, _)| path).filter(|path| path.starts_with("plans/"));
    for plan in plans {
        let is_explained = tree
            .texts(".md")
            .any(|(path, text)| (path == "README.md" || path.starts_with("docs/")) && mentions(text, plan));
        if !is_explained {
            let message = "no document mentions this plan: say in docs/ which question it answers".to_owned();
            found.push(violation(plan, 1, "plan", message));
        }
    }
}

/// Whether a text names a file, not a longer name that contains it.
fn mentions(text: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Line and target of every inline link, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in lines_outside_blocks(text) {
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let target = rest.split_once(')').map_or(rest, |(target, _)| target);
            let target = target.split_whitespace().next().unwrap_or_default();
            links.push((number, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    links
}

/// Line and text of every path in backticks, outside blocks of code.
fn paths(text: &str) -> Vec<(usize, &str)> {
    let mut paths = Vec::new();
    for (number, line) in lines_outside_blocks(text) {
        let code = line.split('`').skip(1).step_by(2);
        paths.extend(code.filter_map(path_of).map(|path| (number, path)));
    }
    paths
}

/// The path of a text in backticks, without a line number; `None` for other code, patterns and placeholders.
fn path_of(code: &str) -> Option<&str> {
    let path = code.split(':').next().unwrap_or_default().trim_end_matches('/');
    let is_in_repository = FOLDERS.iter().any(|folder| path.starts_with(folder));
    let is_pattern = path.contains(['*', '<']) || path.split('/').any(is_placeholder);
    (is_in_repository && !is_pattern && !code.contains(char::is_whitespace)).then_some(path)
}

/// Whether a part of a path stands for a name, as in `beds/NAME.toml`.
fn is_placeholder(part: &str) -> bool {
    let name = part.split('.').next().unwrap_or_default();
    let is_in_capitals = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    is_in_capitals && part != "README.md"
}

/// Number and text of every line outside blocks of code.
fn lines_outside_blocks(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_none() { mark } else { None };
        } else if fence.is_none() {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The line without text in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The target file of a link, relative to the root; `None` for external links.
fn file_of(document: &str, target: &str) -> Option<String> {
    let is_elsewhere = target.contains("://") || target.starts_with("mailto:") || target.starts_with('#');
    let path = target.split(['#', '?']).next().unwrap_or_default();
    if is_elsewhere || path.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    if path.starts_with('/') {
        parts.clear();
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn violation(path: &str, line: usize, rule: &'static str, message: String) -> Violation {
    Violation { path: path.to_owned(), line, rule, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(samples: &[(&str, &str)]) -> Vec<(&'static str, usize)> {
        let mut found = Vec::new();
        check(&Tree::of(samples), &mut found);
        found.into_iter().map(|violation| (violation.rule, violation.line)).collect()
    }

    #[test]
    fn links_must_lead_to_existing_files() {
        let document = "See [one](limits.md), [two](../plans), [three](/docs/limits.md#cpu) and\n\
                        [four](limit.md \"title\") and [five](https://example.org/x) and [six](#here).\n";
        let tree = [("docs/guide.md", document), ("docs/limits.md", ""), ("plans/README.md", "")];
        assert_eq!(rules(&tree), [("link", 2)]);
    }

    #[test]
    fn code_holds_no_links() {
        let document = "`[a](b.md)`\n```\n[a](b.md)\n```\n~~~\n[a](b.md)\n```\n~~~\n[a](c.md)\n";
        assert_eq!(rules(&[("docs/guide.md", document)]), [("link", 9)]);
    }

    #[test]
    fn paths_in_backticks_must_name_existing_files() {
        let document = "`crates/a/src/lib.rs:31`, `docs/design/`, `cargo xtask tidy`, `src/b.rs` and\n\
                        `crates/a/src/b.rs`, and the folder\n`beds/old/`,\n\
                        `plans/azure-*.toml`, `crates/<name>`, `crates/corpus/TARGET`, `beds/NAME.toml`,\n\
                        `docs/README.md`, crates/c\n```\n`crates/c`\n```\n";
        let tree = [("crates/a/src/lib.rs", ""), ("docs/design/0001.md", "")];
        let with = |name| rules(&[tree[0], tree[1], (name, document)]);
        assert_eq!(with("docs/guide.md"), [("path", 2), ("path", 3), ("path", 5)]);
        assert_eq!(with("CHANGELOG.md"), []);
    }

    #[test]
    fn every_plan_is_mentioned_by_a_document() {
        let plan = ("plans/mtu.toml", "");
        assert_eq!(rules(&[plan]), [("plan", 1)]);
        assert_eq!(rules(&[plan, ("docs/plans.md", "see old-plans/mtu.toml\n")]), [("plan", 1)]);
        assert_eq!(rules(&[plan, ("CHANGELOG.md", "plans/mtu.toml\n")]), [("plan", 1)]);
        assert_eq!(rules(&[plan, ("docs/plans.md", "see `plans/mtu.toml`\n")]), []);
    }

    #[test]
    fn the_readme_names_the_command_that_tests() {
        assert_eq!(rules(&[("README.md", "# netduel\n")]), [("readme", 1)]);
        assert_eq!(rules(&[("README.md", "Run `cargo xtask test`.\n")]), []);
    }
}
