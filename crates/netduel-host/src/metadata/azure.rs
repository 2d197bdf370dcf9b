//! Azure's Instance Metadata Service (<https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service>). It does not
//! report accelerated networking; the devices of the guest show it.
use super::answer::{Answer, object, text};
use super::http::Client;

/// One document; every version of the service since 2025-04-07 has it.
const COMPUTE: &str = "/metadata/instance/compute?api-version=2025-04-07&format=json";

pub(super) fn query(client: &mut Client) -> Answer {
    match document(client) {
        Ok(answer) => answer,
        Err(failure) => Answer::nothing(failure),
    }
}

fn document(client: &mut Client) -> Result<Answer, String> {
    let body = client.get(COMPUTE, &["Metadata: true"])?.ok_or("the service has no `compute` (404)")?;
    of_document(&body)
}

/// The answer that `compute` has, a JSON document.
pub(super) fn of_document(body: &str) -> Result<Answer, String> {
    let compute = object(body, "the answer to `compute`")?;
    let of = |path: &[&str]| text(&compute, path);
    // A virtual machine is in a placement group, a scale set or neither.
    let placement = of(&["placementGroupId"]).or_else(|| of(&["vmScaleSetName"]));
    let image = ["publisher", "offer", "sku", "version"].map(|name| of(&[name]));
    let image: Vec<String> = image.into_iter().flatten().collect();
    Ok(Answer {
        size: of(&["vmSize"]),
        region: of(&["location"]),
        zone: of(&["zone"]),
        physical_zone: of(&["physicalZone"]),
        instance: of(&["vmId"]),
        placement,
        fault_domain: of(&["platformFaultDomain"]),
        // A dedicated host; only the key-value pool names others.
        physical_host: of(&["host", "id"]),
        image: (!image.is_empty()).then(|| image.join(":")),
        failure: None,
    })
}
