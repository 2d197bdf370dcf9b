//! The interfaces of treatments and events on a bed. A plan need not know their names: where it leaves them out they are those of the NIC that
//! carries the traffic of the arm, and where it names them they are compared with it. Pure; the caller has asked the guests.
use crate::bed::network::BedNetwork;
use crate::bed::recorded::{BedNic, RunBed};
use crate::failover::PathEvent;
use crate::plan::bed_fault::BedFault;
use crate::plan::resolved::{Arm, ResolvedPlan, Treatment, TreatmentAction};
use crate::plan::spec::Side;
use crate::workload::Role;

/// The NIC that carries the traffic of an arm at one end.
#[derive(Clone, Copy)]
struct NicOfArm<'b> {
    role: Role,
    vm: &'b str,
    network: BedNetwork,
    nic: &'b BedNic,
}

impl ResolvedPlan {
    /// The plan with the interfaces of its treatments and events, from what the guests showed.
    ///
    /// # Errors
    /// Every [`BedFault`] that was found: also an interface that is not that of the arm, whose change would not concern its traffic.
    pub fn with_interfaces_of(mut self, bed: &RunBed) -> Result<Self, Vec<BedFault>> {
        let mut faults = Vec::new();
        let nics: Vec<Vec<NicOfArm<'_>>> = self.arms.iter().map(|arm| self.nics_of(arm, bed)).collect();
        for (arm, nics) in self.arms.iter_mut().zip(&nics) {
            bind_treatments(arm, nics, &mut faults);
            bind_events(arm, nics, &mut faults);
        }
        for arm in self.arms_of_all_blocks() {
            check_interfaces(&arm, &self.nics_of(&arm, bed), &mut faults);
        }
        for arm in self.arms.iter().filter(|arm| self.design.crossover && self.counterpart(arm).is_none()) {
            faults.push(BedFault::NoCounterpart { arm: arm.name.clone() });
        }
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    /// The plan with the names that only this bed has replaced by what they stand for, so that it equals the same plan on another bed: the resource
    /// group of treatments, and in treatments, events and packet workloads the interface of the NIC that carries the traffic of the arm. A
    /// plan that names them itself means the same. Addresses and required interfaces stay.
    #[must_use]
    pub fn without_names_of(&self, bed: &RunBed) -> Self {
        let mut plan = self.clone();
        for arm in &mut plan.arms {
            let nics = self.nics_of(arm, bed);
            unbind_treatments(arm, &nics, &bed.group);
            unbind_traffic(arm, &nics);
        }
        plan
    }

    /// The NICs of an arm at both ends; none without a bed.
    fn nics_of<'b>(&self, arm: &Arm, bed: &'b RunBed) -> Vec<NicOfArm<'b>> {
        let at = |role: Role| {
            let (network, vm) = (arm.network?, self.vm_of(arm, role, bed)?);
            Some(NicOfArm { role, vm: &vm.name, network, nic: vm.nic_in(network)? })
        };
        Role::ALL.into_iter().filter_map(at).collect()
    }
}

impl<'b> NicOfArm<'b> {
    /// The interface that has its addresses; `None` when the guest shows none.
    fn interface(self) -> Option<&'b str> {
        Some(&self.nic.seen.as_ref()?.interface)
    }

    /// Its interface and that of its virtual function.
    fn interfaces(self) -> Vec<&'b str> {
        let vf = self.nic.seen.iter().filter_map(|seen| Some(seen.vf.as_ref()?.name.as_str()));
        self.interface().into_iter().chain(vf).collect()
    }
}

/// Gives the treatments that name no interface that of the arm. One of both ends becomes two where the names differ.
fn bind_treatments(arm: &mut Arm, nics: &[NicOfArm<'_>], faults: &mut Vec<BedFault>) {
    let mut bound: Vec<Treatment> = Vec::new();
    for treatment in std::mem::take(&mut arm.treatments) {
        if treatment.action.interface() != Some(TreatmentAction::NIC_OF_ARM) {
            bound.push(treatment);
            continue;
        }
        let first = bound.len();
        for nic in nics.iter().filter(|nic| treatment.on.includes(nic.role)) {
            let Some(interface) = nic.interface() else {
                note(faults, BedFault::no_interface(arm, *nic));
                continue;
            };
            let mut action = treatment.action.clone();
            action.set_interface(interface);
            match bound.iter_mut().skip(first).find(|other| other.action == action) {
                Some(other) => other.on = Side::Both,
                None => bound.push(Treatment { action, on: side(nic.role) }),
            }
        }
    }
    arm.treatments = bound;
}

/// Gives the events that name no interface that of the arm.
fn bind_events(arm: &mut Arm, nics: &[NicOfArm<'_>], faults: &mut Vec<BedFault>) {
    let mut unknown: Vec<NicOfArm<'_>> = Vec::new();
    let mut differing = None;
    for event in arm.workloads.iter_mut().flat_map(|workload| workload.traffic.events_mut()) {
        if event.interface.is_some() {
            continue;
        }
        for nic in nics.iter().filter(|nic| event.on.includes(nic.role)) {
            match (nic.interface(), event.interface.as_deref()) {
                (None, _) => unknown.push(*nic),
                (Some(interface), None) => event.interface = Some(interface.to_owned()),
                (Some(interface), Some(other)) if interface != other => {
                    differing = Some((other.to_owned(), interface.to_owned()));
                    // Neither is judged below.
                    event.interface = None;
                }
                (Some(_), Some(_)) => {}
            }
        }
    }
    for nic in unknown {
        note(faults, BedFault::no_interface(arm, nic));
    }
    if let Some((client, server)) = differing {
        faults.push(BedFault::EventOfTwoInterfaces { arm: arm.name.clone(), client, server });
    }
}

/// Undoes what [`bind_treatments`] did, and removes the resource group of the bed.
fn unbind_treatments(arm: &mut Arm, nics: &[NicOfArm<'_>], group: &str) {
    let mut unbound: Vec<Treatment> = Vec::new();
    for mut treatment in std::mem::take(&mut arm.treatments) {
        treatment.action.remove_resource_group(group);
        let is_of_arm =
            treatment.action.interface().is_some_and(|own| is_of_all_ends(nics, treatment.on, own));
        if is_of_arm {
            treatment.action.set_interface(TreatmentAction::NIC_OF_ARM);
        }
        // Ends whose interfaces have other names have a treatment each.
        let is_other_end =
            |last: &&mut Treatment| is_of_arm && last.action == treatment.action && last.on != treatment.on;
        match unbound.last_mut().filter(is_other_end) {
            Some(last) => last.on = Side::Both,
            None => unbound.push(treatment),
        }
    }
    arm.treatments = unbound;
}

/// Removes the interfaces of the arm from its events and packet workloads.
fn unbind_traffic(arm: &mut Arm, nics: &[NicOfArm<'_>]) {
    for workload in &mut arm.workloads {
        for event in workload.traffic.events_mut() {
            if event.interface.as_deref().is_some_and(|own| is_of_all_ends(nics, event.on, own)) {
                event.interface = None;
            }
        }
        let Some(packets) = workload.traffic.facts().packets else { continue };
        let named = |role: Role| {
            let nic = nics.iter().find(|nic| nic.role == role);
            let of_arm = nic.map(|nic| nic.interfaces()).unwrap_or_default();
            packets.interface(role).filter(|own| !of_arm.contains(own)).map(str::to_owned)
        };
        let (client, server) = (named(Role::Client), named(Role::Server));
        workload.traffic.set_interfaces(client.as_ref(), server.as_ref());
    }
}

/// Whether an interface is that of the arm at each of these ends.
fn is_of_all_ends(nics: &[NicOfArm<'_>], on: Side, interface: &str) -> bool {
    let mut ends = nics.iter().filter(|nic| on.includes(nic.role)).peekable();
    ends.peek().is_some() && ends.all(|nic| nic.interface() == Some(interface))
}

/// Notes changes of other interfaces than those of the arm, and second changes of one thing. Interfaces of a NIC that the guest does not show are
/// not judged. Nor are they where the arm switches a NIC of this end, or stops its VM: it then has another virtual function than now, or none.
fn check_interfaces(arm: &Arm, nics: &[NicOfArm<'_>], faults: &mut Vec<BedFault>) {
    for nic in nics {
        let known = nic.interfaces();
        let treatments = arm.treatments.iter().filter(|treatment| treatment.on.includes(nic.role));
        let events = arm.workloads.iter().flat_map(|workload| workload.traffic.facts().events);
        let changed = treatments
            .clone()
            .filter_map(|treatment| treatment.action.interface())
            .chain(events.filter(|event| event.on.includes(nic.role)).filter_map(interface_of));
        // What could not be bound has a fault of its own.
        let is_other = |name: &&str| !known.contains(name) && *name != TreatmentAction::NIC_OF_ARM;
        let is_switched = treatments.clone().any(|treatment| treatment.action.is_of_provider());
        for interface in changed.filter(|_| !known.is_empty() && !is_switched).filter(is_other) {
            let (arm, interface, vm) = (arm.name.clone(), interface.to_owned(), nic.vm.to_owned());
            let known = known.join(" and ");
            note(faults, BedFault::OtherInterface { arm, interface, vm, network: nic.network, known });
        }
        let actions: Vec<&TreatmentAction> = treatments.map(|treatment| &treatment.action).collect();
        for (index, action) in actions.iter().enumerate() {
            let is_second = actions.iter().take(index).any(|other| other.overlaps(action));
            if let Some(target) = action.target().filter(|_| is_second) {
                note(faults, BedFault::ChangedTwice { arm: arm.name.clone(), target });
            }
        }
    }
}

fn interface_of(event: &PathEvent) -> Option<&str> {
    event.interface.as_deref()
}

impl BedFault {
    fn no_interface(arm: &Arm, nic: NicOfArm<'_>) -> Self {
        let (arm, vm) = (arm.name.clone(), nic.vm.to_owned());
        Self::NoInterface { arm, vm, network: nic.network }
    }
}

fn side(role: Role) -> Side {
    match role {
        Role::Client => Side::Client,
        Role::Server => Side::Server,
    }
}

/// Notes a fault once.
fn note(faults: &mut Vec<BedFault>, fault: BedFault) {
    if !faults.contains(&fault) {
        faults.push(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::{self, SeenNic, SeenVf, VfUse};
    use crate::plan::parse;
    use crate::workload::Workload;

    const THREE_NICS: &str = "Standard_DS4_v2";
    const TWO_NICS: &str = "Standard_D4s_v3";

    /// A bed whose guests call their NICs eth0, eth1 and so on, in the order of Azure; a NIC with accelerated networking has the virtual
    /// function `enP1`.
    fn bed(keys: &str) -> RunBed {
        let text = format!("name = \"x\"\nregion = \"westeurope\"\n{keys}\n");
        let bed = bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let mut bed = RunBed::planned(&bed);
        for nics in bed.vms.iter_mut().map(|vm| &mut vm.nics) {
            for (index, nic) in nics.iter_mut().enumerate() {
                let vf = SeenVf { name: "enP1".to_owned(), driver: None, model: None, state: VfUse::Active };
                let vf = Some(vf).filter(|_| nic.is_accelerated);
                nic.seen = Some(SeenNic { interface: format!("eth{index}"), driver: None, vf });
            }
        }
        bed
    }

    fn two_nic(size: &str) -> RunBed {
        bed(&format!("size = \"{size}\""))
    }

    fn arm(name: &str, [client, server]: [&str; 2], keys: &str) -> String {
        format!("[[arms]]\nname = \"{name}\"\nclient = \"{client}\"\nserver = \"{server}\"\n{keys}\n")
    }

    /// Arms with a failover whose events are on one side or both.
    fn plan_of(arms: &[String], on: &str, design: &str) -> ResolvedPlan {
        let hosts = ["vm1", "vm2", "vm3", "vm4"].map(|vm| format!("[hosts.{vm}]\nbed = \"{vm}\"\n"));
        let event = |at: u32, kind: &str| format!("{{ at = \"{at} s\", do = \"{kind}\", on = \"{on}\" }}");
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n{}{}[[workloads]]\nname = \"w\"\ntype = \"failover\"\nduration = \"4 s\"\n\
             events = [{}, {}]\n[design]\n{design}\n",
            hosts.concat(),
            arms.concat(),
            event(1, "down"),
            event(2, "return"),
        );
        parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// Arms in the two test networks of a bed `two-nic`, with these treatments.
    fn plan(synthetic: &str, accelerated: &str) -> ResolvedPlan {
        let of = |network: &str, treatments: &str| {
            let keys = format!("network = \"{network}\"\ntreatments = [{treatments}]");
            arm(network, ["vm1", "vm2"], &keys)
        };
        plan_of(&[of("synthetic", synthetic), of("accelerated", accelerated)], "client", "blocks_max = 8")
    }

    fn faults(plan: ResolvedPlan, bed: &RunBed) -> Vec<String> {
        let faults = plan.with_interfaces_of(bed).expect_err("it has faults");
        faults.iter().map(ToString::to_string).collect()
    }

    /// The treatments of an arm with their sides, and the interfaces of its events.
    fn changed(arm: &Arm) -> (Vec<(String, Side)>, Vec<Option<String>>) {
        let treatments = arm.treatments.iter().map(|one| (one.action.words(), one.on)).collect();
        let events = arm.workloads.iter().flat_map(|workload| workload.traffic.facts().events);
        (treatments, events.map(|event| event.interface.clone()).collect())
    }

    #[test]
    fn interfaces_that_the_plan_leaves_out_are_those_of_the_network_of_the_arm() {
        let plan = plan(
            "{ queues = 1 }",
            "{ offload = \"tso\", value = \"off\" }, { sysctl = \"net.a.b\", value = \"1\" }",
        );
        let words = plan.arms[0].treatments[0].action.words();
        assert_eq!(words, "1 queue on the NIC in the arm's network");
        for (size, synthetic, accelerated) in [(THREE_NICS, "eth1", "eth2"), (TWO_NICS, "eth0", "eth1")] {
            let arms = plan.clone().with_interfaces_of(&two_nic(size)).expect("no name is wrong").arms;
            let events = |name: &str| vec![Some(name.to_owned()); 2];
            let queues = vec![(format!("1 queue on {synthetic}"), Side::Both)];
            assert_eq!(changed(&arms[0]), (queues, events(synthetic)));
            let others = [format!("tso of {accelerated} off"), "net.a.b = 1".to_owned()];
            let others: Vec<(String, Side)> = others.into_iter().map(|words| (words, Side::Both)).collect();
            assert_eq!(changed(&arms[1]), (others, events(accelerated)));
        }
    }

    #[test]
    fn interface_without_traffic_of_the_arm_is_refused_and_its_virtual_function_is_not() {
        let plan = plan("{ queues = 1, interface = \"eth1\" }", "{ mtu = 1400, interface = \"enP1\" }");
        assert!(plan.clone().with_interfaces_of(&two_nic(THREE_NICS)).is_ok());
        let faults = faults(plan, &two_nic(TWO_NICS));
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[0].starts_with(
                "the arm synthetic changes eth1 of the VM vm1, and its traffic uses eth0 there, in the network synthetic"
            ),
            "{faults:?}"
        );
        assert!(faults[1].contains("of the VM vm2"), "{faults:?}");
    }

    #[test]
    fn interface_is_not_judged_where_the_arm_switches_the_nic() {
        let bed = bed(&format!("size = \"{THREE_NICS}\"\ntype = \"toggle\""));
        let plan = |switch: &str| {
            let keys =
                format!("treatments = [{switch}{{ mtu = 1400, interface = \"enP1\", on = \"client\" }}]");
            let arms = [arm("one", ["vm1", "vm2"], ""), arm("two", ["vm1", "vm2"], &keys)];
            plan_of(&arms, "client", "blocks_max = 8")
        };
        let switch = "{ azure-nic = \"vm1-test\", accelerated = true, on = \"client\" }, ";
        assert!(plan(switch).with_interfaces_of(&bed).is_ok());
        for other in ["", "{ azure-nic = \"vm2-test\", accelerated = true, on = \"server\" }, "] {
            let faults = faults(plan(other), &bed);
            assert!(
                matches!(faults.as_slice(), [one] if one.contains("changes enP1 of the VM vm1")),
                "{faults:?}"
            );
        }
    }

    #[test]
    fn ends_with_other_names_have_a_treatment_each_and_no_common_event() {
        let mut bed = two_nic(THREE_NICS);
        bed.vms[1].nics[1].seen.as_mut().expect("it is seen").interface = "ens5".to_owned();
        let both = plan("{ mtu = 1400 }, { queues = 1, on = \"server\" }", "");
        let arms = both.with_interfaces_of(&bed).expect("no name is wrong").arms;
        let expected = [
            ("MTU 1400 B on eth1", Side::Client),
            ("MTU 1400 B on ens5", Side::Server),
            ("1 queue on ens5", Side::Server),
        ];
        assert_eq!(changed(&arms[0]).0, expected.map(|(words, on)| (words.to_owned(), on)));
        let network = |name: &str| arm(name, ["vm1", "vm2"], &format!("network = \"{name}\""));
        let both = plan_of(&[network("synthetic"), network("accelerated")], "both", "blocks_max = 8");
        let faults = faults(both, &bed);
        assert!(
            matches!(faults.as_slice(), [one] if one.contains("eth1 at the client and ens5 at the server")),
            "{faults:?}"
        );
    }

    #[test]
    fn setting_that_is_changed_with_and_without_a_name_is_refused() {
        let twice = plan("{ mtu = 1400 }, { mtu = 1300, interface = \"eth1\" }", "");
        let faults = faults(twice, &two_nic(THREE_NICS));
        assert!(
            matches!(faults.as_slice(), [one] if one.contains("changes the MTU of eth1 twice")),
            "{faults:?}"
        );
    }

    #[test]
    fn nic_that_the_guest_does_not_show_needs_a_name_which_is_not_judged() {
        let mut bed = two_nic(THREE_NICS);
        bed.vms[1].nics[1].seen = None;
        let unseen = faults(plan("{ mtu = 1400 }", ""), &bed);
        assert!(
            matches!(unseen.as_slice(), [one] if one.contains("the VM vm2 in the network synthetic")),
            "{unseen:?}"
        );
        assert!(plan("{ mtu = 1400, interface = \"eth1\" }", "").with_interfaces_of(&bed).is_ok());
    }

    #[test]
    fn arms_that_exchange_their_hosts_have_interfaces_of_the_same_names() {
        let arms =
            [arm("one", ["vm1", "vm2"], ""), arm("two", ["vm3", "vm4"], "treatments = [{ mtu = 1400 }]")];
        let plan = plan_of(&arms, "client", "crossover = true\nblocks_max = 12");
        let mut bed = bed(&format!("size = \"{THREE_NICS}\"\ntype = \"two-pairs\""));
        assert!(plan.clone().with_interfaces_of(&bed).is_ok());
        bed.vms[2].nics[1].seen.as_mut().expect("it is seen").interface = "ens5".to_owned();
        let faults = faults(plan, &bed).concat();
        assert!(faults.contains("the arm one cannot exchange its hosts"), "{faults}");
    }

    /// A plan as it runs on a bed, with every name of the bed.
    fn filled(plan: &ResolvedPlan, bed: &RunBed) -> ResolvedPlan {
        let mut plan = plan.clone();
        for treatment in plan.arms.iter_mut().flat_map(|arm| &mut arm.treatments) {
            treatment.action.set_resource_group(&bed.group);
        }
        plan.with_interfaces_of(bed).expect("no name is wrong").with_paths_of(bed)
    }

    /// The treatments and workloads of each arm.
    fn settings(plan: &ResolvedPlan) -> Vec<(Vec<Treatment>, Vec<Workload>)> {
        plan.arms.iter().map(|arm| (arm.treatments.clone(), arm.workloads.clone())).collect()
    }

    #[test]
    fn plans_on_beds_of_two_sizes_are_equal_without_the_names_of_the_beds() {
        let plan = plan(
            "{ queues = 1 }, { azure-nic = \"vm1-synthetic\", accelerated = true, on = \"client\" }",
            "{ offload = \"tso\", value = \"off\" }",
        );
        let beds = [(THREE_NICS, "netduel-large"), (TWO_NICS, "netduel-small")]
            .map(|(size, group)| RunBed { group: group.to_owned(), ..two_nic(size) });
        let [large, small] = beds.each_ref().map(|bed| filled(&plan, bed));
        for (one, other) in settings(&large).iter().zip(settings(&small)) {
            assert!(one.0 != other.0 && one.1 != other.1, "the beds have other names: {one:?} {other:?}");
        }
        for (filled, bed) in [large, small].iter().zip(&beds) {
            assert_eq!(settings(&filled.without_names_of(bed)), settings(&plan));
        }
    }

    #[test]
    fn names_that_differ_between_the_ends_and_those_of_packet_workloads_are_replaced() {
        let keys = "network = \"synthetic\"\ntreatments = [{ offload = \"tso\", value = \"off\" }]";
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n[hosts.vm1]\nbed = \"vm1\"\n[hosts.vm2]\nbed = \"vm2\"\n{}{}\
             [[workloads]]\nname = \"w\"\ntype = \"pps\"\nframe = 1518\nflows = 16\n",
            arm("one", ["vm1", "vm2"], keys),
            arm("two", ["vm1", "vm2"], "network = \"accelerated\""),
        );
        let plan = parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let mut bed = two_nic(THREE_NICS);
        bed.vms[1].nics[1].seen.as_mut().expect("it is seen").interface = "ens5".to_owned();
        let filled = filled(&plan, &bed);
        let packets = filled.arms[0].workloads[0].traffic.facts().packets.expect("they are packets");
        assert_eq!(Role::ALL.map(|role| packets.interface(role)), [Some("eth1"), Some("ens5")]);
        assert_eq!(filled.arms[0].treatments.len(), 2, "an end has a treatment each");
        assert_eq!(settings(&filled.without_names_of(&bed)), settings(&plan));
    }

    #[test]
    fn names_of_others_than_the_bed_stay() {
        let group = "resource-group = \"others\"";
        let nic =
            format!("{{ azure-nic = \"vm1-synthetic\", accelerated = true, on = \"client\", {group} }}");
        let plan = plan(&nic, "{ mtu = 1400, interface = \"enP1\" }");
        let bed = two_nic(THREE_NICS);
        let arms = filled(&plan, &bed).without_names_of(&bed).arms;
        assert_eq!(arms[0].treatments[0].action.resource_group(), Some("others"));
        assert_eq!(arms[1].treatments[0].action.interface(), Some("enP1"), "the plan names the VF");
    }
}
