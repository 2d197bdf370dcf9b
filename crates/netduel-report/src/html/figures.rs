//! Figures: containers for plots of the script, bars drawn here, and the table of the numbers below each.
use maud::{Markup, html};

use crate::document::chart::{Bar, Bars, Chart, Figure, Paint};
use crate::words::plain;

use super::state::Page;
use super::{bed_drawing, drawing, levels, steps, timeline};

/// A segment narrower than this share of the page has no room for its number.
const LABEL_SHARE_MIN: f64 = 0.07;

/// A figure with its text and its numbers.
pub(super) fn figure(figure: &Figure, page: &mut Page) -> Markup {
    let (drawn, kind) = match &figure.chart {
        Chart::Plot(plot) => {
            let place = page.plot(&plot.data);
            let label = plain(&figure.alternative);
            (
                html! { div.plot role="img" aria-label=(label) data-chart=(plot.kind) data-plot=(place) {} },
                plot.kind,
            )
        }
        Chart::Bars(bars) => (self::bars(bars), "stacks"),
        Chart::Timeline(one) => (timeline::picture(one, &figure.alternative), "timeline"),
        Chart::Levels(one) => (levels::picture(one, &figure.alternative), "levels"),
        Chart::Steps(one) => (steps::picture(one, &figure.alternative), "steps"),
        Chart::Host(host) => (drawing::drawing(host), "host"),
        Chart::Bed(bed) => (bed_drawing::drawing(bed), "host"),
    };
    let plot = if let Chart::Plot(plot) = &figure.chart { Some(plot) } else { None };
    // A tall plot stands beside several others.
    let rows = plot.filter(|plot| plot.rows > 1).map(|plot| format!("--rows: {}", plot.rows));
    html! {
        figure class={ "chart " (kind) } style=[rows] {
            figcaption {
                @if !figure.title.is_empty() { b { (plain(&figure.title)) } }
                span.reading { (plain(&figure.reading)) }
                @if let Some(plot) = plot && !plot.legend.is_empty() { span.legend { (legend(&plot.legend)) } }
            }
            (drawn)
            @if let Some(table) = &figure.data { (page.numbers(&figure.title, table)) }
        }
    }
}

fn legend(entries: &[(String, Paint)]) -> Markup {
    html! { @for (title, paint) in entries { span { i class=(class(*paint)) {} (plain(title)) } } }
}

fn bars(bars: &Bars) -> Markup {
    html! {
        @if !bars.legend.is_empty() {
            p.legend { (legend(&bars.legend)) }
        }
        div.stacks { @for one in &bars.rows { (bar(one)) } }
    }
}

fn bar(bar: &Bar) -> Markup {
    let label_of_segment: Vec<String> =
        bar.segments.iter().map(|segment| plain(&format!("{} {}", segment.title, segment.label))).collect();
    let label =
        plain(&format!("{} {}: {} {}", bar.title, bar.detail, bar.whole, label_of_segment.join(", ")));
    html! {
        div.stack-row {
            p.name { b { (plain(&bar.title)) } " " (plain(&bar.detail)) }
            div.stack role="img" aria-label=(label) {
                @for (segment, label_of_segment) in bar.segments.iter().zip(&label_of_segment) {
                    span class=(class(segment.paint)) title=(label_of_segment)
                        style={ "width:" (format!("{:.3}", segment.share * 100.0)) "%" } {
                        @if segment.share >= LABEL_SHARE_MIN { (plain(&segment.label)) }
                    }
                }
            }
            p.whole { (plain(&bar.whole)) }
        }
    }
}

/// The class of the style sheet with the fill, the outline and the colour of the text.
fn class(paint: Paint) -> String {
    match paint {
        Paint::Expected => "fill-expected".to_owned(),
        Paint::Other => "fill-other".to_owned(),
        Paint::Class(class) => format!("fill-{class}"),
        Paint::Waiting => "fill-waiting".to_owned(),
    }
}
