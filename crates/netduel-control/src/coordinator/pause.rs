//! The user's pause between two trials: waits for its end, and ends one that lasts too long. It starts no trial.
use netduel_model::units::Nanos;

use super::surroundings::{Clock, Policy};
use super::timing::PAUSE_MAX_NS;

/// Time between two looks at whether a run is paused.
const LOOK: Nanos = Nanos::from_millis(100);

/// Waits while the user pauses the run: no longer than agents wait for a request. Returns how long, nanoseconds.
pub(super) fn wait(clock: &dyn Clock, policy: &mut dyn Policy) -> u64 {
    let started_ns = clock.now_ns();
    let waited_ns = || clock.now_ns().saturating_sub(started_ns);
    while policy.is_paused() && !clock.interrupted() {
        if waited_ns() >= PAUSE_MAX_NS {
            // A pause that stayed would hold up each later trial as long again.
            policy.pause_ended(Nanos(PAUSE_MAX_NS));
            break;
        }
        clock.wait(LOOK);
    }
    waited_ns()
}
