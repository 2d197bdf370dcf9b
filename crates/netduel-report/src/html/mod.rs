//! The report as one HTML file that needs no network, no server and no other file.
//!
//! Every text of a plan, host or error goes through maud's escaping; the chart data stand in a script element of type JSON
//! with every `<` escaped. A content security policy allows exactly the three scripts of this crate by their hash, so even a
//! mistake in escaping runs nothing and loads nothing. Without JavaScript all answers, tables and intervals stay.
mod answers;
mod chart_data;
mod charts;
mod datagrams;
mod drawing;
mod failover;
mod hosts;
mod intervals;
mod limits;
mod origin;
mod packets;
mod policy;
mod search;
mod stamps;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use netduel_model::run::Run;

use crate::analysis::Analysis;
use crate::words;

/// Observable Plot, the charts.
const PLOT: &str = include_str!("../../assets/plot.umd.min.js");
/// Its licence, which must stand in every copy.
const PLOT_LICENSE: &str = include_str!("../../assets/plot.LICENSE.txt");
/// D3, on which Plot stands.
const D3: &str = include_str!("../../assets/d3.min.js");
/// Its licence.
const D3_LICENSE: &str = include_str!("../../assets/d3.LICENSE.txt");
/// Draws our charts with Plot.
const DRAW: &str = include_str!("../../assets/draw.js");
/// The look.
const STYLE: &str = include_str!("../../assets/style.css");

/// The page of a run.
pub fn page(run: &Run, analysis: &Analysis) -> String {
    let scripts = [
        DRAW.to_owned(),
        format!("/*!\nD3\n{D3_LICENSE}*/\n{D3}"),
        format!("/*!\nObservable Plot\n{PLOT_LICENSE}*/\n{PLOT}"),
    ];
    let security = policy::content_security_policy(&scripts);
    let data = chart_data::embedded(analysis);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(security);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(run.header.program);
                title { (words::plain(&analysis.plan.question)) " - netduel" }
                style { (PreEscaped(STYLE)) }
                noscript { style { ".plot { display: none }" } }
            }
            body {
                main {
                    (head(run, analysis))
                    (answers::answers(analysis))
                    (warnings_in_brief(analysis))
                    (hosts::in_brief(analysis))
                    (answers::verdicts(analysis))
                    (packets::page(run, analysis))
                    @for (index, workload) in analysis.workloads.iter().enumerate() {
                        (charts::workload(index, workload))
                    }
                    (origin::path(analysis))
                    (origin::warnings(analysis))
                    (hosts::hosts(run, analysis))
                    (origin::reproduction(run))
                    (origin::counting(analysis))
                }
                (foot(run))
                script id="chart-data" type="application/json" { (PreEscaped(data)) }
                @for script in &scripts { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

fn head(run: &Run, analysis: &Analysis) -> Markup {
    html! {
        header {
            p.run { (run.header.id) " · " (words::date(run.header.started_unix_ms)) " · " (run.header.program) }
            h1 { (words::plain(&analysis.plan.question)) }
            p.basis { (words::trials(analysis)) ". " (words::plain(&words::end(analysis.end.as_ref()))) }
            noscript { p.note { "Charts need JavaScript. Everything they show stands in the tables beneath them." } }
        }
    }
}

/// A line near the top, so that nobody reads the answer without knowing of the doubts.
fn warnings_in_brief(analysis: &Analysis) -> Markup {
    let count = words::warnings(analysis).len();
    html! {
        @if count > 0 {
            p.brief { a href="#warnings" { @if count == 1 { "1 warning" } @else { (count) " warnings" } } " to weigh with this answer." }
        }
    }
}

fn foot(run: &Run) -> Markup {
    html! {
        footer {
            p {
                "Made by " (run.header.program) " from the stored run " code { (run.header.id) } ". Charts: Observable Plot and D3, \
                 ISC licence, inlined; this file loads nothing."
            }
        }
    }
}
