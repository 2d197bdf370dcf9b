//! A Rust source as the rules see it: what is code, what is comment or text. Knows just enough of the language for that.

/// A source file, and the same with comments and literals blanked out.
#[derive(Debug)]
pub struct Source {
    /// The lines as they are written.
    pub lines: Vec<String>,
    /// The code alone: comments, strings and characters are spaces, line breaks stand where they stood.
    pub code: String,
}

/// A function of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of its `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace, both counted.
    pub length: usize,
}

impl Source {
    /// Reads a source.
    pub fn new(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect(), code: blank(text) }
    }

    /// Line of a place in the code, from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    /// Places where a whole word stands in the code.
    pub fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code.match_indices(word).map(|(at, _)| at).filter(move |at| {
            let before = self.code[..*at].chars().next_back();
            let after = self.code[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    }

    /// The code from a place on, without leading white space.
    pub fn after(&self, offset: usize) -> &str {
        self.code[offset..].trim_start()
    }

    /// All functions with a body, also those within others.
    pub fn functions(&self) -> Vec<Function> {
        self.words("fn").filter_map(|at| self.function_at(at)).collect()
    }

    fn function_at(&self, at: usize) -> Option<Function> {
        let name: String =
            self.after(at + 2).chars().take_while(|c| is_word(*c) || matches!(c, '$' | '#')).collect();
        if name.is_empty() {
            // A function pointer's type, `fn(u32)`.
            return None;
        }
        let end = body_end(&self.code[at..])? + at;
        let line = self.line_of(at);
        Some(Function { name, line, length: self.line_of(end) - line + 1 })
    }
}

/// Whether a character can be part of an identifier.
pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The closing brace of the function that the code begins with; `None` when it has no body.
fn body_end(code: &str) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for (at, character) in code.char_indices() {
        match character {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if brackets == 0 && braces == 0 => return None,
            '{' if brackets == 0 || braces > 0 => braces += 1,
            '}' if braces == 1 => return Some(at),
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Replaces comments and literals by spaces, byte for byte, so that places and lines stay.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if let Some(length) = blank_length(text, at) {
            let end = (at + length).min(bytes.len());
            code.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
            at = end;
        } else {
            code.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Length in bytes of the comment or literal that begins at a place, if one does.
fn blank_length(text: &str, at: usize) -> Option<usize> {
    let rest = &text.as_bytes()[at..];
    match rest {
        [b'/', b'/', ..] => Some(rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(block_comment(rest)),
        [b'"', ..] => Some(quoted(rest)),
        [b'\'', ..] => character_literal(&text[at..]),
        [b'r', ..] if begins_word(text, at) => raw_string(rest),
        _ => None,
    }
}

/// Whether the letters before a place are at most the prefix of a literal: `b` or `c`, as in `br"..."`.
fn begins_word(text: &str, at: usize) -> bool {
    let word_before: String = text[..at].chars().rev().take_while(|c| is_word(*c)).take(2).collect();
    matches!(word_before.as_str(), "" | "b" | "c")
}

/// Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character, or `None` when the quote begins a lifetime.
fn character_literal(rest: &str) -> Option<usize> {
    let mut characters = rest[1..].char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        // The escaped character itself may be a quote.
        characters.next()?;
        return rest[1..].char_indices().skip(2).find(|(_, c)| *c == '\'').map(|(at, _)| at + 2);
    }
    let (at, second) = characters.next()?;
    (second == '\'').then_some(at + 2)
}

/// A raw string, or `None` when the `r` begins something else, such as `r#fn`.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let body = 2 + hashes;
    let length = rest[body..].windows(end.len()).position(|window| window == end);
    Some(length.map_or(rest.len(), |length| body + length + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x \" { y") + 1"#, "f(          ) + 1"),
            ("f('{', '\\'', '\\u{7b}', b'}')", "f(   ,     ,         , b   )"),
            ("fn a<'a>(x: &'a str) {}", "fn a<'a>(x: &'a str) {}"),
            ("r#\"a \" {\"# + br\"{\" + r#fn", "           + b     + r#fn"),
            ("for \"x\" in y", "for     in y"),
            ("'\u{e4}' x", "     x"),
        ] {
            assert_eq!(Source::new(text).code, expected, "{text}");
        }
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        let source = Source::new("unsafe_code; unsafe { x_unsafe }");
        assert_eq!(source.words("unsafe").collect::<Vec<_>>(), [13]);
    }

    #[test]
    fn a_function_ends_with_its_own_brace() {
        let text = "impl A {\n    fn one(&self) -> [u8; 2] {\n        \"}\"; // }\n        if x { y }\n    }\n}\n\
                    fn two();\ntype F = fn(u32) -> u32;\nfn three() {}\n";
        let functions = Source::new(text).functions();
        let seen: Vec<(&str, usize, usize)> = functions
            .iter()
            .map(|function| (function.name.as_str(), function.line, function.length))
            .collect();
        assert_eq!(seen, [("one", 2, 4), ("three", 9, 1)]);
    }

    #[test]
    fn a_function_within_another_is_counted_by_itself_too() {
        let functions = Source::new("fn a() {\n  fn b() {\n  }\n}\n").functions();
        assert_eq!(functions.iter().map(|function| function.length).collect::<Vec<_>>(), [4, 2]);
    }
}
