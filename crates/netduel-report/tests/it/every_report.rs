//! Rules for the report of every golden run file, whatever it measured.
use std::path::Path;

use netduel_model::run::Run;
use netduel_report::document::block::Block;
use netduel_report::document::chart::Figure;
use netduel_report::{document, html, markdown, terminal};
use netduel_store::Store;

/// All golden runs with the names of their files.
fn runs() -> Vec<(String, Run)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netduel-store/tests/golden");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "netduel")).collect();
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    let store = Store::open(folder).unwrap();
    let read = |file: &Path| store.read(file.to_str().unwrap()).unwrap();
    files.iter().map(|file| (file.file_name().unwrap().to_string_lossy().into_owned(), read(file))).collect()
}

/// The depth of a heading of Markdown; absent for other lines.
fn depth_in_markdown(line: &str) -> Option<usize> {
    let depth = line.chars().take_while(|c| *c == '#').count();
    (depth > 0).then_some(depth)
}

/// The same on a terminal with colours, where headings are bold lines, and those within a section are indented.
fn depth_on_terminal(line: &str) -> Option<usize> {
    let text = line.trim_start();
    (text.starts_with("\u{1b}[1m") && text.ends_with("\u{1b}[0m")).then(|| line.len() - text.len())
}

/// The headings that the end or a heading that is no deeper follows.
fn without_content(page: &str, depth: fn(&str) -> Option<usize>) -> Vec<&str> {
    let lines: Vec<&str> = page.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_empty = |line: &str, next: Option<&&str>| {
        depth(line).is_some_and(|own| next.is_none_or(|next| depth(next).is_some_and(|next| next <= own)))
    };
    let following = lines.iter().skip(1).map(Some).chain([None]);
    let found = lines.iter().zip(following).filter(|(line, next)| is_empty(line, *next));
    found.map(|(line, _)| *line).collect()
}

#[test]
fn heading_without_content_is_found() {
    let page = "# a\n\n## b\ntext\n## c\n\n## d\ntext\n# e\n";
    assert_eq!(without_content(page, depth_in_markdown), ["## c", "# e"]);
    let bold = |text: &str| format!("\u{1b}[1m{text}\u{1b}[0m");
    let page = format!("{}\n  {}\n\n  {}\n  - {}: e\n", bold("a"), bold("b"), bold("c"), bold("d"));
    assert_eq!(without_content(&page, depth_on_terminal), [format!("  {}", bold("b"))]);
}

#[test]
fn every_heading_of_a_text_format_has_content() {
    for (name, run) in runs() {
        let document = document(&run);
        // So wide that no heading is wrapped.
        let text = [terminal::report(&document, 400, true), terminal::summary(&document, 400, true)];
        for page in text {
            assert_eq!(without_content(&page, depth_on_terminal), [""; 0], "terminal, {name}");
        }
        let page = markdown::page(&document);
        assert_eq!(without_content(&page, depth_in_markdown), [""; 0], "Markdown, {name}");
    }
}

/// The figures among blocks, also the folded ones.
pub fn figures(blocks: &[Block]) -> Vec<&Figure> {
    let all = blocks.iter().flat_map(|block| match block {
        Block::Figure(figure) => vec![&**figure],
        Block::Folded(_, inner) => figures(inner),
        _ => Vec::new(),
    });
    all.collect()
}

#[test]
fn every_figure_has_values() {
    for (name, run) in runs() {
        let document = document(&run);
        for figure in document.sections.iter().flat_map(|section| figures(&section.blocks)) {
            let has_values = figure.data.as_ref().is_none_or(|table| !table.rows.is_empty());
            assert!(has_values, "{name}: {}", figure.title);
        }
    }
}

#[test]
fn trials_of_packets_are_in_the_page_without_a_heading_of_their_own() {
    let (_, run) = runs().into_iter().find(|(name, _)| name == "format-2-real-dpdk.netduel").unwrap();
    let page = html::page(&document(&run));
    assert!(!page.contains("Pacing, flows and errors"));
    assert!(page.contains("<summary>Trials</summary>") && page.contains("Lost at an interface</th>"));
}
