//! Agents without a guard that can be relied on, and without the rights to change anything.
use std::env;
use std::process::{Command, Stdio};

use netduel_agent::treatment::{GuardCommand, Treatments};

use super::{AGENT, guard, in_namespace, mtu, state};

#[test]
fn a_wrong_guard_changes_nothing() {
    in_namespace("guarding::a_wrong_guard_changes_nothing", || {
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
fn an_unprivileged_agent_is_told_what_it_lacks() {
    in_namespace("guarding::an_unprivileged_agent_is_told_what_it_lacks", || {
        // No capability is left in a user namespace that does not own the network namespace.
        let exe = env::current_exe().unwrap();
        let output = Command::new("unshare")
            .args(["--user", "--"])
            .arg(exe)
            .args(["--exact", "treatment::agent_of_the_tests", "--nocapture"])
            .env(AGENT, serde_json::to_string(&[mtu(1400)]).unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("agent: set the MTU of va to 1400 bytes") && text.contains("CAP_NET_ADMIN"),
            "{text}"
        );
        // What was not changed needs no undoing, and leaves no journal for the next agent.
        assert!(!text.contains("failed to undo"), "{text}");
        assert_eq!(state().mtu, 1500);
    });
}
