//! The page in a real browser: every chart is drawn, no script fails, no hostile text runs.
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use netduel_model::publication::Publication;
use netduel_model::run::Run;
use netduel_model::trial::Trial;
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::history::Selection;
use netduel_report::{analyse_run, document, html};
use netduel_stats::histogram::Histogram;

use crate::builder::{Recipe, build};
use crate::compare_document::document_of;
use crate::{bed, compare_document, hostile, hosts, old_runs, packets, without_value};

/// A browser that can print the document after its scripts ran.
pub fn chromium() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let version =
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    })
}

/// The document of a run's page after its scripts ran; `None` with a message when there is no browser.
fn rendered(run: &Run) -> Option<String> {
    rendered_page(&html::page(&document(run)))
}

/// The document of a page after its scripts ran.
fn rendered_page(text: &str) -> Option<String> {
    let Some(browser) = chromium() else {
        netduel_test_support::skip("no chromium to render the page");
        return None;
    };
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    std::fs::write(&page, text).unwrap();
    Some(dump(browser, directory.path(), &page))
}

/// Width of the window, of the page, and of the narrowest bar of a path in frames of these widths, pixels.
fn widths<const N: usize>(browser: &str, run: &Run, frames: [u32; N]) -> [[u32; 3]; N] {
    let page = html::page(&document(run));
    let expression = "`${root.clientWidth} ${root.scrollWidth} \
                      ${Math.min(...[...root.querySelectorAll('.stack')].map((bar) => Math.round(bar.clientWidth)))}`";
    let values = in_frames(browser, &frames.map(|frame| (page.as_str(), frame)), expression);
    let all = values.iter().map(|widths| -> [u32; 3] {
        let widths: Vec<u32> = widths.split(' ').map(|width| width.parse().unwrap()).collect();
        widths.try_into().unwrap()
    });
    all.collect::<Vec<[u32; 3]>>().try_into().unwrap()
}

/// The value of a script's expression about the root element of a page in a frame of this width.
pub fn in_a_frame(browser: &str, page: &str, frame: u32, expression: &str) -> String {
    in_frames(browser, &[(page, frame)], expression).remove(0)
}

/// The same for several pages, each in a frame of its width: starting a browser takes longer than laying out
/// a page. The frames lie on each other, because a browser may not draw what is outside of its window.
pub fn in_frames(browser: &str, pages: &[(&str, u32)], expression: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let (mut attributes, mut frames) = (String::new(), String::new());
    for (index, (page, width)) in pages.iter().enumerate() {
        std::fs::write(directory.path().join(format!("report{index}.html")), page).unwrap();
        write!(attributes, " data-value{index}=\"\"").unwrap();
        let place = format!("position:absolute;left:0;top:0;width:{width}px;height:2000px;border:0");
        write!(frames, "<iframe style=\"{place}\"></iframe>").unwrap();
    }
    let outer = directory.path().join("outer.html");
    let script = format!(
        "document.querySelectorAll('iframe').forEach((frame, index) => {{ \
         frame.onload = () => {{ const root = frame.contentDocument.documentElement; \
         document.documentElement.setAttribute('data-value' + index, {expression}); }}; \
         frame.src = 'report' + index + '.html'; }})"
    );
    let outer_page =
        format!("<html{attributes}><head></head><body>{frames}<script>{script}</script></body></html>");
    std::fs::write(&outer, outer_page).unwrap();
    let dom = dump(browser, directory.path(), &outer);
    (0..pages.len()).map(|index| root_attribute(&dom, &format!("data-value{index}"))).collect()
}

fn dump(browser: &str, directory: &Path, page: &Path) -> String {
    // `timeout` ends a hanging browser, so that the test fails instead of blocking.
    let output = Command::new("timeout")
        .args([
            "600",
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .args(["--allow-file-access-from-files", "--window-size=1400,2000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    assert!(
        dom.contains("</html>"),
        "{browser} printed no document: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    dom
}

/// The value of an attribute of the root element.
fn root_attribute(dom: &str, name: &str) -> String {
    let root = &dom[dom.find("<html").unwrap()..];
    let root = &root[..root.find("<head").unwrap()];
    let start = format!("{name}=\"");
    let value = &root[root.find(&start).unwrap_or_else(|| panic!("no {name} in {root}")) + start.len()..];
    value[..value.find('"').unwrap()].to_owned()
}

#[test]
fn page_and_its_bars_fit_every_width_of_a_window() {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    let mut run = build(&Recipe { workloads: vec!["bulk", "rr", "udp", "crr", "load"], ..Recipe::default() });
    run.header.hosts = hosts::of_a_run();
    for run in [&run, &packets::swept()] {
        let frames = [390, 768, 1280];
        for (frame, [window, page, bar]) in frames.into_iter().zip(widths(browser, run, frames)) {
            assert!(page <= window, "a frame of {frame}: the page has {page} of {window}");
            // The bars of shares need most of a narrow page, and a part of a wide one.
            let least = if frame < 640 { window * 3 / 4 } else { window / 2 };
            assert!(bar >= least, "a frame of {frame}: a bar has {bar} of {window}");
        }
    }
}

#[test]
fn printed_page_cuts_off_no_line() {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    let mut run = build(&Recipe { workloads: vec!["bulk", "rr"], ..Recipe::default() });
    run.header.hosts = hosts::of_a_run();
    run.header.plan_text = format!("# {}\n{}", "a long line ".repeat(30), run.header.plan_text);
    let page = html::page(&document(&run)).replace("@media print", "@media all");
    // The width of A4 within the margins of the page.
    let cut = "[...root.querySelectorAll('pre')].map(box => box.scrollWidth > box.clientWidth).join()";
    let cut = in_a_frame(browser, &page, 688, cut);
    assert!(cut.contains("false") && !cut.contains("true"), "blocks of text that are cut off: {cut}");
}

#[test]
fn names_of_lines_cover_no_longer_line() {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    // The line of the percentiles of one arm ends early, because the arm has fewer round trips.
    let mut run = build(&Recipe { workloads: vec!["rr"], ..Recipe::default() });
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.arm.as_str() == "synthetic") {
        let mut histogram = Histogram::new();
        (0..1_000).for_each(|step| histogram.record(38_000 + step * 500));
        let report = trial.client.as_mut().unwrap().report.round_trips.as_mut().unwrap();
        report.histogram = histogram.to_record();
    }
    let distance = "(() => { const chart = root.querySelector('.chart.tail'); \
                    const names = [...chart.querySelectorAll('text[font-weight=\"600\"]')]; \
                    const dots = [...chart.querySelectorAll('g[aria-label=\"dot\"] > *')]; \
                    const left = Math.min(...names.map((name) => name.getBoundingClientRect().left)); \
                    const right = Math.max(...dots.map((dot) => dot.getBoundingClientRect().right)); \
                    return `${names.length} ${dots.length > 4} ${left > right}`; })()";
    assert_eq!(in_a_frame(browser, &html::page(&document(&run)), 1200, distance), "2 true true");
}

#[test]
fn names_in_the_picture_by_block_stand_at_their_medians_and_cover_no_mark() {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    // In the last block both arms have the same values, so that the last dots do not tell the arms apart.
    let mut run = build(&Recipe { workloads: vec!["rr"], ..Recipe::default() });
    let place = |arm: &str| {
        let is_last = |trial: &Trial| trial.slot.block == 7 && trial.slot.arm.as_str() == arm;
        run.trials.iter().position(is_last).unwrap()
    };
    let (fast, slow) = (place("accelerated"), place("synthetic"));
    let ends = (run.trials[fast].client.clone(), run.trials[fast].server.clone());
    (run.trials[slow].client, run.trials[slow].server) = ends;
    // A box has no stroke: dots have one of 1.75 pixels, and names one of 3, which covers what is below.
    let geometry = "(() => { const plot = root.querySelector('.chart.blocks .plot svg'); \
                    const boxes = (of) => [...plot.querySelectorAll(of)].map((one) => one.getBoundingClientRect()); \
                    const names = boxes('text[font-weight=\"600\"]'), dots = boxes('g[aria-label=\"dot\"] > *'); \
                    const rules = boxes('g[aria-label=\"rule\"] > *'), medians = rules.filter((rule) => rule.width > 50); \
                    const left = Math.min(...names.map((name) => name.left)); \
                    const isClear = left > Math.max(...[...dots, ...rules].map((mark) => mark.right)) + 2.4; \
                    const isInside = names.every((name) => name.right <= plot.getBoundingClientRect().right); \
                    const isAtMedian = names.every((name, arm) => \
                    Math.abs((name.top + name.bottom - medians[arm].top - medians[arm].bottom) / 2) < 5); \
                    return `${names.length} ${medians.length} ${dots.length} ${isClear} ${isInside} ${isAtMedian}`; })()";
    let page = html::page(&document(&run));
    let frames = [(page.as_str(), 390), (page.as_str(), 1200)];
    for ((_, frame), found) in frames.into_iter().zip(in_frames(browser, &frames, geometry)) {
        assert_eq!(found, "2 2 16 true true true", "a frame of {frame}");
    }
}

#[test]
fn arms_of_a_block_stand_beside_each_other() {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    let run = build(&Recipe { workloads: vec!["rr"], ..Recipe::default() });
    let distance = "(() => { const chart = root.querySelector('.chart.blocks'); \
                    const arms = [...chart.querySelectorAll('g[aria-label=\"dot\"]')]; \
                    const left = arms.map((arm) => arm.firstElementChild.getBoundingClientRect().left); \
                    return `${arms.length} ${Math.round(left[1] - left[0])}`; })()";
    assert_eq!(in_a_frame(browser, &html::page(&document(&run)), 1200, distance), "2 6");
}

#[test]
fn every_chart_is_drawn_without_script_errors() {
    let workloads = vec!["bulk", "rr", "udp", "crr", "load"];
    let Some(dom) = rendered(&build(&Recipe { workloads, ..Recipe::default() })) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    // Per workload: two metrics by block, the series, the distribution, the cores; round trips have their tail as well, and
    // transactions and loaded paths their parts.
    let charts = 5 * 5 + 3 + 2;
    assert_eq!(dom.matches("data-chart=").count(), charts);
    assert_eq!(root_attribute(&dom, "data-drawn"), charts.to_string());
    assert_eq!(dom.matches("class=\"plot\" role=\"img\" aria-label=\"").count(), charts);
    // Every figure has its table, but for the distributions of three workloads, whose percentiles have it; nine of ten comparisons have an
    // interval (the other is a difference).
    assert_eq!(dom.matches("<summary>Data</summary>").count(), charts + 1 - 3);
    assert_eq!(dom.matches("<svg class=\"interval\"").count(), 1 + 5 + 9);
    for section in ["verdicts", "path", "warnings", "hosts", "reproduce", "counted"] {
        assert!(dom.contains(&format!("id=\"{section}\"")), "no section {section}");
    }
    let drawn = dom.split("id=\"chart-data\"").next().unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("undefined"), "a chart drew a number that is none");
    assert!(!drawn.contains('\u{26a0}'), "Plot warns of a chart");
}

#[test]
fn runs_of_a_comparison_are_drawn_in_common_charts() {
    let run = |seed| build(&Recipe { workloads: vec!["bulk", "rr"], seed, ..Recipe::default() });
    let (before, mut after) = (run(1), run(2));
    after.header.id = "after".parse().unwrap();
    let analyses = [analyse_run(&before), analyse_run(&after)];
    let comparison = compare(&[Side::of(&before, &analyses[0]), Side::of(&after, &analyses[1])], &[]);
    let Some(dom) = rendered_page(&html::page(&document_of(&comparison))) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    // For each arm: two metrics by block and the series of each workload, the cumulative distribution of rates, tail and distribution of round trips.
    let charts = 2 * (2 * 3 + 1 + 2);
    assert_eq!(dom.matches("data-chart=").count(), charts);
    assert_eq!(root_attribute(&dom, "data-drawn"), charts.to_string());
    // Bars by run for each arm of each workload, and those of the summary.
    assert_eq!(dom.matches("class=\"chart levels\"").count(), 2 * 2 + 1);
    let drawn = dom.split("id=\"chart-data\"").next().unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("undefined") && !drawn.contains('\u{26a0}'));
}

#[test]
fn comparison_of_three_runs_draws_the_charts_that_one_run_lacks() {
    let runs = [&["bulk", "rr"][..], &["bulk"], &["bulk", "rr"]];
    let runs: Vec<Run> =
        runs.iter().zip(1..).map(|(workloads, seed)| compare_document::run(workloads, seed)).collect();
    let page = html::page(&compare_document::page_of(&runs, &Publication::default()));
    let Some(dom) = rendered_page(&page) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    let charts = 2 * (2 * 3 + 1 + 2);
    assert_eq!(dom.matches("data-chart=").count(), charts);
    assert_eq!(root_attribute(&dom, "data-drawn"), charts.to_string());
    let drawn = dom.split("id=\"chart-data\"").next().unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("undefined") && !drawn.contains('\u{26a0}'));
}

#[test]
fn sweeps_searches_and_parts_of_runs_are_drawn_in_common_charts() {
    for (kind, one) in [
        ("sweep", packets::swept()),
        ("loss", old_runs::read("2-real-search")),
        ("parts", compare_document::run(&["load"], 1)),
    ] {
        let mut other = one.clone();
        other.header.id = "other".parse().unwrap();
        let page = html::page(&compare_document::page_of(&[one, other], &Publication::default()));
        let Some(dom) = rendered_page(&page) else { return };
        assert_eq!(root_attribute(&dom, "data-errors"), "", "{kind}");
        assert!(dom.contains(&format!("data-chart=\"{kind}\"")), "{kind}");
        let charts = dom.matches("data-chart=").count();
        assert_eq!(root_attribute(&dom, "data-drawn"), charts.to_string(), "{kind}");
        let drawn = dom.split("id=\"chart-data\"").next().unwrap();
        let is_drawn = |fault: &str| drawn.contains(fault);
        assert!(!["NaN", "undefined", "\u{26a0}"].into_iter().any(is_drawn), "{kind}");
    }
}

#[test]
fn values_of_each_run_are_drawn_with_their_changes() {
    let runs = crate::history::runs(16, 10, [3.0, 2.7]);
    let history = crate::history::history(&runs, &Selection::default());
    let Some(dom) = rendered_page(&html::page(&document::of_history(&history))) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    assert_eq!(dom.matches("data-chart=\"history\"").count(), history.series.len());
    assert_eq!(root_attribute(&dom, "data-drawn"), history.series.len().to_string());
    let drawn = dom.split("id=\"chart-data\"").next().unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("undefined") && !drawn.contains('\u{26a0}'));
}

#[test]
fn median_that_is_a_bound_has_an_arrow() {
    let Some(dom) = rendered(&without_value::lost()) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    let drawn = dom.split("id=\"chart-data\"").next().unwrap();
    // No single value is a bound.
    assert_eq!((drawn.matches('\u{25bc}').count(), drawn.matches('\u{25b2}').count()), (1, 0));
}

#[test]
fn packets_are_drawn_at_both_ends_and_sweeps_as_bars() {
    let mut run = packets::swept();
    for host in run.header.plan.hosts.values_mut() {
        host.size = Some("Standard_E192ids_v6".into());
    }
    let Some(dom) = rendered(&run) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    // Per workload: two metrics by block, both ends, the intervals, the cores; and one sweep.
    let charts = 2 * 5 + 1;
    assert_eq!(dom.matches("data-chart=").count(), charts);
    assert_eq!(root_attribute(&dom, "data-drawn"), charts.to_string());
    // A panel for each arm.
    assert_eq!(dom.matches("<p class=\"panel\"").count(), 2 * 2);
    assert!(dom.contains(">published</text>"), "the published figure is no line");
    let drawn = dom.split("id=\"chart-data\"").next().unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("undefined") && !drawn.contains('\u{26a0}'));
}

#[test]
fn hosts_are_drawn_with_their_queues_beneath_their_cores() {
    let mut run = build(&Recipe::default());
    run.header.hosts = hosts::of_a_run();
    let Some(dom) = rendered(&run) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    // The three hosts, and what is between client and server.
    assert_eq!(dom.matches("<svg class=\"topology\"").count(), 3 + 1);
    // A line from each queue to its core on two hosts; the guest of the lab has no interrupts to draw.
    let lines: usize = dom
        .split("class=\"wires\"")
        .skip(1)
        .map(|part| part.split("</g>").next().unwrap().matches("<path").count())
        .sum();
    assert_eq!(lines, 8 + 8);
    assert!(dom.contains("accelerated networking is off at") && dom.contains("ip link set enP1s1 up"));
    let drawn = dom.split("id=\"chart-data\"").next().unwrap();
    assert!(!drawn.contains("NaN"), "a place in a drawing is none");
}

#[test]
fn hosts_of_older_runs_state_missing_facts() {
    let run = build(&Recipe::default());
    let page = html::page(&document(&run));
    assert!(page.contains("no record of the host's devices, queues, NUMA nodes and cloud"));
    assert!(page.contains("<svg class=\"topology\""), "its cores and interfaces are known");
}

#[test]
fn hostile_texts_are_never_executed() {
    let Some(dom) = rendered(&hostile::run()) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    assert!(!dom.contains("<img"), "an element got through");
    assert!(!dom.contains("<title>owned"), "a handler ran");
    assert_eq!(dom.matches("<script").count(), 4);
}

#[test]
fn run_without_figures_draws_nothing_without_errors() {
    let mut run = build(&Recipe { blocks: 1, ..Recipe::default() });
    run.trials.clear();
    let Some(dom) = rendered(&run) else { return };
    assert_eq!(root_attribute(&dom, "data-errors"), "");
    assert_eq!((dom.matches("data-chart=").count(), root_attribute(&dom, "data-drawn").as_str()), (0, "0"));
}

#[test]
fn drawing_of_a_bed_fits_a_phone() {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    let [[window, page, _]] = widths(browser, &bed::run(), [390]);
    assert!(page <= window, "the page is {page} wide in a window of {window}");
}
