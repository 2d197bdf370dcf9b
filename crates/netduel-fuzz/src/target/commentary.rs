//! Commentaries: the Markdown of an author, in a plan or a run file that a user may have from elsewhere.
use netduel_report::document::block::{Block, Document, Scope, Section, Style, Text};
use netduel_report::document::cover::Cover;
use netduel_report::document::markup;
use netduel_report::{markdown, terminal};

/// Parses a commentary, and shows it.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let blocks = markup::blocks(text);
    assert_eq!(blocks.is_empty(), text.trim().is_empty(), "a text has a block");
    for span in blocks.iter().flat_map(texts).flat_map(|text| &text.0) {
        if let Style::Web(address) = &span.style {
            assert!(is_web(address), "{address:?}");
        }
    }
    let shown = terminal::blocks(&blocks, 80, false);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    assert!(!markdown::page(&document(blocks)).is_empty());
}

/// The texts of a block that can have links.
fn texts(block: &Block) -> &[Text] {
    match block {
        Block::Paragraph(text) => std::slice::from_ref(text),
        Block::List(texts) | Block::Numbered(texts) => texts,
        _ => &[],
    }
}

/// Whether a link loads a page of the web, and nothing else.
fn is_web(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let is_page = address.starts_with("https://") || address.starts_with("http://");
    is_page && !address.contains(|c: char| c.is_whitespace() || c.is_control() || "\"<>".contains(c))
}

/// A report of nothing else.
fn document(blocks: Vec<Block>) -> Document {
    let (anchor, title) = ("commentary".to_owned(), "Commentary".to_owned());
    Document {
        cover: Cover::default(),
        title: String::new(),
        source: Vec::new(),
        basis: String::new(),
        arms: Vec::new(),
        sections: vec![Section { anchor, title, scope: Scope::Reference, blocks }],
    }
}
