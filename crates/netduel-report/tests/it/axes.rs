//! Axes of charts: logarithmic where values lie far apart, with ticks near the data, in the document and in a real browser.
use netduel_model::run::Run;
use netduel_report::document::chart::Chart;
use netduel_report::{document, html};

use crate::browser::{chromium, in_a_frame};
use crate::builder::{Recipe, build};
use crate::every_report::figures;
use crate::failover::{plan, probes, stored, trial};
use crate::failover_page::FAST;
use crate::packets;

/// The page of a run with its spaces as a reader sees them.
fn page(run: &Run) -> String {
    html::page(&document(run)).replace('\u{a0}', " ")
}

#[test]
fn bars_of_arms_that_lie_far_apart_have_a_logarithmic_axis() {
    let page = |effect| page(&build(&Recipe { workloads: vec!["bulk"], effect, ..Recipe::default() }));
    let (near, far) = (page(15.0), page(30.0));
    assert!(near.contains("<b>Throughput</b> <span>(higher is better)</span>"), "{near}");
    assert!(far.contains("<b>Throughput</b> <span>(higher is better, logarithmic axis)</span>"), "{far}");
    let reason =
        "Dots in place of bars: logarithmic axis, because the arms differ by more than a factor of 20.";
    assert!(far.contains(reason), "{far}");
}

#[test]
fn sweep_of_rates_that_lie_far_apart_has_dots_on_a_logarithmic_axis() {
    let (near, far) = (page(&packets::swept_far(15)), page(&packets::swept_far(30)));
    let reason = "Rates: logarithmic axis, because the medians differ by more than a factor of 20.";
    assert!(near.contains("Bar: median received") && !near.contains(reason), "{near}");
    assert!(far.contains("Dot: median received") && far.contains(reason), "{far}");
    let Some(browser) = chromium() else {
        return netduel_test_support::skip("no chromium to render the page");
    };
    // The dots, and whether the labels of the axis span a decade.
    let drawn = "(() => { const chart = root.querySelector('.chart.sweep'); \
                 const dots = chart.querySelectorAll('g[aria-label=\"dot\"] circle').length; \
                 const labels = [...chart.querySelectorAll('g[aria-label=\"x-axis tick label\"] text')]; \
                 const ticks = labels.map((label) => Number(label.textContent.replace(',', ''))); \
                 return `${dots} ${Math.max(...ticks) >= 10 * Math.min(...ticks)}`; })()";
    let errors = "root.dataset.errors";
    let far = html::page(&document(&packets::swept_far(30)));
    assert_eq!(in_a_frame(browser, &far, 1200, errors), "");
    assert_eq!(in_a_frame(browser, &far, 1200, drawn), "4 true");
    let near = html::page(&document(&packets::swept_far(15)));
    assert!(in_a_frame(browser, &near, 1200, drawn).starts_with("0 "), "bars have no dots");
}

#[test]
fn throughput_of_a_failover_has_a_logarithmic_axis_for_arms_that_lie_far_apart() {
    let page = |times: u64| {
        let trials = [("surprise", FAST / times), ("carrier", FAST)]
            .map(|(arm, bytes)| trial(arm, probes(0..0), probes(0..0), |_| bytes));
        page(&stored(plan(), trials.to_vec()))
    };
    let (near, far) = (page(15), page(30));
    let reason = "Throughput: logarithmic axis, because the arms differ by more than a factor of 20.";
    assert!(!near.contains(reason) && far.contains(reason), "{far}");
    // The median of the slow arm is 1.2 Gbit/s.
    assert!(!near.contains("\u{2264} 10.0 Mbit/s") && far.contains("\u{2264} 10.0 Mbit/s"), "{far}");
}

#[test]
fn bins_of_a_distribution_divide_the_intervals_of_every_arm() {
    // The rates of one arm have 14 times the range of those of the other.
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() });
    for trial in &mut run.trials {
        let step = if trial.slot.arm.as_str() == "synthetic" { 1_000_000 } else { 14_000_000 };
        let flow = trial.server.as_mut().unwrap().report.received.as_mut().unwrap();
        for (sample, number) in flow.series.iter_mut().zip((0_u64..10).cycle()) {
            sample.bytes = 80_000_000 + number * step;
        }
    }
    let document = document(&run);
    let all = document.sections.iter().flat_map(|section| figures(&section.blocks));
    let mut plots = all.filter_map(|figure| match &figure.chart {
        Chart::Plot(plot) if plot.kind == "rates" => Some(&plot.data),
        _ => None,
    });
    let density = plots.next().unwrap()["density"].as_array().unwrap();
    assert_eq!(density.len(), 2);
    for bins in density {
        let shares: Vec<f64> = bins.as_array().unwrap().iter().map(|bin| bin[2].as_f64().unwrap()).collect();
        let most = shares.iter().copied().fold(0.0, f64::max);
        assert!(shares.len() >= 5 && most < 60.0, "{shares:?}");
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1.0, "{shares:?}");
    }
}
