//! Texts from outside as they may be printed: plans, names of hosts and errors come from other people and programs. Texts of the command line that
//! are stored are refused in place of changed: the user can write another one.

/// What a user does who wrote a [`HiddenCharacter`].
pub const ONE_LINE: &str = "write one line of text without it";

/// Why a text of the command line is not stored or published: every output would show another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("contains the character U+{:04X}, which controls the output or cannot be seen", u32::from(*character))]
pub struct HiddenCharacter {
    /// The first such character.
    pub character: char,
}

/// Refuses a text that [`plain`] would change.
///
/// # Errors
/// [`HiddenCharacter`].
pub fn check_shown(text: &str) -> Result<(), HiddenCharacter> {
    let hidden = text.chars().find(|c| controls_output(*c));
    hidden.map_or(Ok(()), |character| Err(HiddenCharacter { character }))
}

/// A text without characters that control a terminal, change the direction of writing or cannot be seen. Line breaks become spaces.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if controls_output(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Whether a character controls a terminal, breaks a line, changes the direction of writing, or cannot be seen, so that two names look
/// the same. Joiners (U+200C, U+200D) and selectors of variants stay: words of some scripts need them.
pub fn controls_output(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2064}'
                | '\u{2066}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_that_controls_the_output_or_cannot_be_seen_is_replaced() {
        for c in ['\u{1b}', '\u{9b}', '\u{61c}', '\u{200b}', '\u{202e}', '\u{feff}', '\u{e0041}'] {
            assert_eq!(plain(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        // A soft hyphen, fillers of Hangul, and characters that are deprecated or annotate.
        for c in "\u{ad}\u{34f}\u{115f}\u{1160}\u{206a}\u{3164}\u{ffa0}\u{fff9}".chars() {
            assert_eq!(plain(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        assert_eq!(plain("\0\u{7f}\u{2060}\u{2066}"), "\u{fffd}".repeat(4));
        assert_eq!(plain("a\r\nb\u{2028}\t"), "a  b  ");
        // Every script stays as it is.
        let joined = ["\u{646}\u{645}\u{6cc}\u{200c}\u{62e}", "\u{915}\u{94d}\u{200d}"];
        for text in ["\u{e9} \u{65e5}", "\u{845b}\u{e0100}", "\u{1820}\u{180b}"].into_iter().chain(joined) {
            assert_eq!(plain(text), text);
            assert_eq!(check_shown(text), Ok(()));
        }
    }

    #[test]
    fn text_that_no_output_shows_as_it_is_is_refused_with_its_first_such_character() {
        for (text, shown) in
            [("a\u{1b}[2Jb\n", "U+001B"), ("a\tb", "U+0009"), ("a\n", "U+000A"), ("\u{e0041}", "U+E0041")]
        {
            let hidden = check_shown(text).expect_err(text);
            assert!(hidden.to_string().starts_with(&format!("contains the character {shown}, ")), "{hidden}");
        }
    }
}
