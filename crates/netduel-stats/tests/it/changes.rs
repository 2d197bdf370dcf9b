//! Error rates of change points: how often a history without a change has one, and how often a change is found.
use netduel_stats::change::changes;

use crate::chance::{Chance, Shape, margin, share};

/// The level of the tests.
const LEVEL: f64 = 0.05;
/// Histories of each kind.
const HISTORIES: u32 = 1000;

/// Whether a history has any change.
fn has_change(values: &[f64]) -> bool {
    !changes(values, LEVEL).is_empty()
}

#[test]
fn history_without_a_change_has_one_at_the_rate_of_the_level() {
    let mut chance = Chance::new(20_261_125);
    let error = margin(LEVEL, HISTORIES);
    for shape in Shape::ALL {
        for runs in [8, 20, 60] {
            let false_alarms = share(HISTORIES, || has_change(&chance.series(shape, runs)));
            assert!(false_alarms <= LEVEL + error, "{shape:?}, {runs} runs: {false_alarms}");
            // A test that never fires would pass the line above. With 8 values few orders are so clear.
            assert!(runs == 8 || false_alarms >= LEVEL - error, "{shape:?}, {runs} runs: {false_alarms}");
        }
    }
    let rounded = |values: Vec<f64>| values.iter().map(|value| (value * 1.5).round()).collect::<Vec<_>>();
    let tied = share(HISTORIES, || has_change(&rounded(chance.series(Shape::Normal, 20))));
    assert!(tied <= LEVEL + error, "values with ties: {tied}");
}

#[test]
fn loss_of_a_tenth_is_found_beside_it_within_a_few_runs() {
    let mut chance = Chance::new(7);
    // Runs differ by 3 %; the last four of 20 have a tenth less.
    let found = share(HISTORIES, || {
        let noise = chance.series(Shape::Normal, 20);
        let level = |run: usize| if run < 16 { 100.0 } else { 90.0 };
        let values: Vec<f64> =
            noise.iter().enumerate().map(|(run, own)| level(run) * (1.0 + 0.03 * own)).collect();
        changes(&values, LEVEL).iter().any(|change| change.at.abs_diff(16) <= 1)
    });
    assert!(found >= 0.8, "{found}");
}

#[test]
fn real_change_does_not_add_false_ones_beyond_the_level() {
    let mut chance = Chance::new(11);
    let more = share(HISTORIES, || {
        let noise = chance.series(Shape::Normal, 40);
        let values: Vec<f64> =
            noise.iter().enumerate().map(|(run, own)| own + if run < 20 { 0.0 } else { 50.0 }).collect();
        changes(&values, LEVEL).len() > 1
    });
    assert!(more <= LEVEL + margin(LEVEL, HISTORIES), "{more}");
}
