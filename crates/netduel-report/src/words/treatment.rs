//! The arms of a plan, in words: server and treatments.
use netduel_model::plan::{Arm, ResolvedPlan, Treatment, TreatmentAction};

/// Treatments by arm, one line per arm. Empty when arms differ only in the path of the lab, which the path proof names.
pub fn changes(plan: &ResolvedPlan) -> Vec<String> {
    let is_path = |treatment: &Treatment| matches!(treatment.action, TreatmentAction::Path { .. });
    if plan.arms.iter().flat_map(|arm| &arm.treatments).all(is_path) {
        return Vec::new();
    }
    let line = |arm: &Arm| {
        let words: Vec<String> = arm.treatments.iter().map(treatment).collect();
        let words = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        format!("{}: {words}", arm.name)
    };
    plan.arms.iter().map(line).collect()
}

/// The server of an arm, with the addresses that only this arm uses: `b (192.0.2.7)`.
pub fn server(arm: &Arm) -> String {
    let addresses: Vec<String> = arm.server_addresses.iter().map(ToString::to_string).collect();
    if addresses.is_empty() {
        arm.pair.server.to_string()
    } else {
        format!("{} ({})", arm.pair.server, addresses.join(", "))
    }
}

/// One change in words, with its ends: `tso of eth0 off (both)`. The path of the lab is that of both guests.
pub fn treatment(treatment: &Treatment) -> String {
    let words = treatment.action.words();
    match treatment.action {
        TreatmentAction::Path { .. } => words,
        _ => format!("{words} ({})", format!("{:?}", treatment.on).to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use netduel_model::plan::parse;

    use super::*;

    #[test]
    fn every_treatment_is_described() {
        let mut plan = "name = \"p\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\naddresses = [\"192.0.2.1\"]\n[hosts.b]\n\
             launch = \"netns\"\nnetns = \"n\"\naddresses = [\"192.0.2.2\"]\n[[workloads]]\nname = \"w\"\ntype = \"tcp-stream\"\n"
            .to_owned();
        let cases = [
            ("vf = \"down\"", "virtual function of eth0 down (server)"),
            ("pci = \"removed\"", "PCI function of eth0 removed from the bus (server)"),
            ("offload = \"tso\", value = \"on\"", "tso of eth0 on (server)"),
            ("queues = 4", "4 queues on eth0 (server)"),
            ("queues = 1", "1 queue on eth0 (server)"),
            ("rss = \"weights 6 2\"", "RSS table weights 6 2 on eth0 (server)"),
            ("ring = \"rx\", value = \"512\"", "rx ring of 512 descriptors on eth0 (server)"),
            ("coalesce = \"rx-usecs\", value = \"8\"", "interrupt coalescing rx-usecs 8 on eth0 (server)"),
            (
                "coalesce = \"adaptive-rx\", value = \"off\"",
                "interrupt coalescing adaptive-rx off on eth0 (server)",
            ),
            ("rps = \"0-1\"", "receive packet steering (RPS) of eth0 on cores 0-1 (server)"),
            ("rps = \"off\"", "receive packet steering (RPS) of eth0 off (server)"),
            (
                "xps = \"spread\"",
                "transmit packet steering (XPS) of eth0 round-robin over all cores (server)",
            ),
            ("irq_affinity = \"3\"", "interrupts of eth0 served on core 3 (server)"),
        ];
        for (index, (written, _)) in cases.iter().enumerate() {
            let _ = write!(
                plan,
                "[[arms]]\nname = \"a{index}\"\nclient = \"a\"\nserver = \"b\"\n\
                 treatments = [{{ {written}, interface = \"eth0\", on = \"server\" }}]\n"
            );
        }
        let plan = parse(&plan, "p").unwrap();
        for (arm, (_, words)) in plan.arms.iter().zip(cases) {
            assert_eq!(treatment(&arm.treatments[0]), words);
        }
        assert_eq!(changes(&plan)[0], "a0: virtual function of eth0 down (server)");
        assert_eq!(changes(&plan).len(), plan.arms.len());
    }
}
