//! Where the resources of a run on a bed are, and the states of its NICs that are recorded: those before a resumed run, and those of the bed file. A
//! NIC whose earlier undo was lost, with the record of a killed run, has another state now. Nothing is changed here.
use std::collections::BTreeMap;

use netduel_azure::command::in_subscription;
use netduel_model::bed::shutdown::ShutdownTime;

use super::state::State;

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
    pub(super) fn original(&self, found: &State) -> State {
        self.recorded(&self.before_run, found).unwrap_or_else(|| found.clone())
    }

    /// What the user should know of the state to which a resource returns; `None` where it is the present one and that of the bed file, or nothing
    /// is recorded.
    pub(super) fn doubt(&self, found: &State, original: &State) -> Option<String> {
        let now = found.words();
        if !original.is(found) {
            return Some(format!(
                "warning: {now}: an earlier part of the run left it so, and it returns to its original state"
            ));
        }
        let deployed = self.recorded(&self.deployed, found).filter(|deployed| !deployed.is(original))?;
        let switch = self.command(&deployed.switch()?);
        Some(format!(
            "warning: {now}: the bed was deployed with the other state, and an earlier run may have left this one, to which the run returns \
             it; `{switch}` returns it to the state of the bed"
        ))
    }

    /// The recorded state of a NIC in this group that was found in another or the same state.
    fn recorded(&self, states: &BTreeMap<String, bool>, found: &State) -> Option<State> {
        let State::Nic { place, nic, .. } = found else { return None };
        let is_own = self.group.as_ref().is_some_and(|group| group.eq_ignore_ascii_case(&place.group));
        let accelerated = *states.get(nic).filter(|_| is_own)?;
        Some(State::Nic { place: place.clone(), nic: nic.clone(), accelerated })
    }
}

#[cfg(test)]
mod tests {
    use netduel_azure::resource::Place;

    use super::*;

    fn nic(group: &str, accelerated: bool) -> State {
        let place = Place { subscription: None, group: group.to_owned() };
        State::Nic { place, nic: "vm1-test".to_owned(), accelerated }
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
        for (before_run, original) in [(None, true), (Some(true), true), (Some(false), false)] {
            let home = home(before_run, None);
            // Azure changes the letters of a group in ids.
            assert_eq!(home.original(&nic("NETDUEL-X", true)), nic("NETDUEL-X", original));
            assert_eq!(home.original(&nic("web", true)), nic("web", true));
            let place = Place { subscription: None, group: "netduel-x".to_owned() };
            let vm = State::Placement { place, vm: "vm1-test".to_owned(), group: None };
            assert_eq!(home.original(&vm), vm);
        }
    }

    #[test]
    fn state_that_an_earlier_run_may_have_left_is_named_with_the_way_back() {
        let [on, off] = [true, false].map(|accelerated| nic("netduel-x", accelerated));
        let resumed = home(Some(false), Some(false)).doubt(&on, &off).expect("another state");
        assert!(resumed.contains("vm1-test on: an earlier part of the run left it so"), "{resumed}");
        let left = home(None, Some(false)).doubt(&on, &on).expect("not as deployed");
        let switch = "--resource-group netduel-x --name vm1-test --accelerated-networking false` returns";
        assert!(left.contains(switch), "{left}");
        assert_eq!(home(None, Some(true)).doubt(&on, &on), None);
        assert_eq!(home(None, None).doubt(&on, &on), None);
    }
}
