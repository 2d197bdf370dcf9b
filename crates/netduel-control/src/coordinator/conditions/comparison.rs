//! Two descriptions of a host, and what differs between them in words. What counts is decided elsewhere.
use std::collections::BTreeMap;

use netduel_model::ids::HostName;
use netduel_model::plan::ResolvedPlan;
use netduel_model::snapshot::{HostSnapshot, Interface};

use super::used::Used;

/// A host of the plan at the start of the run and now.
pub(super) struct Comparison<'c> {
    pub(super) plan: &'c ResolvedPlan,
    pub(super) host: &'c HostName,
    /// The descriptions of all hosts at the start.
    pub(super) hosts: &'c BTreeMap<HostName, HostSnapshot>,
    pub(super) then: &'c HostSnapshot,
    pub(super) now: &'c HostSnapshot,
    /// Its interfaces that the plan used at the start.
    pub(super) used: Used,
}

impl<'c> Comparison<'c> {
    /// `None` for a host without a description at the start.
    pub(super) fn of(
        plan: &'c ResolvedPlan,
        host: &'c HostName,
        hosts: &'c BTreeMap<HostName, HostSnapshot>,
        now: &'c HostSnapshot,
    ) -> Option<Self> {
        let then = hosts.get(host)?;
        Some(Self { plan, host, hosts, then, now, used: Used::of(plan, host, hosts) })
    }

    /// The interface that one of the earlier description is now. A device that was removed and came back can have another name; it has its
    /// place on the bus, or its address.
    pub(super) fn same_device(&self, old: &Interface) -> Option<&'c Interface> {
        let (then, now) = (self.then, self.now);
        let same_name = now.interfaces.iter().find(|new| new.name == old.name);
        if same_name.is_some() {
            return same_name;
        }
        let has_new_name = |new: &&Interface| then.interfaces.iter().all(|known| known.name != new.name);
        let renamed: Vec<&Interface> = now.interfaces.iter().filter(has_new_name).collect();
        let has_its_place = |new: &&&Interface| {
            old.device.bus_address.is_some() && new.device.bus_address == old.device.bus_address
        };
        let has_its_address = |new: &&&Interface| {
            old.mac.is_some() && (&new.mac, &new.kind, &new.driver) == (&old.mac, &old.kind, &old.driver)
        };
        // Ports of a bond share their address: one of them must not stand for all that are gone.
        let is_alike =
            |one: &&Interface| (&one.mac, &one.kind, &one.driver) == (&old.mac, &old.kind, &old.driver);
        let is_only = then.interfaces.iter().filter(is_alike).count() == 1;
        let by_address = || renamed.iter().find(has_its_address).filter(|_| is_only);
        renamed.iter().find(has_its_place).or_else(by_address).copied()
    }

    /// What an interface of the earlier description is called now; its name where it is gone.
    pub(super) fn name_now(&self, name: &str) -> String {
        let old = self.then.interfaces.iter().find(|interface| interface.name == name);
        let new = old.and_then(|old| self.same_device(old));
        new.map_or(name, |new| new.name.as_str()).to_owned()
    }
}

/// Differences in words, each with both values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Those that bear on results.
    pub(super) certain: Vec<String>,
    /// Those that are not known to concern the path of the test.
    pub(super) possible: Vec<String>,
}

impl Found {
    pub(super) fn is_empty(&self) -> bool {
        self.certain.is_empty() && self.possible.is_empty()
    }

    pub(super) fn append(&mut self, other: Self) {
        self.certain.extend(other.certain);
        self.possible.extend(other.possible);
    }

    pub(super) fn extend(&mut self, is_possible: bool, changes: Vec<String>) {
        if is_possible { self.possible.extend(changes) } else { self.certain.extend(changes) }
    }
}

/// Notes a value that differs. One that either description lacks is no difference: the host did not report it.
pub(super) fn note<T: PartialEq + std::fmt::Display>(
    changes: &mut Vec<String>,
    what: &str,
    old: Option<T>,
    new: Option<T>,
) {
    if let (Some(old), Some(new)) = (old, new)
        && old != new
    {
        changes.push(format!("{what} is {new} instead of {old}"));
    }
}
