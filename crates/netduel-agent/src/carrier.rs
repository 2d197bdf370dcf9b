//! Carrier of interfaces that a driver restarts, as for an MTU or an XDP program. Changes nothing.
use std::time::Duration;

use netduel_host::{HostError, LinkState, link_states, wait_for_links};

/// The index of the interface with this name, if it has carrier now.
pub(crate) fn interface_with_carrier(name: &str) -> Option<u32> {
    let links = link_states().ok()?;
    let link = links.into_iter().find(|link| link.name == name)?;
    (link.carrier == Some(true)).then_some(link.index)
}

/// Waits until interfaces that a driver restarted have carrier again: traffic would begin before it. Returns the names of those that have
/// none when the time is over. One that is gone, or that was set down, is not waited for.
///
/// # Errors
/// When links cannot be listed.
pub(crate) fn without_carrier(indices: &[u32], within: Duration) -> Result<Vec<String>, HostError> {
    let mut without = Vec::new();
    if indices.is_empty() {
        return Ok(without);
    }
    wait_for_links(within, |links| {
        let waits =
            |link: &&LinkState| indices.contains(&link.index) && link.up && link.carrier == Some(false);
        without = links.iter().filter(waits).map(|link| link.name.clone()).collect();
        without.is_empty()
    })?;
    Ok(without)
}
