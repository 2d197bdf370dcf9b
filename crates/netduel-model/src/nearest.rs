//! The word that was probably meant: edit distance over short lists of keys and names. For error messages only.

/// Longest words that are compared: the work grows with the product of the lengths, and no key or name is longer.
const WORD_LEN_MAX: usize = 80;

/// The candidate that is nearest to `word`, when it is near enough to be a slip: at most a third of the word's letters
/// differ, two at most in short words. Among equals the first wins.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let letters = word.chars().count();
    if letters == 0 || letters > WORD_LEN_MAX {
        return None;
    }
    let slips_max = (letters / 3).max(if letters < 3 { 1 } else { 2 });
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count() <= WORD_LEN_MAX)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(slips, candidate)| *slips <= slips_max && *slips < candidate.chars().count())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word of the other (optimal string
/// alignment), without regard to case and with `-` and `_` taken for the same.
fn distance(left: &str, right: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
    };
    let (left, right) = (fold(left), fold(right));
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let mut best = (above[column] + usize::from(letter != other))
                .min(above[column + 1] + 1)
                .min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *letter == right[column - 1] && left[row - 1] == *other;
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or(left.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_word_that_was_meant() {
        let keys = ["streams", "direction", "block", "size", "rate", "request_rate"];
        for (slip, meant) in [
            ("stream", "streams"),
            ("sterams", "streams"),
            ("Streams", "streams"),
            ("request-rate", "request_rate"),
            ("szie", "size"),
            ("direktion", "direction"),
        ] {
            assert_eq!(nearest(slip, keys), Some(meant), "{slip}");
        }
    }

    #[test]
    fn a_word_unlike_all_others_finds_none() {
        for word in ["", "bananas", "xy", &"s".repeat(500)] {
            assert_eq!(nearest(word, ["streams", "size", "a"]), None, "{word}");
        }
    }

    #[test]
    fn swapping_neighbours_is_one_slip() {
        assert_eq!(distance("abcd", "abdc"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
