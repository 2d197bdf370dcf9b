//! A PDF by an installed browser: its pages have the report, and neither a finished nor an interrupted one leaves a process or a file behind.
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netduel_test_support::{skip, write_program};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal};

use crate::compare::stored_run;
use crate::support::{Bench, Finished, send};

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
/// Share of a page's height down to which its text reaches at least. A page of one large chart still has its axis there.
const FILLED_LEAST: f64 = 0.4;

/// A page of a PDF, in points from its upper left corner.
struct Page {
    width: f64,
    height: f64,
    words: Vec<Word>,
}

/// A word with its place.
struct Word {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The pages of a PDF by `pdftotext -bbox`.
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
    let page = |element: &str| Page {
        width: number(element, "width"),
        height: number(element, "height"),
        words: element.split("<word ").skip(1).map(word).collect(),
    };
    text.split("<page ").skip(1).map(page).collect()
}

/// Prints a page of `words` on both sizes of paper. No word lies in the side margins. Returns the pages by paper; none where the programs for
/// them are missing.
fn printed(bench: &Bench, words: &[&str]) -> Vec<(&'static str, Vec<Page>)> {
    if !is_installed("chromium") || !is_installed("pdftotext") {
        skip("no chromium to print a PDF, or no pdftotext to read it");
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

/// Prints a page of `words` as [`printed`]. It has several pages, and none is nearly empty but the cover and the last.
fn assert_pages_are_filled(bench: &Bench, words: &[&str]) {
    for (paper, pages) in printed(bench, words) {
        assert!(pages.len() > 1, "{words:?}, {paper}: {} pages", pages.len());
        for (index, page) in pages.iter().enumerate() {
            let foot = page.height - MARGIN_HIGH;
            let own = page.words.iter().filter(|word| word.top < foot && word.bottom > MARGIN_HIGH);
            let bottom = own.map(|word| word.bottom).fold(0.0, f64::max);
            let is_exempt = index == 0 || index + 1 == pages.len();
            assert!(
                is_exempt || bottom >= FILLED_LEAST * page.height,
                "{words:?}, {paper}, page {} of {}: its text ends at {bottom} of {}",
                index + 1,
                pages.len(),
                page.height
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
    let told = bench
        .run(["report", run.as_str(), "--out", "report.html", "--accent", "#ffcc00"])
        .expect_code(0)
        .stderr;
    assert!(told.contains("the accent #ffcc00 has a contrast of 1.5 on the light page"), "{told}");
    let refused = bench
        .run(["report", run.as_str(), "--out", "report.html", "--logo", "logo.svg"])
        .expect_code(2)
        .stderr;
    assert!(refused.contains("it is an SVG file, which can contain scripts"), "{refused}");
}
