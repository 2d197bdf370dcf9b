//! What the figures stand on: path, warnings, how to do it again, how it was counted.
use std::collections::BTreeMap;

use maud::{Markup, html};
use netduel_model::run::Run;
use netduel_model::units::human_si;
use netduel_model::workload::Role;

use crate::analysis::{Analysis, PathShares};
use crate::words;

/// Which interfaces carried the bytes, by arm and end.
pub(super) fn path(analysis: &Analysis) -> Markup {
    let sentences = words::proofs(analysis);
    html! {
        section id="path" {
            h2 { "Proof of path" }
            @if sentences.is_empty() {
                p { "No arm says which interface it should use, so nothing is proven. Set " code { "expect_interface" } "." }
            } @else {
                p.reading { "Share of the bytes that each interface counted, all trials together. Bridges and bonds are left out: \
                             their bytes are counted on the interfaces below them." }
                div.paths {
                    @for arm in &analysis.plan.arms {
                        @for role in [Role::Client, Role::Server] {
                            @if let Some(EndBytes { expected, host, bytes }) = bytes_at(analysis, &arm.name, role) {
                                (bar(&format!("{} at {role} {host}", arm.name), &expected, &bytes))
                            }
                        }
                    }
                }
                ul { @for sentence in sentences { li { (sentence) } } }
                details { summary { "Data" } (path_table(analysis)) }
            }
        }
    }
}

/// Which interfaces carried the bytes of an arm at one end, over all workloads.
struct EndBytes {
    expected: String,
    host: String,
    bytes: Vec<(String, u64)>,
}

fn bytes_at(analysis: &Analysis, arm: &netduel_model::ids::ArmName, role: Role) -> Option<EndBytes> {
    let paths: Vec<&PathShares> = analysis
        .workloads
        .iter()
        .flat_map(|workload| &workload.arms)
        .filter(|figures| &figures.arm == arm)
        .flat_map(|figures| &figures.paths)
        .filter(|path| path.role == role)
        .collect();
    let first = paths.first()?;
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, bytes) in paths.iter().flat_map(|path| &path.bytes) {
        *sums.entry(name).or_default() += bytes;
    }
    let mut bytes: Vec<(String, u64)> =
        sums.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    bytes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Some(EndBytes { expected: first.expected.clone(), host: first.host.clone(), bytes })
}

fn bar(title: &str, expected: &str, interfaces: &[(String, u64)]) -> Markup {
    let total: u64 = interfaces.iter().map(|(_, bytes)| bytes).sum();
    let share = |bytes: u64| bytes as f64 / total.max(1) as f64;
    let words: Vec<String> = interfaces
        .iter()
        .map(|(name, bytes)| format!("{} {}", words::plain(name), words::percent(share(*bytes))))
        .collect();
    html! {
        div.path {
            p.name { (title) }
            div.bar role="img" aria-label={ (title) ": " (words.join(", ")) } {
                @for (index, (name, bytes)) in interfaces.iter().enumerate() {
                    span class=(if name == expected { "expected" } else { "other" })
                        style={ "flex-grow:" (format!("{:.5}", share(*bytes))) } {
                        @if share(*bytes) > 0.25 { (words[index]) }
                    }
                }
            }
            @if let Some((_, rest)) = words.split_first() { @if !rest.is_empty() { p.rest { "other: " (rest.join(", ")) } } }
        }
    }
}

fn path_table(analysis: &Analysis) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "Workload" } th { "Arm" } th { "End" } th { "Expected" } th.number { "Least share" }
                th.number { "Proven" } th { "Bytes by interface" } } }
            tbody {
                @for workload in &analysis.workloads { @for arm in &workload.arms { @for path in &arm.paths {
                    tr {
                        td { (workload.name) } td { (arm.arm) } td { (path.role) " " (path.host) } td { (path.expected) }
                        td.number { @if let Some(share) = path.share_min { (words::percent(share)) } @else { "none" } }
                        td.number { (path.proven) " of " (path.trials) }
                        td { (path.bytes.iter().map(|(name, bytes)| format!("{name} {}", human_si(*bytes as f64, "B")))
                            .collect::<Vec<_>>().join(", ")) }
                    }
                } } }
            }
        } }
    }
}

/// Every doubt with what to do about it.
pub(super) fn warnings(analysis: &Analysis) -> Markup {
    html! {
        section id="warnings" {
            h2 { "Warnings" }
            @if analysis.warnings.is_empty() { p { "None." } } @else {
                ul.warnings {
                    @for warning in words::warnings(analysis) {
                        @let text = words::plain(&warning);
                        @match text.split_once(": ") {
                            Some((kind, rest)) => li { b { (kind) } ": " (rest) },
                            None => li { (text) },
                        }
                    }
                }
            }
        }
    }
}

/// What to type to get the same again.
pub(super) fn reproduction(run: &Run) -> Markup {
    let resolved = serde_json::to_string_pretty(&run.header.plan).unwrap_or_default();
    html! {
        section id="reproduce" {
            h2 { "Reproduce" }
            pre { code { (words::commands(run).join("\n")) } }
            dl.arms {
                @for (index, arm) in run.header.plan.arms.iter().enumerate() {
                    dt { (arm.name) @if index == 0 { " (baseline)" } }
                    dd {
                        (arm.pair.client) " to " (arm.pair.server)
                        @for treatment in &arm.treatments { ", " (words::treatment(treatment)) }
                    }
                }
            }
            details { summary { "Plan as given" } pre { code { (run.header.plan_text) } } }
            details { summary { "Plan as run, every default written out" } pre { code { (resolved) } } }
        }
    }
}

/// The rules of counting.
pub(super) fn counting(analysis: &Analysis) -> Markup {
    html! {
        section id="counted" {
            h2 { "How it was counted" }
            dl.rules { @for (name, rule) in words::rules(&analysis.plan) { dt { (name) } dd { (rule) } } }
        }
    }
}
