//! The lengths of the texts in a line of JSON, before it is parsed, and of those that a message quotes: a name of 60 MB is no name, and it
//! would be printed. The line may be no JSON at all, which is not checked here.

/// Bytes of a text of a stored run at most, as JSON writes it: no argument of a command line is longer on Linux (`MAX_ARG_STRLEN`, 128 KiB, of
/// which JSON may make six times as much), and no agent sends a longer one. The text of a plan may be longer.
pub const STORED_LEN_MAX: usize = 1 << 20;

/// Characters at most of a text that a message quotes.
const QUOTED_LEN_MAX: usize = 400;

/// The beginning of a text for a message: a text of a line, or the error of a parser, which quotes such texts as long as they are.
pub fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_LEN_MAX).collect()
}

/// The length of the first text, keys included, that is longer than `most` bytes as it is written. `except`: a member whose text may be
/// longer, and its length at most.
pub fn longer_than(line: &[u8], most: usize, except: Option<(&str, usize)>) -> Option<usize> {
    let mut rest = line;
    let mut is_exception = false;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        rest = &rest[start + 1..];
        let length = text_len(rest);
        let most = match except {
            Some((_, most)) if is_exception => most,
            _ => most,
        };
        if length > most {
            return Some(length);
        }
        let (text, after) = rest.split_at(length);
        rest = after.get(1..).unwrap_or_default();
        let is_key = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        is_exception = is_key && except.is_some_and(|(key, _)| text == key.as_bytes());
    }
    None
}

/// The length of a text up to the quote that ends it, or to the end of the line.
fn text_len(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_that_of_the_first_text_that_is_too_long() {
        for (line, expected) in [
            (r#"{"a":"12345"}"#, None),
            (r#"{"a":"123456"}"#, Some(6)),
            (r#"{"123456":1}"#, Some(6)),
            (r#"{"a":"\\\"34"}"#, Some(6)),
            (r#"{"a":["1","1234567","123456"]}"#, Some(7)),
            (r#"{"plan":"1234567890"}"#, None),
            (r#"{"plan" : "1234567890","b":"123456"}"#, Some(6)),
            (r#"{"plan":"12345678901"}"#, Some(11)),
            (r#"{"a":"plan","b":"123456"}"#, Some(6)),
            (r#"{"a":"1234567"#, Some(7)),
            (r#""\"#, None),
            ("", None),
        ] {
            assert_eq!(longer_than(line.as_bytes(), 5, Some(("plan", 10))), expected, "{line}");
        }
    }
}
