//! Checks the ranges that another setting narrows, with all readers: plans, agents, standing servers and the command lines of quick
//! tests. The JSON Schema has the range of the type, and its text has the narrower one. Tests only.
use netduel_model::packet_path::{KERNEL_FLOWS_MOST, PacketEngine, PacketPath};
use netduel_model::plan::{self, spec::SettingsSpec};
use netduel_model::workload::{Family, THREADS_MOST, TcpEngine, Workload, WorkloadType};

use super::command_lines::{quick_test, takes_of};
use super::{BEGIN, SECOND, cases, elsewhere, workload};
use crate::quick::options::option;
use crate::serve::rules::Rules;

/// A setting whose range another one narrows.
struct Narrowed {
    kind: WorkloadType,
    key: &'static str,
    /// The other setting: its line in a plan, its words on a command line, and itself.
    line: &'static str,
    words: &'static [&'static str],
    set: fn(&mut SettingsSpec),
    /// The last value in the range and the first one beyond it.
    inside: u64,
    beyond: u64,
}

/// Streams with an engine that has a thread for each.
fn of_streams(line: &'static str, words: &'static [&'static str], set: fn(&mut SettingsSpec)) -> Narrowed {
    let (inside, beyond) = (THREADS_MOST, THREADS_MOST + 1);
    Narrowed { kind: WorkloadType::TcpStream, key: "streams", line, words, set, inside, beyond }
}

fn all() -> [Narrowed; 4] {
    let least = u64::from(PacketPath::frame_least(Family::Ipv6));
    [
        Narrowed {
            kind: WorkloadType::Pps,
            key: "frame",
            line: "family = \"ipv6\"",
            words: &["-6"],
            set: |settings| settings.family = Some(Family::Ipv6),
            inside: least,
            beyond: least - 1,
        },
        Narrowed {
            kind: WorkloadType::Pps,
            key: "flows",
            line: "generator = \"kernel\"",
            words: &["--generator", "kernel"],
            set: |settings| settings.generator = Some(PacketEngine::Kernel),
            inside: KERNEL_FLOWS_MOST,
            beyond: KERNEL_FLOWS_MOST + 1,
        },
        of_streams("engine = \"zerocopy\"", &["--engine", "zerocopy"], |settings| {
            settings.engine = Some(TcpEngine::Zerocopy);
        }),
        of_streams("engine = \"io-uring\"", &["--engine", "io-uring"], |settings| {
            settings.engine = Some(TcpEngine::IoUring);
        }),
    ]
}

impl Narrowed {
    /// The values, each with whether it is in the range.
    fn values(&self) -> [(u64, bool); 2] {
        [(self.inside, true), (self.beyond, false)]
    }

    fn name(&self, value: u64) -> String {
        format!("{} = {value} of {} with {}", self.key, self.kind.word(), self.line)
    }

    /// The workload as sent to an agent or a server by a client that did not validate it.
    fn workload(&self, value: u64) -> Workload {
        let of_type = cases().into_iter().find(|case| case.kind == self.kind).expect("it has ranges");
        let mut settings = SettingsSpec::default();
        (self.set)(&mut settings);
        assert!(settings.set_number(self.key, value), "{} cannot be set", self.name(value));
        Workload {
            traffic: plan::traffic(&settings, self.kind, SECOND),
            family: settings.family.unwrap_or_default(),
            ..workload(&of_type)
        }
    }
}

#[test]
fn plans_have_the_narrower_range() {
    for narrowed in all() {
        for (value, is_good) in narrowed.values() {
            let name = narrowed.name(value);
            let Narrowed { kind, key, line, .. } = &narrowed;
            let text = format!("{BEGIN}type = \"{}\"\n{line}\n{key} = {value}\n[lab]\n", kind.word());
            // The accelerated path of the lab does not take the frames of the generator `kernel`.
            let text = if *key == "flows" { elsewhere(&text) } else { text };
            match plan::parse(&text, "p") {
                Ok(_) => assert!(is_good, "{name} was taken"),
                Err(errors) => {
                    assert!(!is_good, "{name}: {errors}");
                    let at = format!("workloads[0].{key}");
                    assert!(errors.problems.iter().any(|problem| problem.key == at), "{name}: {errors}");
                }
            }
        }
    }
}

#[test]
fn agents_and_servers_have_the_narrower_range() {
    let rules = Rules { longest: SECOND, fastest: None, streams: u32::MAX };
    for narrowed in all() {
        for (value, is_good) in narrowed.values() {
            let (name, workload) = (narrowed.name(value), narrowed.workload(value));
            let agent = netduel_load::check_ranges(&workload).err();
            assert_eq!(agent.is_none(), is_good, "agent, {name}: {agent:?}");
            let server = rules.refusal(&workload);
            assert_eq!(server.is_none(), is_good, "server, {name}: {server:?}");
            assert!(server.is_none_or(|why| why.contains(narrowed.key)), "{name}");
        }
    }
}

#[test]
fn quick_tests_have_the_narrower_range() {
    for narrowed in all() {
        let test = quick_test(narrowed.kind).expect("it is a quick test");
        let words = option(narrowed.key).expect("it has an option");
        let option = words.split(' ').next().unwrap_or(words);
        for (value, is_good) in narrowed.values() {
            let text = value.to_string();
            let words = [narrowed.words, &[option, &text]].concat();
            assert_eq!(takes_of(&test, &words), is_good, "{}: {words:?}", narrowed.name(value));
        }
    }
}
