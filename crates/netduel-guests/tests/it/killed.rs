//! What remains of a treatment on a real driver when processes of netduel are killed while it is in force.
use std::fs;

use netduel_guests::{Bed, Guest};

use super::coordinator::Coordinator;
use super::scenes::with_scene;
use super::stepped::SteppedRun;
use super::treatments::assert_as_before;
use super::{end, kill, processes, run};

/// The receive ring of the client's NIC.
const RING: &str = "{ ring = \"rx\", value = \"512\", interface = \"pf0\", on = \"client\" }, ";
/// Prints the current number of receive descriptors of `pf0`.
const RING_NOW: &str = "ethtool -g pf0 | sed -n '/^Current/,$s/^RX:[^0-9]*//p'";
const AGENT: &str = "agent";
const GUARD: &str = "undo-guard";

#[test]
fn settings_of_a_guest_return_after_a_kill_of_agent_guard_or_connection() {
    with_scene("igb", &[1], |mut bed| {
        let coordinator = Coordinator::new(&bed);
        let before = ring(&bed.guests()[0]);
        assert_ne!(before, "512");
        let (lines, report) = assert_as_before(&mut bed, |bed| {
            let mut stepped = SteppedRun::start(bed, &coordinator, "10.1.0.2", RING);
            // The second loss of a host ends a run: the connection is the last.
            let killing: [fn(&mut Bed); 4] = [
                |bed| kill_in(&bed.guests()[0], GUARD),
                |bed| kill_in(&bed.guests()[0], AGENT),
                |_| {},
                |bed| kill(connection_to_a(bed)),
            ];
            let lines = killing.map(|killed| {
                stepped.trial(bed, "pf0", |bed| {
                    assert_eq!(ring(&bed.guests()[0]), "512");
                    killed(bed);
                })
            });
            let (report, _) = stepped.report();
            // The agent without a connection restores it in its own time.
            let restored = format!("until [ \"$({RING_NOW})\" = {before} ]; do usleep 50000; done");
            run(&bed.guests()[0], &restored);
            (lines, report)
        });
        let is_lost = lines.each_ref().map(|line| line.contains("failed: host a vanished"));
        assert_eq!(is_lost, [false, true, false, true], "{lines:#?}");
        assert_eq!(report["trials_excluded"], 2, "{:#}", report["warnings"]);
        end(bed);
    });
}

fn ring(guest: &Guest) -> String {
    run(guest, RING_NOW).trim().to_owned()
}

/// Kills the one process of a guest that runs this subcommand of netduel.
fn kill_in(guest: &Guest, subcommand: &str) {
    let found = "for process in /proc/[0-9]*; do case $(readlink \"$process/exe\") in *netduel*) \
         echo \"${process#/proc/} $(tr '\\0' ' ' < \"$process/cmdline\")\" ;; esac; done";
    let found = run(guest, found);
    let lines = found.lines().filter_map(|line| line.split_once(' '));
    let ids = lines.filter(|(_, command)| command.split(' ').any(|word| word == subcommand));
    let ids: Vec<&str> = ids.map(|(id, _)| id).collect();
    let [id] = ids[..] else { panic!("one {subcommand}: {found}") };
    run(guest, &format!("kill -9 {id}"));
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
