//! What an author adds: it is on the cover and in its sections in every file, and never markup of its own.
use netduel_report::document::block::Block;
use netduel_report::document::table::Cell;
use netduel_report::html::Paper;
use netduel_report::{analyse_run, document, html, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::hostile::HOSTILE;
use crate::look::author;
use crate::{failover, hosts, old_runs, packets};

#[test]
fn cover_and_contents_have_what_a_reader_looks_for_first() {
    let mut run = build(&Recipe::default());
    for host in run.header.hosts.values_mut() {
        host.cloud = hosts::azure().cloud;
    }
    run.header.annotations.publication = author();
    let document = document(&run);
    let page = html::page(&document);
    let head = page.split("<div class=\"cover\">").nth(1).unwrap().split("</header>").next().unwrap();
    for text in [
        "<h1>Accelerated networking in our test bed</h1>",
        run.header.plan.question.as_str(),
        "A. Author, Example Networks",
        "<dt>Date</dt><dd>2026-11-21 05:30 UTC</dd>",
        "<dt>Hosts</dt><dd>a and b</dd>",
        "<dt>Size</dt><dd>Standard_DS4_v2</dd>",
        "<dt>NIC</dt><dd>veth (virtual)</dd>",
    ] {
        assert!(head.contains(text), "no {text} in {head}");
    }
    let region = head.split("<dt>Region</dt><dd>").nth(1).unwrap().split("</dd>").next().unwrap();
    assert!(region.contains("westeurope zone 1"), "{region}");
    let contents = head.split("<nav class=\"contents\"").nth(1).unwrap().split("<a href=\"#").skip(1);
    let linked: Vec<&str> = contents.map(|link| link.split('"').next().unwrap()).collect();
    let sections: Vec<&str> = document.sections.iter().map(|section| section.anchor.as_str()).collect();
    assert_eq!(linked, sections);
    assert!(sections.iter().all(|anchor| page.contains(&format!("<section id=\"{anchor}\""))));
}

#[test]
fn words_of_the_author_are_in_files_and_not_on_the_terminal() {
    let mut run = build(&Recipe::default());
    let before = terminal::report(&document(&run), 120, false);
    run.header.annotations.publication = author();
    let document = document(&run);
    let page = html::page(&document);
    let text = markdown::page(&document);
    for (html, markdown) in [
        ("<h1>Accelerated networking in our test bed</h1>", "# Accelerated networking in our test bed"),
        ("A. Author, Example Networks", "A. Author, Example Networks"),
        ("To decide whether <b>all</b> guests", "To decide whether **all** guests"),
        ("<h3>First impression</h3>", "### First impression"),
        (
            "<a href=\"https://example.org/plan\" rel=\"noopener noreferrer\">the plan</a>",
            "[the plan](https://example.org/plan)",
        ),
        ("<ol><li>one</li><li>two</li></ol>", "1. one\n2. two"),
        ("<code>uname -r", "    uname -r"),
    ] {
        assert!(page.contains(html), "no {html}");
        assert!(text.contains(markdown), "no {markdown} in {text}");
    }
    // The question stays, below the title.
    assert!(page.contains(&format!("<p class=\"question\">{}</p>", run.header.plan.question)));
    assert_eq!(terminal::report(&document, 120, false), before);
}

#[test]
fn options_of_the_command_line_have_precedence_over_the_plan() {
    let mut run = build(&Recipe::default());
    run.header.plan.report.author = Some("of the plan".to_owned());
    run.header.plan.report.organization = Some("of the plan too".to_owned());
    run.header.annotations.publication.author = Some("of the options".to_owned());
    let by = document(&run).cover.by;
    assert_eq!(by, ["of the options", "of the plan too"]);
}

#[test]
fn report_without_an_author_has_no_empty_section() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let document = document(&run);
    let anchors: Vec<&str> = document.sections.iter().map(|section| section.anchor.as_str()).collect();
    assert!(!anchors.contains(&"purpose") && !anchors.contains(&"commentary"), "{anchors:?}");
    assert!(document.sections.iter().all(|section| !section.blocks.is_empty()));
    assert!(!html::page(&document).contains("<img"));
}

#[test]
fn hostile_words_and_images_of_an_author_stay_text() {
    let mut run = build(&Recipe::default());
    let mut hostile = author();
    for text in [&mut hostile.title, &mut hostile.author, &mut hostile.purpose, &mut hostile.commentary] {
        *text = Some(format!("{HOSTILE} [x](https://a.example/)"));
    }
    hostile.image = Some("data:image/svg+xml;base64,PHN2Zz4=".to_owned());
    hostile.accent = Some("#fff; } body { display: none".to_owned());
    run.header.annotations.publication = hostile;
    for page in [html::page(&document(&run)), html::printed(&document(&run), Paper::A4)] {
        assert!(!page.contains("<img") && !page.contains("onerror=\"") && !page.contains("#fff; }"));
        assert_eq!(page.matches("<script").count(), 4);
        assert!(!page.contains("href=\"javascript"));
        assert!(!page.contains("img-src"), "without an image no image is allowed");
    }
}

#[test]
fn logo_is_allowed_by_the_policy_as_data_only() {
    let mut run = build(&Recipe::default());
    run.header.annotations.publication = author();
    let page = html::page(&document(&run));
    assert!(page.contains("<img class=\"logo\" src=\"data:image/png;base64,"));
    assert!(page.contains("alt=\"Logo of Example Networks\""));
    assert!(page.contains("img-src data:; base-uri"), "no other source");
}

#[test]
fn printed_page_folds_nothing_and_has_links_as_footnotes() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    run.header.annotations.publication = author();
    let page = html::printed(&document(&run), Paper::Letter);
    assert!(!page.contains("<details"), "nothing is folded");
    assert!(page.contains("size: letter") && page.contains("counter(pages)"));
    assert!(
        page.contains("<sup>1</sup>")
            && page.contains("<ol class=\"footnotes\"><li>https://example.org/plan</li>")
    );
    assert!(
        page.contains("Throughput by block") && page.contains("id=\"numbers\""),
        "the data of the charts follow"
    );
    assert!(page.contains("Resolved plan (JSON)"));
    assert!(page.contains("What this run used") || page.contains("The settings that this run used"));
}

#[test]
fn references_have_the_manuals_of_what_carried_the_packets() {
    let mut on_azure = build(&Recipe::default());
    on_azure.header.hosts = hosts::of_a_run();
    let of_mana = markdown::page(&document(&old_runs::on_mana()));
    for manual in ["[DPDK driver of MANA](https://", "[DPDK on Linux VMs of Azure with MANA](https://"] {
        assert!(of_mana.contains(manual), "no {manual} in {of_mana}");
    }
    let [testpmd, xdp, azure] = [
        "[DPDK testpmd](https://",
        "[AF\\_XDP of Linux](https://",
        "[Accelerated networking of Azure](https://",
    ];
    for (run, has) in [
        (old_runs::read("2-real-dpdk"), [true, false, false]),
        (packets::swept(), [false, true, false]),
        (on_azure, [false, false, true]),
        (build(&Recipe::default()), [false; 3]),
    ] {
        let page = markdown::page(&document(&run));
        let (_, references) = page.split_once("## References").expect("references");
        assert_eq!([testpmd, xdp, azure].map(|link| references.contains(link)), has, "{references}");
    }
}

/// The paragraphs of a summary, each of which is a sentence that does not begin with a name in lower case.
fn three_sentences(paragraphs: &[Block]) -> Vec<String> {
    let sentence = |block: &Block| {
        let Block::Paragraph(text) = block else { panic!("{block:?}") };
        let words = text.characters();
        assert!(words.ends_with('.') && !words.contains(". "), "{words}");
        assert!(!words.starts_with(char::is_lowercase), "{words}");
        words
    };
    assert_eq!(paragraphs.len(), 3, "{paragraphs:?}");
    paragraphs.iter().map(sentence).collect()
}

#[test]
fn summary_is_three_sentences_and_one_picture() {
    let run = build(&Recipe { workloads: vec!["bulk", "rr"], ..Recipe::default() });
    let analysis = analyse_run(&run);
    let document = document::of_run(&run, &analysis);
    let summary = &document.sections[0];
    assert_eq!(summary.anchor, "summary");
    let [sentences @ .., Block::Figure(figure)] = summary.blocks.as_slice() else {
        panic!("{:?}", summary.blocks)
    };
    let words = three_sentences(sentences).join(" ");
    assert!(
        words.contains("synthetic is the baseline")
            && words.contains("Of many repetitions of this run, at most 5 % state any false difference"),
        "{words}"
    );
    for workload in ["bulk", "rr"] {
        assert!(words.contains(workload) && figure.alternative.contains(workload), "{words}");
    }
}

#[test]
fn summary_of_each_kind_of_run_is_three_sentences_and_one_picture() {
    let mut runs = vec![old_runs::read("2-real-latency")];
    runs.extend([failover::shown(), packets::swept()]);
    for run in runs {
        let document = document(&run);
        let summary = &document.sections[0];
        let [sentences @ .., Block::Figure(_)] = summary.blocks.as_slice() else {
            panic!("{}: {:?}", run.header.id, summary.blocks)
        };
        three_sentences(sentences);
    }
}

#[test]
fn appendix_has_the_plan_and_the_versions_of_each_host() {
    let document = document(&old_runs::with_rdma_core("44.0"));
    let appendix = document.sections.last().unwrap();
    assert_eq!(appendix.anchor, "appendix");
    let headings = appendix.blocks.iter().filter_map(|block| match block {
        Block::Heading(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(headings.collect::<Vec<_>>(), ["Plan", "Versions"]);
    let Some(Block::Table(table)) = appendix.blocks.last() else { panic!("{:?}", appendix.blocks) };
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(Cell::text).collect()).collect();
    let row = |title: &str| rows.iter().find(|row| row[0] == title).map(|row| row[1..].join(", "));
    for (title, both) in [
        ("Kernel", "6.18.44, 6.18.44"),
        ("DPDK", "22.11.11, 22.11.11"),
        ("rdma-core", "44.0, 44.0"),
        ("netduel", "0.1.0, 0.1.0"),
    ] {
        assert_eq!(row(title).as_deref(), Some(both), "{title} in {rows:?}");
    }
    assert_eq!(row("CPU model"), None, "no version");
}
