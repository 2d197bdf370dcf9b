//! Rules for documents: links lead to existing files, every plan is mentioned, the README names the test command.
use super::tree::Tree;
use super::violation::Violation;

/// The test command of the README, which CI also runs.
const TEST_COMMAND: &str = "cargo xtask test";

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
    check_plans(tree, found);
    if let Some(readme) = tree.text("README.md")
        && !readme.contains(TEST_COMMAND)
    {
        let message = format!("the command that runs all tests is missing: `{TEST_COMMAND}`");
        found.push(violation("README.md", 1, "readme", message));
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
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_none() { mark } else { None };
            continue;
        }
        if fence.is_some() {
            continue;
        }
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let target = rest.split_once(')').map_or(rest, |(target, _)| target);
            let target = target.split_whitespace().next().unwrap_or_default();
            links.push((index + 1, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    links
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
