//! A plan on a bed: its hosts become VMs that ssh reaches, and its arms get addresses and the path that must carry their bytes. Pure; the
//! caller has asked the provider and the guests.
use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::bed::network::BedNetwork;
use crate::bed::recorded::{BedNic, BedVm, RunBed};
use crate::ids::HostName;
use crate::plan::bed_fault::BedFault;
use crate::plan::nic_state;
use crate::plan::proximity;
use crate::plan::resolved::{Arm, Launch, ResolvedPlan, SshHost};
use crate::plan::spec::PathKind;
use crate::word::word;
use crate::workload::{Family, Role};

/// A claim of a bed that an arm depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArmClaim {
    /// The VM.
    pub vm: String,
    /// The network in which its NIC is.
    pub network: BedNetwork,
}

impl ResolvedPlan {
    /// The hosts that a bed provides, with their VMs.
    pub fn vms(&self) -> impl Iterator<Item = (&HostName, &str)> {
        self.hosts.iter().filter_map(|(name, host)| match &host.launch {
            Launch::Bed { vm, .. } => Some((name, vm.as_str())),
            _ => Some((name, host.vm.as_deref()?)),
        })
    }

    /// The NICs of a bed that the arms depend on.
    pub fn arm_claims(&self) -> BTreeSet<ArmClaim> {
        let of_arm = |arm: &Arm| -> Vec<ArmClaim> {
            let Some(network) = arm.network else { return Vec::new() };
            let ends = [&arm.pair.client, &arm.pair.server];
            let vm = |end: &HostName| self.vms().find(|(name, _)| *name == end).map(|(_, vm)| vm.to_owned());
            ends.into_iter().filter_map(vm).map(|vm| ArmClaim { vm, network }).collect()
        };
        self.arms.iter().flat_map(of_arm).collect()
    }

    /// Whether a bed has the type, VMs, networks and proximity placement group of a plan, and NICs whose switches make a difference between its
    /// arms. Addresses are not looked at: a bed that is not deployed has none.
    ///
    /// # Errors
    /// Every [`BedFault`] that was found; of a bed of another type this one, from which the others follow.
    pub fn fits_bed(&self, bed: &RunBed) -> Result<(), Vec<BedFault>> {
        if let (Some(wanted), Some(found)) = (self.bed_type, bed.kind)
            && wanted != found
        {
            return Err(vec![BedFault::OtherType { wanted, bed: bed.name.clone(), found }]);
        }
        let mut faults: Vec<BedFault> = Vec::new();
        for (host, vm) in self.vms().filter(|(_, vm)| bed.vm(vm).is_none()) {
            let known = listed(bed.vms.iter().map(|vm| vm.name.as_str()));
            faults.push(BedFault::NoVm {
                host: host.clone(),
                vm: vm.to_owned(),
                bed: bed.name.clone(),
                known,
            });
        }
        for arm in &self.arms {
            let Some(network) = arm.network else { continue };
            for vm in [Role::Client, Role::Server].into_iter().filter_map(|role| self.vm_of(arm, role, bed)) {
                faults.extend(no_nic(arm, network, vm, bed));
            }
        }
        faults.extend(proximity::faults(self, bed));
        faults.extend(nic_state::faults(self, bed));
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// The plan with the hosts and addresses of a deployed bed.
    ///
    /// # Errors
    /// Every [`BedFault`] that was found.
    pub fn on_bed(mut self, bed: &RunBed) -> Result<Self, Vec<BedFault>> {
        self.fits_bed(bed)?;
        let mut faults = Vec::new();
        for treatment in self.arms.iter_mut().flat_map(|arm| &mut arm.treatments) {
            treatment.action.set_resource_group(&bed.group);
        }
        for arm in 0..self.arms.len() {
            let addresses = self.server_addresses_on(&self.arms[arm], bed, &mut faults);
            self.arms[arm].server_addresses = addresses;
        }
        let addresses: Vec<(HostName, Vec<IpAddr>)> =
            self.hosts.keys().map(|host| (host.clone(), self.addresses_on(host, bed))).collect();
        for (name, addresses) in addresses {
            let Some(host) = self.hosts.get_mut(&name) else { continue };
            let Launch::Bed { vm: name, sudo, folder } = &host.launch else { continue };
            let Some(vm) = bed.vm(name) else { continue };
            let Some(public) = vm.public_address() else {
                faults.push(BedFault::NoPublicAddress { vm: name.clone(), bed: bed.name.clone() });
                continue;
            };
            host.vm = Some(name.clone());
            host.size = vm.claimed.size.clone();
            host.addresses = addresses;
            host.launch = Launch::Ssh(SshHost {
                host: public.to_string(),
                // A name of the provider must not be an option of ssh.
                user: vm.user.clone().filter(|user| SshHost::is_plain_word(user)),
                port: None,
                sudo: *sudo,
                folder: folder.clone(),
                bed: Some(bed.name.clone()),
            });
        }
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    /// The plan with the path that must carry the bytes of each arm, from what the guests showed. Arms that name an interface or a path
    /// stay, and those whose treatments change the path.
    #[must_use]
    pub fn with_paths_of(mut self, bed: &RunBed) -> Self {
        let expected: Vec<Option<Expectation>> =
            self.arms.iter().map(|arm| self.expectation(arm, bed)).collect();
        for (arm, expected) in self.arms.iter_mut().zip(expected) {
            let Some(Expectation { path, client, server }) = expected else { continue };
            (arm.expect_path, arm.expect_client, arm.expect_server) = (path, client, server);
            for workload in &mut arm.workloads {
                workload.traffic.set_interfaces(arm.expect_client.as_ref(), arm.expect_server.as_ref());
            }
        }
        self
    }

    /// The VM of an arm at one end.
    pub(super) fn vm_of<'b>(&self, arm: &Arm, role: Role, bed: &'b RunBed) -> Option<&'b BedVm> {
        let host = arm.pair.host(role);
        bed.vm(self.vms().find(|(name, _)| *name == host)?.1)
    }

    /// The addresses of a host in the networks of its arms, each once.
    fn addresses_on(&self, host: &HostName, bed: &RunBed) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        for arm in &self.arms {
            for role in [Role::Client, Role::Server].into_iter().filter(|role| arm.pair.host(*role) == host) {
                let nic = arm.network.and_then(|network| self.vm_of(arm, role, bed)?.nic_in(network));
                for address in nic.into_iter().flat_map(|nic| &nic.addresses) {
                    if !addresses.contains(address) {
                        addresses.push(*address);
                    }
                }
            }
        }
        addresses
    }

    fn server_addresses_on(&self, arm: &Arm, bed: &RunBed, faults: &mut Vec<BedFault>) -> Vec<IpAddr> {
        let Some(network) = arm.network else { return Vec::new() };
        let Some(vm) = self.vm_of(arm, Role::Server, bed) else { return Vec::new() };
        let addresses = vm.nic_in(network).map(|nic| nic.addresses.clone()).unwrap_or_default();
        for workload in &arm.workloads {
            let family = workload.family;
            if !addresses.iter().any(|address| address.is_ipv4() == (family == Family::Ipv4)) {
                let fault =
                    BedFault::NoAddress { arm: arm.name.clone(), family, vm: vm.name.clone(), network };
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
            }
        }
        addresses
    }

    fn expectation(&self, arm: &Arm, bed: &RunBed) -> Option<Expectation> {
        let network = arm.network?;
        if arm.is_proven() || arm.treatments.iter().any(|treatment| treatment.action.takes_function()) {
            return None;
        }
        let ends = [Role::Client, Role::Server].map(|role| self.vm_of(arm, role, bed));
        // A path that needs no names survives a VF that returns under another one. It says only which kind carries the bytes, so it does
        // where one NIC has a VF.
        let is_by_kind = ends.iter().all(|vm| {
            vm.is_some_and(|vm| {
                let with_vf = vm.nics.iter().filter(|nic| carrying_vf(nic).is_some());
                with_vf.count() == 1 && vm.nic_in(network).is_some_and(|nic| carrying_vf(nic).is_some())
            })
        });
        if is_by_kind {
            return Some(Expectation { path: Some(PathKind::Vf), client: None, server: None });
        }
        let [client, server] = ends.map(|vm| {
            let seen = vm?.nic_in(network)?;
            carrying_vf(seen).map(str::to_owned).or_else(|| Some(seen.seen.as_ref()?.interface.clone()))
        });
        Some(Expectation { path: None, client, server })
    }
}

/// Why a VM has no NIC that can carry the traffic of an arm; `None` where it has one.
fn no_nic(arm: &Arm, network: BedNetwork, vm: &BedVm, bed: &RunBed) -> Option<BedFault> {
    let nic = vm.nic_in(network);
    if nic.is_some_and(|nic| nic.is_attached) {
        return None;
    }
    let known = listed(vm.nics.iter().filter_map(|nic| nic.network).map(|network| word(&network)));
    let (arm, vm, bed) = (arm.name.clone(), vm.name.clone(), bed.name.clone());
    Some(match nic {
        Some(nic) => BedFault::NotAttached { arm, network, vm, nic: nic.name.clone() },
        None => BedFault::NoNetwork { arm, network, vm, bed, known },
    })
}

/// What must carry the bytes of an arm.
struct Expectation {
    path: Option<PathKind>,
    client: Option<String>,
    server: Option<String>,
}

/// The interface of the virtual function that carries the traffic of a NIC.
fn carrying_vf(nic: &BedNic) -> Option<&str> {
    let vf = nic.seen.as_ref()?.vf.as_ref()?;
    vf.state.carries().then_some(vf.name.as_str())
}

/// `vm1, vm2`, or `none`.
fn listed<'t>(names: impl Iterator<Item = &'t str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::{Bed, BedType, Placement, SeenNic, SeenVf, VfUse, VmFacts};
    use crate::plan::parse;

    fn nic(name: &str, network: BedNetwork, addresses: &[&str]) -> BedNic {
        BedNic {
            name: name.to_owned(),
            network: Some(network),
            addresses: addresses.iter().map(|address| address.parse().expect("an address")).collect(),
            is_attached: true,
            ..BedNic::default()
        }
    }

    /// A bed of type `two-nic`, dual stack in the network `accelerated` only.
    fn bed() -> RunBed {
        let vm = |number: u8| {
            let mut management = nic("management", BedNetwork::Management, &[]);
            management.public_address = Some(IpAddr::from([192, 0, 2, number]));
            let last = number + 3;
            BedVm {
                name: format!("vm{number}"),
                user: Some("netduel".to_owned()),
                claimed: VmFacts { size: Some("Standard_DS4_v2".to_owned()), ..VmFacts::default() },
                seen: None,
                nics: vec![
                    management,
                    nic("synthetic", BedNetwork::Synthetic, &[&format!("10.77.1.{last}")]),
                    nic(
                        "accelerated",
                        BedNetwork::Accelerated,
                        &[&format!("10.77.2.{last}"), &format!("fd77::{last}")],
                    ),
                ],
            }
        };
        RunBed {
            name: "x".to_owned(),
            kind: None,
            group: "netduel-x".to_owned(),
            region: "westeurope".to_owned(),
            placement: Placement::None,
            created_unix_s: None,
            price_per_hour: None,
            price_read_unix_s: None,
            template_sha256: None,
            file: None,
            vms: vec![vm(1), vm(2)],
        }
    }

    fn plan(arms: [&str; 2], workload: &str) -> ResolvedPlan {
        let arm = |name: &str, keys: &str| {
            format!("[[arms]]\nname = \"{name}\"\nclient = \"client\"\nserver = \"server\"\n{keys}\n")
        };
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n[hosts.client]\nbed = \"vm1\"\n[hosts.server]\nbed = \"vm2\"\nsudo = false\n{}{}\
             [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n{workload}\n",
            arm("one", arms[0]),
            arm("two", arms[1]),
        );
        parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    const NETWORKS: [&str; 2] = ["network = \"synthetic\"", "network = \"accelerated\""];

    #[test]
    fn hosts_become_vms_and_arms_get_the_addresses_of_their_networks() {
        let plan = plan(NETWORKS, "").on_bed(&bed()).expect("it fits");
        let server = &plan.hosts[&HostName::new("server").expect("a name")];
        let Launch::Ssh(ssh) = &server.launch else { panic!("{server:?}") };
        assert_eq!((ssh.host.as_str(), ssh.user.as_deref(), ssh.sudo), ("192.0.2.2", Some("netduel"), false));
        assert_eq!((ssh.bed.as_deref(), server.vm.as_deref()), (Some("x"), Some("vm2")));
        assert_eq!(server.size.as_deref(), Some("Standard_DS4_v2"));
        assert_eq!(server.addresses.len(), 3);
        let reached =
            |arm: usize| plan.server_address(&plan.arms[arm], Family::Ipv4).map(|at| at.to_string());
        assert_eq!([reached(0), reached(1)], [Some("10.77.1.5".to_owned()), Some("10.77.2.5".to_owned())]);
        assert!(plan.hosts.values().all(|host| host.launch.uses_network()));
    }

    #[test]
    fn bed_of_another_type_is_refused_by_its_type_alone() {
        let of = |kind| RunBed { kind, ..bed() };
        let any = plan(NETWORKS, "");
        let toggle = ResolvedPlan { bed_type: Some(BedType::Toggle), ..any.clone() };
        for kind in BedType::ALL.map(Some).into_iter().chain([None]) {
            assert_eq!(any.fits_bed(&of(kind)), Ok(()), "{kind:?}");
            let fits = matches!(kind, None | Some(BedType::Toggle));
            assert_eq!(toggle.fits_bed(&of(kind)).is_ok(), fits, "{kind:?}");
        }
        // A bed without the VMs of the plan is refused for its type, too.
        let other = RunBed { vms: Vec::new(), ..of(Some(BedType::HotAdd)) };
        let faults = toggle.on_bed(&other).expect_err("it is of another type");
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        assert_eq!(fault.key().as_deref(), Some("bed_type"));
        assert_eq!(
            fault.to_string(),
            "bed_type is \"toggle\", and the bed x is of type \"hot-add\"; choose a bed with type = \"toggle\" in \
             its file"
        );
    }

    #[test]
    fn proximity_group_of_netduel_must_be_one_of_the_bed() {
        let into = |group: &str| {
            let treatment = format!("{{ azure-placement = \"{group}\", vm = \"vm1\", on = \"client\" }}");
            let keys = format!("{}\ntreatments = [{treatment}]", NETWORKS[1]);
            plan([NETWORKS[0], &keys], "")
        };
        let of = |kind, placement| RunBed { kind, placement, ..bed() };
        for (kind, placement, fits) in [
            (None, Placement::None, true),
            (Some(BedType::Toggle), Placement::None, true),
            (Some(BedType::TwoNic), Placement::ProximityGroup, false),
            (Some(BedType::Toggle), Placement::ProximityGroup, false),
            (Some(BedType::TwoNic), Placement::None, false),
        ] {
            let bed = of(kind, placement);
            assert_eq!(into(Bed::PROXIMITY_GROUP).fits_bed(&bed).is_ok(), fits, "{kind:?} {placement:?}");
            assert!(into("near").fits_bed(&bed).is_ok(), "{kind:?} {placement:?}");
        }
        let faults = into(Bed::PROXIMITY_GROUP).fits_bed(&of(Some(BedType::Dpdk), Placement::None));
        let text = faults.expect_err("it has no group")[0].to_string();
        assert!(text.contains("the arm two moves VMs into") && text.contains("the bed x"), "{text}");
    }

    #[test]
    fn every_part_of_a_plan_that_the_bed_lacks_is_named() {
        let one = plan(["", "network = \"accelerated\""], "");
        let faults = one.fits_bed(&bed()).expect_err("there is no network test");
        let text = faults[0].to_string();
        assert!(text.contains("arm one uses the network test") && text.contains("vm1"), "{text}");
        assert!(text.contains("management, synthetic, accelerated"), "{text}");
        assert_eq!(faults.len(), 2, "each VM of the arm");

        let mut detached = bed();
        detached.vms[1].nics[2].is_attached = false;
        let faults = plan(NETWORKS, "").on_bed(&detached).expect_err("no NIC of vm2 is attached there");
        let [fault @ BedFault::NotAttached { .. }] = faults.as_slice() else { panic!("{faults:?}") };
        let text = fault.to_string();
        assert!(text.contains("arm two uses the network accelerated") && text.contains("vm2"), "{text}");

        let six = plan(NETWORKS, "family = \"ipv6\"").on_bed(&bed()).expect_err("one network has no IPv6");
        assert!(
            matches!(six.as_slice(), [BedFault::NoAddress { arm, .. }] if arm.as_str() == "one"),
            "{six:?}"
        );

        let mut small = bed();
        small.vms.truncate(1);
        let faults = plan(NETWORKS, "").on_bed(&small).expect_err("vm2 is missing");
        assert_eq!(
            faults[0].to_string(),
            "hosts.server.bed is \"vm2\", and the bed x has vm1; name a VM of the bed, or choose another bed"
        );
        small = bed();
        small.vms[1].nics[0].public_address = None;
        let faults = plan(NETWORKS, "").on_bed(&small).expect_err("it cannot be reached");
        assert!(
            matches!(faults.as_slice(), [BedFault::NoPublicAddress { vm, .. }] if vm == "vm2"),
            "{faults:?}"
        );
        assert!(faults[0].to_string().ends_with("repeat `netduel azure up`"), "{}", faults[0]);
    }

    fn seen(bed: &mut RunBed, nic: usize, interface: &str, vf: Option<(&str, VfUse)>) {
        let vf = vf.map(|(name, state)| SeenVf { name: name.to_owned(), driver: None, model: None, state });
        for vm in &mut bed.vms {
            vm.nics[nic].seen =
                Some(SeenNic { interface: interface.to_owned(), driver: None, vf: vf.clone() });
        }
    }

    #[test]
    fn path_is_the_interface_of_the_nic_and_the_vf_whatever_its_name() {
        let mut bed = bed();
        seen(&mut bed, 1, "eth1", None);
        seen(&mut bed, 2, "eth2", Some(("enP1s1", VfUse::Idle)));
        let plan = plan(NETWORKS, "").on_bed(&bed).expect("it fits");
        let expected = |bed: &RunBed| {
            let arms = plan.clone().with_paths_of(bed).arms;
            arms.into_iter().map(|arm| (arm.expect_path, arm.expect_server)).collect::<Vec<_>>()
        };
        let synthetic = (None, Some("eth1".to_owned()));
        assert_eq!(expected(&bed), [synthetic.clone(), (Some(PathKind::Vf), None)]);
        // With a VF below another NIC as well, the kind alone does not say which NIC carried the bytes.
        seen(&mut bed, 0, "eth0", Some(("enP0s1", VfUse::Active)));
        assert_eq!(expected(&bed), [synthetic.clone(), (None, Some("enP1s1".to_owned()))]);
        // One that cannot carry anything is not expected to.
        seen(&mut bed, 2, "eth2", Some(("enP1s1", VfUse::Down)));
        assert_eq!(expected(&bed), [synthetic, (None, Some("eth2".to_owned()))]);
    }

    #[test]
    fn path_that_the_plan_names_or_takes_away_is_left_to_it() {
        let mut bed = bed();
        seen(&mut bed, 2, "eth2", Some(("enP1s1", VfUse::Idle)));
        let network = "network = \"accelerated\"";
        let arms = [
            format!("{network}\nexpect_path = \"synthetic\""),
            format!("{network}\ntreatments = [{{ vf = \"down\", interface = \"eth2\" }}]"),
        ];
        let plan = plan([&arms[0], &arms[1]], "").on_bed(&bed).expect("it fits").with_paths_of(&bed);
        assert_eq!(plan.arms[0].expect_path, Some(PathKind::Synthetic));
        assert!(!plan.arms[1].is_proven());
        assert_eq!(plan.arm_claims().len(), 2, "both arms use the same NICs");
    }
}
