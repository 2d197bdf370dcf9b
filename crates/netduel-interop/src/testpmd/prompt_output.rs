//! The output of a program with a prompt, as it arrives. Pure: bytes in, text out.

/// Maximum number of bytes of output kept: the newest. testpmd writes about 5 kB at its start and 2 kB at each stop.
const KEPT: usize = 256 * 1024;

/// Output that was not read yet.
#[derive(Debug, Clone)]
pub struct PromptOutput {
    /// Bytes, not text: a character may arrive in two pieces.
    bytes: Vec<u8>,
    mark: &'static str,
    /// Number of the first bytes in which no prompt begins.
    searched: usize,
}

impl PromptOutput {
    /// No output yet of a program whose prompt is `mark`.
    pub fn new(mark: &'static str) -> Self {
        Self { bytes: Vec::new(), mark, searched: 0 }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes.iter().filter(|byte| **byte != b'\r'));
        let excess = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..excess);
        self.searched = self.searched.saturating_sub(excess);
    }

    /// Takes the output up to the next prompt, and the prompt itself, which is not returned; `None` without a prompt.
    pub fn take_answer(&mut self) -> Option<String> {
        let mark = self.mark.as_bytes();
        let mut starts = self.bytes.windows(mark.len()).enumerate().skip(self.searched);
        let Some((at, _)) = starts.find(|(_, window)| *window == mark) else {
            self.searched = (self.bytes.len() + 1).saturating_sub(mark.len());
            return None;
        };
        let answer = String::from_utf8_lossy(&self.bytes[..at]).into_owned();
        self.bytes.drain(..at + mark.len());
        self.searched = 0;
        Some(answer)
    }

    /// The output that was not taken.
    pub fn unread(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Forgets the output so far.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.searched = 0;
    }
}

/// An answer without the echo of the line that was sent, and without space around it.
pub fn without_echo<'t>(answer: &'t str, line: &str) -> &'t str {
    let answer = answer.trim_start();
    answer.strip_prefix(line).unwrap_or(answer).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_that_arrives_in_two_pieces_is_one() {
        let mut output = PromptOutput::new("> ");
        for byte in "Gerät\r\n> é".bytes() {
            output.push(&[byte]);
        }
        assert_eq!(output.take_answer().as_deref(), Some("Gerät\n"));
        assert_eq!(output.take_answer(), None);
        assert_eq!(output.unread(), "é");
    }

    #[test]
    fn prompt_is_found_though_its_beginning_was_searched() {
        let mut output = PromptOutput::new("> ");
        for (piece, answer) in [("one>", None), (" two", Some("one")), (">", None), ("> ", Some("two>"))] {
            output.push(piece.as_bytes());
            assert_eq!(output.take_answer().as_deref(), answer, "{piece}");
        }
        output.push(b"x>");
        assert_eq!(output.take_answer(), None);
        // The oldest of what was searched is left out.
        output.push(&vec![b'y'; KEPT - 1]);
        assert_eq!(output.take_answer(), None);
        output.push(b"> ");
        assert_eq!(output.take_answer().map(|answer| answer.len()), Some(KEPT - 2));
    }

    #[test]
    fn newest_output_is_kept() {
        let mut output = PromptOutput::new("> ");
        output.push(&vec![b'x'; KEPT]);
        output.push(b"the end> ");
        let answer = output.take_answer().expect("a prompt");
        assert!(answer.ends_with("xthe end") && answer.len() == KEPT - 2, "{}", answer.len());
    }
}
