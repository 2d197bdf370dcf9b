//! Headline charts: bars with intervals, drawn without a script. Positions are percentages, so that they fit any width.
use maud::{Markup, html};

use crate::document::chart::{Level, LevelGroup, Levels};
use crate::words::plain;

/// Room beyond the largest end of an interval, a factor of the linear axis.
const HEADROOM: f64 = 1.04;
/// Labels of an axis nearer to each other than this touch on a narrow page, share of the axis.
const LABELS_APART: f64 = 0.22;

/// The axis of a group.
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    fn of(group: &LevelGroup) -> Self {
        match group.ends() {
            Some((low, high)) if group.is_logarithmic => {
                Self { low: low / 1.5, high: high * 1.5, is_logarithmic: true }
            }
            Some((_, high)) => Self { low: 0.0, high: high * HEADROOM, is_logarithmic: false },
            None => Self { low: 0.0, high: 1.0, is_logarithmic: false },
        }
    }

    /// Position of a value, 0 to 1.
    fn at(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        share.clamp(0.0, 1.0)
    }
}

/// The chart.
pub(super) fn picture(levels: &Levels, label: &str) -> Markup {
    html! {
        div.levels role="img" aria-label=(plain(label)) {
            @for one in &levels.groups { (group(one)) }
        }
    }
}

fn group(group: &LevelGroup) -> Markup {
    let axis = Axis::of(group);
    let mut right = f64::NEG_INFINITY;
    let ticks: Vec<(f64, &String, bool)> = group
        .ticks
        .iter()
        .filter(|(value, _)| (axis.low..=axis.high).contains(value))
        .map(|(value, words)| {
            let at = axis.at(*value);
            let is_labelled = at >= right + LABELS_APART;
            if is_labelled {
                right = at;
            }
            (at, words, is_labelled)
        })
        .collect();
    html! {
        div.level-group {
            p.level-title { b { (plain(&group.title)) } " " span { "(" (group.note) @if group.is_logarithmic { ", logarithmic axis" } ")" } }
            @for one in &group.bars { (bar(one, &axis, &ticks)) }
            div.level.axis {
                p.name {}
                div.track { @for (at, words, is_labelled) in &ticks { @if *is_labelled {
                    span.tick.first[*at < 0.05].last[*at > 0.85] style={ "left:" (percent(*at)) } { (words) }
                } } }
                p.value {}
            }
        }
    }
}

fn bar(level: &Level, axis: &Axis, ticks: &[(f64, &String, bool)]) -> Markup {
    let arm = level.arm % 6;
    html! {
        div.level style={ "--arm: var(--arm-" (arm) "); --arm-text: var(--arm-" (arm) "-text)" } {
            p.name { (plain(&level.name)) }
            div.track {
                @for (at, ..) in ticks { i.rule style={ "left:" (percent(*at)) } {} }
                @if let Some(value) = level.value {
                    @if axis.is_logarithmic { i.dot.hollow[level.arm == 0] style={ "left:" (percent(axis.at(value))) } {} }
                    @else { i.bar.hollow[level.arm == 0] style={ "width:" (percent(axis.at(value))) } {} }
                }
                @if let Some((low, high)) = level.whiskers {
                    @let (from, to) = (axis.at(low), axis.at(high));
                    i.whiskers style={ "left:" (percent(from)) ";width:" (percent(to - from)) } {}
                }
                @if let Some((low, high)) = level.range {
                    @let (from, to) = (axis.at(low), axis.at(high));
                    i.range.quartiles[level.whiskers.is_some()] style={ "left:" (percent(from)) ";width:" (percent(to - from)) } {}
                }
            }
            p.value {
                b { (plain(&level.label)) } " " span { (plain(&level.detail)) }
                @if !level.remark.is_empty() { " " span.remark { (level.remark) } }
            }
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(arm: usize, value: f64, range: (f64, f64)) -> Level {
        Level {
            arm,
            name: format!("a{arm}"),
            value: Some(value),
            range: Some(range),
            whiskers: None,
            label: String::new(),
            detail: String::new(),
            extremes: String::new(),
            remark: "",
        }
    }

    fn drawn(is_logarithmic: bool) -> String {
        let bars = vec![level(0, 1.0, (0.9, 1.1)), level(1, 100.0, (50.0, 150.0))];
        let ticks = [1.0, 10.0, 100.0].map(|tick| (tick, tick.to_string())).to_vec();
        let group = LevelGroup { title: "t".into(), note: "n".into(), is_logarithmic, ticks, bars };
        picture(&Levels { groups: vec![group] }, "words").into_string()
    }

    #[test]
    fn bar_begins_at_zero_and_a_logarithmic_axis_has_dots() {
        let (linear, logarithmic) = (drawn(false), drawn(true));
        assert_eq!((linear.matches("class=\"bar").count(), linear.matches("class=\"dot").count()), (2, 0));
        assert_eq!(
            (logarithmic.matches("class=\"bar").count(), logarithmic.matches("class=\"dot").count()),
            (0, 2)
        );
        // 100 of 156: the longest interval and the room beyond it.
        assert!(linear.contains("width:64.10%"), "{linear}");
    }

    #[test]
    fn whiskers_make_the_interval_a_box_and_belong_to_the_axis() {
        let bars = vec![Level { whiskers: Some((0.5, 200.0)), ..level(0, 100.0, (50.0, 150.0)) }];
        let ticks = vec![(0.0, "0".to_owned())];
        let group = LevelGroup { title: "t".into(), note: "n".into(), is_logarithmic: false, ticks, bars };
        let page = picture(&Levels { groups: vec![group] }, "words").into_string();
        assert!(page.contains("class=\"range quartiles\""), "{page}");
        // 0.5 and 200 of 208: the maximum and the room beyond it.
        assert!(page.contains("class=\"whiskers\" style=\"left:0.24%;width:95.91%\""), "{page}");
        assert!(!drawn(false).contains("quartiles") && !drawn(false).contains("whiskers"));
    }

    #[test]
    fn whisker_far_from_the_medians_does_not_stretch_a_logarithmic_axis() {
        let first_dot = |min: f64| {
            let whiskers = Some((min, 150.0));
            let bars = vec![level(0, 1.0, (0.9, 1.1)), Level { whiskers, ..level(1, 100.0, (50.0, 150.0)) }];
            let ticks = vec![(1.0, "1".to_owned())];
            let group = LevelGroup { title: "t".into(), note: "n".into(), is_logarithmic: true, ticks, bars };
            let page = picture(&Levels { groups: vec![group] }, "words").into_string();
            let (_, style) = page.split_once("<i class=\"dot hollow\" style=\"left:").unwrap();
            let is_cut = page.contains("class=\"whiskers\" style=\"left:0.00%");
            (style[..style.find('%').unwrap()].to_owned(), is_cut)
        };
        // From 0.6 to 225, as without whiskers: the whisker ends at the axis.
        assert_eq!(first_dot(1e-6), ("8.62".to_owned(), true));
        // A near one belongs to it: 1 of 0.0667 to 225.
        assert_eq!(first_dot(0.1), ("33.33".to_owned(), false));
    }

    #[test]
    fn labels_of_an_axis_that_would_touch_are_left_out() {
        // On the linear axis 1 and 10 of 156 are side by side.
        assert_eq!(drawn(false).matches("<span class=\"tick").count(), 2);
        assert_eq!(drawn(true).matches("<span class=\"tick").count(), 3);
    }
}
