//! Delta debugging: the part of an input with which something still fails. Starts no program and reads no clock: the caller decides what
//! fails, and when there is no more time.

/// A shortened input.
#[derive(Debug, PartialEq, Eq)]
pub struct Reduction {
    /// It failed when it was tried, or is the whole input.
    pub input: Vec<u8>,
    /// Inputs that were tried.
    pub attempts: u32,
    /// Whether it fails no more without any of its bytes; false when the search ended before.
    pub is_minimal: bool,
}

/// Removes lines and then bytes, as long as the rest fails. Ends after `attempts_max` attempts or without time with what it has by then.
///
/// An input that fails now and then ends the search too: each step makes it shorter or the removed parts smaller.
///
/// # Errors
/// Those of an attempt.
pub fn reduce<E>(
    input: &[u8],
    attempts_max: u32,
    has_time: impl Fn() -> bool,
    fails: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<Reduction, E> {
    let mut search = Search { fails, has_time, attempts: 0, attempts_max, is_cut: false };
    let lines = search.shorten(input.split_inclusive(|byte| *byte == b'\n').collect())?.concat();
    let input = search.shorten(lines.chunks(1).collect())?.concat();
    Ok(Reduction { input, attempts: search.attempts, is_minimal: !search.is_cut })
}

struct Search<H, F> {
    fails: F,
    has_time: H,
    attempts: u32,
    attempts_max: u32,
    /// Whether a bound ended it.
    is_cut: bool,
}

impl<H: Fn() -> bool, F> Search<H, F> {
    /// Removes neighbouring pieces, all of them first and then ever fewer at a time, and single ones until none can be removed.
    fn shorten<'i, E>(&mut self, mut pieces: Vec<&'i [u8]>) -> Result<Vec<&'i [u8]>, E>
    where
        F: FnMut(&[u8]) -> Result<bool, E>,
    {
        let mut length = pieces.len();
        while length > 0 {
            let before = pieces.len();
            let mut at = 0;
            while at < pieces.len() {
                self.is_cut = self.is_cut || self.attempts >= self.attempts_max || !(self.has_time)();
                if self.is_cut {
                    return Ok(pieces);
                }
                let end = (at + length).min(pieces.len());
                let mut rest = pieces.clone();
                rest.drain(at..end);
                self.attempts += 1;
                if (self.fails)(&rest.concat())? {
                    pieces = rest;
                } else {
                    at = end;
                }
            }
            // A piece may be removable only after a later one was.
            let again = usize::from(length == 1 && pieces.len() < before);
            length = (length / 2).max(again);
        }
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    const MANY: u32 = 100_000;

    fn contains(text: &[u8], part: &str) -> bool {
        text.windows(part.len()).any(|window| window == part.as_bytes())
    }

    /// A long text with the words of the failure in it.
    fn text() -> Vec<u8> {
        let line = |at: usize| match at {
            40 => "some words, begin, and others\n".to_owned(),
            160 => "and here is the end\n".to_owned(),
            at => format!("line {at} of many\n"),
        };
        (0..200).map(line).collect::<String>().into_bytes()
    }

    #[expect(clippy::unnecessary_wraps, reason = "the form of a check that can fail")]
    fn begins_and_ends(text: &[u8]) -> Result<bool, Infallible> {
        Ok(contains(text, "begin") && contains(text, "end"))
    }

    #[test]
    fn known_minimum_is_found() {
        let Ok(found) = reduce(&text(), MANY, || true, begins_and_ends);
        assert_eq!(String::from_utf8(found.input).unwrap(), "beginend");
        assert!(found.is_minimal && found.attempts < 500, "{} attempts", found.attempts);
    }

    #[test]
    fn bytes_that_are_no_text_are_removed_too() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        // One byte counts only after another, which the input has before and after it.
        let fails = |bytes: &[u8]| -> Result<bool, Infallible> {
            let first = bytes.iter().position(|byte| *byte == 200);
            Ok(first.is_some_and(|first| bytes[first..].contains(&7)))
        };
        let Ok(found) = reduce(&bytes, MANY, || true, fails);
        assert_eq!((found.input, found.is_minimal), (vec![200, 7], true));
    }

    #[test]
    fn input_that_always_fails_becomes_empty_at_once() {
        let Ok(found) = reduce(&text(), MANY, || true, |_| Ok::<_, Infallible>(true));
        assert_eq!(found, Reduction { input: Vec::new(), attempts: 1, is_minimal: true });
        let Ok(found) = reduce(&[], MANY, || true, |_| Ok::<_, Infallible>(true));
        assert_eq!(found, Reduction { input: Vec::new(), attempts: 0, is_minimal: true });
    }

    #[test]
    fn search_ends_although_the_input_fails_now_and_then() {
        for period in 1..20 {
            let mut calls = 0;
            let fails = |_: &[u8]| {
                calls += 1;
                Ok::<_, Infallible>(calls % period == 0)
            };
            let Ok(found) = reduce(&text(), MANY, || true, fails);
            assert!(found.is_minimal && found.input.len() < text().len(), "{period}: {found:?}");
        }
    }

    #[test]
    fn bounds_end_the_search_with_an_input_that_fails() {
        let Ok(found) = reduce(&text(), 12, || true, begins_and_ends);
        assert!(begins_and_ends(&found.input) == Ok(true) && found.input.len() < text().len());
        assert_eq!((found.attempts, found.is_minimal), (12, false));
        let left = Cell::new(5);
        let has_time = || left.replace(left.get() - 1) > 0;
        let Ok(found) = reduce(&text(), MANY, has_time, begins_and_ends);
        assert_eq!((found.attempts, found.is_minimal), (5, false));
        let Ok(found) = reduce(&text(), MANY, || false, begins_and_ends);
        assert_eq!(found, Reduction { input: text(), attempts: 0, is_minimal: false });
    }

    #[test]
    fn error_of_an_attempt_ends_the_search() {
        assert_eq!(reduce(&text(), MANY, || true, |_| Err("no program")), Err("no program"));
    }
}
