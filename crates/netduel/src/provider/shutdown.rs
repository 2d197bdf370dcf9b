//! The daily shutdown of a bed that comes next when a run begins. Azure stops the VMs then, and no treatment or undo of the run starts one after it:
//! it would run, and cost money, until the shutdown of the next day.
use netduel_azure::resource::{Machine, is_past};
use netduel_control::coordinator::ProviderError;
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_sys::clock::realtime_ns;

/// The next daily shutdown of the VMs of a bed.
pub(super) struct NextShutdown {
    /// The resource group of the bed: other VMs have no shutdown that is known.
    group: String,
    time: ShutdownTime,
    /// Seconds since 1970-01-01T00:00:00Z.
    unix_s: u64,
}

impl NextShutdown {
    /// From now on, for the resource group of a bed and its time.
    pub(super) fn of((group, time): (&str, ShutdownTime)) -> Self {
        let unix_s = time.next_unix_s(realtime_ns() / 1_000_000_000);
        Self { group: group.to_owned(), time, unix_s }
    }

    /// That of a VM, seconds since 1970-01-01T00:00:00Z; `None` for a VM that is not of the bed.
    pub(super) fn unix_s_of(&self, machine: &Machine) -> Option<u64> {
        machine.place.group.eq_ignore_ascii_case(&self.group).then_some(self.unix_s)
    }

    /// Refuses a change that starts a VM after its shutdown. `words` are those of the change.
    pub(super) fn refuse(&self, words: &str, machine: &Machine) -> Result<(), ProviderError> {
        if !is_past(self.unix_s_of(machine)) {
            return Ok(());
        }
        Err(ProviderError::Failed(format!(
            "{words}: the daily shutdown of the bed at {} UTC has passed, and {} would run until the next one; begin the run earlier, or name \
             a later `shutdown` in the bed file and repeat `netduel azure up`",
            self.time, machine.name
        )))
    }

    /// A message about those of these VMs that are not started again; `None` without one.
    pub(super) fn not_started(&self, machines: &[Machine]) -> Option<String> {
        let past = machines.iter().filter(|machine| is_past(self.unix_s_of(machine)));
        let names: Vec<&str> = past.map(|machine| machine.name.as_str()).collect();
        (!names.is_empty()).then(|| {
            let (names, time) = (names.join(", "), self.time);
            format!("not started again: {names}; the daily shutdown of the bed at {time} UTC has passed")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use netduel_azure::resource::Place;

    use super::*;

    #[test]
    fn vm_of_the_bed_is_not_started_after_the_shutdown() {
        let machine = |group: &str| {
            let place = Place { subscription: None, group: group.to_owned() };
            Machine { place, name: "vm1".to_owned() }
        };
        // Azure changes the letters of a group in ids.
        let (own, other) = (machine("NETDUEL-X"), machine("web"));
        let mut next = NextShutdown::of(("netduel-x", ShutdownTime::DEFAULT));
        assert!(next.unix_s_of(&own).is_some_and(|unix_s| unix_s % 86_400 == 19 * 3600));
        assert_eq!(next.unix_s_of(&other), None);
        next.unix_s = u64::MAX;
        assert!(next.refuse("c", &own).is_ok() && next.not_started(from_ref(&own)).is_none());
        next.unix_s = 0;
        let error = next.refuse("vm1 in the proximity group near", &own).unwrap_err().to_string();
        assert!(error.contains("group near: the daily shutdown of the bed at 19:00 UTC has"), "{error}");
        let page = include_str!("../../../../docs/azure-errors.md");
        assert!(page.contains(&error), "docs/azure-errors.md lacks this text: {error}");
        assert!(next.refuse("c", &other).is_ok());
        let message = next.not_started(&[own, other]).unwrap();
        assert!(message.starts_with("not started again: vm1; "), "{message}");
    }
}
