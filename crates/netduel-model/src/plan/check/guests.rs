//! Guests of the lab: a plan must not ask of them what the lab does not have. What it has stands in [`crate::lab`].
use std::collections::BTreeMap;

use crate::ids::HostName;
use crate::lab;
use crate::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use crate::plan::problem::{Problems, element_path, key_path, one_of};
use crate::plan::resolved::{Arm, Host, Lab, Launch, Treatment, TreatmentAction};
use crate::plan::spec::{ArmSpec, LabPath, PlanSpec};
use crate::workload::{LAB, Role, UdpOffload, Wire, Workload};

use super::events::Ends;
use super::values::check_table;
use super::{treatments, workloads};

/// Notes what the arms of a plan, in the order in which they are written, ask of guests that the lab does not have.
pub(super) fn check(
    spec: &PlanSpec,
    (lab, hosts): (&Lab, &BTreeMap<HostName, Host>),
    arms: &[Arm],
    problems: &mut Problems<'_>,
) {
    let workloads = workloads::written(spec);
    for (index, (written, arm)) in spec.arms.iter().flatten().zip(arms).enumerate() {
        let path = element_path("arms", index);
        let [client, server] = Role::ALL.map(|role| hosts.get(arm.pair.host(role)));
        let ends = Ends { client, server, treatments: &arm.treatments };
        let guests = Guests { lab, ends, path: path_in_use(spec, &arm.treatments) };
        guests.check_arm(written, &path, problems);
        for ((index, workload), resolved) in workloads.iter().zip(&arm.workloads) {
            let workload_path = element_path("workloads", *index);
            let place = |key: &str| workloads::place_of(key, (workload, &workload_path), (written, &path));
            guests.check_workload(resolved, &place, problems);
        }
    }
}

/// The path of the lab that an arm's traffic takes; absent when it is that of the trial before, or when a treatment moves it.
fn path_in_use(spec: &PlanSpec, treatments: &[Treatment]) -> Option<LabPath> {
    let mut all = spec.arms.iter().flatten().flat_map(|arm| arm.treatments.iter().flatten());
    let initial = || (!all.any(|treatment| treatment.path.is_some())).then_some(lab::INITIAL_PATH);
    treatments::lab_path(treatments).or_else(initial).filter(|_| !treatments::moves(treatments))
}

/// The guests of an arm.
#[derive(Clone, Copy)]
struct Guests<'a> {
    lab: &'a Lab,
    /// The hosts, which may be others than guests.
    ends: Ends<'a>,
    /// The path that their traffic takes, when it is known.
    path: Option<LabPath>,
}

impl Guests<'_> {
    /// Notes treatments and expected interfaces that the guests do not have. `path`: where the arm stands.
    fn check_arm(&self, arm: &ArmSpec, path: &str, problems: &mut Problems<'_>) {
        for (index, treatment) in self.ends.treatments.iter().enumerate() {
            if Role::ALL.into_iter().any(|role| treatment.on.includes(role) && self.is_guest(role)) {
                let path = element_path(&key_path(path, "treatments"), index);
                self.check_treatment(&treatment.action, &path, problems);
            }
        }
        let expected = arm.expect_interface.clone().unwrap_or_default();
        for (role, key, name) in
            [(Role::Client, "client", expected.client), (Role::Server, "server", expected.server)]
        {
            if let Some(name) = name.filter(|_| self.is_guest(role)) {
                check_interface(&name, &key_path(&key_path(path, "expect_interface"), key), problems);
            }
        }
    }

    fn check_treatment(&self, action: &TreatmentAction, path: &str, problems: &mut Problems<'_>) {
        let Some(interface) = action.interface() else { return };
        if let TreatmentAction::Mtu { mtu, .. } = action {
            // The paths of the lab carry what the lab itself may be set to.
            check_table(problems, path, LAB, |key| (key == "mtu").then_some(u64::from(*mtu)));
        }
        if !check_interface(interface, &key_path(path, "interface"), problems) {
            return;
        }
        if let Some((key, what)) = lab::lacks(action) {
            let wrong =
                format!("changes the {what} of {interface}, an interface of a lab guest, which has none");
            problems.add(&key_path(path, key), wrong, "use hosts with a NIC, or leave the treatment out");
        }
        match action {
            TreatmentAction::Vf { .. } if !lab::PAIR.contains(&interface) => {
                let wrong =
                    format!("sets {interface} down, which no other interface of a lab guest replaces");
                problems.add(&key_path(path, "interface"), wrong, format!("allowed: {}", one_of(lab::PAIR)));
            }
            TreatmentAction::Queues { queues, .. }
                if interface == lab::DIRECT_INTERFACE && *queues > self.lab.queues =>
            {
                let wrong = format!("is {queues}, and {interface} has {} in this lab", self.lab.queues);
                problems.add(&key_path(path, "queues"), wrong, "set `queues` in [lab]");
            }
            _ => {}
        }
    }

    /// Notes settings of a workload that the path between the guests does not carry. `place`: where a key stands.
    fn check_workload(
        &self,
        workload: &Workload,
        place: &dyn Fn(&str) -> String,
        problems: &mut Problems<'_>,
    ) {
        if !Role::ALL.into_iter().all(|role| self.is_guest(role)) {
            return;
        }
        let facts = workload.traffic.facts();
        if let (Some(packets), Some(path)) = (facts.packets, self.path) {
            self.check_packets(packets, path, place, problems);
        }
        let Wire::Datagrams { size, offload } = facts.wire else { return };
        if offload == UdpOffload::None || facts.is_of_packets() {
            return;
        }
        let senders = Role::ALL.into_iter().filter(|role| facts.directions(*role).0);
        let mtu = senders.map(|role| self.mtu(role)).min().unwrap_or(self.lab.mtu);
        let most = mtu.saturating_sub(workload.family.udp_headers());
        if size.0 > u64::from(most) {
            let wrong = format!(
                "is \"{size}\" with segmentation offload, and the MTU of {mtu} bytes of the lab guests leaves {most} for the payload"
            );
            let allowed = format!("set size = \"{most} B\" or less, or offload = \"none\"");
            problems.add(&place("size"), wrong, allowed);
        }
    }

    fn check_packets(
        &self,
        packets: &PacketPath,
        path: LabPath,
        place: &dyn Fn(&str) -> String,
        problems: &mut Problems<'_>,
    ) {
        let interface = lab::interface(path);
        if packets.engine == PacketEngine::Kernel && !lab::takes_frames_of_the_kernel(path) {
            let wrong = format!("is \"kernel\", whose frames the far end of {interface} does not take");
            let allowed =
                "give the arm treatments = [{ path = \"direct\" }], or use the generator `xdp` or `socket`";
            problems.add(&place("generator"), wrong, allowed);
        }
        let is_xdp = |role: &Role| match role {
            Role::Client => packets.engine == PacketEngine::Xdp,
            Role::Server => packets.receiver == PacketReceiver::Xdp,
        };
        let least = Role::ALL.into_iter().filter(is_xdp).map(|role| self.queues(role, path)).min();
        if let (Some(wanted), Some(least)) = (packets.queues, least)
            && wanted > least
        {
            let wrong = format!("is {wanted}, and {interface} has {least} in this lab");
            let allowed = format!(
                "set `queues` in [lab] and path = \"{}\", or give the arm a treatment with `queues`",
                LabPath::Direct.word()
            );
            problems.add(&place("queues"), wrong, allowed);
        }
    }

    fn is_guest(&self, role: Role) -> bool {
        let host = match role {
            Role::Client => self.ends.client,
            Role::Server => self.ends.server,
        };
        matches!(host, Some(Host { launch: Launch::Lab { .. }, .. }))
    }

    /// Queues of the interface of a path at an end, with those that a treatment sets.
    fn queues(&self, role: Role, path: LabPath) -> u32 {
        let set = self.ends.treatments.iter().filter(|treatment| treatment.on.includes(role)).find_map(
            |treatment| match &treatment.action {
                TreatmentAction::Queues { interface, queues } if interface == lab::interface(path) => {
                    Some(*queues)
                }
                _ => None,
            },
        );
        set.unwrap_or_else(|| lab::queues(path, self.lab))
    }

    /// The MTU of the interface with the addresses at an end, with that which a treatment sets.
    fn mtu(&self, role: Role) -> u32 {
        let set = self.ends.treatments.iter().filter(|treatment| treatment.on.includes(role)).find_map(
            |treatment| match &treatment.action {
                TreatmentAction::Mtu { interface, mtu } if interface == lab::GUEST_INTERFACE => Some(*mtu),
                _ => None,
            },
        );
        set.unwrap_or(self.lab.mtu)
    }
}

/// Whether a guest has an interface; notes one that it does not have.
fn check_interface(name: &str, path: &str, problems: &mut Problems<'_>) -> bool {
    let has = lab::GUEST_INTERFACES.contains(&name);
    if !has {
        let allowed = format!("allowed: {}", one_of(lab::GUEST_INTERFACES));
        problems.add(path, format!("{name:?} is no interface of a lab guest"), allowed);
    }
    has
}
