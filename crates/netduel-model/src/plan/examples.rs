//! What an author can write for a key of a plan or a bed, shown where a value is refused or a key is missing. Keys without an example here have
//! that of their type, or their description.

/// Quantities by key, where the example of the type would not fit.
const QUANTITIES: &[(&str, &str)] = &[
    ("at", "2 s"),
    ("budget", "20 min"),
    ("confidence", "95 %"),
    ("cooldown", "500 ms"),
    ("duration", "10 s"),
    ("idle_share", "25 %"),
    ("size", "64 B"),
    ("volume", "10 GiB"),
    ("warmup", "1 s"),
    ("window", "4 MiB"),
];
/// Tables by key, or by the key of the list whose elements they are.
const TABLES: &[(&str, &str)] = &[
    ("dpdk", "{ queues = 2 }"),
    ("events", "{ at = \"2 s\", do = \"remove\" }"),
    ("expect_interface", "{ client = \"eth0\", server = \"eth0\" }"),
    ("set", "{ streams = 8 }"),
    ("treatments", "{ offload = \"gro\", interface = \"eth0\", value = \"off\" }"),
];
/// What to add for a key that must be written.
const ADDITIONS: &[(&str, &str)] = &[
    ("arms", "a table [[arms]] for each configuration"),
    ("at", "at = \"2 s\""),
    ("client", "client = \"NAME of a host\""),
    ("do", "do = \"remove\""),
    ("hosts", "a table for each host, for example [hosts.client]"),
    ("name", "name = \"NAME\""),
    ("question", "question = \"Is B faster than A?\""),
    ("region", "region = \"westeurope\""),
    ("server", "server = \"NAME of a host\""),
    ("size", "size = \"Standard_DS4_v2\""),
    ("type", "type = \"tcp-stream\""),
    ("workloads", "a table [[workloads]] for each kind of traffic"),
];

fn of(examples: &[(&str, &'static str)], key: &str) -> Option<&'static str> {
    examples.iter().find(|(known, _)| *known == key).map(|(_, example)| *example)
}

/// The last key of a path; of an element the key of its list.
fn last_key(path: &str) -> &str {
    let last = path.rsplit('.').next().unwrap_or(path);
    last.split('[').next().unwrap_or(last)
}

/// A quantity that fits the key of a path.
pub(super) fn quantity(path: &str) -> Option<&'static str> {
    of(QUANTITIES, last_key(path))
}

/// A table that fits the key of a path.
pub(super) fn table(path: &str) -> Option<&'static str> {
    of(TABLES, last_key(path))
}

/// What to add for a key that is missing.
pub(super) fn addition(key: &str) -> Option<&'static str> {
    of(ADDITIONS, key)
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;
    use crate::bed::BedSpec;
    use crate::plan::problem::Problems;
    use crate::plan::shape::Shape;
    use crate::plan::spec::{ArmSpec, DesignSpec, EventSpec, PlanSpec, WorkloadSpec};

    /// Whether a table has a key and reads this value of it.
    fn reads<S: Shape>(key: &str, value: &str) -> bool {
        let text = format!("v = {value}");
        let (table, errors) = DeTable::parse_recoverable(&text);
        assert!(errors.is_empty(), "{text}");
        let (_, raw) = table.get_ref().iter().next().expect("it has a key");
        let mut problems = Problems::new("");
        S::default().fill(key, raw, key, &mut problems) && problems.len() == 0
    }

    #[test]
    fn example_of_a_key_is_read_by_a_table_that_has_it() {
        let quantities = QUANTITIES.iter().map(|(key, value)| (*key, format!("\"{value}\"")));
        let tables = TABLES.iter().map(|(key, table)| (*key, (*table).to_owned()));
        for (key, value) in quantities.chain(tables) {
            let list = format!("[{value}]");
            let is_read = [value.as_str(), list.as_str()].into_iter().any(|value| {
                reads::<ArmSpec>(key, value)
                    || reads::<WorkloadSpec>(key, value)
                    || reads::<DesignSpec>(key, value)
                    || reads::<EventSpec>(key, value)
            });
            assert!(is_read, "{key} = {value}");
        }
    }

    #[test]
    fn every_key_that_must_be_written_has_an_addition() {
        let of_plans = [PlanSpec::keys(), ArmSpec::keys(), WorkloadSpec::keys(), EventSpec::keys()];
        let all = [of_plans.concat(), BedSpec::keys()].concat();
        for key in all.into_iter().filter(|key| key.required) {
            assert!(addition(key.name).is_some(), "{}", key.name);
        }
    }

    #[test]
    fn path_has_the_example_of_its_last_key() {
        assert_eq!(quantity("workloads[0].events[1].at"), Some("2 s"));
        assert_eq!(table("arms[1].treatments[0]"), table("treatments"));
        assert_eq!(quantity("lab.cap"), None);
    }
}
