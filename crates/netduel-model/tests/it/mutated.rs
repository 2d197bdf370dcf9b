//! Whatever is done to a plan, reading it ends with a plan or with problems that can be printed, never with a panic.
use proptest::prelude::*;

use netduel_model::plan::parse;

const SEEDS: [&str; 5] = [
    include_str!("../../../../plans/demo.toml"),
    include_str!("../../../../plans/aa.toml"),
    include_str!("../../../../plans/streams.toml"),
    include_str!("../../../../plans/families.toml"),
    include_str!("../../../../plans/offloads.toml"),
];

/// Pieces that are put into plans: values of other types, limits, broken syntax, keys from elsewhere.
const PIECES: [&str; 27] = [
    "0",
    "-1",
    "99999999999999999999999999",
    "1e400",
    "nan",
    "\"\"",
    "\"0 s\"",
    "\"0 %\"",
    "\"10Gb\"",
    "[]",
    "{}",
    "[[arms]]\n",
    "[[workloads]]\n",
    "[lab]\n",
    "[hosts.x]\n",
    "\"ä🦀\" = 1\n",
    "true",
    "1979-05-27T07:32:00Z",
    "'",
    "\"\"\"",
    "\0",
    "\u{feff}",
    "set = { family = \"ipv6\" }\n",
    "size = \"1 TB\"\n",
    "a.b.c = 1\n",
    "aa = true\n",
    "request_rate = \"1 /s\"\n",
];

fn assert_is_judged(text: &str) -> Result<(), TestCaseError> {
    match parse(text, "plan.toml") {
        Ok(plan) => {
            prop_assert!(plan.arms.len() >= 2 && !plan.workloads.is_empty() && plan.baseline().is_some());
            for arm in &plan.arms {
                prop_assert!(plan.hosts.contains_key(&arm.pair.client));
                prop_assert!(plan.hosts.contains_key(&arm.pair.server));
                prop_assert_eq!(arm.workloads.len(), plan.workloads.len());
                for workload in &arm.workloads {
                    let timing = workload.timing;
                    prop_assert!(timing.warmup.0 + timing.cooldown.0 < timing.duration.0);
                }
            }
        }
        Err(errors) => {
            prop_assert!(!errors.problems.is_empty());
            let lines = text.split('\n').count();
            for problem in &errors.problems {
                prop_assert!((1..=lines).contains(&problem.line), "{} of {lines}", problem.line);
                prop_assert!(!problem.wrong.is_empty() && !problem.allowed.is_empty());
            }
            prop_assert!(errors.to_string().starts_with("plan.toml:"));
        }
    }
    Ok(())
}

/// A place between two characters.
fn boundary(text: &str, share: f64) -> usize {
    let mut place = (text.len() as f64 * share) as usize;
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    place
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_with_pieces_cut_out_and_put_in_is_judged(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((0.0..1.0f64, 0usize..40, 0..PIECES.len()), 1..6),
    ) {
        let mut text = SEEDS[seed].to_owned();
        for (share, cut, piece) in changes {
            let start = boundary(&text, share);
            let mut end = (start + cut).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.replace_range(start..end.max(start), PIECES[piece]);
        }
        assert_is_judged(&text)?;
    }

    #[test]
    fn a_plan_with_another_value_behind_a_key_is_judged(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len()), 1..4),
    ) {
        let mut lines: Vec<String> = SEEDS[seed].lines().map(str::to_owned).collect();
        for (index, piece) in changes {
            let line = index.index(lines.len());
            let piece = PIECES[piece];
            let changed = match lines[line].split_once(" = ") {
                Some((key, _)) => format!("{key} = {piece}"),
                None => piece.to_owned(),
            };
            lines[line] = changed;
        }
        assert_is_judged(&lines.join("\n"))?;
    }

    #[test]
    fn any_text_is_judged(text in ".{0,200}") {
        assert_is_judged(&text)?;
    }
}
