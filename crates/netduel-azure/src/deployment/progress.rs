//! A deployment while Azure works: the state of each resource, the causes of failures, and the addresses at its end.
use std::collections::BTreeMap;
use std::net::IpAddr;

use netduel_model::bed::Bed;
use netduel_model::json_text::quoted;
use serde::Deserialize;
use serde_json::Value;

use super::error::{BedError, Failure};
use super::resources::shown;
use super::subscription::Subscription;
use crate::az::cause::Cause;
use crate::az::{Az, CallError, ask, looks_of, or_default};

/// The name of every deployment of a bed: a second one takes the place of the first.
pub(super) const NAME: &str = "netduel";
/// Time limit of a deployment, minutes, without the time of the calls.
pub const LIMIT_MIN: u64 = 30;
/// Looks in a row that may fail by a lost connection or a limited rate.
pub(super) const FAILED_LOOKS_MAX: u32 = 10;

/// The state of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Azure works on it.
    Running,
    /// It is there.
    Succeeded,
    /// It could not be created.
    Failed,
}

/// A resource whose state has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is and its name, for example `VM vm1`.
    pub resource: String,
    /// Its state.
    pub state: State,
}

/// A VM of a bed with its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Host {
    /// Name of the VM.
    pub name: String,
    /// Address for ssh.
    pub public: IpAddr,
    /// Its NICs.
    pub nics: Vec<HostNic>,
}

/// A NIC of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HostNic {
    /// Name of the NIC.
    pub name: String,
    /// Its IPv4 address.
    pub ipv4: IpAddr,
    /// Its IPv6 address.
    #[serde(default)]
    pub ipv6: Option<IpAddr>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deployment {
    provisioning_state: String,
    /// [`Outputs`] when it succeeded. Others may have a part of them.
    #[serde(default)]
    outputs: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Outputs {
    hosts: Output,
}

#[derive(Debug, Deserialize)]
struct Output {
    value: Vec<Host>,
}

#[derive(Debug, Deserialize)]
struct Operation {
    properties: OperationProperties,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperationProperties {
    #[serde(default, deserialize_with = "or_default")]
    provisioning_state: String,
    #[serde(default)]
    target_resource: Option<Target>,
    #[serde(default)]
    status_message: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    #[serde(default, deserialize_with = "or_default")]
    resource_name: String,
    #[serde(default, deserialize_with = "or_default")]
    resource_type: String,
}

impl Operation {
    /// What it works on; `None` for steps of the deployment itself.
    fn resource(&self) -> Option<String> {
        let target = self.properties.target_resource.as_ref()?;
        Some(shown(&target.resource_type, &target.resource_name))
    }

    fn state(&self) -> State {
        match self.properties.provisioning_state.as_str() {
            "Succeeded" => State::Succeeded,
            "Failed" | "Canceled" => State::Failed,
            _ => State::Running,
        }
    }

    fn failure(&self, bed: &Bed) -> Option<Failure> {
        let is_failed = self.state() == State::Failed;
        let cause = match &self.properties.status_message {
            Some(message) => Cause::of_error(message).of_bed(bed),
            None => Cause::Other { code: None, message: "Azure names no cause".to_owned() },
        };
        self.resource().filter(|_| is_failed).map(|resource| Failure { resource, cause })
    }
}

/// Waits for the end of a bed's deployment; `step` is called for each change of a resource. A lost connection is awaited, because Azure works on
/// without it.
///
/// # Errors
/// [`BedError::Failed`] with the causes, [`BedError::Interrupted`], and errors of `az`.
pub fn watch(
    az: &mut dyn Az,
    bed: &Bed,
    subscription: &Subscription,
    step: &mut dyn FnMut(&Step),
) -> Result<Vec<Host>, BedError> {
    let mut known: BTreeMap<String, State> = BTreeMap::new();
    let mut failed_looks = 0;
    for _ in 0..looks_of(LIMIT_MIN) {
        match look(az, bed, subscription) {
            Ok((deployment, operations)) => {
                failed_looks = 0;
                report(&operations, &mut known, step);
                match deployment.provisioning_state.as_str() {
                    "Succeeded" => return hosts(deployment),
                    "Failed" | "Canceled" => {
                        return Err(BedError::Failed(failures(bed, &deployment, &operations)));
                    }
                    _ => {}
                }
            }
            Err(error) if error.is_transient() && failed_looks < FAILED_LOOKS_MAX => failed_looks += 1,
            Err(CallError::Interrupted { .. }) => return Err(BedError::Interrupted),
            Err(error) => return Err(error.into()),
        }
        if !az.pause() {
            return Err(BedError::Interrupted);
        }
    }
    Err(BedError::TooLong { minutes: LIMIT_MIN })
}

/// The deployment, and then its operations: a failed deployment has all of its failures in them.
fn look(
    az: &mut dyn Az,
    bed: &Bed,
    subscription: &Subscription,
) -> Result<(Deployment, Vec<Operation>), CallError> {
    let group = bed.group();
    let words = ["deployment", "group", "show", "--resource-group", &group, "--name", NAME];
    let words = [&words[..], &["--query", "properties"]].concat();
    let deployment = ask(az, &subscription.within(&words))?;
    Ok((deployment, operations(az, bed, subscription)?))
}

fn operations(az: &mut dyn Az, bed: &Bed, subscription: &Subscription) -> Result<Vec<Operation>, CallError> {
    let group = bed.group();
    let words = ["deployment", "operation", "group", "list", "--resource-group", &group, "--name", NAME];
    ask(az, &subscription.within(&words))
}

/// The failures of a deployment whose own answer `az` hides; none when there are none, or they cannot be read either.
pub(super) fn hidden_failures(az: &mut dyn Az, bed: &Bed, subscription: &Subscription) -> Vec<Failure> {
    let operations = operations(az, bed, subscription).unwrap_or_default();
    operations.iter().filter_map(|operation| operation.failure(bed)).collect()
}

/// Calls `step` for each resource whose state is new.
fn report(operations: &[Operation], known: &mut BTreeMap<String, State>, step: &mut dyn FnMut(&Step)) {
    for operation in operations {
        let Some(resource) = operation.resource() else { continue };
        let state = operation.state();
        if known.insert(resource.clone(), state) != Some(state) {
            step(&Step { resource, state });
        }
    }
}

/// What failed, by resource; the error of the deployment when no resource did.
fn failures(bed: &Bed, deployment: &Deployment, operations: &[Operation]) -> Vec<Failure> {
    let failures: Vec<Failure> = operations.iter().filter_map(|operation| operation.failure(bed)).collect();
    if !failures.is_empty() {
        return failures;
    }
    let cause = match &deployment.error {
        Some(error) => Cause::of_error(error).of_bed(bed),
        None => Cause::Other {
            code: None,
            message: format!(
                "the deployment is {} without a cause",
                deployment.provisioning_state.to_lowercase()
            ),
        },
    };
    vec![Failure { resource: "the bed".to_owned(), cause }]
}

/// The VMs of a deployment that succeeded.
fn hosts(deployment: Deployment) -> Result<Vec<Host>, BedError> {
    let command = || "az deployment group show".to_owned();
    let outputs = deployment.outputs.ok_or_else(|| CallError::Answer {
        command: command(),
        reason: "the deployment has no outputs".to_owned(),
    })?;
    let outputs: Outputs = serde_json::from_value(outputs)
        .map_err(|error| CallError::Answer { command: command(), reason: quoted(&error.to_string()) })?;
    Ok(outputs.hosts.value)
}
