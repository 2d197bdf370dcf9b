//! Parses the definitions of one Rust source and its references to its own crate: `use` declarations and paths, without code
//! under `#[cfg(test)]`. Resolves nothing: paths are recorded as written.
use std::collections::BTreeSet;

use super::super::source::{Source, is_word};

/// The definitions and paths of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imports {
    /// Inline modules, each as its path within the file.
    pub inline_modules: BTreeSet<Vec<String>>,
    /// Items, each with the inline module that holds it.
    pub items: BTreeSet<(Vec<String>, String)>,
    /// Names from `use` declarations.
    pub bindings: Vec<Binding>,
    /// Paths in code.
    pub paths: Vec<Reference>,
    /// Modules declared under `#[cfg(test)]`, whose files contain only test code.
    pub test_modules: BTreeSet<String>,
}

/// A path as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The inline module that contains it; empty at the top level.
    pub within: Vec<String>,
    /// Its segments.
    pub path: Vec<String>,
    /// Its line, from 1.
    pub line: usize,
}

/// One leaf of a `use` declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The imported path.
    pub target: Reference,
    /// The name in this module; `None` for `*`.
    pub name: Option<String>,
}

/// Keywords before the name of an item.
const ITEM_KEYWORDS: [&str; 9] =
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];
/// Keywords that may start an item. Anything else with an attribute is a field, a variant or a match arm.
const ITEM_STARTS: [&str; 17] = [
    "pub",
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "macro_rules",
    "mod",
    "use",
    "impl",
    "unsafe",
    "async",
    "extern",
    "let",
];

/// A word, `::`, or one character of punctuation.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

impl Imports {
    /// Parses a source.
    pub fn of(source: &Source) -> Self {
        let tokens = without_tests(&tokens(&source.code));
        let mut imports = Self { test_modules: tokens.test_modules, ..Self::default() };
        Reader { tokens: &tokens.kept, at: 0, scopes: Vec::new() }.read(&mut imports);
        imports
    }
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(character) = code[at..].chars().next() {
        let length = if is_word(character) {
            code[at..].find(|c| !is_word(c)).unwrap_or(code.len() - at)
        } else if code[at..].starts_with("::") {
            2
        } else {
            character.len_utf8()
        };
        if character == '\n' {
            line += 1;
        }
        if !character.is_whitespace() {
            found.push(Token { text: &code[at..at + length], line });
        }
        at += length;
    }
    found
}

struct WithoutTests<'a> {
    kept: Vec<Token<'a>>,
    test_modules: BTreeSet<String>,
}

/// Removes every item under `#[cfg(test)]`.
fn without_tests<'a>(tokens: &[Token<'a>]) -> WithoutTests<'a> {
    let mut result = WithoutTests { kept: Vec::new(), test_modules: BTreeSet::new() };
    let mut at = 0;
    while at < tokens.len() {
        if !is_test_attribute(&tokens[at..]) {
            result.kept.push(tokens[at]);
            at += 1;
            continue;
        }
        if tokens.get(at + 1).is_some_and(|token| token.text == "!") {
            // `#![cfg(test)]`: the rest of the file.
            return result;
        }
        while tokens.get(at).is_some_and(|token| token.text == "#") {
            at += bracketed(&tokens[at + 1..]) + 1;
        }
        let end = at + item_length(&tokens[at..]);
        let words: Vec<&str> = tokens[at..end].iter().map(|token| token.text).collect();
        if let Some(["mod", name, ";"]) = words.windows(3).next_back() {
            result.test_modules.insert((*name).to_owned());
        }
        at = end;
    }
    result
}

fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    let words: Vec<&str> =
        tokens.iter().take(8).map(|token| token.text).filter(|text| *text != "!").take(6).collect();
    matches!(words[..], ["#", "[", "cfg", "(", "test", ")", ..] | ["#", "[", "cfg", "(", "all", "("])
        && !(words[4] == "all" && tokens.iter().skip(6).take(1).all(|token| token.text != "test"))
}

/// Number of tokens from an opening bracket to its closing one, inclusive.
fn bracketed(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Number of tokens of the item, field or variant at the start.
fn item_length(tokens: &[Token<'_>]) -> usize {
    let is_item = tokens.first().is_some_and(|token| ITEM_STARTS.contains(&token.text));
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].text {
            "{" => {
                at += bracketed(&tokens[at..]);
                // A group of imports is followed by its semicolon.
                return at + usize::from(tokens.get(at).is_some_and(|token| token.text == ";"));
            }
            "(" | "[" => at += bracketed(&tokens[at..]),
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            "}" if !is_item => return at,
            _ => at += 1,
        }
    }
    tokens.len()
}

/// A block of code: an inline module, or anything else in braces.
type Scope = Option<String>;

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    scopes: Vec<Scope>,
}

impl Reader<'_> {
    fn word(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    /// The inline modules around the current token.
    fn within(&self) -> Vec<String> {
        self.scopes.iter().flatten().cloned().collect()
    }

    fn is_in_module(&self) -> bool {
        self.scopes.iter().all(Option::is_some)
    }

    fn read(mut self, imports: &mut Imports) {
        while self.at < self.tokens.len() {
            match self.word(0) {
                "{" => self.scopes.push(None),
                "}" => {
                    self.scopes.pop();
                }
                "mod" if self.word(2) == "{" => {
                    self.scopes.push(Some(self.word(1).to_owned()));
                    imports.inline_modules.insert(self.within());
                    self.at += 2;
                }
                "use" if self.word(1) != "<" => {
                    self.read_use(imports);
                    continue;
                }
                keyword if ITEM_KEYWORDS.contains(&keyword) => self.read_item(imports),
                word if word.starts_with(is_word) && self.word(1) == "::" => {
                    let line = self.line();
                    let path = self.read_path();
                    imports.paths.push(Reference { within: self.within(), path, line });
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn read_item(&mut self, imports: &mut Imports) {
        let name = if self.word(0) == "macro_rules" { self.word(2) } else { self.word(1) };
        // `const fn` and `unsafe` blocks: the next keyword names the item.
        let is_name = name.starts_with(is_word) && !ITEM_STARTS.contains(&name);
        if is_name && self.is_in_module() {
            imports.items.insert((self.within(), name.to_owned()));
        }
    }

    fn read_path(&mut self) -> Vec<String> {
        let mut path = vec![self.word(0).to_owned()];
        self.at += 1;
        while self.word(0) == "::" && self.word(1).starts_with(is_word) {
            path.push(self.word(1).to_owned());
            self.at += 2;
        }
        path
    }

    fn read_use(&mut self, imports: &mut Imports) {
        self.at += 1;
        self.read_tree(&[], imports);
        while !matches!(self.word(0), ";" | "") {
            self.at += 1;
        }
    }

    /// One branch of a `use` tree; ends before `,`, `}` or `;`.
    fn read_tree(&mut self, prefix: &[String], imports: &mut Imports) {
        let line = self.line();
        let mut path = prefix.to_vec();
        loop {
            match self.word(0) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !matches!(self.word(0), "}" | "") {
                        self.read_tree(&path, imports);
                        self.at += usize::from(self.word(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    self.bind(path, None, line, imports);
                    return;
                }
                word if word.starts_with(is_word) && word != "as" => {
                    path.push(word.to_owned());
                    self.at += 1;
                }
                _ => break,
            }
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let mut name = path.last().cloned();
        if self.word(0) == "as" {
            name = Some(self.word(1).to_owned());
            self.at += 2;
        }
        if let Some(name) = name {
            self.bind(path, Some(name), line, imports);
        } else {
            self.at += 1;
        }
    }

    fn bind(&self, path: Vec<String>, name: Option<String>, line: usize, imports: &mut Imports) {
        let target = Reference { within: self.within(), path, line };
        imports.bindings.push(Binding { target, name });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Imports {
        Imports::of(&Source::new(text))
    }

    /// Each import as `path as name`, with its inline module before it.
    fn bindings(text: &str) -> Vec<String> {
        read(text)
            .bindings
            .into_iter()
            .map(|binding| {
                let within = binding.target.within.join("::");
                let path = binding.target.path.join("::");
                let name = binding.name.unwrap_or_else(|| "*".to_owned());
                format!("{within}/{path} as {name}").trim_start_matches('/').to_owned()
            })
            .collect()
    }

    #[test]
    fn nested_groups_are_read_leaf_by_leaf() {
        assert_eq!(
            bindings("use crate::{a::{self, B, c as d}, e::*, F};\npub(crate) use super::super::g::H;\n"),
            [
                "crate::a as a",
                "crate::a::B as B",
                "crate::a::c as d",
                "crate::e as *",
                "crate::F as F",
                "super::super::g::H as H",
            ]
        );
        assert_eq!(bindings("fn f() -> impl X + use<'_> {}\nmod m { use super::A; }\n"), ["m/super::A as A"]);
        assert_eq!(bindings("use ::std::io;\nuse a::B as _;\n"), ["std::io as io", "a::B as _"]);
    }

    #[test]
    fn test_code_does_not_count() {
        let text = "use a::B;\n#[cfg(test)]\nuse c::D;\n#[cfg(test)]\n#[expect(x, reason = \"\")]\nmod tests { use super::*; }\n\
                    #[cfg(test)]\nmod more;\nstruct S { #[cfg(test)] a: e::F, b: u8 }\n\
                    #[cfg(test)]\nuse g::{H, I};\nuse j::K;\n#[cfg(all(test, unix))]\nfn t() { l::m(); }\n\
                    #[cfg(not(test))]\nuse n::O;\n#[cfg(all(unix, feature = \"p\"))]\nuse q::R;\n";
        assert_eq!(bindings(text), ["a::B as B", "j::K as K", "n::O as O", "q::R as R"]);
        let imports = read(text);
        assert_eq!(imports.paths, []);
        assert_eq!(imports.test_modules, ["more".to_owned()].into());
        assert_eq!(bindings("//! All tests.\n#![cfg(test)]\nuse a::B;\n"), Vec::<String>::new());
    }

    #[test]
    fn items_count_where_they_are_visible() {
        let imports = read(
            "pub const fn f() { const INNER: u8 = 1; }\nstruct S;\nimpl S { fn method() {} }\n\
             mod m { pub const C: u8 = 1; }\nmacro_rules! mac { () => {} }\n",
        );
        let items: Vec<String> =
            imports.items.iter().map(|(within, name)| [within.join("::"), name.clone()].join("/")).collect();
        assert_eq!(items, ["/S", "/f", "/mac", "m/C"]);
        assert_eq!(imports.inline_modules, [vec!["m".to_owned()]].into());
    }

    #[test]
    fn paths_in_code_are_read_with_their_lines() {
        let imports =
            read("fn f() {\n    crate::a::b();\n    Vec::<u8>::new();\n    x.y(super::Z::default());\n}\n");
        let paths: Vec<(String, usize)> =
            imports.paths.iter().map(|path| (path.path.join("::"), path.line)).collect();
        assert_eq!(
            paths,
            [("crate::a::b".to_owned(), 2), ("Vec".to_owned(), 3), ("super::Z::default".to_owned(), 4)]
        );
    }
}
