//! A host that is reached as an ordinary user: neither the copy of the program nor its agent needs root there.
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Command;

use rustix::process::Signal;

use super::compression::FOLDER;
use super::{Scene, assert_names, with_sshd};
use crate::support::{UnderWay, signal};

/// A user of the test's mount namespace alone.
const NAME: &str = "netduel-ordinary";
/// A number to which no file of this machine belongs.
const NUMBER: u32 = 65_534;

/// Adds the user, to whom the home of the scene belongs then.
fn add_user(scene: &Scene) {
    let (home, users) = (scene.at("home"), scene.at("passwd"));
    let known = fs::read_to_string("/etc/passwd").unwrap();
    let user = format!("{NAME}:x:{NUMBER}:{NUMBER}::{home}:/bin/sh");
    fs::write(&users, format!("{}\n{user}\n", known.trim_end())).unwrap();
    let mounted = Command::new("mount").args(["--bind", &users, "/etc/passwd"]).status();
    assert!(mounted.unwrap().success());
    chown(&home, Some(NUMBER), Some(NUMBER)).unwrap();
    // The folder of a test is that of its own user alone.
    fs::set_permissions(scene.bench.path(), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn program_is_copied_to_an_ordinary_user_and_started_without_root() {
    let test = "ssh::ordinary_user::program_is_copied_to_an_ordinary_user_and_started_without_root";
    with_sshd(test, |scene| {
        add_user(scene);
        let keys = format!("user = \"{NAME}\"");
        let run = scene.run(&["run", &scene.plan(&keys, "", 2)]).expect_code(0);
        assert_names(&run.stderr, &["copied netduel", "trial   4/4"]);
        let copies = scene.copies(FOLDER);
        let [copy] = &copies[..] else { panic!("{copies:?}") };
        // The program and the three folders below the home that were made for it.
        for path in copy.ancestors().take(4) {
            let made = fs::metadata(path).unwrap();
            assert_eq!((made.uid(), made.mode() & 0o777), (NUMBER, 0o700), "{}", path.display());
        }

        let mut run = UnderWay::start(scene.netduel(&["run", &scene.plan(&keys, "", 200)]));
        run.wait_for("trial   1/");
        let agents = scene.bench.find(&[&copy.display().to_string(), "agent"]);
        let [agent] = agents[..] else { panic!("{agents:?}") };
        let status = fs::read_to_string(format!("/proc/{}/status", agent.as_raw_nonzero())).unwrap();
        let user = format!("Uid:\t{NUMBER}\t{NUMBER}\t{NUMBER}\t{NUMBER}\n");
        assert!(status.contains(&user), "{status}");
        signal(run.pid(), Signal::INT);
        let run = run.finish().expect_code(130);
        assert!(!run.stderr.contains("copying netduel"), "{}", run.stderr);
        scene.assert_nothing_left();
    });
}
