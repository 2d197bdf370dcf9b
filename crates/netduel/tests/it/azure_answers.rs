//! Answers of `az` to `netduel azure up` in the form of the real ones.
use serde_json::{Value, json};

use crate::azure::{operation, prints};

/// An error of Azure as `az` prints it for a deployment that Azure refuses when it validates the template.
pub const QUOTA: &str = "ERROR: {\"code\": \"InvalidTemplateDeployment\", \"message\": \"The template deployment 'netduel' is not valid according to the \
    validation procedure. See inner errors for details.\"}\n\nInner Errors: \n{\"code\": \"QuotaExceeded\", \"message\": \"Operation could not be completed \
    as it results in exceeding approved standardDSv3Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: westeurope, \
    Current Limit: 10, Current Usage: 4, Additional Required: 8\"}\n";
pub const CONFLICT: &str = "    raise RuntimeError(\"The content for this response was already consumed\")\nRuntimeError: The content for this response was \
    already consumed\nTo check existing issues, please visit: https://github.com/Azure/azure-cli/issues\n";
pub const OFFLINE: &str = "ERROR: HTTPSConnectionPool(host='management.azure.com', port=443): Max retries exceeded with url: /subscriptions (Caused by \
    NameResolutionError(\"Failed to resolve 'management.azure.com' ([Errno -3] Temporary failure in name resolution)\"))\n";
/// A login that has expired, as `az` prints it.
pub const EXPIRED: &str = "ERROR: (ExpiredAuthenticationToken) The access token expiry UTC time is earlier than \
    current UTC time.\n";

pub const NOT_BOOTED: &str = "OS Provisioning for VM 'vm1' did not finish in the allotted time. The VM may still finish provisioning successfully.";
pub const NO_CAPACITY: &str = "We do not have sufficient capacity for the requested VM size in this region.";

/// The offer of the size, changed.
pub fn offered(changed: &Value) -> [(&'static str, Value); 1] {
    let mut sku = json!({
        "name": "Standard_D4s_v3", "family": "standardDSv3Family", "restrictions": [],
        "locationInfo": [{ "location": "westeurope", "zones": ["1"] }],
        "capabilities": [
            { "name": "AcceleratedNetworkingEnabled", "value": "True" }, { "name": "MaxNetworkInterfaces", "value": "2" },
        ],
    });
    for (key, value) in changed.as_object().into_iter().flatten() {
        sku[key] = value.clone();
    }
    [("vm list-skus", prints(&json!([sku])))]
}

/// A deployment in which a VM failed.
pub fn failed(code: &str, message: &str) -> [(&'static str, Value); 2] {
    let all =
        json!({ "provisioningState": "Failed", "error": { "code": "DeploymentFailed", "message": "x" } });
    let error = json!({ "error": { "code": code, "message": message } });
    [
        ("deployment group show", prints(&all)),
        ("deployment operation group list", operation("vm1", "Failed", &error)),
    ]
}

/// A deployment in which a VM failed for a reason that Azure does not name.
pub fn failed_without_cause() -> [(&'static str, Value); 2] {
    let [all, _] = failed("", "");
    [all, ("deployment operation group list", operation("vm1", "Failed", &Value::Null))]
}

/// A deployment that ended in this state with this error, none of whose resources failed.
pub fn ended(state: &str, error: &Value) -> [(&'static str, Value); 2] {
    let all = json!({ "provisioningState": state, "error": error });
    [("deployment group show", prints(&all)), ("deployment operation group list", prints(&json!([])))]
}

/// A group of the bed's name that exists.
pub fn group(region: &str, tags: &Value) -> [(&'static str, Value); 2] {
    let group = json!({ "name": "netduel-x", "location": region, "tags": tags });
    [("group exists", json!([{ "out": "true" }])), ("group show", prints(&group))]
}

/// The group of the bed, which an earlier `down` deletes.
pub fn deleting() -> [(&'static str, Value); 2] {
    let tags = json!({ "netduel": "x" });
    let properties = json!({ "provisioningState": "Deleting" });
    let group =
        json!({ "name": "netduel-x", "location": "westeurope", "tags": tags, "properties": properties });
    [("group exists", json!([{ "out": "true" }])), ("group show", prints(&group))]
}

/// A bed that exists with these tags and another answer.
pub fn bed_with(tags: &Value, start: &'static str, answer: &Value) -> Vec<(&'static str, Value)> {
    group("westeurope", tags).into_iter().chain([(start, prints(answer))]).collect()
}

/// A bed of another user than the one who is logged in.
pub fn of_another_user() -> Vec<(&'static str, Value)> {
    let account = json!({ "id": "1", "name": "fake", "user": { "name": "me@example.com" } });
    bed_with(&json!({ "netduel": "x", "netduel-owner": "0".repeat(64) }), "account show", &account)
}
