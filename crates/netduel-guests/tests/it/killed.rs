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
const AGENT: &str = "netduel agent";
const GUARD: &str = "netduel undo-guard";

#[test]
fn settings_of_a_guest_return_after_a_kill_of_agent_guard_or_connection() {
    with_scene("igb", &[1], |mut bed| {
        let coordinator = Coordinator::new(&bed);
        let before = ring(&bed.guests()[0]);
        assert_ne!(before, "512");
        let (lines, report) = assert_as_before(&mut bed, |bed| {
            let mut stepped = SteppedRun::start(bed, &coordinator, "10.1.0.2", RING);
            let killing: [fn(&mut Bed); 4] = [
                |bed| kill_in(&bed.guests()[0], &[AGENT]),
                |bed| kill_in(&bed.guests()[0], &[GUARD]),
                |bed| kill_in(&bed.guests()[0], &[AGENT, GUARD]),
                |bed| kill(connection_to_a(bed)),
            ];
            let lines = killing.map(|killed| {
                stepped.trial(bed, "pf0", |bed| {
                    assert_eq!(ring(&bed.guests()[0]), "512");
                    killed(bed);
                })
            });
            (lines, stepped.report())
        });
        println!("{lines:#?}");
        for (number, line) in lines.iter().enumerate() {
            let is_without_agent = number != 1;
            assert_eq!(line.contains("failed: host a vanished"), is_without_agent, "{lines:#?}");
        }
        assert_eq!(report["trials_excluded"], 3, "{:#}", report["warnings"]);
        assert_eq!(ring(&bed.guests()[0]), before);
        end(bed);
    });
}

/// The current number of receive descriptors of `pf0`.
fn ring(guest: &Guest) -> String {
    run(guest, "ethtool -g pf0 | sed -n '/^Current/,$s/^RX:[^0-9]*//p'").trim().to_owned()
}

/// Kills the processes of a guest with these words in their command lines, at once.
fn kill_in(guest: &Guest, lines: &[&str]) {
    // The brackets keep the shell that runs this from finding itself.
    let found = lines.iter().map(|line| format!("$(pgrep -f '[{}]{}')", &line[..1], &line[1..]));
    let found = found.collect::<Vec<_>>().join(" ");
    run(guest, &format!("kill -9 {found}"));
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
