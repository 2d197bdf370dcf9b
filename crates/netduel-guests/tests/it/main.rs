//! Tests in guests with real NIC drivers. `cargo xtask test` prepares them and names their folder; without it nothing is tested here.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, in its helpers too")]

mod azure;
mod bond;
mod connection;
mod coordinator;
mod device_treatments;
mod dpdk;
mod failover;
mod failover_cases;
mod failover_table;
mod hot_add;
mod igb;
mod inspected;
mod killed;
mod lifetime;
mod nic_features;
mod pace;
mod places;
mod queues;
mod readme;
mod real_az;
mod recorded;
mod scenes;
mod shipped_plans;
mod states;
mod stepped;
mod timed;
mod treatments;
mod versions;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use netduel_guests::{BED_VARIABLE, Bed, FOLDER_VARIABLE, Guest, OBSTACLE_VARIABLE, Prepared};
use netduel_test_support::{not_requested, skip};

/// The prepared folder; prints why there is none. Without a variable these tests were not requested, which is no skip.
fn prepared() -> Option<Prepared> {
    if let Some(obstacle) = std::env::var_os(OBSTACLE_VARIABLE) {
        skip(format!("guests were not prepared: {}", obstacle.display()));
        return None;
    }
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else {
        not_requested("guests with real NIC drivers; run `cargo xtask test guests`");
        return None;
    };
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        skip("a test bed of guests needs root for its namespaces, bridges and taps");
        return None;
    }
    match Prepared::open(Path::new(&folder)) {
        Ok(prepared) => Some(prepared),
        Err(error) => {
            skip(format!("failed to {error}"));
            None
        }
    }
}

/// Runs a command in a guest, which has to succeed.
#[track_caller]
fn run(guest: &Guest, script: &str) -> String {
    guest.ssh(script).unwrap_or_else(|error| panic!("failed to {error}"))
}

/// Waits in a guest until a command succeeds. The one limit is that of every command there: a state that a slow machine reaches late is reached.
#[track_caller]
fn reach(guest: &Guest, state: &str) {
    run(guest, &until(state));
}

/// The command that waits until another one succeeds.
fn until(state: &str) -> String {
    format!("until {state}; do usleep 50000; done")
}

/// Succeeds when an address answers.
fn answer_of(address: &str) -> String {
    format!("ping -c 1 -W 1 {address} > /dev/null")
}

/// The command that loads modules and what they need, as far as a guest does not have them yet.
fn load(modules: &str) -> String {
    format!(
        "for module in {modules}; do while read -r name; do \
         grep -q \"^$name \" /proc/modules || insmod /modules/$name.ko; done < /modules/$module.order; done"
    )
}

/// Runs a command in both guests, which has to succeed; at a time, because each guest has a core of its own. Returns what each printed.
#[track_caller]
fn run_in_both(guests: &[Guest], script: impl Fn(&Guest) -> String) -> Vec<String> {
    let scripts: Vec<String> = guests.iter().map(script).collect();
    std::thread::scope(|scope| {
        let each = guests.iter().zip(&scripts);
        let threads: Vec<_> = each.map(|(guest, script)| scope.spawn(move || run(guest, script))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The processes of a bed, by the variable that all of them inherit.
fn processes(bed_folder: &Path) -> Vec<String> {
    let mark = format!("{BED_VARIABLE}={}", bed_folder.display());
    let has_mark = |id: &str| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|setting| setting == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()) && has_mark(id)).collect()
}

/// The number of the network namespace of a process.
fn network_namespace(process: &str) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{process}/ns/net")).ok()?.ino())
}

/// Whether a process of this machine is in the network namespace.
fn is_inhabited(namespace: u64) -> bool {
    let entries = fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    ids.filter_map(|id| network_namespace(&id)).any(|found| found == namespace)
}

/// Ends a process at once, as `kill -9`.
fn kill(process: u32) {
    let id = rustix::process::Pid::from_raw(process.try_into().unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}

/// Nothing of the bed remains: no process, no process in its network namespace; its folder goes with the bed.
#[track_caller]
fn assert_nothing_left(folder: &Path, namespace: u64) {
    assert_eq!(processes(folder), [""; 0]);
    assert!(!is_inhabited(namespace));
}

/// Drops a bed; then its folder is gone as well.
#[track_caller]
fn end(bed: Bed) {
    let folder = bed.folder().to_owned();
    drop(bed);
    assert_eq!(processes(&folder), [""; 0]);
    assert!(!folder.exists(), "{}", folder.display());
}
