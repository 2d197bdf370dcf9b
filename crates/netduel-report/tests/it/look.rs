//! The page as it looks, measured in a real browser: no label covers another or leaves its chart, nothing is wider than the page, text has
//! contrast, and what scrolls or opens can be reached by the keyboard. In both themes and at three widths, and on both sizes of paper.
use netduel_model::bed::BedType;
use netduel_model::publication::Publication;
use netduel_model::run::Run;
use netduel_model::word::word;
use netduel_report::document::block::Document;
use netduel_report::history::Selection;
use netduel_report::html::Paper;
use netduel_report::{document, html};

use crate::browser::{chromium, in_frames};
use crate::builder::{Recipe, build};
use crate::{
    bed, bed_drawings, compare_document, failover, history, hosts, inspected_page, old_runs, packets,
};

/// Names of the places where two labels of a chart cover each other, where one leaves its figure, where the page is too wide, where text
/// or a mark of a plot has too little contrast, where an axis has no two labels, where a picture has no alternative, and where the keyboard
/// does not get. Empty when there is none.
const FAULTS: &str = r#"(() => {
  const view = root.ownerDocument.defaultView, found = [];
  const shown = (box) => box.width > 0 && box.height > 0;
  const box = (element) => element.getBoundingClientRect();
  const words = (element) => element.textContent.trim().slice(0, 40);
  // A finger's breadth of rounding: glyphs do not fill their boxes.
  const covers = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  const isTip = (text) => text.closest('[aria-label="tip"]');
  // An arrow at a value that is a bound is a mark of data as the dot below it: equal values of a block lie over each other.
  const isMark = (text) => /^[▲▼]$/.test(words(text));
  for (const figure of root.querySelectorAll("figure")) {
    const name = figure.className + " " + words(figure);
    const labels = [...figure.querySelectorAll("svg text, .tick, .level .name, .level .value")].filter((text) => !isTip(text) && !isMark(text) && words(text) && shown(box(text)));
    const boxes = labels.map(box);
    for (let i = 0; i < labels.length; i++) {
      for (let k = i + 1; k < labels.length; k++) {
        if (covers(boxes[i], boxes[k])) found.push(`${name}: "${words(labels[i])}" covers "${words(labels[k])}"`);
      }
      const frame = box(figure);
      if (boxes[i].left < frame.left - 8 || boxes[i].right > frame.right + 8) found.push(`${name}: "${words(labels[i])}" leaves the figure`);
    }
  }
  // Categories, such as blocks, are as many as there are; an axis of numbers with one label shows no distance.
  const isNumber = (text) => /^p?[\d.,]+( \S+)?$/.test(text);
  const isOfBlocks = (axis) => axis.matches('[aria-label^="x-"]') && axis.parentElement.querySelector('[aria-label="x-axis label"]')?.textContent === "block";
  for (const axis of root.querySelectorAll('svg g[aria-label$="-axis tick label"], .level.axis')) {
    const ticks = [...axis.querySelectorAll("text, .tick")].map(words);
    if (ticks.every(isNumber) && ticks.length < 2 && !isOfBlocks(axis)) found.push(`an axis of "${words(axis.closest("figure"))}" has ${ticks.length} labels`);
  }
  if (root.scrollWidth > root.clientWidth) found.push(`the page has ${root.scrollWidth} of ${root.clientWidth}`);
  // Paper does not scroll: its margins cut off what is wider.
  if (root.classList.contains("paged")) {
    const sheet = box(root.querySelector("main"));
    // The last line of a page is no caption: it stays whole, and with what follows it.
    for (const caption of root.querySelectorAll("main figcaption")) {
      const { breakInside, breakAfter } = view.getComputedStyle(caption);
      if (breakInside !== "avoid" || breakAfter !== "avoid") found.push(`a page may end in the caption "${words(caption)}"`);
    }
    for (const element of root.querySelectorAll("main table, main pre, main p, main figure")) {
      const own = box(element);
      if (shown(own) && (own.right > sheet.right + 2 || own.left < sheet.left - 2)) {
        found.push(`${element.tagName} "${words(element)}" leaves the paper by ${Math.round(Math.max(own.right - sheet.right, sheet.left - own.left))}`);
      }
    }
  }

  const canvas = root.ownerDocument.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  // A page has thousands of texts in few colours, and a pixel that is read back takes long.
  const kept = (known, key, find) => { if (!known.has(key)) known.set(key, find()); return known.get(key); };
  // The colour as it is painted, over the colours below it.
  const paints = new Map(), painted = (colours) => kept(paints, JSON.stringify(colours), () => {
    pen.clearRect(0, 0, 1, 1);
    for (const [colour, opacity] of colours.map((one) => [one].flat())) {
      pen.globalAlpha = opacity ?? 1; pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  });
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  // What no element paints is white: paper, and a page without a colour of its own.
  const grounds = new Map([[null, ["white"]]]);
  const behind = (element) => kept(grounds, element, () => [...behind(element.parentElement), view.getComputedStyle(element).backgroundColor]);
  // The boxes of a drawing that are below the middle of a text, the lowest first.
  const boxesBelow = (element) => {
    const own = box(element), x = (own.left + own.right) / 2, y = (own.top + own.bottom) / 2;
    const holds = (one) => one.left <= x && x <= one.right && one.top <= y && y <= one.bottom;
    const boxes = [...element.closest("svg").querySelectorAll("rect")].filter((rect) => holds(box(rect)));
    return boxes.map((rect) => view.getComputedStyle(rect).fill).filter((fill) => fill !== "none");
  };
  const seen = new Set();
  let checked = 0;
  for (const element of root.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !shown(box(element)) || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName) || isTip(element)) continue;
    const style = view.getComputedStyle(element);
    checked += 1;
    // A pattern has no one colour. The text on it is drawn on the paper's own.
    if (style.backgroundImage !== "none" && element.closest(".stack")) continue;
    const isDrawn = element instanceof view.SVGElement;
    let below = behind(isDrawn ? element.closest("svg").parentElement : element);
    // The numbers within bars name the colour of their bar.
    const bar = isDrawn && /--class-\d/.exec(element.getAttribute("fill") || "");
    if (bar) below = [...below, view.getComputedStyle(root).getPropertyValue(bar[0])];
    if (isDrawn && element.closest(".topology")) {
      // Where it has an outline, that is what it is read on.
      below = [...below, ...boxesBelow(element), ...(style.stroke === "none" ? [] : [style.stroke])];
    }
    const paper = painted(below);
    const ink = painted([...below, isDrawn ? style.fill : style.color]);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const key = `${element.className.baseVal ?? element.className} ${ink} on ${paper}`;
    if (contrast(ink, paper) < (isLarge ? 3 : 4.5) && !seen.has(key)) {
      seen.add(key);
      found.push(`"${words(element)}" (${key}) has a contrast of ${contrast(ink, paper).toFixed(2)}`);
    }
  }
  // A mark of a plot is seen by its fill or by its outline. Grid lines are none.
  const MARKS = ["area", "line", "bar", "rect", "dot", "rule", "tick"].map((mark) => `.plot svg g[aria-label=${mark}]`).join();
  const marks = [...root.querySelectorAll(`:is(${MARKS}) :is(path, rect, circle, line)`)];
  for (const mark of marks) {
    const style = view.getComputedStyle(mark), below = behind(mark.closest(".plot"));
    const paints = [[style.fill, style.fillOpacity], [style.stroke, style.strokeOpacity]].filter(([colour]) => colour !== "none");
    const most = Math.max(...paints.map(([colour, opacity]) => contrast(painted([...below, [colour, opacity * style.opacity]]), painted(below))));
    const key = `${mark.closest("figure").className}, ${mark.closest(MARKS).getAttribute("aria-label")} of ${style.fill} and ${style.stroke}`;
    if (most < 3 && !seen.has(key)) {
      seen.add(key);
      found.push(`a mark (${key}) has a contrast of ${most.toFixed(2)}`);
    }
  }
  if (root.querySelector(".plot svg") && !marks.length) found.push("no mark of a plot was found");
  for (const element of root.querySelectorAll("[role=img], img")) {
    if (!(element.getAttribute("aria-label") || element.getAttribute("alt"))) found.push(`no alternative: ${words(element)}`);
  }
  for (const element of root.querySelectorAll("svg, figure")) {
    const described = element.closest("[role=img], [aria-hidden=true]") || element.querySelector("[role=img]");
    if (!described) found.push(`a picture without a role: ${element.tagName} ${words(element)}`);
  }
  for (const element of root.querySelectorAll(".scroll, pre")) {
    if (element.scrollWidth > element.clientWidth && element.tabIndex < 0) found.push(`not reached by the keyboard: ${words(element)}`);
  }
  return [`${found.length} faults in ${checked} texts`, ...found.slice(0, 12)].join(" ## ");
})()"#;

/// A run with every kind of chart of a comparison, its hosts and the author's words.
fn full() -> Run {
    let mut run = build(&Recipe { workloads: vec!["bulk", "rr", "udp", "crr", "load"], ..Recipe::default() });
    run.header.hosts = hosts::of_a_run();
    run.header.annotations.publication = author();
    run
}

/// An author who uses everything.
pub fn author() -> Publication {
    let text = |text: &str| Some(text.to_owned());
    Publication {
        title: text("Accelerated networking in our test bed"),
        author: text("A. Author"),
        organization: text("Example Networks"),
        purpose: text("To decide whether **all** guests get a virtual function."),
        audience: text("Engineers of the platform."),
        commentary: text(
            "## First impression\n\nSee [the plan](https://example.org/plan) and `ethtool -k`.\n\n1. one\n2. two\n\n```\nuname -r\n```\n",
        ),
        logo: None,
        image: text(
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        ),
        accent: text("#ffcc00"),
    }
}

/// Arms that differ by a factor of 60, with long names: the lower one must not lie on zero.
fn far() -> Run {
    let mut run = build(&Recipe { effect: 60.0, workloads: vec!["bulk", "rr"], ..Recipe::default() });
    let long = |arm: &mut netduel_model::ids::ArmName| {
        *arm = format!("{arm}-with-a-long-name").parse().unwrap();
    };
    run.header.plan.arms.iter_mut().for_each(|arm| long(&mut arm.name));
    run.trials.iter_mut().for_each(|trial| long(&mut trial.slot.arm));
    run
}

/// Six arms, of which four have so small a share of the rates of the first one: their labels are near each other.
fn many(share: f64) -> Run {
    let recipe = |effect, seed| Recipe { workloads: vec!["bulk", "rr"], effect, seed, ..Recipe::default() };
    let mut run = build(&recipe(1.5, 1));
    let names = ["no-segmentation-offload", "no-checksum-offload", "no-offload", "small-mtu"];
    for (name, number) in names.into_iter().zip(1_u32..) {
        let mut other = build(&recipe(share, u64::from(number) + 1));
        let mut arm = other.header.plan.arms.swap_remove(1);
        other.trials.retain(|trial| trial.slot.arm == arm.name);
        arm.name = name.parse().unwrap();
        for trial in &mut other.trials {
            trial.slot.arm = arm.name.clone();
            // After those of the arms before it.
            trial.slot.position += 4 * number;
        }
        run.header.plan.arms.push(arm);
        run.trials.append(&mut other.trials);
    }
    run.trials.sort_by_key(|trial| (trial.slot.block, trial.slot.position));
    run
}

/// A run on a bed, on which Azure and a guest disagree, and whose trials have a spread.
fn on_bed() -> Run {
    let mut run = bed::run();
    run.trials = build(&Recipe { workloads: vec!["bulk", "rr"], ..Recipe::default() }).trials;
    let vms = &mut run.header.bed.as_mut().unwrap().vms;
    vms[0].nics[2].seen.as_mut().unwrap().vf = None;
    run
}

/// The page of a comparison of three runs, of which the second lacks a workload.
fn compared() -> Document {
    let runs = [&["bulk", "rr"][..], &["bulk"], &["bulk", "rr"]];
    let runs: Vec<Run> =
        runs.iter().zip(1..).map(|(workloads, seed)| compare_document::run(workloads, seed)).collect();
    compare_document::page_of(&runs, &author())
}

/// The page of a history with a change.
fn past() -> Document {
    let runs = history::runs(16, 10, [3.0, 2.7]);
    document::of_history(&history::history(&runs, &Selection::default()))
}

/// Texts that the check has to find at least, so that an empty page has no success: reports of runs are long, other pages are not.
const TEXTS_OF_RUN: u32 = 200;
const TEXTS_OF_OTHERS: u32 = 60;

/// Checks forms of a page, each with its name and in a frame of its width.
fn assert_without_faults(name: &str, browser: &str, forms: &[(&str, &str, u32)], least: u32) {
    let pages: Vec<(&str, u32)> = forms.iter().map(|(_, page, frame)| (*page, *frame)).collect();
    for ((form, _, frame), found) in forms.iter().zip(in_frames(browser, &pages, FAULTS)) {
        let found = found.replace(" ## ", "\n");
        let checked = found.strip_prefix("0 faults in ");
        let checked = checked.and_then(|rest| rest.split(' ').next()?.parse().ok());
        assert!(checked > Some(least), "{name}, {form}, {frame} px: {found}");
    }
}

fn assert_faultless(name: &str, document: &Document, least: u32) {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    let page = html::page(document);
    // Both rules of the style apply in every browser, so the theme is chosen in the text.
    let dark = page.replace("@media (prefers-color-scheme: dark)", "@media all");
    assert!(dark.len() < page.len(), "the page has a dark theme");
    let (light, dark) = (page.as_str(), dark.as_str());
    let forms = [("light", light, 390), ("light", light, 768), ("light", light, 1280), ("dark", dark, 1280)];
    assert_without_faults(name, browser, &forms, least);
}

/// The same of the page that a browser prints, with the rules of paper, in a window a little wider than the paper between its margins.
fn assert_faultless_on_paper(name: &str, document: &Document, least: u32) {
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    let printed = |paper| html::printed(document, paper).replace("@media print", "@media all");
    let [a4, letter] = [Paper::A4, Paper::Letter].map(printed);
    let forms = [("A4", a4.as_str(), 740), ("letter", letter.as_str(), 760)];
    assert_without_faults(name, browser, &forms, least);
}

#[test]
fn page_of_all_workloads_has_no_fault_to_the_eye() {
    assert_faultless("all workloads", &document(&full()), TEXTS_OF_RUN);
}

#[test]
fn page_of_arms_that_lie_far_apart_has_no_fault_to_the_eye() {
    assert_faultless("far", &document(&far()), TEXTS_OF_RUN);
}

#[test]
fn pages_of_many_arms_near_zero_have_no_fault_to_the_eye() {
    // On a linear axis and on a logarithmic one.
    for share in [0.07, 0.004] {
        assert_faultless(&format!("many at {share}"), &document(&many(share)), TEXTS_OF_RUN);
    }
}

#[test]
fn pages_of_stored_treatments_and_of_a_search_have_no_fault_to_the_eye() {
    for name in ["2-real-treatments", "2-real-search"] {
        assert_faultless(name, &document(&old_runs::read(name)), TEXTS_OF_RUN);
    }
}

#[test]
fn page_of_packets_has_no_fault_to_the_eye() {
    assert_faultless("packets", &document(&packets::swept()), TEXTS_OF_RUN);
    assert_faultless("packets that lie far apart", &document(&packets::swept_far(40)), TEXTS_OF_RUN);
}

#[test]
fn page_of_a_failover_has_no_fault_to_the_eye() {
    assert_faultless("failover", &document(&failover::shown()), TEXTS_OF_RUN);
}

#[test]
fn page_of_a_run_on_a_bed_has_no_fault_to_the_eye() {
    assert_faultless("bed", &document(&on_bed()), TEXTS_OF_RUN);
}

#[test]
fn pages_of_four_vms_and_of_a_nic_that_is_not_attached_have_no_fault_to_the_eye() {
    for kind in [BedType::TwoPairs, BedType::HotAdd] {
        let mut run = bed_drawings::deployed(kind);
        run.trials = on_bed().trials;
        assert_faultless(word(&kind), &document(&run), TEXTS_OF_RUN);
    }
}

#[test]
fn page_of_a_comparison_has_no_fault_to_the_eye() {
    assert_faultless("comparison", &compared(), TEXTS_OF_RUN);
}

#[test]
fn pages_of_compared_sweeps_searches_and_long_names_have_no_fault_to_the_eye() {
    for (name, run) in [
        ("sweeps", packets::swept()),
        ("searches", old_runs::read("2-real-search")),
        ("long names", compare_document::with_long_names(compare_document::run(&["bulk", "load"], 1))),
    ] {
        let mut other = run.clone();
        other.header.id = "another-run-with-the-same-names".parse().unwrap();
        let document = compare_document::page_of(&[run, other], &author());
        assert_faultless(&format!("compared {name}"), &document, TEXTS_OF_OTHERS);
    }
}

#[test]
fn page_of_a_history_has_no_fault_to_the_eye() {
    assert_faultless("history", &past(), TEXTS_OF_OTHERS);
}

#[test]
fn page_of_inspected_hosts_has_no_fault_to_the_eye() {
    assert_faultless("hosts", &inspected_page::page(), TEXTS_OF_OTHERS);
}

#[test]
fn paper_of_all_workloads_has_no_fault_to_the_eye() {
    assert_faultless_on_paper("all workloads", &document(&full()), TEXTS_OF_RUN);
}

#[test]
fn paper_of_packets_and_of_a_failover_has_no_fault_to_the_eye() {
    assert_faultless_on_paper("packets", &document(&packets::swept()), TEXTS_OF_RUN);
    assert_faultless_on_paper("failover", &document(&failover::shown()), TEXTS_OF_RUN);
}

#[test]
fn paper_of_a_run_on_a_bed_has_no_fault_to_the_eye() {
    assert_faultless_on_paper("bed", &document(&on_bed()), TEXTS_OF_RUN);
}

#[test]
fn paper_of_a_comparison_and_of_a_history_has_no_fault_to_the_eye() {
    assert_faultless_on_paper("comparison", &compared(), TEXTS_OF_RUN);
    assert_faultless_on_paper("history", &past(), TEXTS_OF_OTHERS);
}

#[test]
fn paper_of_inspected_hosts_has_no_fault_to_the_eye() {
    assert_faultless_on_paper("hosts", &inspected_page::page(), TEXTS_OF_OTHERS);
}
