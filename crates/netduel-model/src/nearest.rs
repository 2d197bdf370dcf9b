//! The word that was probably meant: edit distance over short lists of keys and names, and parts of them. For error messages only.

/// Longest words that are compared: the work grows with the product of the lengths, and no key or name is longer.
const WORD_LEN_MAX: usize = 80;

/// The candidate that is nearest to `word`, when it is near enough to be a slip: at most a third of the word's letters
/// differ, two at most in short words. Among equals the first wins. Without a slip the first candidate of which the word is a
/// part: `latency-p99` of `p99`.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let letters = word.chars().count();
    if letters == 0 || letters > WORD_LEN_MAX {
        return None;
    }
    let slips_max = (letters / 3).max(if letters < 3 { 1 } else { 2 });
    let is_short = |candidate: &&str| candidate.chars().count() <= WORD_LEN_MAX;
    let candidates: Vec<&str> = candidates.into_iter().filter(is_short).collect();
    let slip = candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(slips, candidate)| *slips <= slips_max && *slips < candidate.chars().count())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate);
    slip.or_else(|| candidates.into_iter().find(|candidate| letters > 1 && has_part(candidate, word)))
}

/// Whether a word is one of the parts of a candidate, or several in a row: parts are between `-` and `_`.
fn has_part(candidate: &str, word: &str) -> bool {
    let parts = |text: &str| format!("_{}_", folded(text));
    parts(candidate).contains(&parts(word))
}

/// Without regard to case, and with `-` and `_` taken for the same.
fn folded(text: &str) -> String {
    text.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word of the other (optimal string
/// alignment), as they are [`folded`].
fn distance(left: &str, right: &str) -> usize {
    let [left, right] = [left, right].map(|text| folded(text).chars().collect::<Vec<char>>());
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
    fn a_part_of_a_word_finds_the_first_word_that_has_it() {
        let words =
            ["tcp-stream", "tcp-rr", "latency-p50", "latency-p99", "latency-loaded-p99", "expect_mbps"];
        for (part, meant) in [
            ("p99", Some("latency-p99")),
            ("tcp", Some("tcp-stream")),
            ("loaded-p99", Some("latency-loaded-p99")),
            ("MBPS", Some("expect_mbps")),
            ("tcp-r", Some("tcp-rr")),
            ("p9", None),
            ("stre", None),
        ] {
            assert_eq!(nearest(part, words), meant, "{part}");
        }
        assert_eq!(nearest("a", ["host-a"]), None);
    }

    #[test]
    fn swapping_neighbours_is_one_slip() {
        assert_eq!(distance("abcd", "abdc"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
