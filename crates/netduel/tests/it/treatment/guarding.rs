//! Agents with a broken guard, and agents without privileges.
use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use netduel_agent::treatment::{GuardCommand, Treatments};

use super::{
    AGENT, Agent, LATER, all, assert_treated, command, guard, in_namespace, kill_and_wait, mtu, must, state,
};
use crate::support::until;

#[test]
fn broken_guard_prevents_changes() {
    in_namespace("guarding::broken_guard_prevents_changes", || {
        let before = state();
        for (program, words, part) in [
            ("/no/such/program", vec![], "No such file"),
            ("true", vec![], "it ended"),
            ("echo", vec!["hello".to_owned()], "makes no sense"),
            (
                "unshare",
                vec!["--net".to_owned(), guard().program.display().to_string(), "undo-guard".to_owned()],
                "another network namespace",
            ),
        ] {
            let mut treatments = Treatments::new(GuardCommand { program: program.into(), words });
            let failed = treatments.apply(&[mtu(1400)]).unwrap_err().to_string();
            assert!(failed.contains(part) && failed.contains("nothing was changed"), "{failed}");
            assert_eq!(state(), before);
        }
    });
}

#[test]
fn guard_restores_nothing_before_a_guard_with_later_changes_has_restored_them() {
    in_namespace(
        "guarding::guard_restores_nothing_before_a_guard_with_later_changes_has_restored_them",
        || {
            let folder = tempfile::tempdir().unwrap();
            let (gate, seen) = (folder.path().join("gate"), folder.path().join("seen"));
            must("mkfifo", &[gate.to_str().unwrap()]);
            // The undo of the later change waits until the gate opens, and sees the earlier one.
            let undo = format!("read line < {}; ip link show va > {}", gate.display(), seen.display());
            let later = serde_json::to_string(&[command(&["true"], &["sh", "-c", &undo])]).unwrap();
            let mut agent = Agent::start_with(&[mtu(1400)], &[(LATER, Path::new(&later))]);
            assert_eq!(agent.word(), "well");
            let guards = agent.children();
            assert_eq!(guards.len(), 2);
            agent.child.kill().unwrap();
            agent.child.wait().unwrap();
            // The first guard has ended, or it sleeps until it looks for the other one again.
            let has_ended = |guard: &i32| fs::read_link(format!("/proc/{guard}/exe")).is_err();
            let sleeps = |guard: &i32| {
                fs::read_to_string(format!("/proc/{guard}/wchan"))
                    .is_ok_and(|name| name.contains("nanosleep"))
            };
            assert!(until(|| guards.iter().any(|guard| has_ended(guard) || sleeps(guard))));
            // Opens when the undo reads.
            fs::write(&gate, "now\n").unwrap();
            let mut log = String::new();
            agent.log.read_to_string(&mut log).unwrap();
            let seen = fs::read_to_string(&seen).unwrap();
            assert!(seen.contains("mtu 1400"), "{seen}\n{log}");
            assert_eq!(state().mtu, 1500, "{log}");
        },
    );
}

#[test]
fn service_that_an_undo_starts_writes_on_after_the_end_of_its_guard() {
    in_namespace("guarding::service_that_an_undo_starts_writes_on_after_the_end_of_its_guard", || {
        let folder = tempfile::tempdir().unwrap();
        let [go, done] = ["go", "done"].map(|name| folder.path().join(name));
        must("mkfifo", &[go.to_str().unwrap(), done.to_str().unwrap()]);
        // Both directions are open here, so that no open of the undo waits.
        let [mut start, mut ended] =
            [&go, &done].map(|pipe| fs::File::options().read(true).write(true).open(pipe).unwrap());
        let pipes = format!("exec 3<{} 4>{}", go.display(), done.display());
        let undo = format!("{pipes}; (read line <&3; seq 50000 >&2; echo $? >&4) &");
        let mut agent = Agent::start(&[command(&["true"], &["sh", "-c", &undo])]);
        assert_eq!(agent.word(), "well");
        let log = agent.kill();
        assert!(log.contains("with 1 changes in force: 1 are undone now"), "{log}");
        start.write_all(b"go\n").unwrap();
        // A failed write has another code, and so has a signal.
        let mut code = [0; 2];
        ended.read_exact(&mut code).unwrap();
        assert_eq!(&code, b"0\n");
    });
}

#[test]
fn guard_that_is_lost_while_nothing_is_in_force_is_replaced() {
    in_namespace("guarding::guard_that_is_lost_while_nothing_is_in_force_is_replaced", || {
        let before = state();
        let mut agent = Agent::start(&all());
        assert_eq!(agent.word(), "well");
        agent.say("undo");
        assert_eq!(agent.word(), "well");
        kill_and_wait(agent.guard());
        agent.say("apply");
        assert_eq!(agent.word(), "well");
        assert_treated();
        let log = agent.kill();
        assert_eq!(state(), before, "{log}");
        assert!(log.contains("with 5 changes in force: 5 are undone now"), "{log}");
    });
}

#[test]
fn missing_privilege_of_an_agent_is_reported() {
    in_namespace("guarding::missing_privilege_of_an_agent_is_reported", || {
        // A user namespace that does not own the network namespace has no capability over it.
        let exe = env::current_exe().unwrap();
        let output = Command::new("unshare")
            .args(["--user", "--"])
            .arg(exe)
            .args(["--exact", "treatment::agent_process_of_the_tests", "--nocapture"])
            .env(AGENT, serde_json::to_string(&[mtu(1400)]).unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("agent: set the MTU of va to 1400 bytes") && text.contains("CAP_NET_ADMIN"),
            "{text}"
        );
        // A change that was not made needs no undo, and leaves no journal for the next agent.
        assert!(!text.contains("failed to undo"), "{text}");
        assert_eq!(state().mtu, 1500);
    });
}
