//! The page for paper: size, running heads and page numbers in the margins, and a style that folds nothing.
use std::fmt;

use crate::document::block::Document;
use crate::words::plain;

/// The style of paper, beside that of every page.
pub(super) const STYLE: &str = include_str!("../../assets/paper.css");

/// Sizes of paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paper {
    /// 210 by 297 mm.
    #[default]
    A4,
    /// 8.5 by 11 inches.
    Letter,
}

impl Paper {
    /// The name in CSS.
    pub fn word(self) -> &'static str {
        match self {
            Self::A4 => "a4",
            Self::Letter => "letter",
        }
    }

    /// Width between the margins of 14 mm, millimetres. Charts are drawn for it, so that their text is not scaled.
    fn width_mm(self) -> f64 {
        match self {
            Self::A4 => 182.0,
            Self::Letter => 187.9,
        }
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The rules for this size and document.
pub(super) fn rules(document: &Document, paper: Paper) -> String {
    format!(
        "@page {{ size: {}; }} main, footer {{ width: {}mm; }} {}",
        paper.word(),
        paper.width_mm(),
        running_head(document)
    )
}

/// The style of the head of each printed page: the title, the run and its date. The first page has them on its cover.
pub(super) fn running_head(document: &Document) -> String {
    let run = document.source.split_last().map_or(&[][..], |(_, run)| run).join(", ");
    let title = document.cover.title.as_ref().unwrap_or(&document.title);
    format!(
        "@page {{ @top-left {{ content: {}; font-size: 8pt; }} @top-right {{ content: {}; font-size: 8pt; }} }} \
         @page :first {{ @top-left {{ content: none; }} @top-right {{ content: none; }} }}",
        quoted(&shortened(&plain(title))),
        quoted(&plain(&run))
    )
}

/// A title that leaves room for the run beside it.
fn shortened(title: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    if title.chars().count() <= CHARACTERS_MAX {
        return title.to_owned();
    }
    title.chars().take(CHARACTERS_MAX - 1).chain(['…']).collect()
}

/// A string of CSS. Every character that could end the string or the element is written as its number.
fn quoted(text: &str) -> String {
    let character = |c: char| match c {
        ' ' | '-' | ',' | '.' | ':' | '_' => c.to_string(),
        c if c.is_alphanumeric() => c.to_string(),
        c => format!("\\{:x} ", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(character).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_head_cannot_end_its_string_or_the_style() {
        assert_eq!(quoted("demo-1, 10:30"), "\"demo-1, 10:30\"");
        assert_eq!(quoted("a\"; }</style>\\"), "\"a\\22 \\3b  \\7d \\3c \\2f style\\3e \\5c \"");
    }

    #[test]
    fn long_title_leaves_room_in_the_running_head() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"x".repeat(80)).chars().count(), 60);
    }
}
