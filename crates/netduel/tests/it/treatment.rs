//! Treatments on real devices: every test runs in a new network namespace, where an agent is killed. Tests wait for the end of
//! processes and pipes, never for a fixed time.
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use crate::support::Bench;
use netduel_agent::treatment::{GuardCommand, Roots, TreatmentError, Treatments};
use netduel_model::plan::TreatmentAction;
use netduel_model::plan::spec::LabPath;
use netduel_sys::ethtool::Ethtool;
use netduel_test_support::NewNamespace;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

mod guarding;
mod irreversible;
mod keeping;
mod kinds;
mod recovery;
mod resources;
mod returned;

/// Set in the agent process of a test: the changes to make, as JSON.
const AGENT: &str = "NETDUEL_TEST_AGENT";
/// Also set: changes to make after these, with a guard of their own, as JSON.
const LATER: &str = "NETDUEL_TEST_LATER_CHANGES";
/// Also set: the folder used as `/sys` and `/proc`.
const ROOTS: &str = "NETDUEL_TEST_ROOTS";
/// Set in the process that hands over an interface.
const LENDER: &str = "NETDUEL_TEST_LENDER";
const SYSCTL: &str = "net.ipv4.tcp_slow_start_after_idle";

/// Runs `body` in a new network namespace with a veth pair `va`, `vb`.
fn in_namespace(name: &str, body: fn()) {
    let prepare = "ip link add va numrxqueues 2 type veth peer name vb; ip link set va up; ip link set vb up";
    NewNamespace { prepare, ..NewNamespace::default() }.run(&format!("treatment::{name}"), body);
}

pub fn must(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().unwrap();
    assert!(status.success(), "{program} {words:?}: {status}");
}

fn guard() -> GuardCommand {
    GuardCommand { program: env!("CARGO_BIN_EXE_netduel").into(), words: vec!["undo-guard".to_owned()] }
}

fn offload(feature: &str, enabled: bool) -> TreatmentAction {
    TreatmentAction::Offload { interface: "va".to_owned(), feature: feature.to_owned(), enabled }
}

fn mtu(mtu: u32) -> TreatmentAction {
    TreatmentAction::Mtu { interface: "va".to_owned(), mtu }
}

fn sysctl(value: &str) -> TreatmentAction {
    TreatmentAction::Sysctl { name: SYSCTL.to_owned(), value: value.to_owned() }
}

fn command(command: &[&str], undo: &[&str]) -> TreatmentAction {
    let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect();
    TreatmentAction::Command { command: words(command), undo: words(undo) }
}

/// Creates an alias of `va`, and removes it.
fn alias() -> TreatmentAction {
    command(&["ip", "link", "set", "va", "alias", "treated"], &["ip", "link", "set", "va", "alias", ""])
}

/// One of each kind.
fn all() -> Vec<TreatmentAction> {
    vec![offload("tx-checksum-ip-generic", false), offload("gro", true), mtu(1400), sysctl("0"), alias()]
}

/// All settings that the tests change.
#[derive(Debug, PartialEq, Eq)]
struct State {
    active: BTreeMap<String, bool>,
    requested: BTreeMap<String, bool>,
    mtu: u32,
    sysctl: String,
    alias: bool,
}

fn state() -> State {
    let features = Ethtool::open().unwrap().features("va").unwrap();
    let link = Command::new("ip").args(["link", "show", "va"]).output().unwrap();
    State {
        active: features.iter().map(|feature| (feature.name.clone(), feature.active)).collect(),
        requested: features.iter().map(|feature| (feature.name.clone(), feature.requested)).collect(),
        mtu: netduel_sys::link::mtu("va").unwrap(),
        sysctl: fs::read_to_string("/proc/sys/net/ipv4/tcp_slow_start_after_idle").unwrap().trim().to_owned(),
        alias: String::from_utf8_lossy(&link.stdout).contains("treated"),
    }
}

fn assert_treated() {
    let state = state();
    assert!(!state.active["tx-checksum-ip-generic"] && !state.active["tx-tcp-segmentation"], "{state:?}");
    assert!(state.active["rx-gro"], "{state:?}");
    assert_eq!((state.mtu, state.sysctl.as_str(), state.alias), (1400, "0", true));
}

/// A plan over the loopback interface of the namespace: the baseline `plain`, and `treated` with these treatments.
pub fn plan_of_two_arms(bench: &Bench, treatments: &str) -> PathBuf {
    plan_on_loopback(
        bench,
        &format!(
            "{}{}[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\nduration = \"100 ms\"\nwarmup = \"0 s\"\n\
             [design]\nseed = 5\nblocks_min = 2\nblocks_max = 2\n",
            arm("plain", ""),
            arm("treated", treatments)
        ),
    )
}

/// An arm of [`plan_on_loopback`].
fn arm(name: &str, treatments: &str) -> String {
    format!("[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{treatments}]\n")
}

/// A plan with the hosts `a` and `b` on the loopback interface of the namespace; `rest` follows them.
fn plan_on_loopback(bench: &Bench, rest: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_netduel"));
    let path = format!("PATH={}:/usr/sbin:/usr/bin:/sbin:/bin", program.parent().unwrap().display());
    let host =
        format!("launch = \"command\"\naddresses = [\"127.0.0.1\"]\ncommand = [\"env\", \"{path}\"]\n");
    bench.plan(&format!("name = \"two\"\nquestion = \"q?\"\n[hosts.a]\n{host}[hosts.b]\n{host}{rest}"))
}

/// An agent for killing.
struct Agent {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Held by the agent and by its guard: it closes when both have ended.
    log: ChildStderr,
}

impl Agent {
    fn start(actions: &[TreatmentAction]) -> Self {
        Self::start_with(actions, &[])
    }

    fn start_with(actions: &[TreatmentAction], variables: &[(&str, &Path)]) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "treatment::agent_process_of_the_tests", "--nocapture"])
            .env(AGENT, serde_json::to_string(actions).unwrap())
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let log = child.stderr.take().unwrap();
        Self { child, to, from, log }
    }

    fn say(&mut self, word: &str) {
        self.to.write_all(format!("{word}\n").as_bytes()).unwrap();
    }

    /// Waits for the agent's next message.
    fn word(&mut self) -> String {
        let mut line = String::new();
        while self.from.read_line(&mut line).unwrap() > 0 {
            if let Some((_, word)) = line.trim_end().split_once("agent: ") {
                return word.to_owned();
            }
            line.clear();
        }
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        panic!("the agent ended without a word: {log}");
    }

    /// The agent's only child.
    fn guard(&self) -> Pid {
        let children = self.children();
        assert_eq!(children.len(), 1, "{children:?}");
        Pid::from_raw(children[0]).unwrap()
    }

    fn children(&self) -> Vec<i32> {
        let parent = format!("PPid:\t{}", self.child.id());
        let is_child = |pid: &i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line == parent)
        };
        let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).filter(is_child).collect()
    }

    /// Kills the agent and waits until its guard has ended. Returns the log.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        log
    }
}

fn kill_and_wait(pid: Pid) {
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    poll(&mut [PollFd::new(&process, PollFlags::IN)], None).unwrap();
}

/// Not a test: the agent process that other tests start and kill.
#[test]
fn agent_process_of_the_tests() {
    if env::var_os(LENDER).is_some() {
        return resources::hold_interface();
    }
    let Ok(actions) = env::var(AGENT) else { return };
    let actions: Vec<TreatmentAction> = serde_json::from_str(&actions).unwrap();
    let mut treatments = match env::var(ROOTS).map(PathBuf::from) {
        Ok(folder) => {
            Treatments::with_roots(guard(), Roots { sys: folder.join("sys"), proc: folder.join("proc") })
        }
        Err(_) => Treatments::new(guard()),
    };
    let text = |outcome: Result<(), String>| outcome.err().unwrap_or_else(|| "well".to_owned());
    let applied = treatments.apply(&actions).map_err(|failed| failed.to_string());
    let later = env::var(LATER).unwrap_or_else(|_| "[]".to_owned());
    let mut beside = Treatments::new(guard());
    beside.apply(&serde_json::from_str::<Vec<TreatmentAction>>(&later).unwrap()).unwrap();
    println!("agent: {}", text(applied));
    for line in std::io::stdin().lines() {
        let outcome = match line.unwrap().as_str() {
            "undo" => treatments.undo_all().map_err(|failed| {
                let left = failed.iter().any(TreatmentError::is_left_behind);
                let texts = failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                format!("left behind: {left}: {texts}")
            }),
            _ => treatments.apply(&actions).map_err(|failed| failed.to_string()),
        };
        println!("agent: {}", text(outcome));
    }
}

#[test]
fn applied_treatments_are_undone() {
    in_namespace("applied_treatments_are_undone", || {
        let before = state();
        let mut treatments = Treatments::new(guard());
        for _ in 0..2 {
            treatments.apply(&all()).unwrap();
            assert_eq!(treatments.applied(), 5);
            assert_treated();
            treatments.undo_all().unwrap();
            assert_eq!((treatments.applied(), &state()), (0, &before));
        }
    });
}

#[test]
fn changes_of_one_setting_are_undone_in_reverse() {
    in_namespace("changes_of_one_setting_are_undone_in_reverse", || {
        let before = state();
        let mut treatments = Treatments::new(guard());
        treatments.apply(&[mtu(1400), offload("tso", false)]).unwrap();
        treatments.apply(&[mtu(1300), offload("tx", false), mtu(1350)]).unwrap();
        assert_eq!(treatments.applied(), 5);
        drop(treatments);
        assert_eq!(state(), before);
    });
}

#[test]
fn killing_the_agent_undoes_everything() {
    in_namespace("killing_the_agent_undoes_everything", || {
        let before = state();
        let mut agent = Agent::start(&all());
        assert_eq!(agent.word(), "well");
        assert_treated();
        let log = agent.kill();
        assert_eq!(state(), before, "{log}");
        assert!(log.contains("with 5 changes in force: 5 are undone now"), "{log}");
    });
}

#[test]
fn killing_the_guard_leaves_the_agent_able_to_undo() {
    in_namespace("killing_the_guard_leaves_the_agent_able_to_undo", || {
        let before = state();
        let mut agent = Agent::start(&all());
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        assert_treated();
        agent.say("undo");
        let word = agent.word();
        assert_eq!(state(), before);
        assert!(word.starts_with("left behind: false: keep the undo guard"), "{word}");
        // The next change has a guard again.
        agent.say("apply");
        assert_eq!(agent.word(), "well");
        assert_treated();
        agent.kill();
        assert_eq!(state(), before);
    });
}

#[test]
fn nothing_stays_changed_without_a_guard() {
    in_namespace("nothing_stays_changed_without_a_guard", || {
        let before = state();
        let mut agent = Agent::start(&[sysctl("0")]);
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        agent.say("apply");
        let word = agent.word();
        assert!(word.starts_with("keep the undo guard: it"), "{word}");
        assert_eq!(state(), before);
    });
}

#[test]
fn guard_survives_signals_to_the_agents_group_and_all_processes() {
    in_namespace("guard_survives_signals_to_the_agents_group_and_all_processes", || {
        let before = state();
        let mut agent = Agent::start(&all());
        assert_eq!(agent.word(), "well");
        let guard = agent.guard();
        // A signal to the agent's group or terminal does not reach another session.
        assert_eq!(rustix::process::getsid(Some(guard)).unwrap(), guard);
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            kill_process(guard, signal).unwrap();
        }
        assert_treated();
        let log = agent.kill();
        assert_eq!(state(), before, "{log}");
    });
}

#[test]
fn command_that_outlives_its_agent_is_killed_before_its_undo() {
    in_namespace("command_that_outlives_its_agent_is_killed_before_its_undo", || {
        let before = state();
        let folder = tempfile::tempdir().unwrap();
        let started = folder.path().join("started");
        must("mkfifo", &[started.to_str().unwrap()]);
        // It makes its change, reports it, and would continue forever; a child of it leaves the group and the session.
        let script = format!(
            "ip link set va mtu 1444; setsid sleep 100000 & echo > {}; exec sleep 100000",
            started.display()
        );
        let agent =
            Agent::start(&[command(&["sh", "-c", &script], &["ip", "link", "set", "va", "mtu", "1500"])]);
        assert_eq!(fs::read_to_string(&started).unwrap(), "\n");
        assert_eq!(state().mtu, 1444);
        let log = agent.kill();
        assert_eq!(state(), before, "{log}");
        let namespace = fs::read_link("/proc/self/ns/net").unwrap();
        let sleepers: Vec<_> = fs::read_dir("/proc")
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| fs::read_link(path.join("ns/net")).is_ok_and(|its| its == namespace))
            .filter(|path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "sleep"))
            .collect();
        assert!(sleepers.is_empty(), "{sleepers:?}");
    });
}

#[test]
fn failed_treatment_undoes_the_earlier_ones_at_once() {
    in_namespace("failed_treatment_undoes_the_earlier_ones_at_once", || {
        let before = state();
        let mut treatments = Treatments::new(guard());
        treatments.apply(&[sysctl("0")]).unwrap();
        let fail = command(&["sh", "-c", "echo no such door >&2; exit 7"], &["true"]);
        let failed = treatments.apply(&[mtu(1400), alias(), fail]).unwrap_err();
        let text = failed.to_string();
        assert!(text.contains("exit code 7") && text.contains("no such door"), "{text}");
        // The changes of the earlier call stay.
        assert_eq!(treatments.applied(), 1);
        let now = state();
        assert_eq!((now.mtu, now.alias, now.sysctl.as_str()), (before.mtu, false, "0"));
        treatments.undo_all().unwrap();
        assert_eq!(state(), before);
    });
}

#[test]
fn failed_undo_is_reported_and_retried() {
    in_namespace("failed_undo_is_reported_and_retried", || {
        let folder = tempfile::tempdir().unwrap();
        let flag = folder.path().join("flag");
        let mut treatments = Treatments::new(guard());
        treatments.apply(&[command(&["true"], &["test", "-e", flag.to_str().unwrap()]), mtu(1400)]).unwrap();
        let failed = treatments.undo_all().unwrap_err();
        assert_eq!((failed.len(), treatments.applied()), (1, 1));
        assert!(
            failed[0].is_left_behind() && failed[0].to_string().contains("by hand: `test -e"),
            "{}",
            failed[0]
        );
        assert_eq!(netduel_sys::link::mtu("va").unwrap(), 1500);
        fs::write(&flag, "").unwrap();
        treatments.undo_all().unwrap();
        assert_eq!(treatments.applied(), 0);
    });
}

#[test]
fn replaced_device_with_the_same_name_is_not_changed() {
    in_namespace("replaced_device_with_the_same_name_is_not_changed", || {
        let mut treatments = Treatments::new(guard());
        treatments.apply(&[mtu(1400), offload("tso", false)]).unwrap();
        must("ip", &["link", "del", "va"]);
        must("ip", &["link", "add", "va", "mtu", "1300", "type", "veth", "peer", "name", "vb"]);
        treatments.undo_all().unwrap();
        assert_eq!(netduel_sys::link::mtu("va").unwrap(), 1300);
    });
}

#[test]
fn renamed_device_is_found() {
    in_namespace("renamed_device_is_found", || {
        let mut treatments = Treatments::new(guard());
        treatments.apply(&[mtu(1400)]).unwrap();
        must("ip", &["link", "set", "va", "down"]);
        must("ip", &["link", "set", "va", "name", "other"]);
        treatments.undo_all().unwrap();
        assert_eq!(netduel_sys::link::mtu("other").unwrap(), 1500);
    });
}

#[test]
fn unsupported_change_is_rejected_with_a_remedy() {
    in_namespace("unsupported_change_is_rejected_with_a_remedy", || {
        let before = state();
        must("ip", &["addr", "add", "2001:db8::5/64", "dev", "vb", "nodad"]);
        let other = |interface: &str, mtu| TreatmentAction::Mtu { interface: interface.to_owned(), mtu };
        let of = |interface: &str, feature: &str, enabled| {
            let (interface, feature) = (interface.to_owned(), feature.to_owned());
            TreatmentAction::Offload { interface, feature, enabled }
        };
        let named = |name: &str, value: &str| TreatmentAction::Sysctl {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let cases = [
            (TreatmentAction::Path { path: LabPath::Synthetic }, vec!["belongs to the local lab"]),
            (
                offload("tx-tcp-segmentaton", false),
                vec!["no such feature", "similar names: tx-tcp-segmentation"],
            ),
            (of("lo", "loopback", false), vec!["turn off loopback of lo", "keeps it on", "[fixed]"]),
            (
                offload("large-receive-offload", true),
                vec!["turn on large-receive-offload of va", "keeps it off"],
            ),
            (mtu(20), vec!["MTU 20 B on va", "mtu is 20; 576 to 65535 bytes is allowed"]),
            (mtu(70_000), vec!["mtu is 70000; 576 to 65535 bytes"]),
            (other("vb", 1000), vec!["below 1280", "2001:db8::5"]),
            (other("vx", 1000), vec!["`vx`", "there are lo, ", "va"]),
            (named("net.ipv4.no_such", "1"), vec!["find sysctl `net.ipv4.no_such`", "module is not loaded"]),
            (named("net.ipv4.tcp_available_congestion_control", "x"), vec!["read only"]),
            (named("net.ipv4", "x"), vec!["folder"]),
            (named("net.ipv4.route.flush", "1"), vec!["cannot be read"]),
            (named("net/../../../etc/passwd", "1"), vec!["words separated by dots"]),
            (
                named("net.ipv4.tcp_congestion_control", "no-such"),
                vec!["to `no-such`: the kernel rejects this value"],
            ),
            (named("net.ipv4.tcp_rmem", "4096 131072"), vec!["now has `4096\t131072"]),
            (command(&[], &["true"]), vec!["names no program"]),
            (command(&["true"], &[]), vec!["names no program"]),
            (command(&["/no/such/program"], &["true"]), vec!["could not be started", "No such file"]),
        ];
        let mut treatments = Treatments::new(guard());
        for (action, parts) in cases {
            let failed = treatments.apply(std::slice::from_ref(&action)).unwrap_err().to_string();
            for part in parts {
                assert!(failed.contains(part), "{action:?}: {part:?} is not in: {failed}");
            }
            assert_eq!((treatments.applied(), &state()), (0, &before), "{action:?}");
        }
    });
}
