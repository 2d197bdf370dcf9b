//! A Rust source with comments and literals separated from code. Knows only as much of the language as the rules need.
use std::ops::Range;

/// A source file, and the same with comments and literals blanked out.
#[derive(Debug)]
pub struct Source {
    /// The lines as they are written.
    pub lines: Vec<String>,
    /// The code only: comments, strings and characters are replaced by spaces; line breaks are kept.
    pub code: String,
    /// Where the strings are that are not raw, with their quotes: offsets of the text and of the code.
    pub strings: Vec<Range<usize>>,
}

impl Source {
    /// Reads a source.
    pub fn new(text: &str) -> Self {
        let (code, strings) = blank(text);
        Self { lines: text.lines().map(str::to_owned).collect(), code, strings }
    }

    /// Line of an offset in the code, from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    /// Offsets of a whole word in the code.
    pub fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code.match_indices(word).map(|(at, _)| at).filter(move |at| {
            let before = self.code[..*at].chars().next_back();
            let after = self.code[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    }

    /// The code from an offset on, without leading white space.
    pub fn after(&self, offset: usize) -> &str {
        self.code[offset..].trim_start()
    }

    /// Offset of the module with the tests: below `#[cfg(test)]` and other attributes. The end of the code where there is none.
    pub fn start_of_tests(&self) -> usize {
        let is_module = |at: &usize| {
            let item = self.code[*at..].lines().find(|line| !line.starts_with("#["));
            item.is_some_and(|item| item.contains("mod ") && item.ends_with('{'))
        };
        let places = self.code.match_indices("#[cfg(test)]\n").map(|(at, _)| at);
        let mut items = places.filter(|at| *at == 0 || self.code[..*at].ends_with('\n'));
        items.find(is_module).unwrap_or(self.code.len())
    }
}

/// Whether a character can be part of an identifier.
pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Replaces comments and literals by spaces, byte for byte, so that offsets and lines stay the same. Also returns where the strings are.
fn blank(text: &str) -> (String, Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut code: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut strings = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if let Some(length) = blank_length(text, at) {
            let end = (at + length).min(bytes.len());
            if bytes[at] == b'"' {
                strings.push(at..end);
            }
            code.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
            at = end;
        } else {
            code.push(bytes[at]);
            at += 1;
        }
    }
    (String::from_utf8_lossy(&code).into_owned(), strings)
}

/// Length in bytes of the comment or literal at an offset, if there is one.
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

/// Whether the letters before an offset are at most the prefix of a literal: `b` or `c`, as in `br"..."`.
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
    fn strings_that_are_not_raw_have_their_place() {
        let text = "f(\"a \\\" b\", r\"raw\", '\"', b\"c\") // \"comment\"\n + \"\u{e4}\"";
        let strings: Vec<&str> = Source::new(text).strings.into_iter().map(|string| &text[string]).collect();
        assert_eq!(strings, ["\"a \\\" b\"", "\"c\"", "\"\u{e4}\""]);
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        let source = Source::new("unsafe_code; unsafe { x_unsafe }");
        assert_eq!(source.words("unsafe").collect::<Vec<_>>(), [13]);
    }
}
