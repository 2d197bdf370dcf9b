//! The output of a program with a prompt, as it arrives. Pure: bytes in, text out.

/// Maximum number of bytes of output kept: the newest. testpmd writes about 5 kB at its start and 2 kB at each stop.
const KEPT: usize = 256 * 1024;

/// Output that was not read yet.
#[derive(Debug, Clone)]
pub struct PromptOutput {
    /// Bytes, not text: a character may arrive in two pieces.
    bytes: Vec<u8>,
    mark: &'static str,
}

impl PromptOutput {
    /// No output yet of a program whose prompt is `mark`.
    pub fn new(mark: &'static str) -> Self {
        Self { bytes: Vec::new(), mark }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes.iter().filter(|byte| **byte != b'\r'));
        self.bytes.drain(..self.bytes.len().saturating_sub(KEPT));
    }

    /// Takes the output up to the next prompt, and the prompt itself, which is not returned; `None` without a prompt.
    pub fn take_answer(&mut self) -> Option<String> {
        let mark = self.mark.as_bytes();
        let at = self.bytes.windows(mark.len()).position(|window| window == mark)?;
        let answer = String::from_utf8_lossy(&self.bytes[..at]).into_owned();
        self.bytes.drain(..at + mark.len());
        Some(answer)
    }

    /// The output that was not taken.
    pub fn unread(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Forgets the output so far.
    pub fn clear(&mut self) {
        self.bytes.clear();
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
    fn newest_output_is_kept() {
        let mut output = PromptOutput::new("> ");
        output.push(&vec![b'x'; KEPT]);
        output.push(b"the end> ");
        let answer = output.take_answer().expect("a prompt");
        assert!(answer.ends_with("xthe end") && answer.len() == KEPT - 2, "{}", answer.len());
    }
}
