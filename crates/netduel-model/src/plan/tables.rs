//! Which tables of a plan have a key, for messages about one that stands in another table. Nothing is read or judged here.
use super::settings::{DpdkSpec, EventSpec, SettingsSpec};
use super::shape::{Key, Shape};
use super::spec::{
    ArmSpec, DesignSpec, HostSpec, LabSpec, PlanSpec, ReportSpec, TreatmentSpec, WorkloadSpec,
};

/// The tables that have a key, in words, in the order in which an author meets them.
pub(super) fn with_key(key: &str) -> Vec<&'static str> {
    let tables = [
        ("the beginning of the plan, before every table", PlanSpec::keys()),
        ("[report]", ReportSpec::keys()),
        ("[lab]", LabSpec::keys()),
        ("[hosts.NAME]", HostSpec::keys()),
        ("[[arms]]", ArmSpec::keys()),
        ("`set` of an arm", SettingsSpec::keys()),
        ("a treatment of an arm", TreatmentSpec::keys()),
        ("[[workloads]]", WorkloadSpec::keys()),
        ("an event of a workload", EventSpec::keys()),
        ("[workloads.dpdk]", DpdkSpec::keys()),
        ("[design]", DesignSpec::keys()),
    ];
    let has = |keys: &[Key]| keys.iter().any(|known| known.name == key);
    tables.into_iter().filter(|(_, keys)| has(keys)).map(|(table, _)| table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_all_its_tables_in_the_order_of_a_plan() {
        for (key, tables) in [
            ("duration", &["[[workloads]]"][..]),
            ("streams", &["`set` of an arm", "[[workloads]]"]),
            ("on", &["a treatment of an arm", "an event of a workload"]),
            ("sudo", &["[hosts.NAME]"]),
            ("blocks_max", &["[design]"]),
            ("strems", &[]),
        ] {
            assert_eq!(with_key(key), tables, "{key}");
        }
    }
}
