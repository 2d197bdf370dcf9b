//! Text of a given width, written from top to bottom: wrapping at spaces, indents, colours.
//!
//! A word is never broken; a word longer than the width exceeds it. A number and its percent sign are one word.
use crate::document::block::{Style, Text};
use crate::words::plain;
use crate::words::tone::Tone;

/// Below this width nothing is aligned, and lines exceed the width.
const WIDTH_MIN: usize = 40;

/// A page of text.
pub struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
    /// An empty page of `width` columns; `colour` adds ANSI colours, which are never the only sign of a meaning.
    pub fn new(width: usize, colour: bool) -> Self {
        Self { text: String::new(), width: width.max(WIDTH_MIN), colour }
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// An empty line, unless the last line is empty or the page is.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A line without wrapping.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Text wrapped at spaces, with `first` before its first line and `rest` before the others.
    pub fn wrapped(&mut self, first: &str, rest: &str, text: &str) {
        let mut line = first.to_owned();
        let mut empty = true;
        for word in words(text) {
            if !empty && columns(&line) + 1 + columns(&word) > self.width {
                self.line(&line);
                rest.clone_into(&mut line);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(&word);
            empty = false;
        }
        self.line(&line);
    }

    /// A paragraph with `indent` before each line.
    pub fn paragraph(&mut self, indent: &str, text: &str) {
        self.wrapped(indent, indent, text);
    }

    /// Bold text.
    pub fn bold(&self, text: &str) -> String {
        if self.colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A text in the colour of a tone.
    pub fn toned(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Better => "32",
            Tone::Worse => "31",
            Tone::Same => "36",
            Tone::Open => "33",
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Text with its emphasis.
    pub fn styled(&self, text: &Text) -> String {
        let span = |text: &str, style: &Style| match style {
            Style::Plain | Style::Emphasis | Style::Link(_) => text.to_owned(),
            Style::Web(address) if address == text => text.to_owned(),
            Style::Web(address) => format!("{text} ({})", plain(address)),
            Style::Strong => self.bold(text),
            Style::Tone(tone) => self.toned(*tone, text),
        };
        text.0.iter().map(|piece| span(&plain(&piece.text), &piece.style)).collect()
    }
}

/// What stands between the spaces of a text. A percent sign stays with its number: alone at the start of a line it means nothing.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in text.split(' ').filter(|part| !part.is_empty()) {
        let number = words.last_mut().filter(|word| word.ends_with(|last: char| last.is_ascii_digit()));
        match number {
            Some(number) if part.starts_with('%') => {
                number.push(' ');
                number.push_str(part);
            }
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// A text padded to `width` columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// A text right-aligned in `width` columns.
pub fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Columns of a text: its characters without the escape sequences of this module. Our own texts have one column per character; a
/// wide character in a question may make its line longer than the width.
pub fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut in_escape = false;
    for c in text.chars() {
        match (in_escape, c) {
            (false, '\u{1b}') => in_escape = true,
            (true, 'm') => in_escape = false,
            (true, _) => {}
            (false, _) => count += 1,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_its_percent_sign_are_on_one_line() {
        // `5` would be the last column of the first line, `63` that of the second.
        let before = "a".repeat(WIDTH_MIN - 2);
        let next = "b".repeat(WIDTH_MIN - "5 %, ".len() - "63".len() - 1);
        let mut page = Page::new(WIDTH_MIN, false);
        page.paragraph("", &format!("{before} 5 %, {next} 63 % of all"));
        assert_eq!(page.into_text(), format!("{before}\n5 %, {next}\n63 % of all\n"));
        // A sign without a number is a word of its own.
        assert_eq!(words("in % of  all, 5 %."), ["in", "%", "of", "all,", "5 %."]);
    }
}
