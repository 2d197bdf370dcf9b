//! Agents that are started again: what is done on their hosts before, over a connection that lives and over new ones.
use std::fs;

use rustix::process::Signal;

use super::compression::FOLDER;
use super::{Scene, with_sshd};
use crate::support::{UnderWay, signal, signal_those_left, until};

/// Lets the hosts note each SHA-256 of a program.
fn note_comparisons(scene: &Scene) {
    let note = format!("echo compared >>{}", scene.at("steps"));
    scene.program("bin/sha256sum", &format!("{note}\nexec /usr/bin/sha256sum \"$@\""));
}

/// What the hosts noted since the last call.
fn take_steps(scene: &Scene) -> Vec<String> {
    let steps = fs::read_to_string(scene.at("steps")).unwrap();
    fs::remove_file(scene.at("steps")).unwrap();
    steps.lines().map(str::to_owned).collect()
}

#[test]
fn program_is_compared_again_only_when_it_is_another_one_or_did_not_start() {
    let test = "ssh::restart::program_is_compared_again_only_when_it_is_another_one_or_did_not_start";
    with_sshd(test, |scene| {
        note_comparisons(scene);
        // While the file is there, the next start of an agent fails.
        let refusal = scene.at("refusal");
        let refuse = format!("[ \"$2\" != agent ] || ! rm {refusal} 2>/dev/null || exit 1");
        let note = format!("echo \"$2\" >>{}", scene.at("steps"));
        scene.program("bin/sudo", &format!("shift\n{note}\n{refuse}\nexec \"$@\""));
        let plan = scene.plan("sudo = true", "", 200);
        let mut run = UnderWay::start(scene.netduel(&["run", &plan]));
        run.wait_for("trial   1/");
        assert_eq!(take_steps(scene), ["compared", "--version", "agent"]);
        let copies = scene.copies(FOLDER);
        assert_eq!(copies.len(), 1, "{copies:?}");
        let copy = copies[0].display().to_string();

        let mut steps_of_restart = || {
            let agents = scene.bench.find(&[copy.as_str(), "agent"]);
            assert_eq!(agents.len(), 1, "{agents:?}");
            signal(agents[0], Signal::KILL);
            run.wait_for("host vm1 is ready");
            // Losses of a host and failures of an arm are counted in a row.
            run.wait_for("one  round trip");
            run.wait_for("two  round trip");
            take_steps(scene)
        };
        assert_eq!(steps_of_restart(), ["agent"]);
        fs::remove_file(&copy).unwrap();
        assert_eq!(steps_of_restart(), ["compared", "--version", "agent"]);
        fs::write(scene.at("other"), "another program").unwrap();
        fs::rename(scene.at("other"), &copy).unwrap();
        assert_eq!(steps_of_restart(), ["compared", "compared", "--version", "agent"]);
        fs::write(&refusal, "").unwrap();
        assert_eq!(steps_of_restart(), ["agent", "compared", "--version", "agent"]);

        signal(run.pid(), Signal::INT);
        let run = run.finish().expect_code(130);
        let count = |text: &str| run.stderr.matches(text).count();
        let copied = [count("copying netduel ("), count("replacing a damaged copy of netduel (")];
        let restarted = [count("its agent again (1 of 3)"), count("its agent again (2 of 3)")];
        assert_eq!((copied, restarted), ([2, 1], [4, 1]), "{}", run.stderr);
        scene.assert_nothing_left();
    });
}

#[test]
fn hosts_that_are_lost_at_once_are_prepared_at_the_same_time() {
    with_sshd("ssh::restart::hosts_that_are_lost_at_once_are_prepared_at_the_same_time", |scene| {
        note_comparisons(scene);
        let (go, applied) = (scene.at("go"), scene.at("applied"));
        let wait = format!("touch {applied}; while [ ! -e {go} ]; do sleep 0.02; done");
        let treatment =
            format!("{{ command = [\"sh\", \"-c\", \"{wait}\"], undo = [\"true\"], on = \"client\" }}");
        let plan = scene.plan_of_two(&treatment, 3);
        let run = UnderWay::start(scene.netduel(&["run", &plan]));
        assert!(until(|| fs::exists(&applied).unwrap()), "no treatment is applied");
        assert_eq!(take_steps(scene), ["compared", "compared"], "one for each copy");
        // The trial sees the loss of one host only after both connections have ended.
        signal(run.pid(), Signal::STOP);
        let status = format!("/proc/{}/status", run.pid().as_raw_nonzero());
        assert!(until(|| fs::read_to_string(&status).unwrap().contains("State:\tT")), "it does not stop");
        signal_those_left(scene.connections(), Signal::KILL);
        assert!(until(|| scene.connections().is_empty()), "a connection is left");
        fs::write(&go, "").unwrap();
        scene.let_hosts_meet();
        signal(run.pid(), Signal::CONT);
        let run = run.finish().expect_code(0);
        let count = |text: &str| run.stderr.matches(text).count();
        let restarted = [count("its agent again (1 of 3)"), count("its agent again (2 of 3)")];
        assert_eq!(restarted, [2, 0], "{}", run.stderr);
        assert_eq!(take_steps(scene), ["compared", "compared"], "one for each new connection");
        scene.assert_nothing_left();
    });
}
