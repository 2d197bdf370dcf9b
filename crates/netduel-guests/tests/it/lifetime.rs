//! What remains of a bed when one of its processes is killed. These beds have no guests: a `sleep` stands for what runs in them.
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use netduel_guests::{Bed, Prepared, Scene};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{assert_nothing_left, end, kill, network_namespace, prepared, processes};

/// Set in the process that makes a bed and is killed.
const INSIDE: &str = "NETDUEL_TEST_BED_OWNER";

/// A bed with a process that would run for ever.
fn bed_with_sleeper(prepared: &Prepared) -> (Bed, Child) {
    let bed = Bed::empty(prepared, Scene::named("igb").unwrap())
        .unwrap_or_else(|error| panic!("failed to {error}"));
    // `sh` says that it runs, and becomes the sleeper.
    let mut sleeper = bed.command(Path::new("sh"));
    let mut sleeper =
        sleeper.args(["-c", "echo runs; exec sleep infinity"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(sleeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "runs\n");
    (bed, sleeper)
}

#[test]
fn killed_holder_ends_everything_in_its_bed() {
    let Some(prepared) = prepared() else { return };
    // unshare(1), and the first process of the bed
    for is_first_process in [true, false] {
        let (mut bed, mut sleeper) = bed_with_sleeper(&prepared);
        let folder = bed.folder().to_owned();
        let namespace = network_namespace(&bed.first_process().to_string()).unwrap();
        assert!(processes(&folder).len() >= 3, "holder, first process, sleeper: {:?}", processes(&folder));
        let first = bed.first_process();
        let first_ended = pidfd_open(pid(first), PidfdFlags::empty()).unwrap();
        kill(if is_first_process { first } else { parent(first) });
        bed.wait_for_end().unwrap();
        wait_for(&first_ended);
        sleeper.wait().unwrap();
        assert_nothing_left(&folder, namespace);
        end(bed);
    }
}

#[test]
fn killed_owner_takes_its_bed_along_and_the_next_bed_removes_its_folder() {
    let Some(prepared) = prepared() else { return };
    if std::env::var_os(INSIDE).is_some() {
        let (bed, _sleeper) = bed_with_sleeper(&prepared);
        println!("\nbed {} {}", bed.first_process(), bed.folder().display());
        // Until it is killed.
        loop {
            std::thread::park();
        }
    }
    let mut owner = Command::new(std::env::current_exe().unwrap());
    let test = "lifetime::killed_owner_takes_its_bed_along_and_the_next_bed_removes_its_folder";
    let mut owner =
        owner.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines().map_while(Result::ok);
    let bed = lines.find_map(|line| line.strip_prefix("bed ").map(str::to_owned)).unwrap();
    let (first, folder) = bed.split_once(' ').unwrap();
    let (first, folder) = (first.parse().unwrap(), PathBuf::from(folder));
    let namespace = network_namespace(&u32::to_string(&first)).unwrap();
    let first_ended = pidfd_open(pid(first), PidfdFlags::empty()).unwrap();
    kill(owner.id());
    owner.wait().unwrap();
    wait_for(&first_ended);
    // unshare(1) and nsenter(1) are children of no test any more: they end after those that they wait for.
    for process in processes(&folder) {
        if let Ok(ended) = pidfd_open(pid(process.parse().unwrap()), PidfdFlags::empty()) {
            wait_for(&ended);
        }
    }
    assert_nothing_left(&folder, namespace);
    assert!(folder.exists(), "the killed owner could not remove {}", folder.display());
    end(Bed::empty(&prepared, Scene::named("virtio").unwrap()).unwrap());
    assert!(!folder.exists(), "{}", folder.display());
}

#[test]
fn folder_of_a_running_bed_is_not_removed_by_another() {
    let Some(prepared) = prepared() else { return };
    let first = Bed::empty(&prepared, Scene::named("virtio").unwrap()).unwrap();
    end(Bed::empty(&prepared, Scene::named("virtio").unwrap()).unwrap());
    assert!(first.folder().exists());
    end(first);
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(process.try_into().unwrap()).unwrap()
}

/// Waits until the process of the descriptor has ended. That of a first process has ended after everything in its namespace.
fn wait_for(process: &impl std::os::fd::AsFd) {
    let bound = Timespec { tv_sec: 500, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&bound)).unwrap();
    assert_eq!(ready, 1, "the process still runs after {} s", bound.tv_sec);
}

/// The parent of a process: field 4 of proc_pid_stat(5).
fn parent(process: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}
