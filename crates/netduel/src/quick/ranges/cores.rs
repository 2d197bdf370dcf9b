//! Checks the bounds of a core number with all readers of a list of cores: plans, their JSON Schema, the command lines of quick tests,
//! agents and standing servers. Tests only.
use netduel_agent::treatment::{GuardCommand, TreatmentError, Treatments};
use netduel_model::plan::tuning::CoreChoice;
use netduel_model::plan::{self, TreatmentAction};
use netduel_model::workload::{CORE, Workload, WorkloadType};

use super::command_lines::{quick_test, takes_of};
use super::{BEGIN, SECOND, bounds, cases, check_bounds, with_treatment, workload};
use crate::serve::rules::Rules;

const PINS: [&str; 2] = ["pin_client", "pin_server"];
const STEERING: [&str; 3] = ["rps", "xps", "irq_affinity"];
/// The keys of lists of cores, by their position in the schema.
const LISTS: [(&str, &[&str]); 3] =
    [("WorkloadSpec", &PINS), ("SettingsSpec", &PINS), ("TreatmentSpec", &STEERING)];

/// What is allowed, as every error has it.
fn allowed() -> String {
    CORE.range.expect("it is a quantity").words()
}

/// A plan whose workload has a list of cores.
fn with_pin(key: &str, core: &str) -> String {
    format!("{BEGIN}type = \"tcp-rr\"\n{key} = [0, {core}]\n[lab]\n")
}

#[test]
fn plans_accept_cores_exactly_within_the_bounds() {
    for key in PINS {
        check_bounds(&CORE, |core| with_pin(key, core));
        let arm = |core: &str| {
            let set = format!("name = \"two\"\nset = {{ {key} = [0, {core}] }}\n");
            format!("{BEGIN}type = \"tcp-rr\"\n[lab]\n").replacen("name = \"two\"\n", &set, 1)
        };
        check_bounds(&CORE, arm);
    }
    for key in STEERING {
        check_bounds(&CORE, |core| with_treatment(&format!("{key} = \"0,{core}\"")));
    }
}

#[test]
fn plans_name_the_range_of_a_core() {
    for (core, _) in bounds(&CORE).filter(|(_, is_good)| !is_good) {
        let core = core.to_string();
        let pins = PINS.map(|key| with_pin(key, &core)).into_iter();
        let lists = STEERING.map(|key| with_treatment(&format!("{key} = \"0-{core}\""))).into_iter();
        for text in pins.chain(lists) {
            let errors = plan::parse(&text, "p").unwrap_err().to_string();
            assert!(errors.contains(&allowed()), "{errors}");
        }
    }
}

#[test]
fn the_schema_has_the_range_of_a_core() {
    let schema = plan::schema();
    let range = CORE.range.expect("it is a quantity");
    for (definition, keys) in LISTS {
        for key in keys {
            let property = &schema["$defs"][definition]["properties"][*key];
            let description = property["description"].as_str().expect("it is described");
            assert!(description.ends_with(&format!("Range of a core: {}.", allowed())), "{description}");
            if definition != "TreatmentSpec" {
                let core = &property["anyOf"][0]["items"];
                let found = ["minimum", "maximum"].map(|bound| core[bound].as_u64().expect("a number"));
                assert_eq!(found, [range.least, range.most], "{definition}.{key}");
            }
        }
    }
}

#[test]
fn agents_and_servers_have_the_range_of_a_core() {
    let rules = Rules { longest: SECOND, fastest: None, streams: u32::MAX };
    let workload = workload(&cases()[0]);
    for (core, is_good) in bounds(&CORE) {
        let cores = vec![0, u16::try_from(core).expect("it has 16 bits")];
        for (key, workload) in [
            ("pin_client", Workload { pin_client: cores.clone(), ..workload.clone() }),
            ("pin_server", Workload { pin_server: cores.clone(), ..workload.clone() }),
        ] {
            let agent = netduel_load::check_ranges(&workload).err();
            assert_eq!(agent.is_none(), is_good, "agent, {key} {core}: {agent:?}");
            let server = rules.refusal(&workload);
            assert_eq!(server.is_none(), is_good, "server, {key} {core}: {server:?}");
            let names_both = server.is_none_or(|why| why.contains(key) && why.contains(&allowed()));
            assert!(names_both, "{key} {core}");
        }
    }
}

#[test]
fn agents_have_the_range_of_a_core_in_treatments() {
    let mut agent = Treatments::new(GuardCommand::of_this_program());
    for (core, is_good) in bounds(&CORE) {
        let interface = || "no-such".to_owned();
        let cores = || CoreChoice::Cores { cores: vec![0, u16::try_from(core).expect("it has 16 bits")] };
        for action in [
            TreatmentAction::Rps { interface: interface(), cores: cores() },
            TreatmentAction::Xps { interface: interface(), cores: cores() },
            TreatmentAction::IrqAffinity { interface: interface(), cores: cores() },
        ] {
            let refused = agent.apply(std::slice::from_ref(&action)).expect_err("no such interface");
            let is_out = matches!(refused, TreatmentError::OutOfRange { .. });
            assert_eq!(is_out, !is_good, "{action:?}: {refused}");
        }
    }
}

#[test]
fn quick_tests_have_the_range_of_a_core() {
    for test in WorkloadType::ALL.iter().filter_map(|kind| quick_test(*kind)) {
        for option in ["--pin-client", "--pin-server"] {
            for (core, is_good) in bounds(&CORE) {
                let list = format!("0,{core}");
                let words = [option, list.as_str()];
                assert_eq!(takes_of(&test, &words), is_good, "{}: {words:?}", test.name);
            }
        }
    }
}
