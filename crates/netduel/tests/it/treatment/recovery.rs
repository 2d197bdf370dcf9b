//! Settings left behind when an agent and its guard were killed together, and the next run on that host.
use std::io::Read as _;
use std::path::Path;
use std::sync::mpsc::channel;

use netduel_agent::AgentWork;
use netduel_agent::treatment::recover;
use netduel_control::agent::{FailureKind, Work as _};
use netduel_control::protocol::Recovery;
use netduel_model::ids::RunId;
use rustix::thread::gettid;

use super::{
    Agent, all, assert_treated, command, in_namespace, kill_and_wait, mtu, must, plan_of_two_arms, state,
};
use crate::serve::Server;
use crate::support::{Bench, until};

/// An agent with every treatment, killed together with its guard.
fn left_behind() {
    let mut agent = Agent::start(&all());
    assert_eq!(agent.word(), "well");
    assert_eq!(recover(), Recovery::default(), "settings of an agent that lives are its own");
    kill_and_wait(agent.guard());
    agent.kill();
    assert_treated();
}

#[test]
fn settings_of_an_agent_that_was_killed_with_its_guard_are_restored_once() {
    in_namespace("recovery::settings_of_an_agent_that_was_killed_with_its_guard_are_restored_once", || {
        let before = state();
        left_behind();
        let recovery = recover();
        assert_eq!(state(), before, "{recovery:?}");
        assert_eq!((recovery.restored.len(), recovery.problems.len()), (5, 0), "{recovery:?}");
        assert!(recovery.restored.contains(&"the change of the MTU of va".to_owned()), "{recovery:?}");
        assert_eq!(recover(), Recovery::default());
    });
}

#[test]
fn changes_of_an_agent_that_lost_its_guard_stay_as_long_as_it_lives() {
    in_namespace("recovery::changes_of_an_agent_that_lost_its_guard_stay_as_long_as_it_lives", || {
        let before = state();
        let mut agent = Agent::start(&all());
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        // A second agent describes the host, as for `inspect` or another run.
        assert_eq!(AgentWork::new().recover(), Recovery::default());
        assert_treated();
        agent.kill();
        assert_treated();
        let recovery = AgentWork::new().recover();
        assert_eq!(state(), before, "{recovery:?}");
        assert_eq!((recovery.restored.len(), recovery.problems.len()), (5, 0), "{recovery:?}");
    });
}

/// The record that a problem tells the user to remove.
fn record_of(problem: &str) -> &Path {
    let (_, record) = problem.split_once("when all is undone, remove ").expect(problem);
    Path::new(record.split([';', '\n']).next().unwrap().trim())
}

#[test]
fn change_undone_without_the_guard_is_not_undone_again_beside_one_that_failed() {
    let name = "recovery::change_undone_without_the_guard_is_not_undone_again_beside_one_that_failed";
    in_namespace(name, || {
        let mut agent = Agent::start(&[command(&["true"], &["false"]), mtu(1400)]);
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        agent.say("undo");
        assert!(agent.word().starts_with("left behind: true"));
        assert_eq!(state().mtu, 1500);
        // The user's own setting, before the next agent tries to undo what is left.
        must("ip", &["link", "set", "va", "mtu", "1300"]);
        agent.kill();
        let recovery = recover();
        assert_eq!((recovery.restored.len(), recovery.problems.len()), (0, 1), "{recovery:?}");
        assert_eq!(state().mtu, 1300, "{recovery:?}");
        std::fs::remove_file(record_of(&recovery.problems[0])).unwrap();
    });
}

#[test]
fn run_that_starts_while_a_guard_restores_settings_waits_for_it() {
    in_namespace("recovery::run_that_starts_while_a_guard_restores_settings_waits_for_it", || {
        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        let path = gate.to_str().unwrap();
        must("mkfifo", &[path]);
        // The undo of the command runs first, and waits until the gate opens.
        let mut agent =
            Agent::start(&[mtu(1400), command(&["true"], &["sh", "-c", &format!("read line < {path}")])]);
        assert_eq!(agent.word(), "well");
        agent.child.kill().unwrap();
        agent.child.wait().unwrap();
        let (sender, thread) = channel();
        let next = std::thread::spawn(move || {
            sender.send(gettid()).unwrap();
            let locked = AgentWork::new().lock(&RunId::new("next").unwrap());
            (locked, state().mtu)
        });
        // The next run has seen the guard and sleeps until it looks again.
        let wait = format!("/proc/self/task/{}/wchan", thread.recv().unwrap().as_raw_nonzero());
        let is_asleep = || std::fs::read_to_string(&wait).is_ok_and(|name| name.contains("nanosleep"));
        assert!(until(|| next.is_finished() || is_asleep()));
        assert!(!next.is_finished(), "it did not wait: {:?}", next.join());
        // Opens when the guard reads.
        std::fs::write(&gate, "now\n").unwrap();
        assert_eq!(next.join().unwrap(), (Ok(()), 1500));
    });
}

#[test]
fn run_is_refused_when_a_guard_failed_to_restore_after_the_host_was_described() {
    in_namespace(
        "recovery::run_is_refused_when_a_guard_failed_to_restore_after_the_host_was_described",
        || {
            let folder = tempfile::tempdir().unwrap();
            let gate = folder.path().join("gate");
            let path = gate.to_str().unwrap();
            must("mkfifo", &[path]);
            // The undo of the guard waits until the gate opens, and each one fails.
            let undo = format!("[ -e {path} ] && read line < {path}; rm -f {path}; exit 1");
            let mut agent = Agent::start(&[command(&["true"], &["sh", "-c", &undo])]);
            assert_eq!(agent.word(), "well");
            agent.child.kill().unwrap();
            agent.child.wait().unwrap();
            let mut next = AgentWork::new();
            assert_eq!(next.recover(), Recovery::default(), "the guard is at it");
            // Opens when the undo reads.
            std::fs::write(&gate, "now\n").unwrap();
            let mut log = String::new();
            agent.log.read_to_string(&mut log).unwrap();
            assert!(log.contains("with 1 changes in force: 0 are undone now"), "{log}");
            let refused = next.lock(&RunId::new("next").unwrap()).unwrap_err();
            assert_eq!(refused.kind, FailureKind::NotRestored, "{refused}");
            std::fs::remove_file(record_of(&refused.message)).unwrap();
        },
    );
}

#[test]
fn settings_that_an_agent_undid_without_its_guard_are_not_restored_again() {
    in_namespace("recovery::settings_that_an_agent_undid_without_its_guard_are_not_restored_again", || {
        let mut agent = Agent::start(&all());
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        agent.say("undo");
        agent.word();
        agent.kill();
        assert_eq!(recover(), Recovery::default());
    });
}

#[test]
fn next_run_restores_settings_before_it_measures_and_warns() {
    in_namespace("recovery::next_run_restores_settings_before_it_measures_and_warns", || {
        must("ip", &["link", "set", "lo", "up"]);
        let before = state();
        left_behind();
        let bench = Bench::new();
        let program = Path::new(env!("CARGO_BIN_EXE_netduel"));
        let path = format!("PATH={}:/usr/sbin:/usr/bin:/sbin:/bin", program.parent().unwrap().display());
        let host =
            format!("launch = \"command\"\naddresses = [\"127.0.0.1\"]\ncommand = [\"env\", \"{path}\"]\n");
        let plan = bench.plan(&format!(
            "name = \"next\"\nquestion = \"q?\"\n[hosts.a]\n{host}[hosts.b]\n{host}[[arms]]\nname = \"lo\"\nclient = \"a\"\n\
             server = \"b\"\n[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\nduration = \"100 ms\"\nwarmup = \"0 s\"\n\
             [design]\naa = true\nblocks_min = 2\nblocks_max = 2\n"
        ));
        let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(0);
        assert_eq!(state(), before);
        assert!(run.stderr.contains("restored settings on host a"), "{}", run.stderr);
        // The warning is stored with the run, so that every report has it.
        let report = bench.run(["report", "last"]).expect_code(0).stdout;
        let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("the change of the MTU of va"), "the report has no warning: {report}");
        assert_eq!(run.stderr.matches("restored settings").count(), 1, "{}", run.stderr);
    });
}

#[test]
fn treatment_that_cannot_be_undone_ends_the_run_until_its_record_is_removed() {
    in_namespace(
        "recovery::treatment_that_cannot_be_undone_ends_the_run_until_its_record_is_removed",
        || {
            must("ip", &["link", "set", "lo", "up"]);
            let bench = Bench::new();
            let treatment = r#"{ command = ["ip", "link", "set", "va", "alias", "treated"], undo = ["false"], on = "client" }"#;
            let plan = plan_of_two_arms(&bench, treatment);
            let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(4);
            assert_eq!(run.stderr.matches("warning: not undone on host a").count(), 1, "{}", run.stderr);
            let (_, record) = run.stderr.split_once("by hand: `false`; when all is undone, remove ").unwrap();
            let record = record.split([';', '\n']).next().unwrap().trim().to_owned();
            assert!(Path::new(&record).is_file(), "{record}");
            // No later trial counts: the first of `treated` is the last of the run.
            let trials = || {
                let csv = bench.run(["report", "last", "--format", "csv"]).expect_code(0).stdout;
                csv.lines().filter(|line| line.contains(",treated,")).count()
            };
            let of_treated = trials();
            assert!(of_treated > 0, "the trial before was valid");

            let again = bench.run(["run", "--resume", "last"]).expect_code(4);
            assert!(again.stderr.contains("by hand: `false`"), "{}", again.stderr);
            assert_eq!(trials(), of_treated);
            let quick = bench.run(["runs"]).expect_code(0);
            assert!(quick.stdout.contains("two"), "{}", quick.stdout);

            // The user does what the message says.
            must("ip", &["link", "set", "va", "alias", ""]);
            std::fs::remove_file(&record).unwrap();
            let last = bench.run(["run", "--resume", "last"]).expect_code(4);
            assert!(
                last.stderr.contains("not undone on host a"),
                "its treatment fails anew: {}",
                last.stderr
            );
            std::fs::remove_file(
                last.stderr.split("remove ").nth(1).unwrap().split([';', '\n']).next().unwrap(),
            )
            .unwrap();
        },
    );
}

#[test]
fn quick_test_does_not_start_from_a_host_that_is_not_restored() {
    in_namespace("recovery::quick_test_does_not_start_from_a_host_that_is_not_restored", || {
        must("ip", &["link", "set", "lo", "up"]);
        let mut agent = Agent::start(&[command(&["true"], &["false"])]);
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        agent.kill();
        let server = Server::start(&[]);
        let refused = server.client(&["tcp", "STRING", "-t", "0.2"]).expect_code(4);
        assert!(refused.stderr.contains("is not restored"), "{}", refused.stderr);
        let (_, record) = refused.stderr.split_once("by hand: `false`; when all is undone, remove ").unwrap();
        std::fs::remove_file(record.split([';', '\n']).next().unwrap().trim()).unwrap();
        server.client(&["tcp", "STRING", "-t", "0.2"]).expect_code(0);
        server.end();
    });
}
