//! The bed of a run that is resumed. A run does not keep the subscription of its bed: the current one of `az` has to have the VMs of the run.
//! Nothing is started or changed here.
use netduel_azure::deployment::BedError;
use netduel_model::bed::BedVm;
use netduel_model::resource_name::is_name;
use netduel_model::run::RunHeader;

use super::deployed::Deployed;
use super::session::az;
use crate::cli::azure::BedArg;
use crate::exit::{Failure, Kind};
use crate::provider::Home;

/// What to do when another subscription has the bed.
const OTHER_SUBSCRIPTION: &str = "a run is resumed in the current subscription of `az`, which \
     `az account set --subscription NAME` changes";

/// Where the NICs and VMs of a resumed run are, and the states of its NICs when it began. Azure is asked for a run on a bed whose treatments
/// change them; a group of the bed's name with other VMs is refused.
pub fn home(header: &RunHeader) -> Result<Home, Failure> {
    let Some(bed) = header.bed.as_ref().filter(|_| header.plan.has_provider_treatments()) else {
        return Ok(Home::default());
    };
    let refused =
        |kind, why: String| Failure::message(kind, format!("failed to resume {}: {why}", header.id));
    // The run file may be from elsewhere.
    if !is_name(&bed.name) {
        return Err(refused(Kind::Usage, format!("{:?} is not the name of a bed", bed.name)));
    }
    let wanted = BedArg::Name(bed.name.clone());
    let deployed = Deployed::find(&mut az()?, Some(&wanted), None).map_err(with_subscription)?;
    let is_there = |vm: &BedVm| deployed.inventory.bed.vm(&vm.name).is_some_and(|now| is_same(vm, now));
    let mut vms = header.plan.vms().filter_map(|(_, name)| bed.vm(name));
    if let Some(vm) = vms.find(|vm| !is_there(vm)) {
        let why =
            format!("the VM {} of the bed {} is not the one with which the run began", vm.name, bed.name);
        return Err(refused(Kind::Bed, why).remedy(OTHER_SUBSCRIPTION));
    }
    Ok(Home { before_run: bed.claimed_nics(), ..deployed.home() })
}

/// Whether a VM is the same as before. One without an id is the same by its name.
fn is_same(before: &BedVm, now: &BedVm) -> bool {
    match (&before.claimed.id, &now.claimed.id) {
        (Some(before), Some(now)) => before == now,
        _ => true,
    }
}

/// The remedy for a bed that the subscription does not have.
fn with_subscription(failure: Failure) -> Failure {
    let is_no_bed = |cause: Option<&BedError>| matches!(cause, Some(BedError::NoBed { .. }));
    if failure.error.chain().any(|cause| is_no_bed(cause.downcast_ref::<BedError>())) {
        return failure.remedy(OTHER_SUBSCRIPTION);
    }
    failure
}
