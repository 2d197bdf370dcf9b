//! Why a bed could not be created, watched or deleted.
use netduel_model::bed::money::Money;
use netduel_model::units::plural;

use super::resources::{Foreign, is_vm};
use crate::az::CallError;
use crate::az::cause::{Cause, Quota};

/// An error; its message says what failed, why, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// A call of `az` has no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// An `az` that is too old.
    #[error("`az` has version {found}, and netduel needs {needed} or newer; update it with `az upgrade`")]
    Version {
        /// Its version.
        found: String,
        /// The oldest that suffices.
        needed: String,
    },
    /// A group of the bed's name that netduel did not create.
    #[error("the resource group {group} exists and is not the bed {bed}: it lacks the tag netduel={bed}")]
    NotOurs {
        /// Name of the group.
        group: String,
        /// Name of the bed.
        bed: String,
    },
    /// Another user created the bed.
    #[error(
        "another user of the subscription created the bed {bed} (tag netduel-owner of its resource group)"
    )]
    OfOther {
        /// Name of the bed.
        bed: String,
    },
    /// The bed exists in another region.
    #[error(
        "the bed {bed} exists in {found}, and the file names {region}; delete it with `{down}`, or set region = \"{found}\""
    )]
    Region {
        /// Name of the bed.
        bed: String,
        /// Where it is.
        found: String,
        /// The region of the file.
        region: String,
        /// The command that deletes it.
        down: String,
    },
    /// The bed exists with another type.
    #[error(
        "the bed {bed} exists with the type {found}, and the file has {kind}; delete it with `{down}`, or set type = \"{found}\""
    )]
    Type {
        /// Name of the bed.
        bed: String,
        /// The type that it has.
        found: &'static str,
        /// The type of the file.
        kind: &'static str,
        /// The command that deletes it.
        down: String,
    },
    /// The bed has VMs that are not in its file. A deployment deletes none.
    #[error(
        "the bed {bed} has VMs that its file does not have: {}; they cost money, and its price does not count them; delete the bed with \
         `{down}`, and create it again",
        .vms.join(", ")
    )]
    Surplus {
        /// Name of the bed.
        bed: String,
        /// The VMs.
        vms: Vec<String>,
        /// The command that deletes the bed.
        down: String,
    },
    /// VMs have a daily shutdown, and the file has none. A deployment removes none.
    #[error(
        "the bed {bed} has a daily shutdown of {}, and Azure keeps it where the file has shutdown = \"off\"; remove it with `{command}` for \
         each, and repeat the command",
        .vms.join(", ")
    )]
    KeepsShutdown {
        /// Name of the bed.
        bed: String,
        /// The VMs.
        vms: Vec<String>,
        /// The command that removes that of one.
        command: String,
    },
    /// Azure is deleting the bed.
    #[error("Azure is deleting the bed {bed}; create it again when `{list}` does not show it")]
    BeingDeleted {
        /// Name of the bed.
        bed: String,
        /// The command that shows it until it is gone.
        list: String,
    },
    /// There is no such bed.
    #[error("there is no bed {bed} in the subscription {subscription}; `{list}` shows all")]
    NoBed {
        /// Name of the bed.
        bed: String,
        /// Name of the subscription.
        subscription: String,
        /// The command that shows all beds.
        list: String,
    },
    /// The group of the bed has resources that netduel did not create.
    #[error("the resource group {group} has {foreign}")]
    Foreign {
        /// Name of the group.
        group: String,
        /// The resources.
        foreign: Foreign,
    },
    /// The size is not offered.
    #[error(
        "Azure does not offer {size} in {place} to the subscription {subscription}: {reason}; choose another size, zone or region"
    )]
    NotOffered {
        /// The size.
        size: String,
        /// Region and zone.
        place: String,
        /// Name of the subscription.
        subscription: String,
        /// Why.
        reason: String,
    },
    /// The size has no accelerated networking there.
    #[error("Azure has no accelerated networking for {size} in {region}; {}", choose(.proposed))]
    NotAccelerated {
        /// The size.
        size: String,
        /// The region.
        region: String,
        /// Sizes of the table that have it.
        proposed: Vec<String>,
    },
    /// The size has fewer NICs than its page says.
    #[error("{size} has {} in {region}, and each VM of the bed has {needed}; {}", plural(*.most, "NIC"), choose(.proposed))]
    TooFewNics {
        /// The size.
        size: String,
        /// The region.
        region: String,
        /// What Azure says.
        most: u32,
        /// What the bed needs.
        needed: u32,
        /// Sizes of the table that have more.
        proposed: Vec<String>,
    },
    /// The quota is too small.
    #[error("{0}")]
    Quota(Quota),
    /// The bed costs more than its budget.
    #[error(
        "the bed costs {cost} {} ({price} an hour), and its budget is {budget}; raise `budget`, or choose an earlier shutdown or a smaller size",
        during(*.hours)
    )]
    Budget {
        /// Until the shutdown; of a day without one.
        cost: Money,
        /// Time until the shutdown; absent without one.
        hours: Option<f64>,
        /// For an hour.
        price: Money,
        /// The limit of the file.
        budget: Money,
    },
    /// The bed has a budget, and its price is unknown.
    #[error(
        "the price of {size} in {region} is unknown, so the budget cannot be kept; remove `budget`, or choose another size"
    )]
    PriceUnknown {
        /// The size.
        size: String,
        /// The region.
        region: String,
    },
    /// The bed has a budget, and prices cannot be looked up.
    #[error(
        "the price of {size} in {region} cannot be looked up now, so the budget cannot be kept; repeat the command later, or remove `budget`"
    )]
    PriceUnreachable {
        /// The size.
        size: String,
        /// The region.
        region: String,
    },
    /// Resources could not be created.
    #[error("{}", failures(.0))]
    Failed(Vec<Failure>),
    /// The deployment did not end in time.
    #[error("the deployment did not end within {minutes} min; Azure may still complete it")]
    TooLong {
        /// The limit.
        minutes: u64,
    },
    /// The user interrupted it after Azure had accepted it.
    #[error("interrupted; Azure continues the deployment")]
    Interrupted,
    /// The user interrupted its request before the answer.
    #[error("interrupted; Azure may have accepted the deployment: `{command}` shows the last accepted one")]
    RequestInterrupted {
        /// The command that shows it.
        command: String,
    },
    /// The user interrupted a start of VMs.
    #[error("interrupted; VMs whose start Azure accepted continue to start; `{command}` starts the others")]
    StartInterrupted {
        /// The command that starts the others.
        command: String,
    },
    /// VMs did not start in time.
    #[error("the VMs of the bed {bed} did not run within {minutes} min; `{command}` shows their states")]
    NotStarted {
        /// Name of the bed.
        bed: String,
        /// The limit.
        minutes: u64,
        /// The command that shows their states.
        command: String,
    },
    /// VMs that a run needs do not run.
    #[error("the bed {bed} does not run: {}", states(.vms))]
    Stopped {
        /// Name of the bed.
        bed: String,
        /// Its VMs that do not run, each with the state that Azure names.
        vms: Vec<(String, String)>,
    },
}

impl BedError {
    /// VMs that may run although their creation failed, by kind and name: those that Azure did not refuse, for example because a quota is too
    /// small, but that did not report in time that they have booted. Their daily shutdown depends on them, so that it was not created.
    pub fn perhaps_running(&self) -> Vec<&str> {
        let Self::Failed(failures) = self else { return Vec::new() };
        let may_run =
            |failure: &&Failure| is_vm(&failure.resource) && matches!(failure.cause, Cause::Other { .. });
        failures.iter().filter(may_run).map(|failure| failure.resource.as_str()).collect()
    }

    /// Whether Azure may have accepted the request that ended with this error: its answer did not come.
    pub fn may_be_accepted(&self) -> bool {
        matches!(
            self,
            Self::Interrupted
                | Self::RequestInterrupted { .. }
                | Self::Call(
                    CallError::Interrupted { .. }
                        | CallError::TimedOut { .. }
                        | CallError::Failed { cause: Cause::Connection { .. }, .. }
                )
        )
    }
}

/// A resource that could not be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Type and name of the resource.
    pub resource: String,
    /// Why.
    pub cause: Cause,
}

/// `vm1 is deallocated, vm2 is stopped`.
fn states(vms: &[(String, String)]) -> String {
    let one = |(vm, state): &(String, String)| format!("{vm} is {}", state.trim_start_matches("VM "));
    vms.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A line for each resource; a cause that several have stands there once.
fn failures(failures: &[Failure]) -> String {
    let mut causes: Vec<(&Cause, Vec<&str>)> = Vec::new();
    for Failure { resource, cause } in failures {
        match causes.iter_mut().find(|(other, _)| *other == cause) {
            Some((_, resources)) => resources.push(resource),
            None => causes.push((cause, vec![resource])),
        }
    }
    let lines =
        causes.iter().map(|(cause, resources)| format!("failed to create {}: {cause}", resources.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

/// The time of a cost.
fn during(hours: Option<f64>) -> String {
    match hours {
        Some(hours) => format!("until its shutdown in {hours:.1} h"),
        None => "a day, and has no shutdown".to_owned(),
    }
}

/// What to do about a size; the table may have none that would do.
fn choose(proposed: &[String]) -> String {
    if proposed.is_empty() {
        "choose another size".to_owned()
    } else {
        format!("choose one of {}", proposed.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_of_several_resources_stands_there_once() {
        let cause = Cause::Other { code: None, message: "no room".to_owned() };
        let failure = |resource: &str| Failure { resource: resource.to_owned(), cause: cause.clone() };
        let error = BedError::Failed(vec![failure("VM vm1"), failure("VM vm2")]);
        assert_eq!(error.to_string(), "failed to create VM vm1, VM vm2: no room");
    }

    #[test]
    fn request_without_an_answer_may_be_accepted_and_a_refused_one_is_not() {
        let failed = |cause: Cause| BedError::from(CallError::Failed { command: "az".to_owned(), cause });
        let limit = std::time::Duration::from_secs(1);
        let unanswered = [
            BedError::Interrupted,
            BedError::RequestInterrupted { command: "az".to_owned() },
            CallError::TimedOut { command: "az".to_owned(), limit }.into(),
            failed(Cause::Connection { message: "reset".to_owned() }),
        ];
        assert!(unanswered.iter().all(BedError::may_be_accepted));
        let refused = [
            failed(Cause::Hidden),
            failed(Cause::Other { code: None, message: "no".to_owned() }),
            BedError::Failed(Vec::new()),
        ];
        assert!(!refused.iter().any(BedError::may_be_accepted));
    }

    #[test]
    fn only_a_vm_that_was_not_refused_may_run() {
        let failure = |resource: &str, cause: Cause| Failure { resource: resource.to_owned(), cause };
        let late = || Cause::Other {
            code: Some("OSProvisioningTimedOut".to_owned()),
            message: "did not finish in the allotted time".to_owned(),
        };
        let refused = Cause::Allocation { message: "no room".to_owned(), placement: None };
        let failures =
            vec![failure("VM vm1", refused), failure("VM vm2", late()), failure("NIC vm2-test", late())];
        assert_eq!(BedError::Failed(failures).perhaps_running(), ["VM vm2"]);
        assert_eq!(BedError::Interrupted.perhaps_running(), [""; 0]);
    }
}
