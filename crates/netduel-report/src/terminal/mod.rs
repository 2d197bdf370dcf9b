//! A report on a terminal: plain text of a given width.
//!
//! Colour is never the only sign: every verdict has a mark and words.
mod blocks;
mod page;

use crate::document::block::{Block, Document, Scope, Section};
use crate::words::plain;

use blocks::Detail;
use page::Page;

/// The whole report except sections for files only. `width` in columns; `colour` adds ANSI colours.
pub fn report(document: &Document, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    head(&mut page, document);
    page.paragraph("", &plain(&document.source.join(", ")));
    for section in document.sections.iter().filter(|section| section.scope <= Scope::Detail) {
        page.gap();
        self::section(&mut page, section, Detail::Full);
    }
    page.into_text()
}

/// The closing lines of a run: question, number of trials, and verdicts.
pub fn summary(document: &Document, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    head(&mut page, document);
    for section in document.sections.iter().filter(|section| section.scope == Scope::Result) {
        for block in &section.blocks {
            blocks::block(&mut page, block, Detail::Brief);
        }
    }
    page.into_text()
}

/// Sections without a report.
pub fn sections(sections: &[Section], width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    for section in sections {
        page.gap();
        self::section(&mut page, section, Detail::Full);
    }
    page.into_text()
}

/// Blocks without a section.
pub fn blocks(blocks: &[Block], width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    for block in blocks {
        blocks::block(&mut page, block, Detail::Full);
    }
    page.into_text()
}

fn head(page: &mut Page, document: &Document) {
    let title = page.bold(&plain(&document.title));
    page.paragraph("", &title);
    page.paragraph("", &plain(&document.basis));
}

fn section(page: &mut Page, section: &Section, detail: Detail) {
    let title = page.bold(&plain(&section.title));
    page.paragraph("", &title);
    let mut is_after_table = false;
    for block in &section.blocks {
        // Without indent and gap, a paragraph would look like a part of the table above it.
        if is_after_table && matches!(block, Block::Paragraph(_)) {
            page.gap();
        }
        blocks::block(page, block, detail);
        is_after_table = matches!(block, Block::Verdicts(_) | Block::Table(_));
    }
}
