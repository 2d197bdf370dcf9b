//! What a page collects while its blocks are written: data of plots, links of a section, tables that follow in the appendix.
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::document::table::Table;
use crate::words::plain;

use super::blocks;

/// Longer tables of charts are not printed: a reader of paper cannot use them, and the page and the CSV have them.
const PRINTED_ROWS_MAX: usize = 40;

/// The state of a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Whether it is for paper: nothing is folded, links have their addresses below the section.
    pub(super) is_paper: bool,
    /// The section that is being written.
    pub(super) section: String,
    /// The data of all plots, in the order of their containers.
    plots: Vec<Value>,
    /// The addresses of the section's links.
    links: Vec<String>,
    /// Tables of charts with their titles.
    tables: Vec<(String, Table)>,
}

impl Page {
    /// A page for paper.
    pub(super) fn of_paper() -> Self {
        Self { is_paper: true, ..Self::default() }
    }

    /// Takes the data of a plot; its position.
    pub(super) fn plot(&mut self, data: &Value) -> usize {
        self.plots.push(data.clone());
        self.plots.len() - 1
    }

    /// The number of a link on paper, from 1.
    pub(super) fn link(&mut self, address: &str) -> usize {
        let known = self.links.iter().position(|link| link == address);
        known.unwrap_or_else(|| {
            self.links.push(address.to_owned());
            self.links.len() - 1
        }) + 1
    }

    /// The addresses of the links of a section that ends here, as footnotes; nothing on a screen.
    pub(super) fn footnotes(&mut self) -> Markup {
        let links = std::mem::take(&mut self.links);
        html! {
            @if self.is_paper && !links.is_empty() {
                ol.footnotes { @for link in &links { li { (plain(link)) } } }
            }
        }
    }

    /// The numbers of a chart: folded below it, or in the appendix on paper.
    pub(super) fn numbers(&mut self, title: &str, table: &Table) -> Markup {
        if self.is_paper {
            self.tables.push((format!("{}: {title}", self.section), table.clone()));
            return html! {};
        }
        html! { details { summary { "Data" } (blocks::table(table)) } }
    }

    /// The numbers of all charts, for paper; empty on a screen.
    pub(super) fn appendix(&mut self) -> Markup {
        let tables = std::mem::take(&mut self.tables);
        let (short, long): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|(_, table)| table.rows.len() <= PRINTED_ROWS_MAX);
        html! {
            @if !short.is_empty() || !long.is_empty() {
                section.numbers id="numbers" {
                    h2 { "Data of the charts" }
                    @for (title, table) in &short { h3 { (plain(title)) } (blocks::table(table)) }
                    @if !long.is_empty() {
                        p.reading { "Not printed because of their length (more than " (PRINTED_ROWS_MAX) " rows); the HTML page and the CSV file have them:" }
                        ul.reading { @for (title, table) in &long { li { (plain(title)) " (" (table.rows.len()) " rows)" } } }
                    }
                }
            }
        }
    }

    /// Everything the script draws, as the text of a JSON script element. Every `<` is escaped, so that no text can end the
    /// element; the line separators that JavaScript once refused in strings are escaped too.
    pub(super) fn embedded(&self, arms: &[String]) -> String {
        let data = json!({ "arms": arms, "plots": self.plots });
        data.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
    }
}
