//! The cores that ends chose for their threads, over the trials of an arm.
use netduel_model::observation::Placement;
use netduel_model::trial::Trial;
use netduel_model::workload::Role;

/// A choice of an end, and in how many valid trials it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Which end.
    pub role: Role,
    /// Cores, and why.
    pub placement: Placement,
    /// Valid trials.
    pub trials: u32,
}

/// The choices of both ends in the order in which they were first made.
pub(super) fn of(trials: &[&Trial]) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    for role in [Role::Client, Role::Server] {
        for trial in trials {
            let Some(placement) = trial.end(role).and_then(|end| end.observation.placement.as_ref()) else {
                continue;
            };
            match placed.iter_mut().find(|seen| seen.role == role && seen.placement == *placement) {
                Some(seen) => seen.trials += 1,
                None => placed.push(Placed { role, placement: placement.clone(), trials: 1 }),
            }
        }
    }
    placed
}
