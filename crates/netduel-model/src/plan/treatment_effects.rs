//! What treatments and traffic do to the links of a host besides what they are for. Nothing is run here.
use super::resolved::{Arm, TreatmentAction};
use crate::workload::Role;

impl TreatmentAction {
    /// Whether the link of an interface may be down for a while when it is applied or undone: it takes the interface away, or some driver restarts
    /// it for such a setting. A command may do anything.
    pub fn may_move_link(&self) -> bool {
        match self {
            Self::Path { .. }
            | Self::Offload { .. }
            | Self::Mtu { .. }
            | Self::Vf { .. }
            | Self::Pci { .. }
            | Self::Queues { .. }
            | Self::Rss { .. }
            | Self::Ring { .. }
            | Self::Coalesce { .. }
            | Self::AzureNic { .. }
            | Self::AzurePlacement { .. }
            | Self::Command { .. } => true,
            Self::Sysctl { .. } | Self::Rps { .. } | Self::Xps { .. } | Self::IrqAffinity { .. } => false,
        }
    }

    /// Whether it takes a virtual function away, so that the traffic has another path than the NIC showed before.
    pub fn takes_function(&self) -> bool {
        matches!(self, Self::Vf { .. } | Self::Pci { .. })
    }
}

impl Arm {
    /// Whether its trials may move a link at one end: by a treatment, by an event, or because some drivers restart the interface of a program or
    /// socket of kernel bypass.
    pub fn may_move_link(&self, role: Role) -> bool {
        let mut treatments = self.treatments.iter().filter(|treatment| treatment.on.includes(role));
        let mut facts = self.workloads.iter().map(|workload| workload.traffic.facts());
        treatments.any(|treatment| treatment.action.may_move_link())
            || facts.any(|facts| {
                facts.packets.is_some() || facts.events.iter().any(|event| event.on.includes(role))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn moves(of_arm: &str, workload: &str) -> [bool; 2] {
        let host = |name: &str, last: u8| {
            format!(
                "[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"x\"]\naddresses = [\"10.0.0.{last}\"]\n"
            )
        };
        let text = format!(
            "name = \"p\"\nquestion = \"?\"\n{}{}[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n{of_arm}\n\
             [[workloads]]\nname = \"w\"\n{workload}\n[design]\naa = true\n",
            host("a", 1),
            host("b", 2)
        );
        let plan = parse(&text, "p").unwrap_or_else(|errors| panic!("{errors}"));
        [Role::Client, Role::Server].map(|role| plan.arms[0].may_move_link(role))
    }

    #[test]
    fn treatments_that_drivers_restart_a_link_for_count_on_their_host() {
        let rr = "type = \"tcp-rr\"";
        assert_eq!(moves("", rr), [false, false]);
        let mtu = "treatments = [{ mtu = 1400, interface = \"eth0\", on = \"client\" }]";
        assert_eq!(moves(mtu, rr), [true, false]);
        let sysctl = "treatments = [{ sysctl = \"net.ipv4.tcp_sack\", value = \"0\", on = \"server\" }]";
        assert_eq!(moves(sysctl, rr), [false, false]);
    }
}
