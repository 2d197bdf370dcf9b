//! What an author adds to a report, and how it is printed. Defined once for `netduel run` and `netduel report`; no file is read here.
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use netduel_model::publication::{TEXT_LEN_MAX, colour};

use super::free_text::free_text;

/// Words and pictures of the author.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Publication")]
pub struct PublicationArgs {
    /// The author, for the cover.
    #[arg(long, value_name = "TEXT", value_parser = text_of_report)]
    pub author: Option<String>,
    /// The author's organization, for the cover.
    #[arg(long, value_name = "TEXT", value_parser = text_of_report)]
    pub organization: Option<String>,
    /// The purpose of the report.
    #[arg(long, value_name = "TEXT", value_parser = text_of_report)]
    pub purpose: Option<String>,
    /// The readers that the report is for.
    #[arg(long, value_name = "TEXT", value_parser = text_of_report)]
    pub audience: Option<String>,
    /// The author's commentary, a Markdown file: headings, paragraphs, lists, code, emphasis and links; HTML is shown as text.
    #[arg(long, value_name = "FILE")]
    pub commentary: Option<PathBuf>,
    /// The logo, a PNG file of at most 128 KiB.
    #[arg(long, value_name = "FILE")]
    pub logo: Option<PathBuf>,
    /// The accent colour, for example #0b5fa5; where its contrast is too low it is adjusted, with a message.
    #[arg(long, value_name = "COLOUR", value_parser = accent)]
    pub accent: Option<String>,
}

/// How a PDF is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "PDF")]
pub struct PrintingArgs {
    /// Size of the paper of a PDF [default: a4]
    #[arg(long, value_enum)]
    pub paper: Option<Paper>,
    /// The browser that prints a PDF [default: the first Chromium, Chrome or Edge in PATH or the usual places]
    #[arg(long, value_name = "PROGRAM")]
    pub browser: Option<PathBuf>,
}

/// Sizes of paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// 210 x 297 mm.
    A4,
    /// 8.5 x 11 inches.
    Letter,
}

impl From<Paper> for netduel_report::html::Paper {
    fn from(paper: Paper) -> Self {
        match paper {
            Paper::A4 => Self::A4,
            Paper::Letter => Self::Letter,
        }
    }
}

/// A text of the report, not longer than in a plan.
pub fn text_of_report(text: &str) -> Result<String, String> {
    free_text(text, TEXT_LEN_MAX)
}

fn accent(text: &str) -> Result<String, String> {
    colour(text)
        .map(|_| text.to_owned())
        .ok_or_else(|| "write # and six hexadecimal digits, for example #0b5fa5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_colours_have_the_limits_of_a_plan() {
        assert_eq!(text_of_report(" A. Author "), Ok("A. Author".to_owned()));
        assert!(text_of_report(" ").is_err() && text_of_report(&"x".repeat(TEXT_LEN_MAX + 1)).is_err());
        assert!(text_of_report("of netduel1abcdefgh").is_err());
        assert_eq!(accent("#0B5fa5"), Ok("#0B5fa5".to_owned()));
        assert!(accent("red").is_err());
    }
}
