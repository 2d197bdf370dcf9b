//! The report as one HTML file that needs no network, no server and no other file.
//!
//! maud escapes every text of a plan, host or error. The chart data are in a script element of type JSON with every `<` escaped.
//! A content security policy allows exactly the three scripts of this crate by their hash, so a mistake in escaping runs nothing
//! and loads nothing. Without JavaScript, all verdicts, tables and intervals remain.
mod bed_drawing;
mod blocks;
mod drawing;
mod figures;
mod intervals;
mod policy;
mod steps;
mod timeline;
mod verdicts;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::block::{Document, Section};
use crate::words::plain;

use figures::Plots;

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
    let scripts = [
        DRAW.to_owned(),
        format!("/*!\nD3\n{D3_LICENSE}*/\n{D3}"),
        format!("/*!\nObservable Plot\n{PLOT_LICENSE}*/\n{PLOT}"),
    ];
    let security = policy::content_security_policy(&scripts);
    let mut plots = Plots::default();
    let sections: Vec<Markup> =
        document.sections.iter().map(|section| self::section(section, &mut plots)).collect();
    let program = document.source.last().map(String::as_str).unwrap_or_default();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(security);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(plain(program));
                title { (plain(&document.title)) " - netduel" }
                style { (PreEscaped(STYLE)) (PreEscaped(running_head(document))) }
                noscript { style { ".plot { display: none }" } }
            }
            body {
                main {
                    (head(document))
                    @for section in &sections { (section) }
                }
                (foot(document))
                script id="chart-data" type="application/json" { (PreEscaped(plots.embedded(&document.arms))) }
                @for script in &scripts { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

/// The style of the head of each printed page: title, name and date of the run.
fn running_head(document: &Document) -> String {
    let run = document.source.split_last().map_or(&[][..], |(_, run)| run).join(", ");
    format!("@page {{ @top-left {{ content: {}; font-size: 8pt; }} }}", quoted(&plain(&run)))
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

fn head(document: &Document) -> Markup {
    let contents = document.sections.iter().skip(1);
    html! {
        header {
            p.run { (plain(&document.source.join(" · "))) }
            h1 { (plain(&document.title)) }
            p.basis { (plain(&document.basis)) }
            nav.contents aria-label="Contents" {
                @for section in contents { a href={ "#" (section.anchor) } { (plain(&section.title)) } " " }
            }
            noscript { p.note { "Charts need JavaScript. The table below each chart has its numbers." } }
        }
    }
}

fn section(section: &Section, plots: &mut Plots) -> Markup {
    let blocks = blocks::all(&section.blocks, plots);
    html! {
        section id=(section.anchor) {
            h2 { (plain(&section.title)) }
            (blocks)
        }
    }
}

fn foot(document: &Document) -> Markup {
    html! {
        footer {
            p {
                (plain(&document.source.join(", "))) ". Charts: Observable Plot and D3, ISC licence, inlined; this file loads nothing."
            }
            p.paper { "Printed without the folded parts: the data of the charts, the ranges of the counters, the resolved plan. The page has them." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_head_cannot_end_its_string_or_the_style() {
        assert_eq!(quoted("demo-1, 10:30"), "\"demo-1, 10:30\"");
        assert_eq!(quoted("a\"; }</style>\\"), "\"a\\22 \\3b  \\7d \\3c \\2f style\\3e \\5c \"");
    }
}
