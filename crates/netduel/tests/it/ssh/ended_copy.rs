//! Copies of the program that end half-way, with the run or with the shell on the host.
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

use super::compression::{FOLDER, assert_copied};
use super::{Scene, assert_names, with_sshd};
use crate::support::{UnderWay, signal, until};

/// The beginning of a temporary name.
const TEMPORARY: &str = ".copy.";

/// The files beside the copy of the program, with it.
fn files(scene: &Scene) -> Vec<PathBuf> {
    let folders = scene.copies(FOLDER).into_iter().filter_map(|copy| fs::read_dir(copy.parent()?).ok());
    folders.flatten().flatten().map(|entry| entry.path()).collect()
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

/// A run whose copy is half-way, and the file on the host with the first part. The host goes on with [`go_on`].
fn half_way(scene: &Scene, plan: &str) -> (UnderWay, PathBuf) {
    let (part, go) = (scene.at("part"), scene.at("go"));
    // The few bytes of the probe pass.
    let decompress = format!(
        "head -c 100000 >{part}\n[ $(wc -c <{part}) = 100000 ] || exec /usr/bin/gzip -dc <{part}\n\
         /usr/bin/gzip -dc <{part}\nwhile [ ! -e {go} ]; do sleep 0.02; done\ncat >/dev/null\nexit 1"
    );
    scene.program("bin/gzip", &format!("[ \"$1\" = -dc ] || exec /usr/bin/gzip \"$@\"\n{decompress}"));
    let run = UnderWay::start(scene.netduel(&["run", plan]));
    let has_part = |file: &PathBuf| fs::metadata(file).is_ok_and(|file| file.len() > 0);
    let mut copy = None;
    let is_half_way = || {
        copy = files(scene).into_iter().find(has_part);
        copy.is_some()
    };
    assert!(until(is_half_way), "no part of the program has arrived");
    let copy = copy.unwrap();
    assert!(name(&copy).starts_with(TEMPORARY), "{}", copy.display());
    (run, copy)
}

fn go_on(scene: &Scene) {
    fs::write(scene.at("go"), "").unwrap();
}

/// The next run copies the program, and nothing else is beside it.
#[track_caller]
fn assert_copied_by_the_next_run(scene: &Scene, plan: &str) {
    fs::remove_file(scene.at("bin/gzip")).unwrap();
    let run = scene.run(&["run", plan]).expect_code(0);
    assert_names(&run.stderr, &["copying netduel (", "copied netduel"]);
    assert_copied(scene);
    let files = files(scene);
    assert_eq!(files.iter().map(|file| name(file)).collect::<Vec<_>>(), ["netduel"]);
    scene.assert_nothing_left();
}

#[test]
fn run_that_ends_in_a_copy_leaves_no_file() {
    with_sshd("ssh::ended_copy::run_that_ends_in_a_copy_leaves_no_file", |scene| {
        let plan = scene.plan("", "", 2);
        let (run, copy) = half_way(scene, &plan);
        signal(run.pid(), Signal::INT);
        run.finish().expect_code(130);
        assert_eq!(files(scene), [copy], "a part has the name of the program");
        go_on(scene);
        assert!(until(|| files(scene).is_empty()), "{:?}", files(scene));
        scene.assert_nothing_left();
        assert_copied_by_the_next_run(scene, &plan);
    });
}

#[test]
fn file_of_a_copy_whose_shell_was_killed_is_removed_by_the_next_run() {
    with_sshd("ssh::ended_copy::file_of_a_copy_whose_shell_was_killed_is_removed_by_the_next_run", |scene| {
        let plan = scene.plan("", "", 2);
        let (run, copy) = half_way(scene, &plan);
        let (_, shell) = name(&copy).rsplit_once('.').unwrap();
        signal(Pid::from_raw(shell.parse().unwrap()).unwrap(), Signal::KILL);
        go_on(scene);
        let failed = run.finish().expect_code(3);
        assert_names(&failed.stderr, &["failed to copy netduel to vm1:", "the ssh session ended"]);
        assert_eq!(files(scene), [copy]);
        scene.assert_nothing_left();
        assert_copied_by_the_next_run(scene, &plan);
    });
}
