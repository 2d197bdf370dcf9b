//! Whether the interfaces that the plan uses are there, up and in their place: each can move the bytes to another path.
use netduel_model::snapshot::Interface;

use super::comparison::{Comparison, Found, note};
use super::used::{OPEN_VSWITCH, is_member, kind_above};

/// Kinds of interfaces whose ports stand in for each other: one without carrier may be idle. The carrier and speed of the interface itself show
/// what remains.
const AGGREGATES: [&str; 2] = ["bond", "team"];

/// Interfaces that the plan uses and that are gone, set down, without carrier or below another one, and interfaces that were added below
/// them. Empty where interfaces may come and go: none is known to be used, or the provider's treatments add and remove virtual functions,
/// whose path is verified when they do.
pub(super) fn moved(comparison: &Comparison<'_>) -> Found {
    let mut found = Found::default();
    if comparison.plan.has_provider_treatments() {
        return found;
    }
    let (then, now, used) = (comparison.then, comparison.now, &comparison.used);
    for old in then.interfaces.iter().filter(|old| used.contains(old)) {
        found.append(of_one(comparison, old));
    }
    let known: Vec<&Interface> =
        then.interfaces.iter().filter_map(|old| comparison.same_device(old)).collect();
    for new in now.interfaces.iter().filter(|new| is_member(new, &used.all, now)) {
        if known.iter().all(|known| known.name != new.name) {
            let master = new.master.as_deref().unwrap_or_default();
            let is_of_datapath = kind_above(new, now) == Some(OPEN_VSWITCH);
            found.extend(is_of_datapath, vec![format!("{} was added below {master}", new.name)]);
        }
    }
    found
}

fn of_one(comparison: &Comparison<'_>, old: &Interface) -> Found {
    let mut found = Found::default();
    let name = &old.name;
    let kind_above = kind_above(old, comparison.then);
    let is_beside = comparison.used.is_beside(old, comparison.then);
    // The datapath does not tell which of its ports are those of one bridge.
    let is_of_datapath = is_beside && kind_above == Some(OPEN_VSWITCH);
    let Some(new) = comparison.same_device(old) else {
        found.extend(is_of_datapath, vec![format!("{name} is gone")]);
        return found;
    };
    let mut states = Vec::new();
    let state = |is_up: bool| if is_up { "up" } else { "down" };
    note(&mut states, name, Some(state(old.up)), Some(state(new.up)));
    // An interface that is down has no carrier either.
    if old.up == new.up {
        let word = |is_on: bool| if is_on { "on" } else { "off" };
        let carrier = |interface: &Interface| interface.carrier.map(word);
        note(&mut states, &format!("carrier of {name}"), carrier(old), carrier(new));
    }
    let is_port = kind_above.is_some_and(|kind| AGGREGATES.contains(&kind));
    let may_be_idle = is_beside || (is_port && !comparison.used.named.contains(name));
    found.extend(may_be_idle, states);
    let mut places = Vec::new();
    let master = |interface: &Interface| interface.master.clone().unwrap_or_else(|| "none".to_owned());
    note(&mut places, &format!("interface above {name}"), Some(master(old)), Some(master(new)));
    found.extend(is_of_datapath, places);
    found
}

/// Whether an interface of the path was added anew.
pub(super) fn is_one_new(comparison: &Comparison<'_>) -> bool {
    let is_new = |old: &Interface| comparison.same_device(old).is_some_and(|new| new.index != old.index);
    let mut of_path = comparison.then.interfaces.iter().filter(|old| comparison.used.contains(old));
    of_path.any(is_new)
}
