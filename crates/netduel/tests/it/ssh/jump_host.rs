//! A host behind a jump host: `ProxyJump` of the user's configuration.
use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::{Scene, Sshd, assert_names, refusal, with_sshd};
use crate::support::{UnderWay, signal, until};

/// Starts a second sshd, through which the client's configuration reaches vm1.
fn jump_host(scene: &Scene) -> Sshd {
    let host_key = fs::read_to_string(scene.at("host_key.pub")).unwrap();
    let known = fs::read_to_string(scene.at("known_hosts")).unwrap();
    fs::write(scene.at("known_hosts"), format!("{known}jump {host_key}")).unwrap();
    // The first value of a setting applies.
    let config = fs::read_to_string(scene.at("ssh_config")).unwrap();
    let config = config.replace("Host vm1 vm2\n", "Host vm1 vm2 jump\n");
    let jump = "Host jump\nHostName 127.0.0.2\nHostKeyAlias jump\nHost vm1\nProxyJump jump\n";
    fs::write(scene.at("ssh_config"), format!("{jump}{config}")).unwrap();
    Sshd::start(&scene.bench, "jump", "127.0.0.2")
}

/// Logins at an sshd, by the name of its files.
fn logins(scene: &Scene, name: &str) -> usize {
    let log = fs::read_to_string(scene.at(&format!("{name}.log"))).unwrap();
    log.matches("Accepted publickey for root").count()
}

#[test]
fn run_reaches_a_host_behind_a_jump_host_with_one_connection() {
    with_sshd("ssh::jump_host::run_reaches_a_host_behind_a_jump_host_with_one_connection", |scene| {
        let jump = jump_host(scene);
        let plan = scene.plan("", "", 2);
        let run = scene.run(&["run", &plan]).expect_code(0);
        assert_names(&run.stderr, &["copied netduel", "trial   4/4"]);
        // Copy and agent are sessions of one connection.
        assert_eq!(["jump", "sshd"].map(|name| logins(scene, name)), [1, 1]);
        scene.assert_nothing_left();
        assert!(until(|| jump.connections().is_empty()), "a connection to the jump host is left");

        let plan = scene.plan("", "", 200);
        let mut under_way = UnderWay::start(scene.netduel(&["run", &plan]));
        under_way.wait_for("trial   1/");
        signal(under_way.pid(), Signal::KILL);
        assert_eq!(under_way.finish().code, None);
        scene.bench.assert_nothing_left();
        let connections = || [&jump, &scene.sshd].map(Sshd::connections).concat();
        assert!(until(|| connections().is_empty()), "a connection outlives its run");
    });
}

#[test]
fn error_of_a_jump_host_contains_its_message() {
    with_sshd("ssh::jump_host::error_of_a_jump_host_contains_its_message", |scene| {
        let jump = jump_host(scene);
        let other = fs::read_to_string(scene.at("other_key.pub")).unwrap();
        fs::write(scene.at("authorized_keys"), other).unwrap();
        assert_names(&refusal(scene, ""), &["agent of host vm1", "127.0.0.2: Permission denied (publickey)"]);
        assert_eq!(["jump", "sshd"].map(|name| logins(scene, name)), [0, 0]);
        assert!(until(|| jump.connections().is_empty()), "a connection to the jump host is left");
    });
}

#[test]
fn jump_host_gets_the_options_that_forbid_questions() {
    with_sshd("ssh::jump_host::jump_host_gets_the_options_that_forbid_questions", |scene| {
        let jump = jump_host(scene);
        let (log, config) = (scene.at("ssh.log"), scene.at("ssh_config"));
        let ssh = format!("exec /usr/bin/ssh -F {config} \"$@\"");
        scene.program("client-bin/ssh", &format!("echo \"$*\" >>{log}\n{ssh}"));
        let plan = scene.plan("", "", 2);
        scene.run(&["run", &plan]).expect_code(0);
        let log = fs::read_to_string(log).unwrap();
        let is_jump = |line: &&str| line.ends_with(" -W [127.0.0.1]:2222 -- jump");
        let jumps: Vec<&str> = log.lines().filter(is_jump).collect();
        assert!(!jumps.is_empty() && jumps.iter().all(|line| line.contains("-o BatchMode=yes ")), "{log}");
        scene.assert_nothing_left();
        assert!(until(|| jump.connections().is_empty()), "a connection to the jump host is left");
    });
}

#[test]
fn refused_host_key_is_that_of_the_jump_host() {
    with_sshd("ssh::jump_host::refused_host_key_is_that_of_the_jump_host", |scene| {
        let jump = jump_host(scene);
        let file = scene.at("known_hosts");
        let known = fs::read_to_string(&file).unwrap().replace("jump ", "other ");
        fs::write(&file, &known).unwrap();
        let unknown = ["Host key verification failed", "run `ssh vm1` once", "accept the host key of jump"];
        assert_names(&refusal(scene, ""), &unknown);
        let other = fs::read_to_string(scene.at("other_key.pub")).unwrap();
        fs::write(&file, format!("{known}jump {other}")).unwrap();
        let removal = format!("`ssh-keygen -R jump -f {file}`");
        assert_names(&refusal(scene, ""), &["make sure that jump was reinstalled", removal.as_str()]);
        assert_eq!(["jump", "sshd"].map(|name| logins(scene, name)), [0, 0]);
        assert!(until(|| jump.connections().is_empty()), "a connection to the jump host is left");
    });
}

#[test]
fn shared_connection_to_a_jump_host_is_used_and_none_begins() {
    with_sshd("ssh::jump_host::shared_connection_to_a_jump_host_is_used_and_none_begins", |scene| {
        let jump = jump_host(scene);
        let (sockets, file) = (scene.at("shared"), scene.at("ssh_config"));
        fs::create_dir(&sockets).unwrap();
        let config = fs::read_to_string(&file).unwrap();
        let shared = format!("Host jump\nControlMaster auto\nControlPersist yes\nControlPath {sockets}/%n\n");
        fs::write(&file, format!("{shared}{config}")).unwrap();
        let plan = scene.plan("", "", 2);
        scene.run(&["run", &plan]).expect_code(0);
        scene.assert_nothing_left();
        assert!(until(|| jump.connections().is_empty()), "a shared connection outlives the run");
        assert_eq!(fs::read_dir(&sockets).unwrap().count(), 0, "a socket is left");

        let ssh = |words: &[&str]| {
            let mut command = Command::new(scene.at("client-bin/ssh"));
            command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            scene.bench.mark(&mut command);
            assert!(command.status().unwrap().success(), "{words:?}");
        };
        ssh(&["-f", "-N", "jump"]);
        scene.run(&["run", &plan]).expect_code(0);
        assert_eq!(logins(scene, "jump"), 2, "that of the first run, and that of the shared connection");
        ssh(&["-O", "exit", "jump"]);
        scene.assert_nothing_left();
        assert!(until(|| jump.connections().is_empty()), "a connection to the jump host is left");
    });
}
