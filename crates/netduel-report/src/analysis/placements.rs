//! Cores that the ends selected for their threads, over the trials of an arm.
use netduel_model::observation::Placement;
use netduel_model::trial::Trial;
use netduel_model::workload::Role;

/// A placement of an end, and the number of valid trials that used it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The end.
    pub role: Role,
    /// The cores and the reason.
    pub placement: Placement,
    /// Number of valid trials.
    pub trials: u32,
}

/// The placements of both ends, in order of first use.
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
