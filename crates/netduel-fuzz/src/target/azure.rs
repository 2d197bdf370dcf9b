//! Output of `az`: answers and errors of Azure, with names and tags that others with access to the subscription chose.
use std::str::Lines;
use std::time::Duration;

use netduel_azure::az::cause::Cause;
use netduel_azure::az::{Az, CallError, shown};
use netduel_azure::deployment::{Subscription, groups, inventory, price, progress};
use netduel_azure::resource::{self, Place};
use netduel_model::bed::{self, Bed};

/// Longest text of a cause, characters: two texts of Azure that were shortened, and the sentence around them.
const CAUSE_LEN_MAX: usize = 2000;
const BED: &str = "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\n";

/// An `az` whose answers are the lines of an input. After the last the user interrupts it.
struct Answers<'t>(Lines<'t>);

impl Az for Answers<'_> {
    fn call(&mut self, words: &[&str], _limit: Duration) -> Result<String, CallError> {
        self.0.next().map(str::to_owned).ok_or_else(|| CallError::Interrupted { command: shown(words) })
    }

    fn pause(&mut self) -> bool {
        true
    }
}

/// Reads an input as what a failed call printed, and its lines as answers to what is asked of a bed and of a NIC.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    check_cause(&Cause::of_output(text, Some(1)));
    if let Ok(value) = serde_json::from_str(text) {
        check_cause(&Cause::of_error(&value));
    }
    let bed = bed::parse(BED, "bed.toml").expect("it is valid");
    // Each answer is a fact or an error; only a panic is a fault.
    let _ = price::of_vm(&mut Answers(text.lines()), &bed);
    let place = Place { subscription: None, group: "g".to_owned() };
    let _ = resource::nic(&mut Answers(text.lines()), &place, "n");
    let subscription = Subscription { id: "s".to_owned(), name: "s".to_owned(), named: None, user: None };
    let _ = progress::watch(&mut Answers(text.lines()), &bed, &subscription, &mut |_| ());
    check_groups(&bed, text, &subscription);
}

/// A cause of an output of any length is a text that a person reads.
fn check_cause(cause: &Cause) {
    let text = cause.to_string();
    assert!(!text.is_empty() && text.chars().count() <= CAUSE_LEN_MAX, "{text:?}");
}

/// Beds are found by their tags; each is looked up, and what others put into its group.
fn check_groups(bed: &Bed, text: &str, subscription: &Subscription) {
    let mut az = Answers(text.lines());
    let Ok(beds) = groups::list(&mut az, subscription) else { return };
    for (group, tags) in beds {
        if let Ok(found) = inventory::look_up(&mut az, &group, &tags, subscription) {
            assert!(found.bed.vms.len() >= found.states.len(), "a state without its VM");
        }
        let _ = groups::foreign(&mut az, &group, &bed.name, subscription);
    }
}
