//! A document in the formats that show any document. A further one is a renderer in netduel-report, its name in [`Format`] and its line
//! here: every command that writes documents has it then.
use netduel_report::document::block::Document;
use netduel_report::html::{self, Paper};
use netduel_report::{markdown, terminal};

use crate::cli::stored::Format;
use crate::console::page_layout;

/// A document in a format; absent where the format has values or verdicts of its own. The text of a PDF is the page that a browser
/// prints on `paper`.
pub fn page(document: &Document, format: Format, paper: Paper) -> Option<String> {
    match format {
        Format::Text => Some(on_terminal(document)),
        Format::Html => Some(html::page(document)),
        Format::Pdf => Some(html::printed(document, paper)),
        Format::Md => Some(markdown::page(document)),
        Format::Json
        | Format::Csv
        | Format::Junit
        | Format::Github
        | Format::Prometheus
        | Format::Influx
        | Format::Parquet => None,
    }
}

/// A document for this terminal.
pub fn on_terminal(document: &Document) -> String {
    let (width, colour) = page_layout();
    terminal::report(document, width, colour)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use netduel_report::document;
    use netduel_report::inspect::Inspection;

    use super::*;

    #[test]
    fn formats_of_documents_show_any_document() {
        let failed = vec![("vm1".to_owned(), "no route".to_owned())];
        let document = document::of_inspection(&Inspection { failed, ..Inspection::default() }, 0);
        for format in Format::value_variants() {
            let page = page(&document, *format, Paper::A4);
            // JSON has keys for each kind of document.
            assert_eq!(page.is_some(), format.is_document() && *format != Format::Json, "{format:?}");
            assert!(page.is_none_or(|page| page.contains("no route")), "{format:?}");
        }
    }
}
