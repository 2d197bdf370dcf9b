//! Command lines as a person would type them: the words of a command, quoted for a POSIX shell.

/// A word of a command line. A word with other characters than those of names, paths and options is in single quotes.
pub fn word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The words of a command, so that the border between two words is visible.
pub fn line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    words.into_iter().map(|one| word(one.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_special_characters_are_quoted() {
        assert_eq!(word("a/b-c.toml"), "a/b-c.toml");
        assert_eq!(word("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(word(""), "''");
        assert_eq!(line(["ping", "[fd77::2]", "a b"]), "ping '[fd77::2]' 'a b'");
    }
}
