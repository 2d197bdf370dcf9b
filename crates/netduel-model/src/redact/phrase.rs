//! Phrases in texts, whatever the case of their letters: names of authors and organizations may consist of several words. Nothing here knows
//! what a phrase means.

/// A text whose letters have no case, with the place in the text of each of its characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caseless {
    text: String,
    /// For each byte of `text`, and for its end: where the character that it begins is in the original text. A character that another case
    /// writes as several (`ß` as `SS`) has a place for the first of them only.
    places: Vec<Option<usize>>,
}

impl Caseless {
    /// Of a text.
    pub fn of(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut places = Vec::with_capacity(original.len() + 1);
        for (at, c) in original.char_indices() {
            // There are letters with two lower cases, such as sigma, and with a lower case that has no upper case of its own.
            text.extend(c.to_uppercase().flat_map(char::to_lowercase));
            places.push(Some(at));
            places.resize(text.len(), None);
        }
        places.push(Some(original.len()));
        Self { text, places }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whole characters of the original text: where those of this text, of which some begin at an offset and have so many bytes, begin and end.
    fn original(&self, offset: usize, len: usize) -> Option<(usize, usize)> {
        let place = |at: usize| self.places.get(at).copied().flatten();
        Some((place(offset)?, place(offset + len)?))
    }
}

/// The text with a pseudonym in place of a phrase without case, which is not empty. A part of a longer word stays: the organization `net` is
/// not in `netduel`.
pub fn with_phrase_replaced(text: &str, phrase: &str, pseudonym: &str) -> String {
    let caseless = Caseless::of(text);
    let mut result = String::with_capacity(text.len());
    // What was copied of the text, and from where on the phrase is sought in the text without case.
    let (mut copied, mut from) = (0, 0);
    while let Some(rest) = caseless.text.get(from..)
        && let Some(at) = rest.find(phrase).map(|offset| from + offset)
    {
        match caseless.original(at, phrase.len()) {
            Some((start, end)) if is_whole(text, start, end) => {
                result.push_str(text.get(copied..start).unwrap_or_default());
                result.push_str(pseudonym);
                (copied, from) = (end, at + phrase.len());
            }
            _ => from = at + phrase.chars().next().map_or(1, char::len_utf8),
        }
    }
    result.push_str(text.get(copied..).unwrap_or_default());
    result
}

/// Whether no word goes on over the start or the end of a part. Letters beyond ASCII are no reason to leave a name: not every script has spaces.
fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let (Some((before, rest)), Some((to_end, behind))) =
        (text.split_at_checked(start), text.split_at_checked(end))
    else {
        return false;
    };
    let mut before = before.chars().rev();
    // The letter of an escape, as in a text of a plan with `\n`, is no part of the word behind it.
    let (last, escape) = (before.next(), before.next());
    let begins_before = is_part(rest.chars().next()) && is_part(last) && escape != Some('\\');
    let goes_on = is_part(to_end.chars().next_back()) && is_part(behind.chars().next());
    !begins_before && !goes_on
}
