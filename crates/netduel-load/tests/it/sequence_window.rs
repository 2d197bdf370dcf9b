//! The accounting of datagrams against a model with unlimited memory.
use std::collections::HashSet;

use netduel_load::{Arrival, SequenceWindow};
use proptest::prelude::*;

/// The distance within which duplicates are detected, as documented.
const WINDOW: u64 = 1 << 18;

#[derive(Default)]
struct Model {
    seen: HashSet<u64>,
    next: u64,
    unique: u64,
    duplicates: u64,
    reordered: u64,
    outside_window: u64,
}

impl Model {
    fn arrive(&mut self, number: u64) -> Arrival {
        if self.next > number && self.next - number > WINDOW {
            self.outside_window += 1;
            return Arrival::TooLate;
        }
        if !self.seen.insert(number) {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.unique += 1;
        if number >= self.next {
            self.next = number + 1;
            return Arrival::InOrder;
        }
        self.reordered += 1;
        Arrival::Reordered
    }
}

fn check(numbers: impl IntoIterator<Item = u64>) {
    let mut accounting = SequenceWindow::new();
    let mut model = Model::default();
    for number in numbers {
        assert_eq!(accounting.arrive(number), model.arrive(number), "number {number}");
    }
    assert_eq!(
        (accounting.unique(), accounting.duplicates(), accounting.reordered(), accounting.outside_window()),
        (model.unique, model.duplicates, model.reordered, model.outside_window)
    );
    assert_eq!(accounting.highest_plus_one(), model.next);
}

#[test]
fn edges_of_the_window_are_exact() {
    check([0, WINDOW, 0, 1, 1, WINDOW - 1, WINDOW, WINDOW + 1, 1, 2, 2]);
    check([5 * WINDOW, 4 * WINDOW, 4 * WINDOW + 1, 4 * WINDOW + 1, 0]);
    check([WINDOW - 1, 0, 2 * WINDOW - 1, WINDOW, WINDOW - 1]);
    check([63, 64, 0, 62, 63, 128, 127, 65]);
}

proptest! {
    #[test]
    fn near_numbers_match_the_model(numbers in prop::collection::vec(0u64..300, 0..400)) {
        check(numbers);
    }

    #[test]
    fn jumps_around_the_window_match_the_model(
        steps in prop::collection::vec((0u64..6, -3i64..=3), 0..200)
    ) {
        // Half windows and a few more: both edges are hit often.
        check(steps.into_iter().map(|(halves, near)| (halves * WINDOW / 2).saturating_add_signed(near)));
    }

    #[test]
    fn loss_duplicates_and_delays_match_the_model(
        fates in prop::collection::vec((0u8..10, 0usize..50), 1..500)
    ) {
        let mut arrivals = Vec::new();
        for (number, (fate, delay)) in fates.into_iter().enumerate() {
            let copies = match fate { 0 => 0, 1 => 2, _ => 1 };
            for copy in 0..copies {
                arrivals.push((number + delay * (copy + 1), number as u64));
            }
        }
        arrivals.sort_by_key(|arrival| arrival.0);
        check(arrivals.into_iter().map(|arrival| arrival.1));
    }
}
