//! The copy of the program to hosts with gzip, without it, and with one that fails.
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{Scene, Sshd, assert_names, refusal, with_sshd};
use crate::support::{Finished, until};

/// The folder of the builds on the host.
pub(super) const FOLDER: &str = "home/.cache/netduel";

fn inspect(scene: &Scene) -> Finished {
    scene.run(&["inspect", "ssh:vm1", "--no-metadata", "--fail-on", "never"]).expect_code(0)
}

/// The host has one copy, which is this program.
#[track_caller]
pub(super) fn assert_copied(scene: &Scene) {
    let own = fs::read(env!("CARGO_BIN_EXE_netduel")).unwrap();
    let copies = scene.copies(FOLDER);
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert!(fs::read(&copies[0]).unwrap() == own, "another program was copied");
}

#[test]
fn host_with_gzip_gets_fewer_bytes() {
    with_sshd("ssh::compression::host_with_gzip_gets_fewer_bytes", |scene| {
        let received = scene.at("received");
        let decompress = format!("-dc) tee {received} | /usr/bin/gzip -dc;;");
        scene.program("bin/gzip", &format!("case $1 in\n{decompress}\n*) exec /usr/bin/gzip \"$@\";;\nesac"));
        let copied = inspect(scene);
        assert_copied(scene);
        let megabytes = |path: &str| fs::metadata(path).unwrap().len() as f64 / 1e6;
        let (sent, own) = (megabytes(&received), megabytes(env!("CARGO_BIN_EXE_netduel")));
        assert!(sent < 0.7 * own, "{sent} of {own} MB");
        assert_names(
            &copied.stderr,
            &[&format!("copying netduel ({sent:.1} MB, compressed from {own:.1} MB)"), "copied netduel"],
        );
        scene.assert_nothing_left();
    });
}

/// Starts an sshd whose sessions have the programs of this machine without gzip, and makes it that of vm1.
fn host_without_gzip(scene: &Scene) -> Sshd {
    // The search path has this folder, too.
    scene.use_gzip();
    let programs = scene.at("programs");
    fs::create_dir(&programs).unwrap();
    for folder in ["/usr/bin", "/usr/sbin", "/bin", "/sbin"] {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let link = Path::new(&programs).join(entry.file_name());
            // Often two of the folders are one.
            if entry.file_name() != "gzip" && link.symlink_metadata().is_err() {
                symlink(entry.path(), link).unwrap();
            }
        }
    }
    // The first value of a setting applies.
    let config = fs::read_to_string(scene.at("ssh_config")).unwrap();
    let other = "Host vm1\nHostName 127.0.0.2\nHostKeyAlias vm2\n";
    fs::write(scene.at("ssh_config"), format!("{other}{config}")).unwrap();
    Sshd::start_with_programs(&scene.bench, "plain", "127.0.0.2", &programs)
}

#[test]
fn host_without_gzip_gets_the_plain_program() {
    with_sshd("ssh::compression::host_without_gzip_gets_the_plain_program", |scene| {
        let sshd = host_without_gzip(scene);
        let copied = inspect(scene);
        assert_copied(scene);
        let own = fs::metadata(env!("CARGO_BIN_EXE_netduel")).unwrap().len() as f64 / 1e6;
        assert_names(&copied.stderr, &[&format!("copying netduel ({own:.1} MB) to"), "copied netduel"]);
        scene.assert_nothing_left();
        assert!(until(|| sshd.connections().is_empty()), "a connection is left");
    });
}

#[test]
fn gzip_that_never_works_is_not_used() {
    with_sshd("ssh::compression::gzip_that_never_works_is_not_used", |scene| {
        scene.program("bin/gzip", "echo 'gzip: broken' >&2\nexit 1");
        let copied = inspect(scene);
        assert_copied(scene);
        assert!(
            !copied.stderr.contains("compressed") && !copied.stderr.contains("broken"),
            "{}",
            copied.stderr
        );
        scene.assert_nothing_left();
    });
}

#[test]
fn decompression_that_fails_is_an_error_and_leaves_no_program() {
    with_sshd("ssh::compression::decompression_that_fails_is_an_error_and_leaves_no_program", |scene| {
        let cases: [(&str, &[&str]); 3] = [
            // The end is missing. The few bytes of the probe pass.
            (
                "head -c 100000 | /usr/bin/gzip -dc",
                &["gzip there did not decompress it", "unexpected end of file", "exit code 1", "repair gzip"],
            ),
            ("/usr/bin/gzip -dc | head -c 100000", &["arrived damaged", "its checksum is"]),
            ("/usr/bin/gzip -dc | tr '\\000' '\\001'", &["arrived damaged", "its checksum is"]),
        ];
        for (decompress, parts) in cases {
            scene
                .program("bin/gzip", &format!("[ \"$1\" = -dc ] || exec /usr/bin/gzip \"$@\"\n{decompress}"));
            assert_names(&refusal(scene, ""), &[parts, &["failed to copy netduel to vm1:"]].concat());
            for copy in scene.copies(FOLDER) {
                let left: Vec<_> = fs::read_dir(copy.parent().unwrap()).unwrap().flatten().collect();
                assert!(left.is_empty(), "{left:?}");
            }
        }
    });
}
