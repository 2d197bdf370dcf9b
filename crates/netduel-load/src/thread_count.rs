//! How many threads flows and connections share. Starts none.
use netduel_sys::affinity;

/// Threads of each direction: one for each core that the plan pins to, or else that the process may use. Flow `i` belongs to
/// thread `i mod threads`, so that with pins flow `i` runs on core `i mod pins`.
pub(crate) fn of(flows: usize, pins: &[u16]) -> usize {
    // Without knowing better every flow has its own, as many as a machine may have cores.
    let cores = || affinity::allowed().map_or(flows, |cores| cores.len());
    let cores = if pins.is_empty() { cores() } else { pins.len() };
    flows.min(cores).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_share_the_cores_that_there_are() {
        let cores = affinity::allowed().unwrap().len();
        assert_eq!(of(1, &[]), 1);
        assert_eq!(of(10_000, &[]), cores);
        assert_eq!((of(10_000, &[0, 0, 0]), of(2, &[0, 0, 0]), of(5, &[0])), (3, 2, 1));
    }
}
