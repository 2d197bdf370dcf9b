//! The screen of the live view: the state of a run laid out for a terminal of any size. Pure.
use std::fmt::Write as _;

use netduel_control::coordinator::PAUSE_MAX_NS;
use netduel_model::metric::Metric;
use netduel_model::workload::Workload;
use netduel_report::words::{self, Tone};

use super::canvas::{Glyphs, Line, Style, Theme, interval, shares, sparkline};
use super::state::{Mark, Row, State};
use crate::redaction;
use crate::run::lines::{Standing, fit, run_line};

/// From this width on the screen has two columns.
const TWO_COLUMNS_FROM: usize = 120;
/// Smallest screen: a smaller one shows the top left part of it.
pub const SIZE_MIN: (usize, usize) = (80, 24);
/// From this height on the screen has room for the details, and always shows them.
pub const DETAILS_FROM: usize = 50;
/// Longest pause of the user, minutes.
pub const PAUSE_MAX_MIN: u64 = PAUSE_MAX_NS / 60_000_000_000;
/// Lines above the sections.
const HEAD: usize = 4;
/// Longest name of a workload, an arm or a host that is not cut.
const NAME_MAX: usize = 20;
/// Longest interval in words that is not cut: `<= 0.0536x [0.0512x, 0.0561x]`.
const INTERVAL_MAX: usize = 29;
const NANOS: f64 = 1e9;

/// What the user chose, and what goes on beside the run.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key or a state of its own")]
pub struct View {
    /// Whether all metrics by arm, verdicts in words and complete messages are shown.
    pub details: bool,
    /// Whether the help covers the sections.
    pub help: bool,
    /// Colours.
    pub theme: Theme,
    /// Characters.
    pub glyphs: Glyphs,
    /// Whether the run pauses, or will after this trial.
    pub paused: bool,
    /// Whether the user stopped the run.
    pub stopping: bool,
}

/// A part of the screen with a title.
struct Section {
    title: String,
    lines: Vec<Line>,
    /// Whether the last lines matter most.
    newest_last: bool,
}

/// The screen, exactly `height` lines of `width` columns.
pub fn screen(state: &State, view: &View, (width, height): (usize, usize), now_ns: u64) -> Vec<Line> {
    let view = &View { details: view.details || height >= DETAILS_FROM, ..*view };
    let inner = width.max(SIZE_MIN.0);
    let room = height.max(SIZE_MIN.1) - HEAD - 1;
    let mut lines = head(state, view, inner, now_ns);
    lines.extend(if view.help { help(state, room) } else { body(state, view, inner, room) });
    lines.truncate(height.max(SIZE_MIN.1) - 1);
    lines.resize(height.saturating_sub(1), Line::new());
    lines.push(foot(state, view, height));
    lines.truncate(height);
    lines.into_iter().map(|line| line.to(width)).collect()
}

fn head(state: &State, view: &View, width: usize, now_ns: u64) -> Vec<Line> {
    let run = state.id.as_ref();
    let run = run.map_or_else(|| "starting".to_owned(), |id| format!("run {}", redaction::text(id.as_str())));
    let name = Line::of(Style::Strong, format!("netduel {}", redaction::text(&state.plan.name)))
        .with(Style::Dim, format!("  {run}"));
    let counts = if state.total == 0 {
        String::new()
    } else {
        let per_block = state.plan.trials_per_block().max(1);
        let blocks = state.total / per_block;
        format!("block {} of {blocks}", (state.done / per_block + 1).min(blocks))
    };
    let title = name.to(width.saturating_sub(counts.len())).with(Style::Plain, counts);
    let progress = state.times_ns(now_ns).map_or_else(Line::new, |[elapsed_ns, left_ns]| {
        let standing = Standing {
            done: state.done,
            total: state.total,
            elapsed_s: elapsed_ns / NANOS as u64,
            left_s: left_ns.div_ceil(NANOS as u64),
        };
        Line::of(Style::Plain, run_line(standing, width))
    });
    vec![title, progress, now(state, view, (width, now_ns)), Line::new()]
}

/// The trial in flight.
fn now(state: &State, view: &View, (width, now_ns): (usize, u64)) -> Line {
    let Some(current) = &state.current else {
        let text = if view.paused { "  paused: p resumes" } else { "" };
        return Line::of(Style::Notice, text);
    };
    let slot = &current.slot;
    let mut line = Line::of(Style::Plain, "  now  ")
        .with(Style::Strong, format!("{} over {}", cut(slot.workload.as_str()), cut(slot.arm.as_str())));
    if !current.value.is_empty() {
        line = line.with(Style::Accent, format!("  {}", current.value));
    }
    let seconds = |ns: u64| ns as f64 / NANOS;
    let elapsed_ns = now_ns.saturating_sub(current.started_ns).min(current.duration_ns);
    let mut counts =
        format!("  {:.0} of {:.0} s", seconds(elapsed_ns).floor(), seconds(current.duration_ns).ceil());
    if let Some([p50, p99]) = current.round_trips {
        let human = |ns: u64| netduel_model::units::human_nanos(ns as f64);
        let _ = write!(counts, "  p50 {} p99 {}", human(p50), human(p99));
    }
    if let Some(retransmits) = current.retransmits {
        let _ = write!(counts, "  {retransmits} retransmits");
    }
    if let Some(lost) = current.lost {
        let _ = write!(counts, "  {lost} lost");
    }
    let room = width.saturating_sub(line.width() + counts.chars().count() + 4).min(60);
    let rates: Vec<f64> = current.rates.iter().copied().collect();
    line = line.with(Style::Accent, format!("  {}", sparkline(&rates, room, &view.glyphs)));
    line.with(Style::Plain, counts)
}

fn foot(state: &State, view: &View, height: usize) -> Line {
    let pause = match (state.is_quick_test, view.paused) {
        (true, _) => "",
        (false, true) => "  p go on",
        (false, false) => "  p pause",
    };
    let details = if height < DETAILS_FROM { "  d details" } else { "" };
    let notice = match &state.end {
        Some(end) => Some(words::ended(end)),
        None if view.stopping => Some("stopping after what is in flight; Ctrl-C ends at once".to_owned()),
        None if view.paused && state.current.is_some() => Some("pause after this trial".to_owned()),
        None if view.paused => Some("paused".to_owned()),
        None if state.stops_early() => Some("precision reached: stopping".to_owned()),
        None => None,
    };
    let line = notice.map_or_else(Line::new, |notice| Line::of(Style::Notice, format!("  {notice}")));
    line.with(Style::Dim, format!("  q stop{pause}{details}  t theme  ? help"))
}

fn help(state: &State, room: usize) -> Vec<Line> {
    let pause =
        format!("  p        pause after this trial, at most {PAUSE_MAX_MIN} minutes; p again resumes");
    let of_run = [
        "  q        stop the run as the first Ctrl-C does: finished trials are kept, `netduel run --resume last` continues",
        pause.as_str(),
    ];
    let of_test = ["  q        stop the test as the first Ctrl-C does: it has no result"];
    let first = if state.is_quick_test { &of_test[..] } else { &of_run[..] };
    let details = format!(
        "  d        details: all metrics by arm, verdicts in words, whole messages; always from {DETAILS_FROM} lines on"
    );
    let others = [
        details.as_str(),
        "  t        theme: dark, light, without colours",
        "  ?        this help",
        "  Ctrl-C   as q; the second one ends the program at once",
        "",
        "  Arms         median of the first metric of each workload, its value in each block; details: all metrics",
        "  Comparisons  ratio to the baseline with its interval, and the width of the interval after each block",
        "  Blocks       each trial: valid, x wrong or unproven path, ! failed, > in flight",
        "  CPU          busy share of each core of each host in the last trial",
    ];
    first.iter().chain(&others).take(room).map(|line| Line::of(Style::Plain, *line)).collect()
}

fn body(state: &State, view: &View, width: usize, room: usize) -> Vec<Line> {
    if width < TWO_COLUMNS_FROM {
        let sections = vec![
            arms(state, view, width),
            comparisons(state, view, width),
            blocks(state, view, width),
            cpu(state, view, width),
            counts(state),
            messages(state, view, width),
        ];
        return column(sections, width, room);
    }
    let left = width * 11 / 20;
    let right = width - left - 3;
    let first = column(vec![arms(state, view, left), comparisons(state, view, left)], left, room);
    let rest = vec![
        blocks(state, view, right),
        cpu(state, view, right),
        counts(state),
        messages(state, view, right),
    ];
    let second = column(rest, right, room);
    let line = |row: usize| {
        let part = |lines: &[Line]| lines.get(row).cloned().unwrap_or_default();
        part(&first)
            .to(left)
            .with(Style::Dim, format!(" {} ", view.glyphs.vertical))
            .and(part(&second).to(right))
    };
    (0..room).map(line).collect()
}

/// Sections below each other: each gets a title and a line, then the first ones as many as they have.
fn column(sections: Vec<Section>, width: usize, room: usize) -> Vec<Line> {
    let sections: Vec<Section> = sections.into_iter().filter(|section| !section.lines.is_empty()).collect();
    let mut given: Vec<usize> = sections.iter().map(|_| 1).collect();
    let mut left = room.saturating_sub(sections.len() * 2);
    while left > 0 {
        let wanting = (0..sections.len()).filter(|index| given[*index] < sections[*index].lines.len());
        // The smallest part grows first, so that each is shown before one is shown completely.
        let Some(next) = wanting.min_by_key(|index| given[*index]) else { break };
        given[next] += 1;
        left -= 1;
    }
    let mut lines = Vec::new();
    for (section, given) in sections.into_iter().zip(given) {
        let missing = section.lines.len() - given;
        let more = if missing > 0 { format!("  {missing} more") } else { String::new() };
        lines.push(Line::of(Style::Strong, section.title).with(Style::Dim, more).to(width));
        let from = if section.newest_last { missing } else { 0 };
        lines.extend(section.lines.into_iter().skip(from).take(given));
    }
    lines.truncate(room);
    lines
}

/// Columns of the longest of these names, at most [`NAME_MAX`].
fn name_width<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.map(|name| name.chars().count().min(NAME_MAX)).max().unwrap_or(0)
}

/// A name as it is shown: with `--redact` it may have the name of a host or a user in it.
fn cut(name: &str) -> String {
    fit(&redaction::text(name), NAME_MAX)
}

/// The rows of the arms: the first metric of each workload, and among the details also the other metrics. The settings of an
/// arm may give its workload metrics that the baseline lacks.
fn metrics(state: &State, has_all: bool) -> Vec<(&Workload, Metric)> {
    let (mut rows, mut others) = (Vec::new(), Vec::new());
    for name in &state.plan.workloads {
        let mut of_arms: Vec<(&Workload, Metric)> = Vec::new();
        for workload in state.plan.arms.iter().filter_map(|arm| arm.workload(name)) {
            for metric in workload.metrics.iter().copied() {
                if of_arms.iter().all(|(_, known)| *known != metric) {
                    of_arms.push((workload, metric));
                }
            }
        }
        let mut of_arms = of_arms.into_iter();
        rows.extend(of_arms.next());
        others.extend(of_arms);
    }
    if has_all {
        rows.extend(others);
    }
    rows
}

fn arms(state: &State, view: &View, width: usize) -> Section {
    let rows = metrics(state, view.details);
    let name = |(workload, metric): &(&Workload, Metric)| {
        let title = metric.title_in(workload.traffic.facts().unit);
        let name = cut(workload.name.as_str());
        if view.details { format!("{name} {title}") } else { name }
    };
    let names: Vec<String> = rows.iter().map(name).collect();
    let label = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(width / 3);
    let count = state.plan.arms.len().max(1);
    let each = width.saturating_sub(label + 4) / count;
    let mut heading = Line::of(Style::Plain, " ".repeat(label + 4));
    for arm in &state.plan.arms {
        let is_now = state.current.as_ref().is_some_and(|current| current.slot.arm == arm.name);
        let style = if is_now { Style::Accent } else { Style::Strong };
        let end = heading.width() + each;
        let name = fit(&redaction::text(arm.name.as_str()), each.saturating_sub(1));
        heading = heading.with(style, name).to(end);
    }
    let mut lines = vec![heading];
    for ((workload, metric), name) in rows.iter().zip(&names) {
        let name = fit(name, label);
        let mut line = Line::of(Style::Plain, format!("  {name:<label$}  "));
        for arm in &state.plan.arms {
            let end = line.width() + each;
            if let Some(known) = state.values.get(&(workload.name.clone(), arm.name.clone(), *metric)) {
                let values = known.by_block.numbers();
                let room = each.saturating_sub(known.median.chars().count() + 2);
                line = line
                    .with(Style::Plain, known.median.clone())
                    .with(Style::Accent, format!(" {}", sparkline(&values, room, &view.glyphs)));
            }
            line = line.to(end);
        }
        lines.push(line);
    }
    Section { title: "Arms".to_owned(), lines, newest_last: false }
}

fn comparisons(state: &State, view: &View, width: usize) -> Section {
    let has_many = state.plan.arms.len() > 2;
    let name = |row: &Row| {
        let arm = if has_many { format!(" {}", cut(row.arm.as_str())) } else { String::new() };
        format!("{} {}{arm}", cut(row.workload.as_str()), row.metric)
    };
    // A comparison without a pair has nothing to show but its verdict, and is the first one to be cut.
    let (estimated, others): (Vec<&Row>, Vec<&Row>) =
        state.rows.iter().partition(|row| !row.interval.is_empty());
    let rows: Vec<&Row> = estimated.into_iter().chain(others.into_iter().filter(|_| view.details)).collect();
    let names: Vec<String> = rows.iter().map(|row| name(row)).collect();
    let label = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(width * 2 / 5);
    let interval_width =
        rows.iter().map(|row| interval_words(row).chars().count().min(INTERVAL_MAX)).max().unwrap_or(0);
    let ratios = rows.iter().filter_map(|row| row.ratio).flatten();
    let reach = ratios.fold(1.1, |reach: f64, ratio| reach.max(ratio).max(1.0 / ratio));
    let mut lines = Vec::new();
    for (row, name) in rows.iter().zip(&names) {
        let style = match row.tone {
            Tone::Better => Style::Good,
            Tone::Worse => Style::Bad,
            _ => Style::Plain,
        };
        let weight = if row.is_headline { Style::Strong } else { Style::Plain };
        let mut line = Line::of(weight, format!("  {name}")).to(label + 4);
        let words = fit(&interval_words(row), interval_width);
        line = line.with(style, format!("{words:<interval_width$}"));
        let room = width.saturating_sub(line.width() + 2);
        let half = if row.half.is_empty() { String::new() } else { format!("+-{}", row.half) };
        if room > 34
            && let Some(ratio) = row.ratio
        {
            line = line.with(style, format!("  {}", interval(ratio, reach, 21, &view.glyphs)));
        }
        let room = width.saturating_sub(line.width() + half.len() + 4).min(30);
        let widths = sparkline(&row.widths, room, &view.glyphs);
        lines.push(line.with(Style::Plain, format!("  {half}")).with(Style::Accent, format!(" {widths}")));
        if view.details {
            lines.push(Line::of(style, format!("      {}", row.verdict)));
        }
    }
    let precision = state.plan.design.precision;
    let title = format!("Comparisons with {}", baseline(state));
    let title =
        if state.plan.design.may_stop_early() { format!("{title}, until +-{precision}") } else { title };
    Section { title, lines, newest_last: false }
}

/// The estimate with its interval, or that it has none yet, in few words.
fn interval_words(row: &Row) -> String {
    match row.interval.split_once(", ") {
        Some((estimate, _)) if !estimate.contains('[') => format!("{estimate} (no interval)"),
        _ => row.interval.clone(),
    }
}

fn baseline(state: &State) -> String {
    state.plan.baseline().map_or_else(String::new, |arm| redaction::text(arm.name.as_str()))
}

fn blocks(state: &State, view: &View, width: usize) -> Section {
    let per_block = state.plan.trials_per_block().max(1);
    let total = state.total / per_block;
    let rows: Vec<_> = state
        .plan
        .workloads
        .iter()
        .flat_map(|workload| state.plan.arms.iter().map(move |arm| (workload, &arm.name)))
        .collect();
    let names: Vec<String> = rows
        .iter()
        .map(|(workload, arm)| format!("{} {}", cut(workload.as_str()), cut(arm.as_str())))
        .collect();
    let label =
        name_width(names.iter().map(String::as_str)).max(names.iter().map(String::len).max().unwrap_or(0));
    let room = u32::try_from(width.saturating_sub(label + 4)).unwrap_or(u32::MAX).max(1);
    // The last blocks when there are too many, with the one in flight among them.
    let done = state.done / per_block + 1;
    let from = if total <= room { 0 } else { done.saturating_sub(room / 2).min(total - room) };
    let blocks = from..total.min(from.saturating_add(room));
    let lines = rows.iter().zip(&names).map(|((workload, arm), name)| {
        let mut line = Line::of(Style::Plain, format!("  {name:<label$}  "));
        for block in blocks.clone() {
            let mark = state.marks.get(&(block, (*workload).clone(), (*arm).clone()));
            let is_now = state.current.as_ref().is_some_and(|current| {
                let slot = &current.slot;
                slot.block == block && slot.workload == **workload && slot.arm == **arm
            });
            let (style, character) = match mark {
                _ if is_now => (Style::Notice, '>'),
                Some(Mark::Valid) => (Style::Good, view.glyphs.valid),
                Some(Mark::WrongPath) => (Style::Bad, 'x'),
                Some(Mark::Failed) => (Style::Bad, '!'),
                None => (Style::Dim, view.glyphs.to_come),
            };
            match line.0.last_mut() {
                Some((last, text)) if *last == style => text.push(character),
                _ => line.0.push((style, character.to_string())),
            }
        }
        line
    });
    let lines: Vec<Line> = if total == 0 { Vec::new() } else { lines.collect() };
    let excluded = state.marks.values().filter(|mark| **mark != Mark::Valid).count();
    let valid = state.marks.len() - excluded;
    let title = if from > 0 { format!("Blocks from {}", from + 1) } else { "Blocks".to_owned() };
    Section { title: format!("{title}: {valid} valid, {excluded} excluded"), lines, newest_last: false }
}

fn cpu(state: &State, view: &View, width: usize) -> Section {
    let hosts: Vec<String> = state.cpu.keys().map(|host| cut(host.as_str())).collect();
    let label = name_width(hosts.iter().map(String::as_str));
    let lines = hosts.iter().zip(state.cpu.values()).map(|(host, cores)| {
        let busiest = cores.iter().copied().enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
        let words = busiest.map_or_else(String::new, |(core, share)| {
            let mean = cores.iter().sum::<f64>() / cores.len() as f64;
            format!("  core {core} {:.0} %, mean {:.0} %", share * 100.0, mean * 100.0)
        });
        let room = width.saturating_sub(label + 4 + words.len());
        Line::of(Style::Plain, format!("  {host:<label$}  "))
            .with(Style::Accent, shares(cores, room, &view.glyphs))
            .with(Style::Plain, words)
    });
    Section { title: "CPU by core".to_owned(), lines: lines.collect(), newest_last: false }
}

fn counts(state: &State) -> Section {
    let names: Vec<String> = state.plan.arms.iter().map(|arm| cut(arm.name.as_str())).collect();
    let label = name_width(names.iter().map(String::as_str));
    let lines = state.plan.arms.iter().zip(&names).filter_map(|(arm, name)| {
        let counts = state.counts.get(&arm.name)?;
        let retransmits = counts.retransmits.map(|count| format!("{count} retransmits"));
        let loss = counts.loss_max.map(|loss| format!("max loss {}", words::percent(loss)));
        let words: Vec<String> = retransmits.into_iter().chain(loss).collect();
        let is_lossy = counts.loss_max.is_some_and(|loss| loss > 0.0);
        let style = if is_lossy { Style::Notice } else { Style::Plain };
        let line = Line::of(Style::Plain, format!("  {name:<label$}  "));
        (!words.is_empty()).then(|| line.with(style, words.join(", ")))
    });
    Section { title: "Retransmits and loss".to_owned(), lines: lines.collect(), newest_last: false }
}

fn messages(state: &State, view: &View, width: usize) -> Section {
    let room = width.saturating_sub(2);
    let mut lines = Vec::new();
    for message in &state.messages {
        let is_calm = message.ends_with("is ready") || message.starts_with("lab:");
        let style = if is_calm { Style::Dim } else { Style::Notice };
        if view.details {
            let chars: Vec<char> = message.chars().collect();
            lines.extend(
                chars
                    .chunks(room.max(1))
                    .map(|part| Line::of(style, format!("  {}", part.iter().collect::<String>()))),
            );
        } else {
            lines.push(Line::of(style, format!("  {}", fit(message, room))));
        }
    }
    Section { title: "Messages".to_owned(), lines, newest_last: true }
}
