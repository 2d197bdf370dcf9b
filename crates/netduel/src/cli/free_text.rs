//! The rule for free texts of the command line: titles, notes and the words of an author, which are stored with a run or shown by a report.
use netduel_model::pairing::without_strings;
use netduel_model::plain_text::{ONE_LINE, check_shown};

/// A text without the spaces around it: one line that every output shows as it is, of 1 to `most` characters, without a secret.
pub fn free_text(text: &str, most: usize) -> Result<String, String> {
    let text = text.trim();
    if without_strings(text) != text {
        return Err(
            "it contains a pairing string, which is a secret and would be stored or published".to_owned()
        );
    }
    match text.chars().count() {
        0 => return Err("it is empty".to_owned()),
        length if length > most => return Err(format!("it has {length} characters; {most} are allowed")),
        _ => {}
    }
    check_shown(text).map_err(|hidden| format!("it {hidden}; {ONE_LINE}"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_text_is_one_line_of_limited_length_without_a_secret() {
        assert_eq!(free_text(" A. Author\n", 9), Ok("A. Author".to_owned()));
        for (wrong, why) in [
            (" ", "it is empty"),
            ("1234567890", "it has 10 characters; 9 are allowed"),
            ("a\u{1b}[2J", "it contains the character U+001B, which"),
            ("a\nb", "; write one line of text without it"),
            ("a\u{202e}b", "U+202E"),
        ] {
            let error = free_text(wrong, 9).expect_err(wrong);
            assert!(error.contains(why), "{wrong:?}: {error}");
        }
        assert!(free_text("of netduel1abcdefgh", 99).is_err_and(|error| error.contains("pairing string")));
    }
}
