//! Where the resources of a run on a bed are, and the states of its NICs that are recorded: those before a resumed run, and those of the bed file. A
//! NIC whose earlier undo was lost, as by a restart of this machine, has another state now. Nothing is changed here.
use std::collections::BTreeMap;

use netduel_azure::command::in_subscription;
use netduel_model::bed::shutdown::ShutdownTime;

use super::{Resource, State};

/// Where resources without a resource group of their own are.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// The subscription; the current one of `az` when absent.
    pub subscription: Option<String>,
    /// The subscription as the bed file or the command line names it, for the commands of messages.
    pub named: Option<String>,
    /// The resource group of the bed.
    pub group: Option<String>,
    /// The time of the daily shutdown of its VMs; absent without one.
    pub shutdown: Option<ShutdownTime>,
    /// Whether accelerated networking of the NICs in this group was on when the run began that is resumed, by name; empty for a new run.
    pub before_run: BTreeMap<String, bool>,
    /// The same as the bed was deployed; empty when its file is unknown.
    pub deployed: BTreeMap<String, bool>,
}

impl Home {
    /// A line of commands that a message proposes, as [`in_subscription`] writes it.
    pub fn command(&self, line: &str) -> String {
        in_subscription(line, self.named.as_deref())
    }

    /// The state to which a resource returns: as it was found, or before the run that is resumed.
    pub(super) fn original(&self, resource: &Resource, found: &State) -> State {
        self.recorded(&self.before_run, resource).unwrap_or_else(|| found.clone())
    }

    /// What the user should know of the state to which a resource returns; `None` where it is the present one and that of the bed file, or nothing
    /// is recorded.
    pub(super) fn doubt(&self, resource: &Resource, found: &State, original: &State) -> Option<String> {
        let now = resource.words(found);
        if !original.is(found) {
            return Some(format!(
                "warning: {now}: an earlier part of the run left it so, and it returns to its original state"
            ));
        }
        let deployed = self.recorded(&self.deployed, resource).filter(|deployed| !deployed.is(original))?;
        let switch = self.command(&resource.switch(&deployed)?);
        Some(format!(
            "warning: {now}: the bed was deployed with the other state, and an earlier run may have left this one, to which the run returns \
             it; `{switch}` returns it to the state of the bed"
        ))
    }

    /// A recorded state of a NIC in this group.
    fn recorded(&self, states: &BTreeMap<String, bool>, resource: &Resource) -> Option<State> {
        let Resource::Nic { place, nic } = resource else { return None };
        let is_own = self.group.as_ref().is_some_and(|group| group.eq_ignore_ascii_case(&place.group));
        states.get(nic).filter(|_| is_own).map(|on| State::Accelerated(*on))
    }
}

#[cfg(test)]
mod tests {
    use netduel_azure::resource::Place;

    use super::*;

    fn nic(group: &str) -> Resource {
        let place = Place { subscription: None, group: group.to_owned() };
        Resource::Nic { place, nic: "vm1-test".to_owned() }
    }

    fn home(before_run: Option<bool>, deployed: Option<bool>) -> Home {
        let state = |on: bool| ("vm1-test".to_owned(), on);
        Home {
            group: Some("netduel-x".to_owned()),
            before_run: before_run.map(state).into_iter().collect(),
            deployed: deployed.map(state).into_iter().collect(),
            ..Home::default()
        }
    }

    #[test]
    fn nic_of_a_resumed_run_returns_to_its_state_before_the_run() {
        let on = State::Accelerated(true);
        for (before_run, original) in [(None, true), (Some(true), true), (Some(false), false)] {
            let home = home(before_run, None);
            // Azure changes the letters of a group in ids.
            assert_eq!(home.original(&nic("NETDUEL-X"), &on), State::Accelerated(original));
            assert_eq!(home.original(&nic("web"), &on), on);
            let vm = Resource::Placement {
                place: Place { subscription: None, group: "netduel-x".to_owned() },
                vm: "vm1-test".to_owned(),
            };
            assert_eq!(home.original(&vm, &State::Placement(None)), State::Placement(None));
        }
    }

    #[test]
    fn state_that_an_earlier_run_may_have_left_is_named_with_the_way_back() {
        let [on, off] = [true, false].map(State::Accelerated);
        let nic = nic("netduel-x");
        let resumed = home(Some(false), Some(false)).doubt(&nic, &on, &off).expect("another state");
        assert!(resumed.contains("vm1-test on: an earlier part of the run left it so"), "{resumed}");
        let left = home(None, Some(false)).doubt(&nic, &on, &on).expect("not as deployed");
        let switch = "--resource-group netduel-x --name vm1-test --accelerated-networking false` returns";
        assert!(left.contains(switch), "{left}");
        assert_eq!(home(None, Some(true)).doubt(&nic, &on, &on), None);
        assert_eq!(home(None, None).doubt(&nic, &on, &on), None);
    }
}
