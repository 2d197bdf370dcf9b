//! The order of trials: blocks of every arm and workload once, each in random order from a seed. Pure.
//!
//! The order of a seed is stable for ever, because a resumed run relies on it: the generator (ChaCha8) and the shuffle
//! (Fisher-Yates, below) are fixed, and a golden test holds the result.
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::Slot;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The slots of one block in their order. Blocks are independent: any block can be computed without those before it.
pub fn block(plan: &ResolvedPlan, seed: u64, block: u32) -> Vec<Slot> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(u64::from(block));
    let mut slots: Vec<Slot> = plan
        .arms
        .iter()
        .flat_map(|arm| plan.workloads.iter().map(move |workload| (arm, workload)))
        .map(|(arm, workload)| Slot { block, position: 0, arm: arm.name.clone(), workload: workload.clone() })
        .collect();
    for last in (1..slots.len()).rev() {
        slots.swap(last, below(&mut generator, last as u32 + 1) as usize);
    }
    if plan.has_provider_treatments() {
        // Switching a resource of the provider takes from seconds to minutes: the trials of an arm follow one another. The shuffle above
        // gives the arms the order of their first slots, which is as random.
        let mut arms: Vec<_> = Vec::new();
        for slot in &slots {
            if !arms.contains(&slot.arm) {
                arms.push(slot.arm.clone());
            }
        }
        slots.sort_by_key(|slot| arms.iter().position(|arm| *arm == slot.arm));
    }
    for (position, slot) in slots.iter_mut().enumerate() {
        slot.position = position as u32;
    }
    slots
}

/// A uniform number below `bound`, by rejection sampling.
fn below(generator: &mut ChaCha8Rng, bound: u32) -> u32 {
    let limit = u32::MAX - u32::MAX % bound;
    loop {
        let draw = generator.next_u32();
        if draw < limit {
            return draw % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn plan() -> ResolvedPlan {
        let text = include_str!("../../../plans/demo.toml");
        netduel_model::plan::parse(text, "plans/demo.toml").unwrap()
    }

    #[test]
    fn block_contains_every_arm_and_workload_once() {
        let plan = plan();
        for block_number in 0..200 {
            let slots = block(&plan, 7, block_number);
            let different: BTreeSet<_> = slots.iter().map(|slot| (&slot.arm, &slot.workload)).collect();
            assert_eq!((slots.len(), different.len()), (4, 4));
            assert!(slots.iter().enumerate().all(|(position, slot)| slot.position as usize == position));
            assert!(slots.iter().all(|slot| slot.block == block_number));
        }
    }

    #[test]
    fn order_of_a_seed_never_changes() {
        let words = |block_number| {
            let slots = block(&plan(), 42, block_number);
            slots.iter().map(|slot| format!("{}/{}", slot.workload, slot.arm)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(0), GOLDEN[0]);
        assert_eq!(words(1), GOLDEN[1]);
        assert_eq!(words(9_999), GOLDEN[2]);
    }

    /// Orders of seed 42. A change here breaks the resuming of stored runs.
    const GOLDEN: [&str; 3] = [
        "requests/accelerated stream/accelerated stream/synthetic requests/synthetic",
        "requests/accelerated requests/synthetic stream/accelerated stream/synthetic",
        "stream/accelerated requests/synthetic stream/synthetic requests/accelerated",
    ];

    #[test]
    fn every_slot_is_equally_frequent_at_every_position() {
        let plan = plan();
        let mut counts: BTreeMap<(String, u32), u32> = BTreeMap::new();
        let blocks = 10_000;
        for block_number in 0..blocks {
            for slot in block(&plan, 3, block_number) {
                *counts.entry((format!("{}/{}", slot.workload, slot.arm), slot.position)).or_default() += 1;
            }
        }
        // Binomial with p = 1/4: one standard error is 43; 6 of them are beyond any reasonable chance.
        let expected = f64::from(blocks) / 4.0;
        for (slot, count) in counts {
            assert!((f64::from(count) - expected).abs() < 6.0 * 43.3, "{slot:?}: {count}");
        }
    }

    #[test]
    fn first_slots_of_successive_blocks_are_independent() {
        let plan = plan();
        let first = |block_number| {
            let slot = block(&plan, 11, block_number).swap_remove(0);
            (slot.arm, slot.workload)
        };
        let blocks = 10_000;
        let mut counts: BTreeMap<_, u32> = BTreeMap::new();
        for block_number in 0..blocks {
            *counts.entry((first(block_number), first(block_number + 1))).or_default() += 1;
        }
        // Sixteen pairs, each with p = 1/16: one standard error is 24.2.
        assert_eq!(counts.len(), 16);
        for (pair, count) in counts {
            assert!((f64::from(count) - f64::from(blocks) / 16.0).abs() < 6.0 * 24.2, "{pair:?}: {count}");
        }
    }
}
