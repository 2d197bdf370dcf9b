//! Treatments of the provider's resources: NICs and VMs of Azure, which netduel changes from this machine through the user's `az`.
use crate::plan::problem::{Problems, key_path};
use crate::plan::resolved::{Treatment, TreatmentAction};
use crate::plan::spec::{PathKind, Side, TreatmentSpec};
use crate::resource_name::is_resource;
use crate::workload::Role;

/// The action of a treatment of this kind; `None` when it is another kind, or a part of it is missing or unreadable.
pub(super) fn resolve(
    spec: &TreatmentSpec,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<TreatmentAction> {
    let mut name = |key: &str, text: &Option<String>| -> Option<String> {
        let text = text.clone()?;
        if !is_resource(&text) {
            let allowed = "1 to 80 letters, digits and . _ - are allowed, beginning with a letter or a digit";
            problems.add(
                &key_path(path, key),
                format!("{text:?} is not the name of an Azure resource"),
                allowed,
            );
        }
        Some(text)
    };
    let resource_group = name("resource-group", &spec.resource_group);
    let vm = name("vm", &spec.vm);
    let action = match (name("azure-nic", &spec.azure_nic), name("azure-placement", &spec.azure_placement)) {
        (Some(nic), _) => TreatmentAction::AzureNic { nic, resource_group, accelerated: spec.accelerated? },
        (None, Some(group)) => TreatmentAction::AzurePlacement { vm: vm?, group, resource_group },
        (None, None) => return None,
    };
    if matches!(spec.on, None | Some(Side::Both)) {
        let wrong = "does not name the host, and a NIC or VM is that of one host";
        problems.add(&key_path(path, "on"), wrong, "set on = \"client\" or on = \"server\"");
    }
    Some(action)
}

/// The path that accelerated networking of the NICs at both ends leads over; `None` when the treatments do not say it of both ends.
pub(super) fn path(treatments: &[Treatment]) -> Option<PathKind> {
    let of = |role: Role| {
        treatments.iter().find_map(|treatment| match treatment.action {
            TreatmentAction::AzureNic { accelerated, .. } if treatment.on.includes(role) => Some(accelerated),
            _ => None,
        })
    };
    let (client, server) = (of(Role::Client)?, of(Role::Server)?);
    (client == server).then_some(if client { PathKind::Vf } else { PathKind::Synthetic })
}
