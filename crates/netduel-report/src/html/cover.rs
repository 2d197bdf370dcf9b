//! The cover and the contents: what a reader sees before the sections.
use maud::{Markup, html};

use super::blocks::prose;
use crate::document::accent::{Accent, hexadecimal};
use crate::document::block::Document;
use crate::words::plain;

/// Title, question, names, facts and contents.
pub(super) fn head(document: &Document) -> Markup {
    let cover = &document.cover;
    let title = cover.title.as_ref().unwrap_or(&document.title);
    html! {
        header {
            div.cover {
                @if let Some(logo) = &cover.logo { img.logo src=(logo) alt=(plain(&alternative(document))); }
                @if cover.facts.is_empty() { p.run { (plain(&document.source.join(" · "))) } }
                h1 { (plain(title)) }
                @if cover.title.is_some() { p.question { (plain(&document.title)) } }
                @if !cover.by.is_empty() { p.by { (plain(&cover.by.join(", "))) } }
                @if !cover.facts.is_empty() {
                    dl.about { @for (name, fact) in &cover.facts { div { dt { (plain(name)) } dd { (plain(fact)) } } } }
                }
                p.basis { (prose(&document.basis)) }
            }
            nav.contents aria-label="Contents" {
                @for section in &document.sections { a href={ "#" (section.anchor) } { (plain(&section.title)) } " " }
            }
            noscript { p.note { "Charts need JavaScript. Most have a table of their values below them." } }
        }
    }
}

/// What a logo says: whose it is.
fn alternative(document: &Document) -> String {
    let owner = document.cover.by.last();
    owner.map_or_else(|| "Logo".to_owned(), |owner| format!("Logo of {owner}"))
}

/// The style of the accent colour on both themes; empty without one.
pub(super) fn accent(accent: Option<&Accent>) -> String {
    let Some(accent) = accent else { return String::new() };
    let [light, dark] = accent.on.map(hexadecimal);
    format!(
        ":root {{ --accent: {light}; --link: {light}; }} @media (prefers-color-scheme: dark) {{ :root {{ --accent: {dark}; --link: {dark}; }} }}"
    )
}
