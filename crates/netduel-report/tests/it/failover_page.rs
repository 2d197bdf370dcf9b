//! What the pages of a failover show beside its figures: the answer with the throughput, timelines, and the commands of the events.
use netduel_model::publication::Publication;
use netduel_report::document::chart::{Chart, Figure};
use netduel_report::{document, html, markdown};

use crate::builder::{Recipe, build};
use crate::compare_document::page_of;
use crate::every_report::figures;
use crate::failover::{self, plan, probes, shown, stored};

/// Bytes in 10 ms of 36 Gbit/s and of 14 Gbit/s.
pub const FAST: u64 = 45_000_000;
const SLOW: u64 = 17_500_000;

/// The answer of a run of one block, in which the streams of the arms have these bytes in each interval of 10 ms.
fn answer(surprise: fn(u64) -> u64, carrier: fn(u64) -> u64) -> String {
    let trials = [("surprise", surprise), ("carrier", carrier)]
        .map(|(arm, rate)| failover::trial(arm, probes(1000..1012), probes(0..0), rate));
    let run = stored(plan(), trials.to_vec());
    let answer = &crate::json::report(&run)["workloads"][0]["answers"][0]["text"];
    let answer = answer.as_str().unwrap().to_owned();
    let page = markdown::page(&document(&run));
    let (_, throughput) = answer.split_once(" Median throughput: ").unwrap();
    assert!(page.contains(throughput), "{page}");
    answer
}

#[test]
fn answer_of_a_failover_has_the_throughput_of_each_arm_before_and_after_the_event() {
    // The path is removed at 1 s, and restored at 2 s.
    let removed = |step: u64| if (100..200).contains(&step) { SLOW } else { FAST };
    let text = answer(removed, |_| FAST);
    let expected = " Median throughput: surprise 36.0 Gbit/s before remove at 1 s, 14.0 Gbit/s in the steady \
                    state after it; carrier 36.0 Gbit/s before remove at 1 s, 36.0 Gbit/s in the steady state \
                    after it.";
    assert!(text.starts_with("carrier against surprise: ") && text.ends_with(expected), "{text}");
    // The second event costs more than the first one.
    let returned = |step: u64| if step < 200 { FAST } else { SLOW };
    let text = answer(returned, removed);
    assert!(text.contains("surprise 36.0 Gbit/s before return at 2 s, 14.0 Gbit/s"), "{text}");
    assert!(text.contains("carrier 36.0 Gbit/s before remove at 1 s, 14.0 Gbit/s"), "{text}");
}

#[test]
fn answer_of_a_failover_without_streams_has_no_throughput() {
    let mut trials =
        ["surprise", "carrier"].map(|arm| failover::trial(arm, probes(1000..1012), probes(0..0), |_| FAST));
    for trial in &mut trials {
        trial.server.as_mut().unwrap().report.failover.as_mut().unwrap().series.clear();
    }
    let report = crate::json::report(&stored(plan(), trials.to_vec()));
    let answer = report["workloads"][0]["answers"][0]["text"].as_str().unwrap();
    assert!(answer.ends_with('.') && !answer.contains("Median throughput"), "{answer}");
}

#[test]
fn comparison_of_failovers_draws_the_throughput_of_each_run_on_common_axes() {
    let run = |id: &str, slow: u64| {
        let rate = move |step: u64| if (100..200).contains(&step) { slow } else { FAST };
        let trials =
            ["surprise", "carrier"].map(|arm| failover::trial(arm, probes(1000..1012), probes(0..0), rate));
        let mut run = stored(plan(), trials.to_vec());
        run.header.id = id.parse().unwrap();
        run
    };
    let page = page_of(&[run("before", SLOW), run("after", 2 * SLOW)], &Publication::default());
    let all = page.sections.iter().flat_map(|section| figures(&section.blocks));
    let all: Vec<&Figure> = all.filter(|figure| figure.title == "Throughput around events").collect();
    assert_eq!(all.len(), 2, "one for each arm");
    let Chart::Timeline(timeline) = &all[0].chart else { panic!("{:?}", all[0]) };
    let [one, other] = timeline.panels.as_slice() else { panic!("{:?}", timeline.panels) };
    assert_eq!([one.title.as_str(), &other.title], ["A", "B"]);
    assert!(one.top > 36e9 && (one.top - other.top).abs() < 1.0, "{} and {}", one.top, other.top);
    assert_ne!(one.median, other.median);
    let words = "A 36.0 Gbit/s before remove at 1 s, 14.0 Gbit/s in the steady state after it; B 36.0 Gbit/s \
                 before remove at 1 s, 28.0 Gbit/s in the steady state after it";
    assert!(all[0].alternative.ends_with(words), "{}", all[0].alternative);
    let rows: Vec<String> = all[0].data.as_ref().unwrap().rows.iter().map(|row| row[0].text()).collect();
    assert_eq!(rows, ["A", "A", "A", "A", "B", "B", "B", "B"], "two events, two directions");
}

#[test]
fn reading_of_a_timeline_agrees_with_the_number_of_trials() {
    let page = |count: u32| {
        let trial = |block: u32| {
            let mut one = failover::trial("surprise", probes(1000..1012), probes(0..0), |_| 1_000_000);
            one.slot.block = block;
            one
        };
        let run = stored(plan(), (0..count).map(trial).collect());
        html::page(&document(&run))
    };
    let (one, two) = (page(1), page(2));
    assert!(one.contains("Line: 1 trial.") && one.contains(" s of 1 trial with the events"), "{one}");
    assert!(two.contains("Thin lines: 2 trials; bold: median."), "{two}");
}

#[test]
fn commands_of_events_have_the_sentence_that_says_where_they_run() {
    let words = "Commands of events run as root on the host in the comment above them, at its time.";
    let with_events = markdown::page(&document(&shown()));
    assert!(with_events.contains("# remove at 1 s after the start: client a"), "{with_events}");
    assert!(with_events.contains(words), "{with_events}");
    let without = markdown::page(&document(&build(&Recipe::default())));
    assert!(without.contains("Each test by hand") && !without.contains(words), "{without}");
}

#[test]
fn timeline_has_events_at_one_height_an_axis_for_each_panel_and_medians_over_the_trials() {
    let page = html::page(&document(&shown()));
    let pictures = page.split("<figure class=\"chart timeline\"").skip(1);
    let pictures: Vec<&str> = pictures.map(|rest| rest.split("</figure>").next().unwrap()).collect();
    assert_eq!(pictures.len(), 2, "one for each arm");
    for picture in pictures {
        let numbers: Vec<&str> = picture.split("<text class=\"mark\"").skip(1).collect();
        assert_eq!(numbers.len(), 2, "two events: {picture}");
        assert!(numbers.iter().all(|number| number.split('>').next().unwrap().contains(" y=\"12\"")));
        let (drawn, scale) = picture.split_once("<svg class=\"scale\"").unwrap();
        let labels = scale.split("<text class=\"rule\"").skip(1);
        let labels: Vec<&str> = labels.map(|label| label.split(['<', '>']).nth(1).unwrap()).collect();
        // Gaps and delays have logarithmic axes, the throughput of 16 to 21 Gbit/s has one from 0.
        let count = |is_of: fn(&str) -> bool| labels.iter().filter(|label| is_of(label)).count();
        assert_eq!(count(|label| label.starts_with('≤')), 2, "{labels:?}");
        assert_eq!(count(|label| label == "0"), 1, "{labels:?}");
        assert!(count(|label| label.ends_with(" Gbit/s")) >= 2, "{labels:?}");
        let panels: Vec<&str> = drawn.split("<svg x=\"0\"").skip(1).collect();
        assert_eq!(panels.len(), 3, "gaps, delays, throughput");
        for panel in panels {
            let [thin, bold] = ["<path class=\"thin ", "<path class=\"bold "];
            // Eight trials, two directions.
            assert_eq!([thin, bold].map(|line| panel.matches(line).count()), [16, 2]);
            assert!(panel.rfind(thin) < panel.find(bold), "what is drawn later is above");
            assert!(panel.contains("style=\"opacity:0.15\""), "the trials are faint");
        }
    }
}
