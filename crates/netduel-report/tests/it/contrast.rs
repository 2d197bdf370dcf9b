//! Contrast of the style sheets (WCAG 2.2, success criterion 1.4.11), computed from the sheets themselves: what a rule paints is seen on the
//! light and on the dark page, by its fill or by its outline. `look` checks the marks of plots and all texts in a browser.
use std::collections::{BTreeMap, BTreeSet};

use netduel_report::document::accent::contrast;

const SHEETS: [&str; 2] = [include_str!("../../assets/style.css"), include_str!("../../assets/paper.css")];

/// Least contrast of a mark with what is beside it.
const LEAST: f64 = 3.0;

/// Arms that have a colour of their own.
const ARMS: usize = 6;

/// What a reader can do without, with the reason. Each other rule paints something that has a meaning.
const DECORATIONS: [(&str, &str); 16] = [
    ("section", "the heading begins a section"),
    (".answer", "the name of the workload begins an answer"),
    (".paged .contents", "it is a list of its own"),
    (".paged .footnotes", "each has a number"),
    ("th", "cells of a row stand on one line"),
    ("td", "cells of a row stand on one line"),
    ("thead th", "the names of columns are bold"),
    (".verdicts .group th", "the name of the workload is bold"),
    (".verdicts tr", "a card begins with the name of its metric"),
    (":is(.wordy, .wide) tr", "a card begins with its longest or first cell"),
    (".scroll", "the table has a bar to scroll, and the keyboard reaches it"),
    ("pre", "code has a font of its own"),
    ("svg .band", "its ends are lines"),
    ("svg .grid", "the values are written"),
    (".level .rule", "the values are written"),
    ("figure.timeline line.rule", "the values are written"),
];

type Colour = [u8; 3];
/// The variables of a theme, for example `--arm-0`, with their values.
type Theme<'a> = BTreeMap<&'a str, &'a str>;

/// A rule: its selectors, and its declarations as property and value.
struct Rule<'a> {
    selectors: Vec<&'a str>,
    declarations: Vec<(&'a str, &'a str)>,
}

fn without_comments(sheet: &str) -> String {
    sheet.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect()
}

/// The rules of a sheet without comments, those of media queries among them.
fn rules(sheet: &str) -> Vec<Rule<'_>> {
    let (mut rules, mut rest) = (Vec::new(), sheet);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let prelude = before.rsplit(';').next().unwrap_or(before).trim();
        if rest[at..].starts_with('}') || prelude.starts_with('@') {
            rest = after;
            continue;
        }
        let (body, after) = after.split_once('}').expect("the end of a rule");
        let pairs = body.split(';').filter_map(|one| one.split_once(':'));
        let declarations = pairs.map(|(property, value)| (property.trim(), value.trim())).collect();
        rules.push(Rule { selectors: selectors(prelude), declarations });
        rest = after;
    }
    rules
}

/// Commas within parentheses belong to a selector.
fn selectors(prelude: &str) -> Vec<&str> {
    let mut depth = 0;
    let separates = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    };
    prelude.split(separates).map(str::trim).collect()
}

/// The light theme and the dark one, which changes some values of the light one.
fn themes<'a>(rules: &[Rule<'a>]) -> [Theme<'a>; 2] {
    let with_paper = |rule: &&Rule<'a>| rule.declarations.iter().any(|(name, _)| *name == "--paper");
    let roots: Vec<Theme<'a>> = rules
        .iter()
        .filter(with_paper)
        .map(|rule| rule.declarations.iter().copied().filter(|(name, _)| name.starts_with("--")).collect())
        .collect();
    let [light, changed] = <[Theme<'a>; 2]>::try_from(roots).expect("two themes");
    let mut dark = light.clone();
    dark.extend(changed);
    [light, dark]
}

/// The value of a variable; `None` for one that is no colour.
fn colour(theme: &Theme<'_>, name: &str) -> Option<Colour> {
    let value = theme.get(name).unwrap_or_else(|| panic!("no variable {name}"));
    let number = u32::from_str_radix(value.strip_prefix('#')?, 16).expect("six hexadecimal digits");
    let [_, red, green, blue] = number.to_be_bytes();
    Some([red, green, blue])
}

fn known(theme: &Theme<'_>, name: &str) -> Colour {
    colour(theme, name).unwrap_or_else(|| panic!("{name} is no colour"))
}

/// So much of a colour on another.
fn mixed(one: Colour, share: f64, below: Colour) -> Colour {
    std::array::from_fn(|part| {
        (f64::from(one[part]) * share + f64::from(below[part]) * (1.0 - share)).round() as u8
    })
}

/// The colours that a value paints on the page.
fn colours(value: &str, theme: &Theme<'_>) -> Vec<Colour> {
    assert!(!value.contains('#'), "{value}: colours stand in the themes");
    let names = || value.split("var(").skip(1).filter_map(|rest| rest.split(')').next());
    if let Some((_, mixture)) = value.split_once("color-mix(in srgb, ") {
        let (first, below) = mixture.split_once("%, ").expect("a share");
        // What shines through is the page.
        assert!(below.starts_with("transparent") || below.starts_with("var(--paper)"), "{value}");
        let share: f64 = first.rsplit(' ').next().and_then(|share| share.parse().ok()).expect("a share");
        let name = names().next().expect("a variable");
        return vec![mixed(known(theme, name), share / 100.0, known(theme, "--paper"))];
    }
    names().filter_map(|name| colour(theme, name)).collect()
}

/// Whether a property paints a mark. Texts have their own least contrast.
fn paints(property: &str) -> bool {
    let first = property.split('-').next().unwrap_or(property);
    ["fill", "stroke", "background", "border", "outline"].contains(&first)
}

/// The best contrast with the page of each selector that paints in another colour than that of the page.
fn contrasts<'a>(rules: &[Rule<'a>], theme: &Theme<'_>) -> BTreeMap<&'a str, f64> {
    let mut declarations: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for rule in rules {
        for selector in rule.selectors.iter().copied().filter(|selector| *selector != ":root") {
            declarations.entry(selector).or_default().extend(&rule.declarations);
        }
    }
    let paper = known(theme, "--paper");
    let best = |own: Vec<(&str, &str)>| {
        let opacity = own.iter().find(|(property, _)| *property == "opacity");
        let opacity: f64 = opacity.map_or(1.0, |(_, value)| value.parse().expect("a number"));
        let painted = own.iter().filter(|(property, _)| paints(property));
        let painted = painted.flat_map(|(_, value)| colours(value, theme)).filter(|one| *one != paper);
        painted.map(|one| contrast(mixed(one, opacity, paper), paper)).reduce(f64::max)
    };
    declarations.into_iter().filter_map(|(selector, own)| Some((selector, best(own)?))).collect()
}

/// The themes, with the variables that a bar has for its arm.
fn themes_by_arm<'a>(rules: &[Rule<'a>]) -> Vec<Theme<'a>> {
    let of_arm = |theme: &Theme<'a>, arm: usize| {
        let own = |suffix: &str| theme[format!("--arm-{arm}{suffix}").as_str()];
        let mut theme = theme.clone();
        theme.extend([("--arm", own("")), ("--arm-text", own("-text"))]);
        theme
    };
    themes(rules).iter().flat_map(|theme| (0..ARMS).map(move |arm| of_arm(theme, arm))).collect()
}

#[test]
fn every_rule_paints_something_that_is_seen_on_both_pages() {
    let sheet = without_comments(&SHEETS.concat());
    let rules = rules(&sheet);
    let mut faint: BTreeMap<&str, f64> = BTreeMap::new();
    for theme in themes_by_arm(&rules) {
        let found = contrasts(&rules, &theme);
        // Charts and drawings are among them: a sheet that is not understood has no success.
        let known = [".level .bar", "svg .margin", ".topology .cell", ".fill-0", "figure.steps .slow"];
        assert!(known.iter().all(|selector| found.contains_key(selector)), "{found:?}");
        for (selector, contrast) in found.into_iter().filter(|(_, contrast)| *contrast < LEAST) {
            let least = faint.entry(selector).or_insert(contrast);
            *least = least.min(contrast);
        }
    }
    let decorations: BTreeSet<&str> = DECORATIONS.iter().map(|(selector, _)| *selector).collect();
    // Also none is named that is seen, or does not exist.
    assert_eq!(faint.keys().copied().collect::<BTreeSet<_>>(), decorations, "{faint:.2?}");
}

#[test]
fn lines_of_arms_are_seen_on_both_pages() {
    let sheet = without_comments(SHEETS[0]);
    for theme in themes(&rules(&sheet)) {
        for arm in 0..ARMS {
            let found = contrast(known(&theme, &format!("--arm-{arm}")), known(&theme, "--paper"));
            assert!(found >= LEAST, "arm {arm} on {}: {found:.2}", theme["--paper"]);
        }
    }
}

#[test]
fn segments_of_a_bar_differ_in_their_fills_or_have_an_outline_between_them() {
    let sheet = without_comments(SHEETS[0]);
    let rules = rules(&sheet);
    for theme in themes(&rules) {
        let edge = known(&theme, "--edge");
        let mut fills: BTreeMap<&str, Colour> = BTreeMap::new();
        for rule in rules.iter().filter(|rule| rule.selectors[0].starts_with(".fill-")) {
            let background = rule.declarations.iter().find(|(property, _)| *property == "background");
            let plain = background.filter(|(_, value)| value.starts_with("var("));
            fills.extend(plain.map(|(_, value)| (rule.selectors[0], colours(value, &theme)[0])));
        }
        assert_eq!(fills.len(), 7, "{fills:?}");
        let is_outlined = |fill: Colour| contrast(fill, edge) >= LEAST;
        for (name, fill) in &fills {
            for (other_name, other) in fills.iter().filter(|(other, _)| *other != name) {
                let is_told = contrast(*fill, *other) >= LEAST || is_outlined(*fill) && is_outlined(*other);
                assert!(is_told, "{name} beside {other_name} on {}", theme["--paper"]);
            }
        }
    }
}
