//! What remains of a treatment on a real driver when processes of netduel are killed, or the network to it fails, while it is in force.
use std::fs;

use netduel_guests::{Bed, Guest};
use serde_json::json;

use super::coordinator::{Coordinator, warnings};
use super::stepped::{SteppedRun, Steps};
use super::treatments::LastState;
use super::{kill, processes, run};

/// A treatment of the client's NIC.
struct Setting {
    treatment: &'static str,
    /// Prints the current value.
    now: &'static str,
    /// The value while the treatment is in force.
    in_force: &'static str,
}

/// igb restarts for it.
const RING: Setting = Setting {
    treatment: "{ ring = \"rx\", value = \"512\", interface = \"pf0\", on = \"client\" }",
    now: "ethtool -g pf0 | sed -n '/^Current/,$s/^RX:[^0-9]*//p'",
    in_force: "512",
};
/// igb does not restart for it.
const MODERATION: Setting = Setting {
    treatment: "{ coalesce = \"rx-usecs\", value = \"100\", interface = \"pf0\", on = \"client\" }",
    now: "ethtool -c pf0 | sed -n 's/^rx-usecs:[^0-9]*//p'",
    in_force: "100",
};
const AGENT: &str = "agent";
const GUARD: &str = "undo-guard";
/// Long enough for what a test does in a trial, beside two busy loops: a command by ssh and a kill. A trial that loses its agent or its
/// connection ends with it, so only the one that loses its guard lasts so long.
const SECONDS: u32 = 20;

/// The settings of a guest return after the loss of processes and of the network.
pub fn check_killed(bed: &mut Bed, coordinator: &Coordinator, state: &mut LastState) {
    state.is_kept_by(bed, |bed| {
        guard_agent_and_connection_are_killed(bed, coordinator);
        agent_is_killed_with_its_guard_and_the_network_fails(bed, coordinator);
    });
}

/// The connection is the first loss, after which the run goes on: the next agent waits for that without a connection, which restores the
/// ring. The second loss of a host, that of the agent, ends a run.
fn guard_agent_and_connection_are_killed(bed: &mut Bed, coordinator: &Coordinator) {
    let before = RING.before(&bed.guests()[0]);
    let in_force = format!("{}, ", RING.treatment);
    let steps = Steps { address: "10.1.0.2", before: &in_force, after: "", seconds: SECONDS };
    let mut stepped = SteppedRun::start(bed, coordinator, &steps);
    let without_guard = trial_that_loses(&mut stepped, bed, &[GUARD], &RING);
    let without_connection = stepped.trial(bed, "pf0", |bed| {
        assert_eq!(RING.value(&bed.guests()[0]), RING.in_force);
        kill(connection_to_a(bed));
    });
    // The change that finds the guard gone fails: what is in force is undone, and the next trial has a new guard.
    let not_treated = stepped.waiting_trial(bed, |bed| {
        let guard = ids_of(&bed.guests()[0], &[GUARD]);
        run(&bed.guests()[0], &format!("kill -9 {guard}"));
    });
    stepped.wait_for_trial(&bed.guests()[0]);
    assert_eq!(processes_of(&bed.guests()[0], GUARD).len(), 1);
    let without_agent = trial_that_loses(&mut stepped, bed, &[AGENT], &RING);
    let (report, seen) = stepped.report();
    // The guard restores the ring in its own time.
    run(&bed.guests()[0], &RING.until_restored(&before));
    assert!(!without_guard.contains("failed") && !without_guard.contains("invalid"), "{seen:#?}");
    assert!(not_treated.contains("failed: host a: failed to keep the undo guard: "), "{seen:#?}");
    for line in [without_agent, without_connection] {
        assert!(line.contains("failed: host a vanished"), "{line}: {seen:#?}");
    }
    assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&1.into(), &3.into()), "{seen:#?}");
}

/// The next agent restores what is left in the journal. An agent that its coordinator cannot reach restores its host by itself.
fn agent_is_killed_with_its_guard_and_the_network_fails(bed: &mut Bed, coordinator: &Coordinator) {
    let before = MODERATION.before(&bed.guests()[0]);
    let later = format!(", {}", MODERATION.treatment);
    let steps = Steps { address: "10.1.0.2", before: "", after: &later, seconds: SECONDS };
    let mut stepped = SteppedRun::start(bed, coordinator, &steps);
    let without_both = trial_that_loses(&mut stepped, bed, &[GUARD, AGENT], &MODERATION);
    // The next trial waits before it changes the setting.
    stepped.wait_for_trial(&bed.guests()[0]);
    assert_eq!(MODERATION.value(&bed.guests()[0]), before);
    let without_network = stepped.trial(bed, "pf0", |bed| {
        // ssh cannot show it: the address appears when the setting is restored.
        let shown = format!(
            "{}; ({}; cat /sys/class/net/mgmt/carrier > /tmp/carrier; ip address add 10.1.0.3/24 dev pf0) > /dev/null 2>&1 < /dev/null &",
            MODERATION.now,
            MODERATION.until_restored(&before)
        );
        assert_eq!(run(&bed.guests()[0], &shown).trim(), MODERATION.in_force);
        set_management_link(&mut bed.guests()[0], false);
    });
    run(&bed.guests()[1], "until ping -c 1 -W 1 10.1.0.3; do usleep 50000; done");
    set_management_link(&mut bed.guests()[0], true);
    assert_eq!(run(&bed.guests()[0], "ip address del 10.1.0.3/24 dev pf0; cat /tmp/carrier"), "0\n");
    let (report, seen) = stepped.report();
    assert!(without_both.contains("failed: host a vanished"), "{seen:#?}");
    assert!(without_network.contains("failed: host a: it has sent nothing for "), "{seen:#?}");
    let restored = "restored settings on host a that an earlier run left behind: ";
    let is_restored = |text: &&str| text.contains(restored) && text.contains("rx-usecs of pf0");
    assert!(warnings(&report).iter().any(is_restored), "{:#}", report["warnings"]);
}

/// A trial in which guest a loses the one process of each of these subcommands, in this order and at once, while the setting is in force.
/// They are looked up while the trial waits, which takes longer than a kill.
fn trial_that_loses(
    stepped: &mut SteppedRun,
    bed: &mut Bed,
    subcommands: &[&str],
    setting: &Setting,
) -> String {
    stepped.wait_for_trial(&bed.guests()[0]);
    let ids = ids_of(&bed.guests()[0], subcommands);
    stepped.trial(bed, "pf0", |bed| {
        let printed = run(&bed.guests()[0], &format!("{}; kill -9 {ids}", setting.now));
        assert_eq!(printed.trim(), setting.in_force);
    })
}

impl Setting {
    /// The value without the treatment.
    #[track_caller]
    fn before(&self, guest: &Guest) -> String {
        let before = self.value(guest);
        assert_ne!(before, self.in_force);
        before
    }

    fn value(&self, guest: &Guest) -> String {
        run(guest, self.now).trim().to_owned()
    }

    /// Waits until it has its value of before.
    fn until_restored(&self, before: &str) -> String {
        format!("until [ \"$({})\" = {before} ]; do usleep 50000; done", self.now)
    }
}

/// The carrier of the interface that ssh uses.
fn set_management_link(guest: &mut Guest, is_up: bool) {
    guest.qmp("set_link", &json!({ "name": "mgmt", "up": is_up })).unwrap();
}

/// The processes of a guest that run this subcommand of netduel. One program lists all processes: a program for each takes seconds.
fn processes_of(guest: &Guest, subcommand: &str) -> Vec<String> {
    let found = "for process in $(ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n 's,.* /proc/\\([0-9]*\\)/exe -> .*netduel.*,\\1,p'); do \
         echo \"$process $(tr '\\0' ' ' < \"/proc/$process/cmdline\")\"; done";
    let found = run(guest, found);
    let lines = found.lines().filter_map(|line| line.split_once(' '));
    let ids = lines.filter(|(_, command)| command.split(' ').any(|word| word == subcommand));
    ids.map(|(id, _)| id.to_owned()).collect()
}

/// The id of the one process of each of these subcommands, as words of a command.
#[track_caller]
fn ids_of(guest: &Guest, subcommands: &[&str]) -> String {
    let ids: Vec<String> = subcommands.iter().flat_map(|one| processes_of(guest, one)).collect();
    assert_eq!(ids.len(), subcommands.len(), "one process of each of {subcommands:?}: {ids:?}");
    ids.join(" ")
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
