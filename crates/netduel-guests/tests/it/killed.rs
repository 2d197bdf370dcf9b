//! What remains of a treatment on a real driver when processes of netduel are killed, or the network to it fails, while it is in force.
use std::fs;

use netduel_guests::{Bed, Guest};
use serde_json::json;

use super::coordinator::{Coordinator, warnings};
use super::stepped::{SteppedRun, Steps};
use super::treatments::LastState;
use super::{kill, processes, run};

/// The receive ring of the client's NIC.
const RING: &str = "{ ring = \"rx\", value = \"512\", interface = \"pf0\", on = \"client\" }";
/// Prints the current number of receive descriptors of `pf0`.
const RING_NOW: &str = "ethtool -g pf0 | sed -n '/^Current/,$s/^RX:[^0-9]*//p'";
const AGENT: &str = "agent";
const GUARD: &str = "undo-guard";
/// Long enough for what a test does in a trial. Only a trial that is not disturbed lasts so long.
const SECONDS: u32 = 20;

/// The settings of a guest return after the loss of processes and of the network.
pub fn check_killed(bed: &mut Bed, coordinator: &Coordinator, state: &mut LastState) {
    let before = ring(&bed.guests()[0]);
    assert_ne!(before, "512");
    state.is_kept_by(bed, |bed| {
        guard_agent_and_connection_are_killed(bed, coordinator, &before);
        agent_is_killed_with_its_guard_and_the_network_fails(bed, coordinator, &before);
    });
}

/// The connection is the first loss, after which the run goes on: the next agent waits for that without a connection, which restores the
/// ring. The second loss of a host, that of the agent, ends a run.
fn guard_agent_and_connection_are_killed(bed: &mut Bed, coordinator: &Coordinator, before: &str) {
    let in_force = format!("{RING}, ");
    let steps = Steps { address: "10.1.0.2", before: &in_force, after: "", seconds: SECONDS };
    let mut stepped = SteppedRun::start(bed, coordinator, &steps);
    let without_guard = stepped.trial(bed, "pf0", |bed| kill_in(&bed.guests()[0], &[GUARD]));
    let without_connection = stepped.trial(bed, "pf0", |bed| {
        assert_eq!(ring(&bed.guests()[0]), "512");
        kill(connection_to_a(bed));
    });
    // The change that finds the guard gone fails: what is in force is undone, and the next trial has a new guard.
    let not_treated = stepped.waiting_trial(bed, |bed| kill_in(&bed.guests()[0], &[GUARD]));
    let without_agent = stepped.trial(bed, "pf0", |bed| {
        assert_eq!(processes_of(&bed.guests()[0], GUARD).len(), 1);
        kill_in(&bed.guests()[0], &[AGENT]);
    });
    let (report, seen) = stepped.report();
    // The guard restores the ring in its own time.
    run(&bed.guests()[0], &until_restored(before));
    assert!(!without_guard.contains("failed") && !without_guard.contains("invalid"), "{seen:#?}");
    assert!(not_treated.contains("failed: host a: failed to keep the undo guard: "), "{seen:#?}");
    for line in [without_agent, without_connection] {
        assert!(line.contains("failed: host a vanished"), "{line}: {seen:#?}");
    }
    assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&1.into(), &3.into()), "{seen:#?}");
}

/// The next agent restores what is left in the journal. An agent that its coordinator cannot reach restores its host by itself.
fn agent_is_killed_with_its_guard_and_the_network_fails(
    bed: &mut Bed,
    coordinator: &Coordinator,
    before: &str,
) {
    let later = format!(", {RING}");
    let steps = Steps { address: "10.1.0.2", before: "", after: &later, seconds: SECONDS };
    let mut stepped = SteppedRun::start(bed, coordinator, &steps);
    let without_both = stepped.trial(bed, "pf0", |bed| {
        assert_eq!(ring(&bed.guests()[0]), "512");
        kill_in(&bed.guests()[0], &[GUARD, AGENT]);
    });
    // The next trial waits before it changes the ring.
    stepped.wait_for_trial(&bed.guests()[0]);
    assert_eq!(ring(&bed.guests()[0]), before);
    let without_network = stepped.trial(bed, "pf0", |bed| {
        assert_eq!(ring(&bed.guests()[0]), "512");
        // ssh cannot show it: the address appears when the ring is restored.
        let shown = format!(
            "({}; cat /sys/class/net/mgmt/carrier > /tmp/carrier; ip address add 10.1.0.3/24 dev pf0) > /dev/null 2>&1 < /dev/null &",
            until_restored(before)
        );
        run(&bed.guests()[0], &shown);
        set_management_link(&mut bed.guests()[0], false);
    });
    run(&bed.guests()[1], "until ping -c 1 -W 1 10.1.0.3; do usleep 50000; done");
    set_management_link(&mut bed.guests()[0], true);
    assert_eq!(run(&bed.guests()[0], "ip address del 10.1.0.3/24 dev pf0; cat /tmp/carrier"), "0\n");
    let (report, seen) = stepped.report();
    assert!(without_both.contains("failed: host a vanished"), "{seen:#?}");
    assert!(without_network.contains("failed: host a: it has sent nothing for "), "{seen:#?}");
    let restored = "restored settings on host a that an earlier run left behind: ";
    let is_restored = |text: &&str| text.contains(restored) && text.contains("ring of pf0");
    assert!(warnings(&report).iter().any(is_restored), "{:#}", report["warnings"]);
}

fn ring(guest: &Guest) -> String {
    run(guest, RING_NOW).trim().to_owned()
}

/// Waits until the ring has its size of before.
fn until_restored(before: &str) -> String {
    format!("until [ \"$({RING_NOW})\" = {before} ]; do usleep 50000; done")
}

/// The carrier of the interface that ssh uses.
fn set_management_link(guest: &mut Guest, is_up: bool) {
    guest.qmp("set_link", &json!({ "name": "mgmt", "up": is_up })).unwrap();
}

/// The processes of a guest that run this subcommand of netduel.
fn processes_of(guest: &Guest, subcommand: &str) -> Vec<String> {
    let found = "for process in /proc/[0-9]*; do case $(readlink \"$process/exe\") in *netduel*) \
         echo \"${process#/proc/} $(tr '\\0' ' ' < \"$process/cmdline\")\" ;; esac; done";
    let found = run(guest, found);
    let lines = found.lines().filter_map(|line| line.split_once(' '));
    let ids = lines.filter(|(_, command)| command.split(' ').any(|word| word == subcommand));
    ids.map(|(id, _)| id.to_owned()).collect()
}

/// Kills the one process of each of these subcommands, in this order and at once.
fn kill_in(guest: &Guest, subcommands: &[&str]) {
    let ids: Vec<String> = subcommands.iter().flat_map(|one| processes_of(guest, one)).collect();
    assert_eq!(ids.len(), subcommands.len(), "one process of each of {subcommands:?}: {ids:?}");
    run(guest, &format!("kill -9 {}", ids.join(" ")));
}

/// The coordinator's master connection to guest a.
fn connection_to_a(bed: &Bed) -> u32 {
    let is_of_a = |id: &String| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&b"-M".as_slice()) && words.contains(&b"a".as_slice())
    };
    let found: Vec<String> = processes(bed.folder()).into_iter().filter(is_of_a).collect();
    let [connection] = &found[..] else { panic!("one connection to a: {found:?}") };
    connection.parse().unwrap()
}
