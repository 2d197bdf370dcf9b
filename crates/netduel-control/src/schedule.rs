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
    for (position, slot) in slots.iter_mut().enumerate() {
        slot.position = position as u32;
    }
    slots
}

/// A number below `bound`, each equally likely: draws that would favour small numbers are thrown away.
fn below(generator: &mut ChaCha8Rng, bound: u32) -> u32 {
    let limit = u32::MAX - u32::MAX % bound;
    loop {
        let draw = generator.next_u32();
        if draw < limit {
            return draw % bound;
        }
    }
}
