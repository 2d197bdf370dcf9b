//! The folder of the program on a host: places that cannot have it, and the folder of the command line.
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use super::{Scene, assert_names, refusal, with_sshd};

/// Runs `body` while a folder of the scene is a file system of its own, with an option of mount(8).
fn with_mounted(scene: &Scene, name: &str, option: &str, body: impl FnOnce(&str)) {
    let folder = scene.at(name);
    fs::create_dir_all(&folder).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", option, "tmpfs", &folder]).status();
    assert!(mounted.unwrap().success());
    body(&folder);
    assert!(Command::new("umount").arg(&folder).status().unwrap().success());
}

#[test]
fn folder_that_cannot_have_the_program_is_named() {
    with_sshd("ssh::folder::folder_that_cannot_have_the_program_is_named", |scene| {
        scene.use_gzip();
        let expected: [(&str, &str, &[&str]); 3] = [
            ("ro", "the folder cannot be made", &["Read-only file system"]),
            ("size=64k", "the file cannot be written", &["No space left on device"]),
            ("noexec", "does not start", &["noexec", "Permission denied"]),
        ];
        for (option, what, parts) in expected {
            with_mounted(scene, "mounted", option, |folder| {
                let text = refusal(scene, &format!("folder = \"{folder}/x\""));
                assert_names(&text, &[what, "--remote-folder DIR", "`folder`", folder]);
                assert_names(&text, parts);
                if option != "noexec" {
                    assert!(scene.copies("mounted/x").iter().all(|copy| !copy.exists()));
                }
            });
        }
    });
}

#[test]
fn folder_of_the_command_line_replaces_that_of_the_host() {
    with_sshd("ssh::folder::folder_of_the_command_line_replaces_that_of_the_host", |scene| {
        let inspect = |words: &[&str]| {
            scene.run(&[&["inspect", "ssh:vm1", "--no-metadata", "--fail-on", "never"][..], words].concat())
        };
        let elsewhere = scene.at("elsewhere");
        with_mounted(scene, "home", "noexec", |home| {
            assert_names(&inspect(&[]).expect_code(3).stderr, &["noexec", "--remote-folder DIR"]);
            let first = inspect(&["--remote-folder", &elsewhere]).expect_code(0);
            assert_names(&first.stderr, &["copying netduel (", &elsewhere]);
            // That of a plan is replaced, too: nothing starts below this home.
            let plan = scene.plan(&format!("folder = \"{home}/of-plan\""), "", 2);
            let run = scene.run(&["run", &plan, "--remote-folder", &elsewhere]).expect_code(0);
            assert!(!run.stderr.contains("copying netduel"), "{}", run.stderr);
            assert!(scene.copies("home/of-plan").is_empty());
            scene.assert_nothing_left();
        });
        assert_eq!(scene.copies("elsewhere").len(), 1);
        inspect(&["--remote-folder", "~/other"]).expect_code(0);
        assert_eq!(scene.copies("home/other").len(), 1);
        let refused = inspect(&["--remote-folder", "elsewhere"]).expect_code(2);
        assert_names(&refused.stderr, &["--remote-folder", "begins with / or ~/"]);
        scene.assert_nothing_left();
    });
}

#[test]
fn program_in_a_folder_that_another_user_can_change_is_not_looked_at() {
    let test = "ssh::folder::program_in_a_folder_that_another_user_can_change_is_not_looked_at";
    with_sshd(test, |scene| {
        let (folder, read) = (scene.at("home/open"), scene.at("read"));
        fs::set_permissions(scene.at("home"), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&folder).unwrap();
        let set = |mode: u32, user: u32| {
            chown(&folder, Some(user), None).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        };
        let inspect = |code: i32| {
            let words =
                ["inspect", "ssh:vm1", "--no-metadata", "--fail-on", "never", "--remote-folder", &folder];
            scene.run(&words).expect_code(code).stderr
        };
        let refused = ["another user of the host can replace netduel", &folder, "--remote-folder DIR"];
        set(0o777, 0);
        assert_names(&inspect(3), &refused);
        assert!(scene.copies("home/open").iter().all(|copy| !copy.exists()));
        set(0o755, 0);
        assert_names(&inspect(0), &["copied netduel"]);
        // Now the right program is there.
        scene.program("bin/sha256sum", &format!("touch {read}\nexec /usr/bin/sha256sum \"$@\""));
        for (mode, user) in [(0o777, 0), (0o755, 65_534)] {
            set(mode, user);
            assert_names(&inspect(3), &refused);
            assert!(!fs::exists(&read).unwrap(), "the program was read");
        }
        // As /tmp, with a folder of the build that is the user's.
        set(0o1777, 0);
        assert!(!inspect(0).contains("copying netduel"));
        assert!(fs::exists(&read).unwrap());
        scene.assert_nothing_left();
    });
}
