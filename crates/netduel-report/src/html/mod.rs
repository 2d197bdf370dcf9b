//! The report as one HTML file that needs no network, no server and no other file.
//!
//! maud escapes every text of a plan, host or error. The chart data are in a script element of type JSON with every `<` escaped.
//! A content security policy allows exactly the three scripts of this crate by their hash, so a mistake in escaping runs nothing
//! and loads nothing. Without JavaScript, all verdicts, tables and intervals remain.
mod bed_drawing;
mod blocks;
mod cover;
mod drawing;
mod figures;
mod intervals;
mod levels;
mod paper;
mod policy;
mod state;
mod steps;
mod timeline;
mod verdicts;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::block::{Document, Section};
use crate::words::plain;

pub use paper::Paper;
pub use policy::base64;
use state::Page;

/// Observable Plot, the chart library.
const PLOT: &str = include_str!("../../assets/plot.umd.min.js");
/// Its licence, required in every copy.
const PLOT_LICENSE: &str = include_str!("../../assets/plot.LICENSE.txt");
/// D3, a dependency of Plot.
const D3: &str = include_str!("../../assets/d3.min.js");
/// Its licence.
const D3_LICENSE: &str = include_str!("../../assets/d3.LICENSE.txt");
/// Draws the charts with Plot.
const DRAW: &str = include_str!("../../assets/draw.js");
/// The styles.
const STYLE: &str = include_str!("../../assets/style.css");

/// The page of a report.
pub fn page(document: &Document) -> String {
    whole(document, None)
}

/// The page of a report for a browser that prints it: nothing is folded, the numbers of the charts follow at the end, links have their
/// addresses in footnotes.
pub fn printed(document: &Document, paper: Paper) -> String {
    whole(document, Some(paper))
}

fn whole(document: &Document, paper: Option<Paper>) -> String {
    let scripts = [
        DRAW.to_owned(),
        format!("/*!\nD3\n{D3_LICENSE}*/\n{D3}"),
        format!("/*!\nObservable Plot\n{PLOT_LICENSE}*/\n{PLOT}"),
    ];
    let security = policy::content_security_policy(&scripts, document.cover.logo.is_some());
    let mut page = if paper.is_some() { Page::of_paper() } else { Page::default() };
    let mut sections: Vec<Markup> =
        document.sections.iter().map(|section| self::section(section, &mut page)).collect();
    sections.push(page.appendix());
    let program = document.source.last().map(String::as_str).unwrap_or_default();
    let accent = cover::accent(document.cover.accent.as_ref());
    let title = document.cover.title.as_ref().unwrap_or(&document.title);
    html! {
        (DOCTYPE)
        html.paged[paper.is_some()] lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(security);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(if paper.is_some() { "light" } else { "light dark" });
                meta name="generator" content=(plain(program));
                @if let Some(author) = document.cover.by.first() { meta name="author" content=(plain(author)); }
                title { (plain(title)) " - netduel" }
                style {
                    (PreEscaped(STYLE)) (PreEscaped(accent))
                    @if let Some(paper) = paper { (PreEscaped(paper::STYLE)) (PreEscaped(paper::rules(document, paper))) }
                    @else { (PreEscaped(paper::running_head(document))) }
                }
                noscript { style { ".plot { display: none }" } }
            }
            body {
                main {
                    (cover::head(document))
                    @for section in &sections { (section) }
                }
                (foot(document, paper.is_some()))
                script id="chart-data" type="application/json" { (PreEscaped(page.embedded(&document.arms))) }
                @for script in &scripts { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

fn section(section: &Section, page: &mut Page) -> Markup {
    page.section.clone_from(&section.title);
    let blocks = blocks::all(&section.blocks, page);
    html! {
        section id=(section.anchor) {
            h2 { (plain(&section.title)) }
            (blocks)
            (page.footnotes())
        }
    }
}

fn foot(document: &Document, is_paper: bool) -> Markup {
    html! {
        footer {
            p {
                (plain(&document.source.join(", "))) ". Charts: Observable Plot and D3, ISC licence, inlined; this file loads nothing."
            }
            @if !is_paper {
                p.paper { "Printed without the folded parts: the data of the charts, the ranges of the counters, the resolved plan. The page has them, and so has the PDF of `netduel report --format pdf`." }
            }
        }
    }
}
