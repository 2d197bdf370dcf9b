//! A deployment while it is watched: progress, addresses, failures, lost connections, interrupts.
use netduel_azure::az::PAUSE_S;
use netduel_azure::az::cause::Cause;
use netduel_azure::deployment::progress::{LIMIT_MIN, watch};
use netduel_azure::deployment::{BedError, Host, State, Step};

use crate::bed;
use crate::fake::{Answer, FakeAz, subscription};

const SHOW: &str =
    "deployment group show --resource-group netduel-x --name netduel --query properties --subscription";
const LIST: &str = "deployment operation group list --resource-group netduel-x --name netduel --subscription";
const RUNNING: &str = r#"{"provisioningState": "Running", "outputs": null, "error": null}"#;
const DONE: &str = r#"{"provisioningState": "Succeeded", "outputs": {"hosts": {"type": "Array", "value": [
    {"name": "vm1", "public": "192.0.2.7", "nics": [{"name": "vm1-synthetic", "ipv4": "10.77.0.4"},
        {"name": "vm1-accelerated", "ipv4": "10.77.1.4", "ipv6": "fd77:6e64:0:1::4"}]}]}}}"#;

/// Operations of a deployment: type, name and state of each resource.
fn operations(of: &[(&str, &str, &str)]) -> String {
    let one = |(kind, name, state): &(&str, &str, &str)| {
        format!(
            r#"{{"properties": {{"provisioningState": "{state}", "statusMessage": null,
                "targetResource": {{"resourceName": "{name}", "resourceType": "{kind}"}}}}}}"#
        )
    };
    let own = r#"{"properties": {"provisioningState": "Succeeded", "provisioningOperation": "EvaluateDeploymentOutput", "targetResource": null}}"#;
    let all: Vec<String> = of.iter().map(one).chain([own.to_owned()]).collect();
    format!("[{}]", all.join(","))
}

/// What was reported, and the result.
fn watched(az: &mut FakeAz) -> (Vec<String>, Result<Vec<Host>, BedError>) {
    let mut steps = Vec::new();
    let result = watch(az, &bed(""), &subscription(), &mut |step: &Step| {
        let state = match step.state {
            State::Running => "...",
            State::Succeeded => "ok",
            State::Failed => "failed",
        };
        steps.push(format!("{} {state}", step.resource));
    });
    az.is_done();
    (steps, result)
}

#[test]
fn each_change_of_a_resource_is_reported_once_and_the_end_has_the_addresses() {
    let (nic, vm) = ("Microsoft.Network/networkInterfaces", "Microsoft.Compute/virtualMachines");
    let first = operations(&[(nic, "vm1-synthetic", "Running")]);
    let second = operations(&[(nic, "vm1-synthetic", "Succeeded"), (vm, "vm1", "Running")]);
    let third = operations(&[(nic, "vm1-synthetic", "Succeeded"), (vm, "vm1", "Succeeded")]);
    let mut az = FakeAz::new([
        (SHOW, RUNNING),
        (LIST, first.as_str()),
        (SHOW, RUNNING),
        (LIST, second.as_str()),
        (SHOW, RUNNING),
        (LIST, second.as_str()),
        (SHOW, DONE),
        (LIST, third.as_str()),
    ]);
    let (steps, result) = watched(&mut az);
    assert_eq!(steps, ["NIC vm1-synthetic ...", "NIC vm1-synthetic ok", "VM vm1 ...", "VM vm1 ok"]);
    let hosts = result.unwrap();
    assert_eq!((hosts[0].name.as_str(), hosts[0].public.to_string().as_str()), ("vm1", "192.0.2.7"));
    let ipv6: Vec<Option<String>> =
        hosts[0].nics.iter().map(|nic| nic.ipv6.map(|address| address.to_string())).collect();
    assert_eq!(ipv6, [None, Some("fd77:6e64:0:1::4".to_owned())]);
}

#[test]
fn failed_deployment_names_each_resource_with_its_cause() {
    let failed = r#"[{"properties": {"provisioningState": "Failed", "targetResource": {"resourceName": "vm1-accelerated",
        "resourceType": "Microsoft.Network/networkInterfaces"}, "statusMessage": {"error":
        {"code": "VMSizeIsNotPermittedToEnableAcceleratedNetworking", "message": "Standard_B2s is not permitted. Standard_DS2_v2"}}}}]"#;
    let mut az = FakeAz::new([
        (SHOW, r#"{"provisioningState": "Failed", "error": {"code": "DeploymentFailed", "message": "x"}}"#),
        (LIST, failed),
    ]);
    let (steps, result) = watched(&mut az);
    assert_eq!(steps, ["NIC vm1-accelerated failed"]);
    let error = result.unwrap_err().to_string();
    assert!(
        error.starts_with("failed to create NIC vm1-accelerated: ")
            && error.ends_with("choose one of Standard_DS2_v2"),
        "{error}"
    );
}

#[test]
fn deployment_that_fails_without_a_resource_has_its_own_error() {
    let shown = r#"{"provisioningState": "Failed", "error": {"code": "DeploymentFailed", "message": "outer",
        "details": [{"code": "Strange", "message": "inner"}]}}"#;
    let (_, result) = watched(&mut FakeAz::new([(SHOW, shown), (LIST, "[]")]));
    assert_eq!(result.unwrap_err().to_string(), "failed to create the bed: inner (Strange)");
}

#[test]
fn cause_of_a_failed_deployment_does_not_depend_on_its_outputs() {
    for outputs in ["null", "{}", r#"{"hosts": {"type": "Array", "value": null}}"#] {
        let shown = format!(
            r#"{{"provisioningState": "Failed", "outputs": {outputs}, "error": {{"code": "Strange", "message": "no"}}}}"#
        );
        let (_, result) = watched(&mut FakeAz::new([(SHOW, shown.as_str()), (LIST, "[]")]));
        assert_eq!(result.unwrap_err().to_string(), "failed to create the bed: no (Strange)", "{outputs}");
    }
    let (_, result) = watched(&mut FakeAz::new([
        (SHOW, r#"{"provisioningState": "Succeeded", "outputs": {}}"#),
        (LIST, "[]"),
    ]));
    let error = result.unwrap_err().to_string();
    assert!(error.contains("does not understand (missing field `hosts`)"), "{error}");
}

#[test]
fn lost_connection_and_throttling_are_awaited() {
    let lost = || Answer::Failure(Cause::Connection { message: "reset".to_owned() });
    let slow = || Answer::Failure(Cause::Throttled { message: "429".to_owned() });
    let mut az = FakeAz::new([(SHOW, RUNNING)])
        .then(LIST, lost())
        .then(SHOW, slow())
        .then(SHOW, Answer::Text(DONE.to_owned()))
        .then(LIST, Answer::Text("[]".to_owned()));
    let (_, result) = watched(&mut az);
    assert_eq!(result.unwrap().len(), 1);
    let mut gone = FakeAz::new([]);
    for _ in 0..11 {
        gone = gone.then(SHOW, lost());
    }
    let error = watched(&mut gone).1.unwrap_err().to_string();
    assert!(error.contains("no connection to Azure (reset)"), "{error}");
}

#[test]
fn deployment_is_watched_for_the_time_that_the_error_states() {
    let looks = (0..LIMIT_MIN * 60 / PAUSE_S).flat_map(|_| [(SHOW, RUNNING), (LIST, "[]")]);
    let error = watched(&mut FakeAz::new(looks)).1.unwrap_err().to_string();
    let expected = format!("the deployment did not end within {LIMIT_MIN} min; Azure may still complete it");
    assert_eq!(error, expected);
}

#[test]
fn interrupt_ends_the_watch_and_not_the_deployment() {
    let mut az = FakeAz::new([(SHOW, RUNNING), (LIST, "[]")]);
    az.pauses = 1;
    assert!(matches!(watched(&mut az).1, Err(BedError::Interrupted)));
    assert!(
        az.calls.iter().all(|call| !call.contains("delete") && !call.contains("cancel")),
        "{:?}",
        az.calls
    );
    let mut az = FakeAz::new([]).then(SHOW, Answer::Interrupt);
    assert!(matches!(watched(&mut az).1, Err(BedError::Interrupted)));
}

#[test]
fn error_that_does_not_pass_ends_the_watch_at_once() {
    let mut az = FakeAz::new([]).then(SHOW, Answer::Failure(Cause::Login { message: "expired".to_owned() }));
    let error = watched(&mut az).1.unwrap_err().to_string();
    assert!(error.contains("run `az login`"), "{error}");
}
