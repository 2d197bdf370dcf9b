//! The files that are or would be committed: everything below the root except patterns of `.gitignore`. Works without git,
//! because a machine that builds a release may have none.
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A file of the workspace.
#[derive(Debug)]
pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    /// Its text; `None` when it is not UTF-8.
    pub text: Option<String>,
}

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

/// All files, by path.
#[derive(Debug)]
pub struct Tree {
    /// Sorted by path.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads the workspace.
    pub fn read(root: &Path) -> Result<Self> {
        let ignore = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let mut files = Vec::new();
        read_folder(root, "", &ignore, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A tree of sample files.
    #[cfg(test)]
    pub fn of(samples: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: Some((*text).into()) };
        Self { files: samples.iter().map(file).collect() }
    }

    /// Path and text of the files with this suffix.
    pub fn texts<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |file| file.path.ends_with(ending))
            .filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path)?.text.as_deref()
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty() || self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }

    /// Whether the module of a Rust source is declared below `#[cfg(test)]`.
    pub fn is_test_module(&self, path: &str) -> bool {
        let Some((folder, name)) = path.strip_suffix(".rs").and_then(|path| path.rsplit_once('/')) else {
            return false;
        };
        let declared = format!("#[cfg(test)]\nmod {name};");
        let parents = [
            format!("{folder}/mod.rs"),
            format!("{folder}.rs"),
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
        ];
        parents.iter().any(|parent| self.text(parent).is_some_and(|text| text.contains(&declared)))
    }
}

fn read_folder(root: &Path, folder: &str, ignore: &str, files: &mut Vec<File>) -> Result<()> {
    let directory = root.join(folder);
    let context = || format!("failed to read {}", directory.display());
    for entry in fs::read_dir(&directory).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if name == ".git" || is_ignored(&path, ignore) {
            continue;
        }
        let kind = entry.file_type().with_context(context)?;
        if kind.is_dir() {
            read_folder(root, &path, ignore, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| format!("failed to read {path}"))?;
            files.push(File { path, text: String::from_utf8(bytes).ok() });
        }
    }
    Ok(())
}

/// The forms of `.gitignore` that this workspace uses: `/path` from the root, `*.ending`, and a bare name at any depth.
fn is_ignored(path: &str, ignore: &str) -> bool {
    ignore.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).any(|line| {
        let line = line.trim_end_matches('/');
        if let Some(rooted) = line.strip_prefix('/') {
            path == rooted
        } else if let Some(ending) = line.strip_prefix('*') {
            path.ends_with(ending)
        } else {
            path.rsplit('/').next() == Some(line)
        }
    })
}

/// Whether a file is code of the product: below `src` of its crate, and no file of tests.
pub fn is_product(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let is_of_tests = path.ends_with("/tests.rs") || parts.contains(&"tests");
    matches!(parts[..], ["crates", name, "src", ..] if !TOOLS.contains(&name)) && !is_of_tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_not_judged() {
        let ignore = "/target\n*.profraw\n# comment\nnode_modules/\n";
        for (path, expected) in [
            ("target", true),
            ("crates/a/target", false),
            ("crates/x.profraw", true),
            ("a/node_modules", true),
            ("comment", false),
        ] {
            assert_eq!(is_ignored(path, ignore), expected, "{path}");
        }
    }

    #[test]
    fn folders_exist_as_well_as_files() {
        let tree = Tree::of(&[("docs/limits.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/limits.md") && tree.has(""));
        assert!(!tree.has("doc") && !tree.has("docs/limits"));
    }
}
