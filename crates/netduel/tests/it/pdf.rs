//! A PDF by an installed browser: its pages have the report, and neither a finished nor an interrupted one leaves a process or a file behind.
use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netduel_test_support::{skip, write_program};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal};

use crate::compare::stored_run;
use crate::support::{Bench, Finished, PACED, TWO_PATHS, send, short_plan};

/// A run of the golden files.
fn golden(name: &str) -> String {
    format!("{}/../netduel-store/tests/golden/{name}.netduel", env!("CARGO_MANIFEST_DIR"))
}

fn is_installed(program: &str) -> bool {
    let version = Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok()
}

/// A program in place of a browser.
fn stand_in(bench: &Bench, script: &str) -> PathBuf {
    let path = bench.path().join("browser");
    write_program(&path, format!("#!/bin/sh\n{script}"));
    path
}

fn temporary(bench: &Bench) -> PathBuf {
    let folder = bench.path().join("tmp");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn assert_empty(folder: &Path) {
    let left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn pdf_has_the_report_with_page_numbers_and_leaves_nothing_behind() {
    if !is_installed("chromium") {
        return skip("no chromium to print a PDF");
    }
    let bench = Bench::new();
    let folder = temporary(&bench);
    let run = golden("format-2-real-failover");
    let words = [
        "report",
        run.as_str(),
        "--format",
        "pdf",
        "--out",
        "report.pdf",
        "--author",
        "A. Author",
        "--title",
        "Two paths at a removal",
        "--paper",
        "letter",
    ];
    let finished = Finished::from(bench.netduel(words).env("TMPDIR", &folder).output().unwrap());
    let finished = finished.expect_code(0);
    assert!(finished.stderr.contains("printing with Chromium"), "{}", finished.stderr);
    bench.assert_nothing_left();
    assert_empty(&folder);
    let pdf = bench.path().join("report.pdf");
    assert!(fs::read(&pdf).unwrap().starts_with(b"%PDF-"));
    if !is_installed("pdftotext") {
        return skip("no pdftotext to read the PDF");
    }
    let text = Command::new("pdftotext").args(["-layout", pdf.to_str().unwrap(), "-"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    let pages: Vec<&str> = text.split('\u{c}').filter(|page| !page.trim().is_empty()).collect();
    assert!(pages.len() > 3, "{} pages", pages.len());
    assert!(pages[0].contains("A. Author"), "{}", pages[0]);
    let heads = pages.iter().skip(1).filter(|page| page.contains("Two paths at a removal"));
    assert_eq!(heads.count(), pages.len() - 1, "pages with the title in their head: {text}");
    for (number, page) in pages.iter().enumerate() {
        assert!(
            page.contains(&format!("{} / {}", number + 1, pages.len())),
            "page {} has no number: {page}",
            number + 1
        );
    }
    for part in ["Verdicts", "Reproduction", "Appendix", "Data of the charts", "type = \"failover\""] {
        assert!(text.contains(part), "no {part}");
    }
}

/// Side margin of the paper, points: 14 mm.
const MARGIN: f64 = 14.0 / 25.4 * 72.0;
/// Height of the margins above and below, points: 16 mm. Running heads and page numbers stand in them.
const MARGIN_HIGH: f64 = 16.0 / 25.4 * 72.0;
/// Rounding of the browser and of pdftotext, points.
const ROUNDING: f64 = 2.0;
/// Share of a page's height down to which it is printed at least: one that is less than half printed looks unfinished.
const FILLED_LEAST: f64 = 0.5;
/// Resolution in which pages are looked at, dots per inch.
const RESOLUTION: &str = "20";
/// Grey from which on a dot is paper, of 255.
const WHITE: u8 = 250;
/// Most rows of a table that is kept on one page (`paper.css`).
const ROWS_KEPT: usize = 15;

/// A page of a PDF, in points from its upper left corner.
struct Page {
    width: f64,
    words: Vec<Word>,
    /// Share of the height down to which something is printed, without head and number in the margins.
    filled: f64,
}

/// A word with its place.
struct Word {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The first of a row of portable graymaps: how far down it has a dot that is not paper; and the rest.
fn raster(bytes: &[u8]) -> (f64, &[u8]) {
    // `P5`, width, height and the value of white are words, each with one white space behind it.
    let (mut words, mut at) = (Vec::new(), 0);
    while words.len() < 4 {
        let length = bytes[at..].iter().position(u8::is_ascii_whitespace).unwrap();
        words.push(std::str::from_utf8(&bytes[at..at + length]).unwrap());
        at += length + 1;
    }
    assert_eq!((words[0], words[3]), ("P5", "255"));
    let [width, height] = [words[1], words[2]].map(|word| word.parse::<usize>().unwrap());
    let (dots, rest) = bytes[at..].split_at(width * height);
    let margin = (MARGIN_HIGH / 72.0 * RESOLUTION.parse::<f64>().unwrap()).ceil() as usize;
    let rows = dots.chunks(width).take(height - margin);
    let mut printed =
        rows.enumerate().filter(|(row, dots)| *row >= margin && dots.iter().any(|dot| *dot < WHITE));
    (printed.next_back().map_or(0.0, |(row, _)| (row + 1) as f64 / height as f64), rest)
}

/// How far down each page is printed, by `pdftoppm`.
fn filled(pdf: &Path) -> Vec<f64> {
    let words = ["-r", RESOLUTION, "-gray", pdf.to_str().unwrap()];
    let output = Command::new("pdftoppm").args(words).output().unwrap();
    let (mut rest, mut pages) = (output.stdout.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (share, after) = raster(rest);
        pages.push(share);
        rest = after;
    }
    pages
}

/// The pages of a PDF by `pdftotext -bbox` and `pdftoppm`.
fn pages(pdf: &Path) -> Vec<Page> {
    let output = Command::new("pdftotext").args(["-bbox", pdf.to_str().unwrap(), "-"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |element: &str, key: &str| -> f64 {
        let (_, value) = element.split_once(&format!("{key}=\"")).unwrap();
        value.split('"').next().unwrap().parse().unwrap()
    };
    let word = |element: &str| Word {
        text: element.split(['<', '>']).nth(1).unwrap().to_owned(),
        left: number(element, "xMin"),
        right: number(element, "xMax"),
        top: number(element, "yMin"),
        bottom: number(element, "yMax"),
    };
    let page = |(element, filled): (&str, f64)| Page {
        width: number(element, "width"),
        words: element.split("<word ").skip(1).map(word).collect(),
        filled,
    };
    let (elements, filled) = (text.split("<page ").skip(1), filled(pdf));
    assert_eq!(elements.clone().count(), filled.len(), "pages of both programs");
    elements.zip(filled).map(page).collect()
}

/// Prints a page of `words` on both sizes of paper. No word lies in the side margins. Returns the pages by paper; none where the programs for
/// them are missing.
fn printed(bench: &Bench, words: &[&str]) -> Vec<(&'static str, Vec<Page>)> {
    if !["chromium", "pdftotext", "pdftoppm"].into_iter().all(is_installed) {
        skip("no chromium to print a PDF, or no pdftotext and pdftoppm to read it");
        return Vec::new();
    }
    let mut papers = Vec::new();
    for (paper, width) in [("a4", 595.0), ("letter", 612.0)] {
        bench.run([words, &["--out", "printed.pdf", "--paper", paper]].concat()).expect_code(0);
        let pages = pages(&bench.path().join("printed.pdf"));
        assert!(!pages.is_empty(), "{words:?}, {paper}: no page");
        for (index, page) in pages.iter().enumerate() {
            let place = format!("{words:?}, {paper}, page {} of {}", index + 1, pages.len());
            assert!((page.width - width).abs() < ROUNDING, "{place}: {} points wide", page.width);
            for word in &page.words {
                let is_within =
                    word.left >= MARGIN - ROUNDING && word.right <= page.width - MARGIN + ROUNDING;
                assert!(
                    is_within,
                    "{place}: \"{}\" from {} to {} is in a margin",
                    word.text, word.left, word.right
                );
            }
        }
        papers.push((paper, pages));
    }
    papers
}

/// Prints a page of `words` as [`printed`]. It has several pages, and none is half empty but the cover and the last.
fn assert_pages_are_filled(bench: &Bench, words: &[&str]) {
    for (paper, pages) in printed(bench, words) {
        assert!(pages.len() > 1, "{words:?}, {paper}: {} pages", pages.len());
        for (index, page) in pages.iter().enumerate() {
            let is_exempt = index == 0 || index + 1 == pages.len();
            assert!(
                is_exempt || page.filled >= FILLED_LEAST,
                "{words:?}, {paper}, page {} of {}: it is printed down to {:.2} of its height",
                index + 1,
                pages.len(),
                page.filled
            );
        }
    }
}

#[test]
fn pages_of_a_latency_report_are_filled() {
    assert_pages_are_filled(&Bench::new(), &["report", &golden("format-2-real-latency")]);
}

#[test]
fn pages_of_a_packet_report_are_filled() {
    assert_pages_are_filled(&Bench::new(), &["report", &golden("format-2-real-packets")]);
}

#[test]
fn pages_of_a_failover_report_are_filled() {
    assert_pages_are_filled(&Bench::new(), &["report", &golden("format-2-real-failover")]);
}

#[test]
fn pages_of_a_report_of_four_arms_are_filled() {
    assert_pages_are_filled(&Bench::new(), &["report", &golden("format-2-real-treatments")]);
}

#[test]
fn pages_of_a_search_are_filled() {
    assert_pages_are_filled(&Bench::new(), &["report", &golden("format-2-real-search")]);
}

#[test]
fn pages_of_a_report_of_dpdk_are_filled() {
    assert_pages_are_filled(&Bench::new(), &["report", &golden("format-2-real-dpdk")]);
}

/// The names of runs on pages, as tables of so many rows. Nothing but the tables of the charts has them.
fn tables(pages: &[Page], rows: usize) -> Vec<Vec<(usize, &Word)>> {
    let is_name = |word: &&Word| word.text.starts_with("night");
    let each = pages.iter().enumerate();
    let mut names: Vec<(usize, &Word)> = each
        .flat_map(|(index, page)| page.words.iter().filter(is_name).map(move |word| (index, word)))
        .collect();
    names.sort_by(|(page, name), (other_page, other)| {
        page.cmp(other_page).then(name.top.total_cmp(&other.top))
    });
    assert!(!names.is_empty() && names.len().is_multiple_of(rows), "{} names of runs", names.len());
    names.chunks(rows).map(<[_]>::to_vec).collect()
}

/// How often tables of so many rows continue on another page, where their head stands again.
fn continued(pages: &[Page], rows: usize) -> usize {
    let mut count = 0;
    for table in tables(pages, rows) {
        let names: BTreeSet<&str> = table.iter().map(|(_, name)| name.text.as_str()).collect();
        assert_eq!(names.len(), rows, "not the rows of one table: {names:?}");
        for pair in table.windows(2).filter(|pair| pair[0].0 != pair[1].0) {
            let (page, name) = pair[1];
            let is_head = |word: &Word| word.text == "started" && word.bottom <= name.top + ROUNDING;
            assert!(pages[page].words.iter().any(is_head), "{} has no head above it", name.text);
            count += 1;
        }
    }
    count
}

#[test]
fn small_table_is_on_one_page_and_a_long_one_repeats_its_head() {
    for rows in [ROWS_KEPT, 35] {
        let bench = Bench::new();
        for run in 0..rows {
            stored_run(&bench, &format!("night{run:02}"), "6.18.44");
        }
        // The later a name the earlier its run.
        for (paper, pages) in printed(&bench, &["history", "night00"]) {
            assert_eq!(continued(&pages, rows) > 0, rows > ROWS_KEPT, "tables of {rows} rows on {paper}");
        }
    }
}

#[test]
fn pages_of_a_comparison_are_filled() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    assert_pages_are_filled(&bench, &["compare", "before", "after", "--title", "The new kernel"]);
}

/// How many pages there are, and how full, depends on the machine of the test.
#[test]
fn text_of_inspected_hosts_is_within_the_margins() {
    printed(&Bench::new(), &["inspect", "--no-metadata", "--fail-on", "never"]);
}

#[test]
fn interrupted_print_ends_the_browser_and_removes_its_files() {
    let bench = Bench::new();
    let folder = temporary(&bench);
    let pipe = bench.path().join("started");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let script = format!(
        "case \"$*\" in --version) echo Chromium 131.0; exit;; esac\nsleep 1000 & echo x > {}; wait\n",
        pipe.display()
    );
    let browser = stand_in(&bench, &script);
    let run = golden("format-2");
    let browser = browser.to_str().unwrap();
    let words = ["report", run.as_str(), "--out", "report.pdf", "--browser", browser];
    let child = bench
        .netduel(words)
        .env("TMPDIR", &folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Opening waits for the stand-in, which then runs.
    let mut text = String::new();
    fs::File::open(&pipe).unwrap().read_to_string(&mut text).unwrap();
    send(Pid::from_child(&child), Signal::INT).unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap()).expect_code(130);
    assert!(finished.stderr.contains("stopped by the user before the PDF"), "{}", finished.stderr);
    bench.assert_nothing_left();
    assert_empty(&folder);
    assert!(!bench.path().join("report.pdf").exists());
}

#[test]
fn page_below_a_folder_with_characters_of_a_url_is_the_one_that_is_printed() {
    let bench = Bench::new();
    fs::create_dir(bench.path().join("a#b %41")).unwrap();
    // Its PDF has the URL.
    let script = "case \"$*\" in --version) echo Chromium 140.0; exit;; esac\n\
                  for word; do case \"$word\" in --print-to-pdf=*) pdf=${word#*=};; esac; done\n\
                  printf '%%PDF-%s' \"$word\" >\"$pdf\"\n";
    let (run, browser) = (golden("format-2"), stand_in(&bench, script));
    let words = ["report", run.as_str(), "--out", "report.pdf", "--browser", browser.to_str().unwrap()];
    Finished::from(bench.netduel(words).env("TMPDIR", "a#b %41").output().unwrap()).expect_code(0);
    let pdf = fs::read_to_string(bench.path().join("report.pdf")).unwrap();
    assert!(pdf.starts_with("%PDF-file:///") && pdf.contains("/a%23b%20%2541/netduel-pdf-"), "{pdf}");
}

#[test]
fn browser_without_a_pdf_is_an_error_with_its_last_message() {
    let bench = Bench::new();
    let folder = temporary(&bench);
    let browser = stand_in(
        &bench,
        "case \"$*\" in --version) echo Chromium 99.0; exit;; esac\necho it is out of paper >&2\n",
    );
    let run = golden("format-2");
    let browser = browser.to_str().unwrap();
    let words = ["report", run.as_str(), "--out", "report.pdf", "--browser", browser];
    let finished =
        Finished::from(bench.netduel(words).env("TMPDIR", &folder).output().unwrap()).expect_code(3);
    assert!(finished.stderr.contains("ended without a PDF: it is out of paper"), "{}", finished.stderr);
    assert!(finished.stderr.contains("need version 131"), "{}", finished.stderr);
    assert_empty(&folder);
}

#[test]
fn pdf_is_refused_without_a_file_and_its_options_for_other_formats() {
    let bench = Bench::new();
    let run = golden("format-2");
    let finished = bench.run(["report", run.as_str(), "--format", "pdf"]).expect_code(2);
    assert!(finished.stderr.contains("--out report.pdf"), "{}", finished.stderr);
    let finished =
        bench.run(["report", run.as_str(), "--out", "report.html", "--paper", "a4"]).expect_code(2);
    assert!(finished.stderr.contains("options of a PDF"), "{}", finished.stderr);
    let finished =
        bench.run(["report", run.as_str(), "--out", "report.pdf", "--browser", "./none"]).expect_code(2);
    assert!(finished.stderr.contains("no such program"), "{}", finished.stderr);
}

#[test]
fn options_of_a_pdf_are_refused_where_no_file_is_written() {
    let bench = Bench::new();
    let (run, browser) = (golden("format-2"), "./none");
    for words in [
        &["run", "plan.toml", "--paper", "letter"][..],
        &["run", "plan.toml", "--browser", browser],
        &["report", run.as_str(), "--paper", "letter"],
        &["compare", run.as_str(), run.as_str(), "--browser", browser],
        &["history", "--paper", "letter"],
        &["inspect", "--paper", "letter"],
    ] {
        let refused = bench.run(words).expect_code(2).stderr;
        assert!(refused.contains("options of a PDF, and no file is written"), "{words:?}: {refused}");
    }
}

#[test]
fn files_of_the_author_are_checked_and_stored_with_a_report() {
    let bench = Bench::new();
    let run = golden("format-2");
    fs::write(bench.path().join("words.md"), "# Mine\n\nA **strong** word.\n").unwrap();
    fs::write(bench.path().join("logo.svg"), "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"x()\"/>")
        .unwrap();
    bench
        .run([
            "report",
            run.as_str(),
            "--out",
            "report.html",
            "--commentary",
            "words.md",
            "--accent",
            "#ffcc00",
        ])
        .expect_code(0);
    let page = fs::read_to_string(bench.path().join("report.html")).unwrap();
    assert!(page.contains("<h3>Mine</h3>") && page.contains("<b>strong</b>"));
    let warned = bench
        .run(["report", run.as_str(), "--out", "report.html", "--accent", "#ffcc00"])
        .expect_code(0)
        .stderr;
    assert!(warned.contains("the accent #ffcc00 has a contrast of 1.5 on the light page"), "{warned}");
    let refused = bench
        .run(["report", run.as_str(), "--out", "report.html", "--logo", "logo.svg"])
        .expect_code(2)
        .stderr;
    assert!(refused.contains("it is an SVG file, which can contain scripts"), "{refused}");
}

/// A PNG of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\xdacd\xf8\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82";

/// Everything that a plan can add to its report.
const REPORT: &str = r##"
[report]
title = "Two paths of one host"
author = "A. Author"
organization = "Example Networks"
purpose = "To choose a path."
audience = "Engineers."
commentary = """
Both guests were **idle**.
"""
logo = "logo.png"
accent = "#8a1c7c"
"##;

#[test]
fn words_logo_and_accent_of_a_plan_are_on_the_page_of_its_run() {
    let bench = Bench::new();
    let logo = bench.path().join("logo.png");
    fs::write(&logo, PIXEL).unwrap();
    let plan = bench.plan(&(short_plan(TWO_PATHS, PACED, "blocks_min = 2\nblocks_max = 2") + REPORT));
    let run = bench.run(["run", plan.to_str().unwrap(), "--out", "run.html"]);
    // On a busy machine a trial may not count.
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    // The run has its own copy of the image.
    fs::remove_file(logo).unwrap();
    bench.run(["report", "last", "--out", "report.html"]).expect_code(0);
    for name in ["run.html", "report.html"] {
        let page = fs::read_to_string(bench.path().join(name)).unwrap();
        for text in [
            "<img class=\"logo\" src=\"data:image/png;base64,iVBORw0KGgo",
            "alt=\"Logo of Example Networks\"",
            "<h1>Two paths of one host</h1>",
            "<p class=\"question\">Which path is faster?</p>",
            "A. Author, Example Networks",
            "To choose a path.",
            "Engineers.",
            "Both guests were <b>idle</b>.",
            "--accent: #8a1c7c",
        ] {
            assert!(page.contains(text), "{name}: no {text}");
        }
    }
}
