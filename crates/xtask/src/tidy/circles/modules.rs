//! The modules of one crate, and the file that each path resolves to. Follows `use` declarations, so that a re-export resolves to
//! the file with the definition.
use std::collections::{BTreeMap, BTreeSet};

use super::super::source::Source;
use super::imports::{Imports, Reference};
use super::ties::{Tie, Ties};

/// A module's path from the crate's root.
type ModulePath = Vec<String>;

/// A module: a file, or an inline module of one.
#[derive(Debug, Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    /// Imported names and their paths.
    bindings: BTreeMap<String, Vec<Vec<String>>>,
    /// Modules imported by `*`, with the line.
    globs: Vec<(Vec<String>, usize)>,
    /// All paths of imports and code, with their line.
    paths: Vec<(Vec<String>, usize)>,
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Item { file: String, name: String },
    Module(ModulePath),
}

/// The paths already followed from one reference, each with its module.
type Visited = BTreeSet<(ModulePath, Vec<String>)>;

/// Limit of the chain of re-exports: real ones are far shorter, and `use a::b; use b::a;` between two other crates would never
/// end.
const STEPS_MAX: usize = 64;

/// All modules of a crate.
#[derive(Debug)]
pub struct Modules(BTreeMap<ModulePath, Module>);

impl Modules {
    /// Parses the files below `src`, each given as path and text.
    pub fn read(name: &str, files: &[(&str, &str)]) -> Self {
        let mut all = BTreeMap::new();
        let mut tests = BTreeSet::new();
        for (file, text) in files {
            let inside = file.trim_start_matches(&format!("crates/{name}/src/"));
            let path = module_path(inside);
            let imports = Imports::of(&Source::new(text));
            tests.extend(imports.test_modules.iter().map(|test| joined(&path, test)));
            add_file(&mut all, file, &path, imports);
        }
        all.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        Self(all)
    }

    /// The imports between files, with the imported names.
    pub fn ties(&self) -> Ties {
        let mut ties = Ties::new();
        let mut tie = |from: &Module, to: &str, name: &str, line: usize| {
            if from.file != to {
                let tie = ties.entry((from.file.clone(), to.to_owned())).or_insert_with(|| Tie::at(line));
                tie.line = tie.line.min(line);
                tie.names.insert(name.to_owned());
            }
        };
        for (path, module) in &self.0 {
            for (reference, line) in &module.paths {
                // An import of a module alone is no dependency; the use of its items is.
                if let Some(Target::Item { file, name }) = self.resolve(path, reference, &mut Visited::new())
                {
                    tie(module, &file, &name, *line);
                }
            }
            for (reference, line) in &module.globs {
                if let Some(Target::Module(target)) = self.resolve(path, reference, &mut Visited::new()) {
                    tie(module, &self.0[&target].file, "*", *line);
                }
            }
        }
        ties
    }

    fn resolve(&self, from: &ModulePath, path: &[String], visited: &mut Visited) -> Option<Target> {
        // Modules that import each other by `*` would recurse forever.
        if visited.len() > STEPS_MAX || !visited.insert((from.clone(), path.to_vec())) {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Some((Vec::new(), rest)),
            "self" => Some((from.clone(), rest)),
            "super" => Some((from[..from.len().checked_sub(1)?].to_vec(), rest)),
            _ => None,
        };
        match start {
            Some((module, [])) => Some(Target::Module(module)),
            Some((module, rest)) if rest[0] == "super" => self.resolve(&module, rest, visited),
            Some((module, rest)) => {
                // Within the crate every name belongs to a file, even a name that a macro defines.
                self.descend(&module, rest, visited).or_else(|| {
                    let file = self.0.get(&module)?.file.clone();
                    Some(Target::Item { file, name: rest[0].clone() })
                })
            }
            None => self.descend(from, path, visited),
        }
    }

    /// Resolves a path that starts with a name of the module.
    fn descend(&self, module: &ModulePath, path: &[String], visited: &mut Visited) -> Option<Target> {
        let (name, rest) = path.split_first()?;
        let here = self.0.get(module)?;
        let child = joined(module, name);
        let is_item = here.items.contains(name);
        if self.0.contains_key(&child) && !(rest.is_empty() && is_item) {
            if rest.is_empty() {
                return Some(Target::Module(child));
            }
            return self
                .descend(&child, rest, visited)
                .or_else(|| Some(Target::Item { file: self.0[&child].file.clone(), name: rest[0].clone() }));
        }
        if is_item {
            return Some(Target::Item { file: here.file.clone(), name: name.clone() });
        }
        let followed = |start: &[String], rest: &[String]| [start, rest].concat();
        let imported = here.bindings.get(name).into_iter().flatten();
        let imported = imported.filter(|start| start.first() != Some(name) || start.len() == 1);
        for path in imported.map(|start| followed(start, rest)) {
            if let Some(target) = self.resolve(module, &path, visited) {
                return Some(target);
            }
        }
        for path in here.globs.iter().map(|(start, _)| followed(start, path)) {
            if let Some(target) = self.resolve_defined(module, &path, visited) {
                return Some(target);
            }
        }
        None
    }

    /// Like [`Modules::resolve`], but only for names with a known definition: a `*` imports only what exists.
    fn resolve_defined(&self, from: &ModulePath, path: &[String], visited: &mut Visited) -> Option<Target> {
        let target = self.resolve(from, path, visited)?;
        match &target {
            Target::Item { file, name } => {
                let is_defined =
                    self.0.values().any(|module| module.file == *file && module.items.contains(name));
                is_defined.then_some(target)
            }
            Target::Module(_) => Some(target),
        }
    }
}

/// The module that a file below `src` is.
fn module_path(inside: &str) -> ModulePath {
    let stem = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut path: ModulePath = stem.split('/').map(str::to_owned).collect();
    let is_root = path.len() == 1 && matches!(path[0].as_str(), "lib" | "main");
    if is_root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

fn joined(path: &[String], name: &str) -> ModulePath {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

fn add_file(all: &mut BTreeMap<ModulePath, Module>, file: &str, path: &ModulePath, imports: Imports) {
    let at = |within: &[String]| path.iter().chain(within).cloned().collect::<ModulePath>();
    for within in std::iter::once(Vec::new()).chain(imports.inline_modules) {
        file.clone_into(&mut all.entry(at(&within)).or_default().file);
    }
    for (within, name) in imports.items {
        all.entry(at(&within)).or_default().items.insert(name);
    }
    for binding in imports.bindings {
        let Reference { within, path, line } = binding.target;
        let module = all.entry(at(&within)).or_default();
        match binding.name {
            Some(name) => {
                module.paths.push((path.clone(), line));
                module.bindings.entry(name).or_default().push(path);
            }
            None => module.globs.push((path, line)),
        }
    }
    for Reference { within, path, line } in imports.paths {
        all.entry(at(&within)).or_default().paths.push((path, line));
    }
}
