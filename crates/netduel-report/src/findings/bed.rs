//! What the provider of a bed claims of a VM against what its guest shows, in both directions.
use std::collections::BTreeMap;
use std::net::IpAddr;

use netduel_model::bed::{BedNic, BedVm, Placement, RunBed, SeenNic, SeenVf, VfUse, VmFacts};
use netduel_model::ids::HostName;
use netduel_model::plan::ResolvedPlan;
use netduel_model::shell;
use netduel_model::snapshot::{HostSnapshot, Interface, PciFunction, Provider};
use netduel_model::word::word;

use super::acceleration::{Acceleration, accelerations};
use super::finding::{Finding, Severity};
use super::nic::{is_synthetic, pci_of};
use super::{bed_route, bed_sysctl, drivers};

/// A finding about a VM of a bed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BedFinding {
    /// The host of the plan that the VM is.
    pub host: HostName,
    /// The VM.
    pub vm: String,
    /// Whether an arm of the plan depends on what the provider claims and the guest contradicts.
    pub is_of_arm: bool,
    /// What was found.
    pub finding: Finding,
}

/// Notes in a bed what the guests of a plan's hosts show.
pub fn see_bed(bed: &mut RunBed, plan: &ResolvedPlan, hosts: &BTreeMap<HostName, HostSnapshot>) {
    for (host, name) in plan.vms() {
        let Some(snapshot) = hosts.get(host) else { continue };
        let Some(vm) = bed.vms.iter_mut().find(|vm| vm.name == name) else { continue };
        vm.seen = Some(vm_seen(snapshot));
        for nic in &mut vm.nics {
            nic.seen = nic_seen(snapshot, nic);
        }
    }
}

/// The facts of a VM as its guest shows them. Azure tells a guest nothing of its proximity group or availability set.
fn vm_seen(host: &HostSnapshot) -> VmFacts {
    let cloud = host.cloud.as_ref();
    let of_azure =
        cloud.filter(|cloud| cloud.provider == Provider::Azure && cloud.metadata_failure.is_none());
    VmFacts {
        id: of_azure
            .and_then(|cloud| cloud.instance.clone())
            .or_else(|| host.machine_uuid.clone())
            .map(lower),
        size: cloud.and_then(|cloud| cloud.size.clone()),
        region: cloud.and_then(|cloud| cloud.region.clone()),
        zone: cloud.and_then(|cloud| cloud.zone.clone()),
        placement: cloud.and_then(|cloud| cloud.placement.clone()),
        physical_host: cloud.and_then(|cloud| cloud.physical_host.clone()),
    }
}

fn lower(mut text: String) -> String {
    text.make_ascii_lowercase();
    text
}

/// A NIC as the guest shows it; `None` when no interface has its MAC address. Without a claimed MAC address it is found by its addresses.
fn nic_seen(host: &HostSnapshot, nic: &BedNic) -> Option<SeenNic> {
    let interface = interface_of(host, nic)?;
    let state =
        accelerations(host).into_iter().find(|(of, _)| of.name == interface.name).map(|(_, state)| state);
    let vf = state.and_then(|state| vf_seen(host, nic, &state));
    Some(SeenNic { interface: interface.name.clone(), driver: interface.driver.clone(), vf })
}

/// The interface of a NIC that has or could have its addresses: the synthetic one, else one that is below no other.
fn interface_of<'a>(host: &'a HostSnapshot, nic: &BedNic) -> Option<&'a Interface> {
    let has_mac = |interface: &&Interface| {
        interface
            .mac
            .as_ref()
            .is_some_and(|mac| nic.mac.as_ref().is_some_and(|own| mac.eq_ignore_ascii_case(own)))
    };
    let has_address =
        |interface: &&Interface| interface.addresses.iter().any(|own| nic.addresses.contains(own));
    let candidates = || {
        host.interfaces
            .iter()
            .filter(|interface| if nic.mac.is_some() { has_mac(interface) } else { has_address(interface) })
    };
    candidates().min_by_key(|interface| {
        (!is_synthetic(interface), interface.master.is_some(), !has_address(interface))
    })
}

fn vf_seen(host: &HostSnapshot, nic: &BedNic, state: &Acceleration) -> Option<SeenVf> {
    let (name, state) = match state {
        Acceleration::Active { function } => (function, VfUse::Active),
        Acceleration::Paired { function } => (function, VfUse::Paired),
        Acceleration::Idle { function, up: true } => (function, VfUse::Idle),
        Acceleration::Idle { function, up: false } => (function, VfUse::Down),
        Acceleration::Unpaired { function } => (function, VfUse::Unpaired),
        // Nothing shows which NIC such a function belongs to: it is that of a NIC that should have one.
        Acceleration::NoDriver { slot } if nic.is_accelerated => (slot, VfUse::NoDriver),
        Acceleration::PciOnly { slot } if nic.is_accelerated => (slot, VfUse::NoInterface),
        Acceleration::NoDriver { .. } | Acceleration::PciOnly { .. } | Acceleration::SyntheticOnly => {
            return None;
        }
    };
    let interface = host.interfaces.iter().find(|interface| interface.name == *name);
    let function = match interface {
        Some(interface) => pci_of(host, interface),
        None => host.pci_functions.iter().find(|function| function.slot == *name),
    };
    let of_interface = interface.and_then(|interface| interface.driver.clone());
    Some(SeenVf {
        name: name.clone(),
        driver: of_interface.or_else(|| function?.driver.clone()),
        model: function.map(model),
        state,
    })
}

fn model(function: &PciFunction) -> String {
    drivers::known(function).map_or_else(
        || format!("{:04x}:{:04x}", function.vendor, function.device),
        |(product, _)| product.to_owned(),
    )
}

/// Findings about the VMs of a bed that a plan uses, most severe first; [`see_bed`] has noted what their guests show.
pub fn of_bed(
    bed: &RunBed,
    plan: &ResolvedPlan,
    hosts: &BTreeMap<HostName, HostSnapshot>,
) -> Vec<BedFinding> {
    let (claims, sysctls) = (plan.arm_claims(), bed.sysctls());
    let mut found = Vec::new();
    for (host, name) in plan.vms() {
        let (Some(vm), Some(seen_host)) = (bed.vm(name), hosts.get(host)) else { continue };
        let is_used = claims.iter().any(|claim| claim.vm == vm.name);
        let mut add = |finding: Finding, is_of_arm: bool| {
            found.push(BedFinding { host: host.clone(), vm: vm.name.clone(), is_of_arm, finding });
        };
        if let Some(finding) = identity(bed, vm, seen_host) {
            add(finding, is_used);
        }
        let of_vm = properties(bed, vm).into_iter().chain(same_host(bed, vm));
        for finding in of_vm.chain(bed_sysctl::find(&sysctls, vm, seen_host)) {
            add(finding, false);
        }
        for nic in &vm.nics {
            let is_of_arm =
                claims.iter().any(|claim| claim.vm == vm.name && Some(claim.network) == nic.network);
            for finding in of_nic(bed, vm, nic, seen_host) {
                add(finding, is_of_arm);
            }
        }
        for (finding, is_of_arm) in bed_route::find(plan, host, bed, seen_host) {
            add(finding, is_of_arm);
        }
    }
    found.sort_by_key(|one| one.finding.severity);
    found
}

/// Whether the machine is the VM: by the metadata service, and by the UUID of its firmware, whose first three parts Azure has in both orders of
/// bytes.
fn identity(bed: &RunBed, vm: &BedVm, host: &HostSnapshot) -> Option<Finding> {
    let claimed = vm.claimed.id.as_deref()?;
    let of_service = || {
        let cloud = host.cloud.as_ref()?;
        let answers = cloud.provider == Provider::Azure && cloud.metadata_failure.is_none();
        cloud.instance.as_ref().filter(|_| answers).map(|id| ("the metadata service", id.clone()))
    };
    let of_firmware = || host.machine_uuid.as_ref().map(|id| ("the firmware (DMI)", id.clone()));
    let (source, seen) = of_service()
        .filter(|(_, id)| !id.eq_ignore_ascii_case(claimed))
        .or_else(|| of_firmware().filter(|(_, id)| !is_same_machine(claimed, id)))?;
    Some(
        Finding::new(
            "bed-other-machine",
            Severity::Problem,
            format!("the host is not the VM {} of the bed {}", vm.name, bed.name),
        )
        .seen(format!("Azure: vmId {claimed}"))
        .seen(format!("{source} of the host: {seen}"))
        .why("a measurement on another machine would be reported as one of this bed")
        .remedy(
            "compare the public address of the VM with the one that ssh uses, also in your ssh configuration",
        )
        .command(format!(
            "az vm list --resource-group {} --show-details --output table",
            shell::word(&bed.group)
        )),
    )
}

/// Whether a UUID of the firmware is an id of Azure, in either order of the bytes of its first three parts.
fn is_same_machine(id: &str, uuid: &str) -> bool {
    let swapped = |part: &str| -> String {
        let bytes: Vec<&str> = (0..part.len()).step_by(2).filter_map(|at| part.get(at..at + 2)).collect();
        bytes.into_iter().rev().collect()
    };
    let other: Vec<String> = uuid
        .split('-')
        .enumerate()
        .map(|(index, part)| if index < 3 { swapped(part) } else { part.to_owned() })
        .collect();
    id.eq_ignore_ascii_case(uuid) || id.eq_ignore_ascii_case(&other.join("-"))
}

/// Size, region and zone.
fn properties(bed: &RunBed, vm: &BedVm) -> Vec<Finding> {
    let Some(seen) = &vm.seen else { return Vec::new() };
    let pairs = [
        ("bed-size", "size", &vm.claimed.size, &seen.size),
        ("bed-region", "region", &vm.claimed.region, &seen.region),
        ("bed-zone", "zone", &vm.claimed.zone, &seen.zone),
    ];
    let differs = |(id, what, claimed, seen): (&'static str, &str, &Option<String>, &Option<String>)| {
        let (claimed, seen) = (claimed.as_ref()?, seen.as_ref()?);
        (!claimed.eq_ignore_ascii_case(seen)).then(|| {
            Finding::new(id, Severity::Warning, format!("{} has another {what} than Azure claims", vm.name))
                .seen(format!("Azure: {claimed}"))
                .seen(format!("the metadata service of the host: {seen}"))
                .why("limits and prices of the report are those of another VM")
                .remedy("look at the VM again in a minute: the metadata service lags behind a change; then deallocate and start the VM")
                .command(restart(bed, vm))
        })
    };
    pairs.into_iter().filter_map(differs).collect()
}

/// A placement that keeps the VMs apart, and a physical host that has another of them as well.
fn same_host(bed: &RunBed, vm: &BedVm) -> Option<Finding> {
    let keeps_apart = matches!(bed.placement, Placement::AvailabilitySet | Placement::IsolatedSize);
    let of = |vm: &BedVm| vm.seen.as_ref().and_then(|seen| seen.physical_host.clone());
    let own = of(vm).filter(|_| keeps_apart)?;
    // It is reported at the second of two.
    let other = bed
        .vms
        .iter()
        .take_while(|other| other.name != vm.name)
        .find(|other| of(other).as_ref() == Some(&own))?;
    let what = format!(
        "{} and {} are on one physical host, and Azure claims the placement {}",
        other.name,
        vm.name,
        word(&bed.placement)
    );
    Some(
        Finding::new("bed-same-host", Severity::Warning, what)
            .seen(format!("physical host of both: {own}"))
            .why("their traffic does not leave the host")
            .remedy("deallocate and start both VMs, so that Azure places them anew")
            .command(restart(bed, vm)),
    )
}

/// What applies a change of a VM that Azure has recorded.
fn restart(bed: &RunBed, vm: &BedVm) -> String {
    let of = format!("--resource-group {} --name {}", shell::word(&bed.group), shell::word(&vm.name));
    format!("az vm deallocate {of} && az vm start {of}")
}

fn of_nic(bed: &RunBed, vm: &BedVm, nic: &BedNic, host: &HostSnapshot) -> Vec<Finding> {
    let name = &nic.name;
    let Some(seen) = &nic.seen else {
        if !nic.is_attached || (nic.mac.is_none() && nic.addresses.is_empty()) {
            return Vec::new();
        }
        let mac = nic.mac.as_deref().unwrap_or("unknown");
        return vec![
            Finding::new(
                "bed-nic-missing",
                Severity::Problem,
                format!("the host has no interface of {name}"),
            )
            .seen(format!("Azure: {name} is attached, MAC address {mac}"))
            .seen(format!("no interface of {} has this MAC address", vm.name))
            .why("no traffic of this NIC can pass")
            .remedy("look for its device in the kernel log; then deallocate and start the VM")
            .command(restart(bed, vm)),
        ];
    };
    let mut found = Vec::new();
    if !nic.is_attached {
        found.push(
            Finding::new(
                "bed-nic-attached",
                Severity::Problem,
                format!("the host has {name}, which Azure claims is not attached"),
            )
            .on(&seen.interface)
            .seen(format!("the interface {} has the MAC address of {name}", seen.interface))
            .why("the state before a hot-add is not the one that the plan expects")
            .remedy("detach the NIC, or look at the bed again when Azure has completed the change")
            .command(format!(
                "az vm nic remove --resource-group {} --vm-name {} --nics {}",
                shell::word(&bed.group),
                shell::word(&vm.name),
                shell::word(name)
            )),
        );
    }
    found.extend(of_vf(bed, vm, nic, seen));
    let interface = host.interfaces.iter().find(|interface| interface.name == seen.interface);
    let missing: Vec<String> = nic
        .addresses
        .iter()
        .filter(|address| {
            nic.is_attached && interface.is_some_and(|interface| !interface.addresses.contains(address))
        })
        .map(ToString::to_string)
        .collect();
    if !missing.is_empty() {
        found.push(
            Finding::new(
                "bed-address",
                Severity::Problem,
                format!("{} lacks {} of {name}", seen.interface, missing.join(", ")),
            )
            .on(&seen.interface)
            .seen(format!("Azure: {name} has {}", listed(&nic.addresses)))
            .seen(format!(
                "{} has {}",
                seen.interface,
                interface.map(|one| listed(&one.addresses)).unwrap_or_default()
            ))
            .why("the other hosts cannot reach this one in the network of the NIC")
            .remedy("configure DHCP for the interface; Azure leases the address to it")
            .command(format!("networkctl reconfigure {0} || dhclient {0}", shell::word(&seen.interface))),
        );
    }
    found
}

/// The flag of accelerated networking against the virtual function.
fn of_vf(bed: &RunBed, vm: &BedVm, nic: &BedNic, seen: &SeenNic) -> Option<Finding> {
    let name = &nic.name;
    let driver = seen.driver.as_deref().unwrap_or("unknown");
    let claim = format!(
        "Azure: accelerated networking of {name} is {}",
        if nic.is_accelerated { "on" } else { "off" }
    );
    let update = |on: bool| {
        format!(
            "az network nic update --resource-group {} --name {} --accelerated-networking {on}",
            shell::word(&bed.group),
            shell::word(name)
        )
    };
    let finding = match (nic.is_accelerated, &seen.vf) {
        (false, None) => return None,
        (true, None) => {
            Finding::new("bed-no-vf", Severity::Problem, format!("{name} has no virtual function, and Azure claims that it is accelerated"))
                .seen(claim)
                .seen(format!("{} (driver {driver}) has no virtual function", seen.interface))
                .why("the bytes take the synthetic path, and the report would call it accelerated")
                .remedy("deallocate and start the VM; if it has none then, its image lacks the driver, or the size does not support it")
                .command(restart(bed, vm))
        }
        (false, Some(vf)) => Finding::new(
            "bed-unexpected-vf",
            Severity::Problem,
            format!("{name} has a virtual function, and Azure claims that it is not accelerated"),
        )
        .seen(claim)
        .seen(format!("{} is the virtual function of {}", words(vf), seen.interface))
        .why("the bytes may take the accelerated path, and the report would call it synthetic")
        .remedy("set the flag again, and deallocate and start the VM when the virtual function stays")
        .command(update(false)),
        (true, Some(vf)) => {
            let state = match vf.state {
                VfUse::Active | VfUse::Paired | VfUse::Idle => return None,
                VfUse::Down => "is down",
                VfUse::Unpaired => "is not paired with it",
                VfUse::NoDriver => "has no driver",
                VfUse::NoInterface => "has no interface in this network namespace",
            };
            Finding::new("bed-vf-unused", Severity::Problem, format!("the virtual function of {name} cannot carry traffic: it {state}"))
                .seen(claim)
                .seen(format!("{}: {} {state}", seen.interface, words(vf)))
                .why("the bytes take the synthetic path, and the report would call it accelerated")
                .remedy("`netduel inspect` on the host has the command that repairs it; deallocating and starting the VM does as well")
                .command(restart(bed, vm))
        }
    };
    Some(finding.on(&seen.interface))
}

/// `enP1s1 (mlx5_core, ConnectX-4 Lx Virtual Function)`.
fn words(vf: &SeenVf) -> String {
    let parts: Vec<&str> = vf.driver.as_deref().into_iter().chain(vf.model.as_deref()).collect();
    if parts.is_empty() { vf.name.clone() } else { format!("{} ({})", vf.name, parts.join(", ")) }
}

fn listed(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if texts.is_empty() { "no address".to_owned() } else { texts.join(", ") }
}
