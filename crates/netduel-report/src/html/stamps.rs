//! Where a round trip's time goes: a stacked bar for each arm, drawn here so that it needs no script, and the table of parts.
use maud::{Markup, html};
use netduel_model::stamps::Part;
use netduel_model::units::human_nanos;
use netduel_stats::histogram::Histogram;

use crate::analysis::{Composition, Stamps, WorkloadAnalysis};
use crate::words::{self, StampTable};

/// A segment narrower than this share of the page has no room for its number.
const LABEL_SHARE_MIN: f64 = 0.07;

/// A bar: whose, of which round trips, and its parts.
struct Bar<'a> {
    arm: String,
    which: &'static str,
    composition: &'a Composition,
}

/// The section; nothing when no arm has stamps.
pub(super) fn section(workload: &WorkloadAnalysis) -> Markup {
    let of = |which, composition: for<'a> fn(&'a Stamps) -> Option<&'a Composition>| -> Vec<Bar<'_>> {
        let arms = workload.arms.iter().filter_map(|arm| Some((arm, composition(arm.stamps.as_ref()?)?)));
        arms.map(|(arm, composition)| Bar { arm: arm.arm.to_string(), which, composition }).collect()
    };
    let groups = [
        of("middle half", |stamps| stamps.typical.as_ref()),
        of("slowest 1 %", |stamps| stamps.slow.as_ref()),
    ];
    let bars = || groups.iter().flatten();
    if bars().next().is_none() {
        return html! {};
    }
    let mut parts: Vec<Part> =
        bars().flat_map(|bar| bar.composition.parts.iter().map(|(part, _)| *part)).collect();
    parts.sort_unstable();
    parts.dedup();
    html! {
        h3 { "Where a round trip's time goes" }
        p.reading {
            "Time stamps of both kernels split some of the round trips. A bar is the mean of the round trips named beside it; its parts add \
             up to it. Bars of one kind have one scale."
        }
        p.legend { @for part in &parts { span { i style={ "background:" (colour(*part)) } {} (part.title()) } } }
        div.stacks {
            @for group in &groups {
                @let longest = group.iter().map(|bar| bar.composition.whole_ns).fold(1.0, f64::max);
                @for bar in group { (drawn(bar, longest)) }
            }
        }
        @if let Some(said) = words::stamps(workload) {
            div.scroll { (figures(&said)) }
            ul.explanation { @for note in &said.notes { li { (words::plain(note)) } } }
        }
        details { summary { "Data" } div.scroll { (table(workload)) } }
    }
}

fn figures(table: &StampTable) -> Markup {
    html! {
        table {
            thead { tr { th {} @for arm in &table.arms { th.number scope="col" { (arm) } } } }
            tbody { @for (title, cells) in &table.rows {
                tr { th scope="row" { (title) } @for cell in cells { td.number { (cell) } } }
            } }
        }
    }
}

fn drawn(bar: &Bar<'_>, longest: f64) -> Markup {
    let Composition { whole_ns, parts, .. } = bar.composition;
    let said: Vec<String> =
        parts.iter().map(|(part, mean)| format!("{} {}", part.title(), human_nanos(*mean))).collect();
    let label = format!("{}, {}: {} of {}", bar.arm, bar.which, human_nanos(*whole_ns), said.join(", "));
    html! {
        div.stack-row {
            p.name { b { (bar.arm) } " " (bar.which) }
            div.stack role="img" aria-label=(label) {
                @for (part, mean) in parts {
                    @let share = mean / longest;
                    span title={ (part.title()) ": " (human_nanos(*mean)) }
                        style={ "width:" (format!("{:.3}", share * 100.0)) "%;background:" (colour(*part)) ";color:" (ink(*part)) } {
                        @if share >= LABEL_SHARE_MIN { (human_nanos(*mean)) }
                    }
                }
            }
            p.whole { (human_nanos(*whole_ns)) }
        }
    }
}

/// Client's parts are blue, the server's warm, and the network's grey.
const fn colour(part: Part) -> &'static str {
    match part {
        Part::Late => "var(--arm-4)",
        Part::ClientSend => "var(--class-1)",
        Part::Network | Part::NetworkAndServer => "var(--rule)",
        Part::ServerReceive => "var(--class-3)",
        Part::ServerProgram => "var(--class-4)",
        Part::ServerSend => "var(--class-2)",
        Part::ClientReceive => "var(--class-0)",
    }
}

const fn ink(part: Part) -> &'static str {
    match part {
        Part::Late => "var(--paper)",
        Part::ClientSend => "var(--class-1-text)",
        Part::Network | Part::NetworkAndServer => "var(--ink)",
        Part::ServerReceive => "var(--class-3-text)",
        Part::ServerProgram => "var(--class-4-text)",
        Part::ServerSend => "var(--class-2-text)",
        Part::ClientReceive => "var(--class-0-text)",
    }
}

fn table(workload: &WorkloadAnalysis) -> Markup {
    let rows = workload
        .arms
        .iter()
        .filter_map(|arm| Some((arm, arm.stamps.as_ref()?)))
        .flat_map(|(arm, stamps)| rows(stamps).into_iter().map(move |row| (&arm.arm, row)));
    html! {
        table {
            thead { tr {
                th scope="col" { "Arm" } th scope="col" { "Part" }
                @for title in ["n", "p50", "p90", "p99", "p99.9", "largest"] { th.number scope="col" { (title) } }
            } }
            tbody { @for (arm, (title, histogram, error)) in rows {
                tr {
                    td { (arm) } td { (title) } td.number { (histogram.count()) }
                    @for percentile in [50.0, 90.0, 99.0, 99.9, 100.0] {
                        td.number { @if let Some(value) = histogram.percentile(percentile) { (human_nanos(value as f64)) (error) } }
                    }
                }
            } }
        }
    }
}

/// Title, histogram, and the error that stands behind each figure.
fn rows(stamps: &Stamps) -> Vec<(String, &Histogram, String)> {
    let mut rows = Vec::new();
    for (part, histogram) in &stamps.parts {
        rows.push((part.title().to_owned(), histogram, String::new()));
    }
    for (part, histogram) in &stamps.server_parts {
        rows.push((format!("{}, by the server", part.title()), histogram, String::new()));
    }
    if let Some(one_way) = &stamps.one_way {
        let error = format!(" ± {}", words::error(one_way));
        rows.push(("one way, up".to_owned(), &one_way.up, error.clone()));
        rows.push(("one way, down".to_owned(), &one_way.down, error));
    }
    for (title, histogram) in [
        ("network and server, by the client's NIC", &stamps.hardware),
        ("held by the server, by its NIC", &stamps.server_hardware),
    ] {
        rows.extend(histogram.as_ref().map(|histogram| (title.to_owned(), histogram, String::new())));
    }
    rows
}
