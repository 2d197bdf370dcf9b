//! Treatments that need special devices: ports of a bridge for a virtual function, a tap for interrupt coalescing, and a folder
//! in place of `/sys` and `/proc` with a simulated PCI bus.
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use netduel_agent::treatment::{Roots, Treatments, recover};
use netduel_model::plan::TreatmentAction;
use netduel_model::plan::tuning::Ring;
use netduel_test_support::skip;

use super::{Agent, ROOTS, assert_treated, guard, in_namespace, kill_and_wait, must, offload, state};

const SLOT: &str = "0001:00:02.0";
const MAC: &str = "02:00:00:00:00:77";

fn ip(words: &str) {
    must("ip", &words.split(' ').collect::<Vec<_>>());
}

/// `syn0` and `vf0` as ports of `br0`, and `tap0`; a bus on which `vf0` is a function that can be removed and rescanned.
struct Bench {
    folder: tempfile::TempDir,
    before: String,
}

impl Bench {
    fn new() -> Self {
        for words in [
            "link add br0 type bridge",
            "link set br0 up",
            "link add syn0 numrxqueues 2 numtxqueues 2 type veth peer name vw",
            "link set syn0 up master br0",
            "link set vw up",
        ] {
            ip(words);
        }
        // On most machines only root may open its device file.
        if owns_the_machine() {
            ip("tuntap add tap0 mode tap");
        }
        plug_in();
        let folder = tempfile::tempdir().unwrap();
        bus(folder.path());
        fs::create_dir_all(folder.path().join("proc/irq/7/syn0-rx-1")).unwrap();
        fs::write(folder.path().join("proc/irq/7/smp_affinity_list"), "0-1\n").unwrap();
        fs::create_dir_all(folder.path().join("sys/devices/system/cpu")).unwrap();
        fs::write(folder.path().join("sys/devices/system/cpu/online"), "0-1\n").unwrap();
        let mut bench = Self { folder, before: String::new() };
        bench.before = bench.state();
        bench
    }

    fn roots(&self) -> Roots {
        Roots { sys: self.folder.path().join("sys"), proc: self.folder.path().join("proc") }
    }

    /// All settings that the treatments of this file change, as text.
    fn state(&self) -> String {
        let script = "mount -t sysfs none /sys && grep -r . /sys/class/net/syn0/queues/*/?ps_cpus";
        let queues = output("unshare", &["--mount", "sh", "-c", script]);
        let links = output("ip", &["-o", "link", "show"]);
        let mut ports: Vec<String> = links
            .lines()
            .filter(|line| [" syn0@", " vf0@"].iter().any(|name| line.contains(name)))
            .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
            // The pair of a recreated port has another index, so its peer is excluded.
            .map(|line| line.split_once('@').map_or(line.clone(), |(name, rest)| name.to_owned() + rest))
            // The kernel derives the carrier, and reports its changes late.
            .map(|line| line.replace("NO-CARRIER,", "").replace(",LOWER_UP", ""))
            .map(|line| {
                line.replace(" state LOWERLAYERDOWN", "").replace(" state UP", "").replace(" state DOWN", "")
            })
            .collect();
        ports.sort_unstable();
        let interrupt = fs::read_to_string(self.folder.path().join("proc/irq/7/smp_affinity_list")).unwrap();
        let mut door = netduel_sys::ethtool::Ethtool::open().unwrap();
        let channels = door.channels("syn0").unwrap();
        let coalesce = owns_the_machine().then(|| door.coalesce("tap0").unwrap());
        format!(
            "{} ports {ports:?}\n{queues}\nirq {}\n{channels:?}\n{coalesce:?}",
            ports.len(),
            interrupt.trim()
        )
    }
}

fn output(program: &str, words: &[&str]) -> String {
    String::from_utf8(Command::new(program).args(words).output().unwrap().stdout).unwrap()
}

fn plug_in() {
    ip(&format!("link add vf0 address {MAC} type veth peer name vq"));
    ip("link set vq up");
    ip("link set vf0 up master br0");
}

/// A PCI bus with one function. Its files are pipes; threads of the test act as the kernel when data is written to them.
fn bus(folder: &Path) {
    let sys = folder.join("sys");
    let device = sys.join("bus/pci/devices").join(SLOT);
    fs::create_dir_all(sys.join("bus/pci/devices")).unwrap();
    fs::create_dir_all(sys.join("class/net/vf0")).unwrap();
    symlink(&device, sys.join("class/net/vf0/device")).unwrap();
    let (remove, rescan) = (folder.join("remove"), sys.join("bus/pci/rescan"));
    must("mkfifo", &[remove.to_str().unwrap(), rescan.to_str().unwrap()]);
    let appear = move || {
        fs::create_dir(&device).unwrap();
        symlink("../../../../../remove", device.join("remove")).unwrap();
    };
    appear();
    let gone = sys.join("bus/pci/devices").join(SLOT);
    let wait_for = |file: PathBuf, act: Box<dyn Fn() + Send>| {
        thread::spawn(move || {
            loop {
                // A check for write permission opens the file without writing.
                if fs::read_to_string(&file).unwrap() == "1" {
                    act();
                }
            }
        });
    };
    wait_for(
        remove,
        Box::new(move || {
            fs::remove_dir_all(&gone).unwrap();
            ip("link del vf0");
        }),
    );
    wait_for(
        rescan,
        Box::new(move || {
            appear();
            plug_in();
        }),
    );
}

/// Whether the queue files are writable: only with privileges over the whole machine.
fn owns_the_machine() -> bool {
    fs::read_to_string("/proc/self/uid_map").unwrap().split_whitespace().eq(["0", "0", "4294967295"])
}

fn coalesce(interface: &str, value: u32) -> TreatmentAction {
    TreatmentAction::Coalesce { interface: interface.to_owned(), parameter: "rx-frames".to_owned(), value }
}

fn syn0() -> String {
    "syn0".to_owned()
}

/// One treatment of each kind in this file, with the expected state.
fn kinds() -> Vec<(TreatmentAction, &'static str)> {
    let coalesce = coalesce("tap0", 16);
    let mut kinds = vec![
        (TreatmentAction::IrqAffinity { interface: syn0(), cores: "spread".parse().unwrap() }, "irq 1\n"),
        // The other port of the pair must stay up, so both kinds use the same one.
        (TreatmentAction::Vf { interface: "vf0".to_owned() }, "<BROADCAST,MULTICAST>"),
        (TreatmentAction::Pci { interface: "vf0".to_owned() }, "1 ports"),
    ];
    if owns_the_machine() {
        let rps = TreatmentAction::Rps { interface: syn0(), cores: "1".parse().unwrap() };
        let xps = TreatmentAction::Xps { interface: syn0(), cores: "0".parse().unwrap() };
        kinds.push((coalesce, "values: [0, 16, 0,"));
        kinds.push((rps, "rx-1/rps_cpus:2"));
        kinds.push((xps, "tx-1/xps_cpus:1"));
    }
    // The last one, because it removes the files of the second queue.
    kinds.push((TreatmentAction::Queues { interface: syn0(), queues: 1 }, "rx: 1, tx: 1,"));
    kinds
}

fn actions() -> Vec<TreatmentAction> {
    kinds().into_iter().map(|(action, _)| action).collect()
}

#[test]
fn every_kind_of_treatment_is_applied_and_undone() {
    in_namespace("kinds::every_kind_of_treatment_is_applied_and_undone", || {
        let bench = Bench::new();
        let mut treatments = Treatments::with_roots(guard(), bench.roots());
        for (action, shown) in kinds() {
            assert!(!bench.before.contains(shown), "{shown} is there already: {}", bench.before);
            treatments
                .apply(std::slice::from_ref(&action))
                .unwrap_or_else(|failed| panic!("{action:?}: {failed}"));
            let now = bench.state();
            assert!(now.contains(shown), "{action:?}: {shown} is not in {now}");
            treatments.read_back(true).unwrap_or_else(|lost| panic!("{action:?}: {lost:?}"));
            treatments.undo_all().unwrap();
            assert_eq!(bench.state(), bench.before, "{action:?}");
        }
    });
}

#[test]
fn killing_the_agent_undoes_every_kind() {
    in_namespace("kinds::killing_the_agent_undoes_every_kind", || {
        let bench = Bench::new();
        let before = state();
        let actions: Vec<TreatmentAction> = actions().into_iter().chain(super::all()).collect();
        let mut agent = Agent::start_with(&actions, &[(ROOTS, bench.folder.path())]);
        assert_eq!(agent.word(), "well");
        assert_treated();
        assert_ne!(bench.state(), bench.before);
        let log = agent.kill();
        assert_eq!(bench.state(), bench.before, "{log}");
        assert_eq!(state(), before, "{log}");
        let count = actions.len();
        assert!(log.contains(&format!("with {count} changes in force: {count} are undone now")), "{log}");
    });
}

#[test]
fn killing_the_guard_leaves_the_agent_able_to_undo_every_kind() {
    in_namespace("kinds::killing_the_guard_leaves_the_agent_able_to_undo_every_kind", || {
        let bench = Bench::new();
        let mut agent = Agent::start_with(&actions(), &[(ROOTS, bench.folder.path())]);
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        agent.say("undo");
        assert!(agent.word().starts_with("left behind: false: keep the undo guard"));
        assert_eq!(bench.state(), bench.before);
        agent.kill();
    });
}

#[test]
fn settings_of_a_removed_queue_are_restored() {
    in_namespace("kinds::settings_of_a_removed_queue_are_restored", || {
        if !owns_the_machine() {
            return skip("without the right over the whole machine no file of a queue can be written");
        }
        let bench = Bench::new();
        let mut treatments = Treatments::new(guard());
        let cores = "0-1".parse().unwrap();
        treatments.apply(&[TreatmentAction::Rps { interface: syn0(), cores }]).unwrap();
        let with_cores = bench.state();
        let mut fewer = Treatments::new(guard());
        fewer.apply(&[TreatmentAction::Queues { interface: syn0(), queues: 1 }]).unwrap();
        assert!(!bench.state().contains("rx-1/"), "{}", bench.state());
        fewer.undo_all().unwrap();
        assert_eq!(bench.state(), with_cores);
        treatments.undo_all().unwrap();
        assert_eq!(bench.state(), bench.before);
    });
}

/// A text in which what follows the key, up to the end, is another value.
fn replaced(text: &str, key: &str, end: char, value: &str) -> String {
    let (before, rest) = text.split_once(key).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    format!("{before}{key}{value}{end}{after}")
}

#[test]
fn queues_that_do_not_come_back_keep_nothing_from_their_files() {
    in_namespace("kinds::queues_that_do_not_come_back_keep_nothing_from_their_files", || {
        if !owns_the_machine() {
            return skip("without the right over the whole machine no file of a queue can be written");
        }
        let mut agent = Agent::start(&[TreatmentAction::Queues { interface: "va".to_owned(), queues: 1 }]);
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        agent.kill();
        let namespace = format!("\"namespace\":{}", netduel_sys::namespace::network_cookie().unwrap());
        let is_own = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.split(['{', ',', '}']).any(|part| part == namespace)
        };
        let mut journals = fs::read_dir("/run/netduel").unwrap().map(|entry| entry.unwrap().path());
        let journal = journals.find(is_own).unwrap();
        // More queues than the device can have, and other cores than it has now.
        let text = fs::read_to_string(&journal).unwrap();
        let text = replaced(&text, "\"channels\":[", ']', "9,9,0,0");
        fs::write(&journal, replaced(&text, "[\"rx-0/rps_cpus\",\"", '"', "1")).unwrap();
        let recovery = recover();
        assert_eq!(recovery.problems.len(), 1, "{recovery:?}");
        let script = "mount -t sysfs none /sys && cat /sys/class/net/va/queues/rx-0/rps_cpus";
        let cores = output("unshare", &["--mount", "sh", "-c", script]);
        assert_eq!(cores.trim().trim_start_matches(['0', ',']), "1", "{recovery:?}");
        fs::remove_file(journal).unwrap();
    });
}

#[test]
fn segmentation_is_restored_with_checksums() {
    in_namespace("kinds::segmentation_is_restored_with_checksums", || {
        let before = state();
        for (group, along) in [("tx", "tx-tcp-segmentation"), ("rx", "rx-checksum")] {
            assert!(before.active[along], "{before:?}");
            let mut treatments = Treatments::new(guard());
            treatments.apply(&[offload(group, false)]).unwrap();
            assert!(!state().active[along], "{group}");
            treatments.undo_all().unwrap();
            assert_eq!(state(), before, "{group}");
        }
    });
}

#[test]
fn unsupported_values_are_rejected_with_the_supported_range() {
    in_namespace("kinds::unsupported_values_are_rejected_with_the_supported_range", || {
        let bench = Bench::new();
        for words in [
            "link add br1 type bridge",
            "link add only type veth peer name away",
            "link set only up master br1",
        ] {
            ip(words);
        }
        let queues = |queues| TreatmentAction::Queues { interface: syn0(), queues };
        let ring = TreatmentAction::Ring { interface: syn0(), ring: Ring::Rx, descriptors: 64 };
        let rss = TreatmentAction::Rss { interface: syn0(), table: "equal 2".parse().unwrap() };
        let cores = |text: &str| text.parse().unwrap();
        let named = |name: &str| name.to_owned();
        let mut cases = vec![
            (queues(4), vec!["set 4 queues on syn0", "1 to 2 receive and transmit queues each"]),
            (queues(0), vec!["queues is 0; 1 to 1024 is allowed"]),
            (coalesce("va", 8), vec!["set rx-frames of va to 8", "driver does not support"]),
            (ring, vec!["set the rx ring of syn0 to 64 descriptors", "driver does not support"]),
            (rss, vec!["set the RSS table of syn0 to equal 2", "driver does not support"]),
            (
                TreatmentAction::IrqAffinity { interface: named("va"), cores: cores("0") },
                vec!["no interrupts of its own"],
            ),
            (TreatmentAction::IrqAffinity { interface: syn0(), cores: cores("7") }, vec!["online here: 0-1"]),
            (
                TreatmentAction::Vf { interface: named("va") },
                vec!["remove va", "only connection to this host"],
            ),
            (
                TreatmentAction::Vf { interface: named("only") },
                vec!["remove only", "only connection to this host", "active-backup bond"],
            ),
            (
                TreatmentAction::Vf { interface: named("br1") },
                vec!["remove br1", "only connection to this host"],
            ),
            (TreatmentAction::Vf { interface: named("br0") }, vec!["several interfaces", "vf0", "syn0"]),
            (TreatmentAction::Vf { interface: named("no") }, vec!["`no`", "there are lo"]),
            (
                TreatmentAction::Pci { interface: named("va") },
                vec!["remove va", "only connection to this host"],
            ),
            (TreatmentAction::Pci { interface: syn0() }, vec!["not a function of a PCI bus"]),
        ];
        let steer = TreatmentAction::Rps { interface: syn0(), cores: cores("4000") };
        let single = TreatmentAction::Xps { interface: named("lo"), cores: cores("0") };
        if owns_the_machine() {
            cases.push((steer, vec!["set RPS of syn0", "online here: 0"]));
            cases.push((single, vec!["one transmit queue"]));
            let parts = vec!["set rx-frames of tap0 to 1000", "now has 64", "round"];
            cases.push((coalesce("tap0", 1000), parts));
        } else {
            cases.push((steer, vec!["belongs to another network namespace", "run the agent as root"]));
        }
        let mut treatments = Treatments::with_roots(guard(), bench.roots());
        for (action, parts) in cases {
            let failed = treatments.apply(std::slice::from_ref(&action));
            let failed = failed.expect_err(&format!("{action:?}")).to_string();
            for part in parts {
                assert!(failed.contains(part), "{action:?}: {part:?} is not in: {failed}");
            }
            assert_eq!((treatments.applied(), &bench.state()), (0, &bench.before), "{action:?}");
        }
    });
}

#[test]
fn function_with_a_route_is_not_taken_away_because_the_route_would_not_return() {
    in_namespace("kinds::function_with_a_route_is_not_taken_away_because_the_route_would_not_return", || {
        let bench = Bench::new();
        let routes =
            ["10.9.0.0/16 dev vf0", "10.8.0.0/16 dev vf0 table 100 proto static", "fd98::/64 dev vf0"];
        for words in routes {
            ip(&format!("route add {words}"));
        }
        let vf0 = || "vf0".to_owned();
        for action in [TreatmentAction::Vf { interface: vf0() }, TreatmentAction::Pci { interface: vf0() }] {
            let mut treatments = Treatments::with_roots(guard(), bench.roots());
            let failed = treatments.apply(std::slice::from_ref(&action));
            let failed = failed.expect_err(&format!("{action:?}")).to_string();
            let there = ["-4", "-6"]
                .map(|family| output("ip", &[family, "route", "show", "table", "all", "dev", "vf0"]))
                .concat();
            for destination in ["10.9.0.0/16", "10.8.0.0/16", "fd98::/64"] {
                assert!(failed.contains(destination), "{action:?}: {destination} is not in: {failed}");
                assert!(there.contains(destination), "{action:?}: {destination} is not in: {there}");
            }
            for part in ["remove vf0", "`command` treatment with an `undo`"] {
                assert!(failed.contains(part), "{action:?}: {part:?} is not in: {failed}");
            }
            assert_eq!((treatments.applied(), &bench.state()), (0, &bench.before), "{action:?}");
        }
        // The routes of its link-local address are the kernel's own.
        for words in routes {
            ip(&format!("route del {words}"));
        }
        let mut treatments = Treatments::with_roots(guard(), bench.roots());
        treatments.apply(&[TreatmentAction::Vf { interface: vf0() }]).unwrap();
        treatments.undo_all().unwrap();
        assert_eq!(bench.state(), bench.before);
    });
}

#[test]
fn forbidden_congestion_control_is_rejected_with_the_alternative() {
    in_namespace("kinds::forbidden_congestion_control_is_rejected_with_the_alternative", || {
        let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        let allowed = read("tcp_allowed_congestion_control");
        let available = read("tcp_available_congestion_control");
        let before = read("tcp_congestion_control");
        for name in available.split_whitespace() {
            let action = TreatmentAction::Sysctl {
                name: "net.ipv4.tcp_congestion_control".to_owned(),
                value: name.to_owned(),
            };
            let mut treatments = Treatments::new(guard());
            match treatments.apply(&[action]) {
                Ok(()) => {
                    assert!(allowed.split_whitespace().any(|word| word == name) || before.trim() == name);
                    assert_eq!(read("tcp_congestion_control").trim(), name);
                }
                Err(failed) => {
                    let text = failed.to_string();
                    assert!(text.contains("tcp_allowed_congestion_control"), "{text}");
                    assert!(text.contains("`congestion` of the workload"), "{text}");
                }
            }
            drop(treatments);
            assert_eq!(read("tcp_congestion_control"), before);
        }
    });
}
