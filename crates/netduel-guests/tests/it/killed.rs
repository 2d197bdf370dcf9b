//! What remains of treatments on real drivers when a trial ends, when processes of netduel are killed, or when the network to it fails, while
//! they are in force.
use std::fs;

use netduel_guests::{Bed, Guest};
use serde_json::{Value, json};

use super::coordinator::{Coordinator, warnings};
use super::stepped::{SteppedRun, Steps};
use super::treatments::{Treated, take_shown};
use super::{answer_of, kill, processes, reach, run, run_in_both};

const AGENT: &str = "agent";
const GUARD: &str = "undo-guard";
/// Long enough for what a test does in a trial: a kill in the guest in the command that sees the traffic, or one on this machine after the
/// output of that command. A trial that loses its agent or its connection ends with it.
const SECONDS: u32 = 4;
/// A script in the client makes it: the next undo of [`slow_undo`] takes long, and removes it.
const UNDO_SLOWLY: &str = "/tmp/undo-slowly";

/// Treatments of both ends are in force in a trial, and undone afterwards: by the next agent when agent and guard are killed, by the agent after a
/// trial in which its guard is killed, by the agents whose network fails and whose connection is killed, and by the guard when the agent is killed.
pub fn check_restored(bed: &mut Bed, coordinator: &Coordinator, treated: Treated<'_>) {
    let (mut stepped, lines) = without_agent_and_guard_then_valid(bed, coordinator, treated, &[GUARD]);
    begin_without_network(&mut stepped, bed, treated);
    // It ends the trial: the coordinator notices a failed network by a silence of 10 s.
    kill(connection_to(bed, "b"));
    await_restored_without_network(bed, treated);
    let without_connections = stepped.line();
    let ids = ids_when_waiting(&mut stepped, bed, &[GUARD, AGENT]);
    let without_agent = trial_that_loses(&mut stepped, bed, &ids[1..], treated);
    let (report, seen) = stepped.report();
    run(&bed.guests()[0], &until_ended(&ids[..1]));
    assert_lost(&lines, 3, &report, &seen);
    assert!(without_connections.contains("failed: host b vanished"), "{seen:#?}");
    assert!(without_agent.contains("failed: host a vanished"), "{seen:#?}");
    treated.assert_gone(bed);
}

/// The settings of a client return after each loss of processes, and after that of the network.
pub fn check_killed(bed: &mut Bed, coordinator: &Coordinator, treated: Treated<'_>) {
    guard_agent_and_connection_are_killed(bed, coordinator, treated);
    agent_is_killed_with_its_guard_and_the_network_fails(bed, coordinator, treated);
    treated.assert_gone(bed);
}

/// After the loss of the connection, the next agent waits for that without a connection, which restores the settings. After that of the agent, the
/// second one in a row, the next agent waits for the guard.
fn guard_agent_and_connection_are_killed(bed: &mut Bed, coordinator: &Coordinator, treated: Treated<'_>) {
    let before = format!("{}, {}, ", slow_undo(), treated.in_plan());
    let steps = Steps { address: treated.address, before: &before, after: "", seconds: SECONDS };
    let mut stepped = SteppedRun::start(bed, coordinator, &steps);
    let ids = ids_when_waiting(&mut stepped, bed, &[GUARD]);
    let without_guard = trial_that_loses(&mut stepped, bed, &ids, treated);
    let connection = connection_to(bed, "a");
    let printed = stepped.begin(&bed.guests()[0], &format!("touch {UNDO_SLOWLY}; {}", take_shown()));
    kill(connection);
    let without_connection = stepped.line();
    treated.assert_shown(&printed, true);
    // The change that finds the guard gone fails: what is in force is undone, and the next trial has a new guard.
    let not_treated = stepped.waiting_trial(bed, |bed| {
        let guard = ids_of(&bed.guests()[0], &[GUARD]);
        run(&bed.guests()[0], &kill_in_guest(&guard));
    });
    let ids = ids_when_waiting(&mut stepped, bed, &[GUARD, AGENT]);
    let without_agent = trial_that_loses(&mut stepped, bed, &ids[1..], treated);
    let (report, seen) = stepped.report();
    // The guard restores the settings in its own time.
    run(&bed.guests()[0], &until_ended(&ids[..1]));
    assert!(is_undisturbed(&without_guard), "{seen:#?}");
    assert!(not_treated.contains("failed: host a: failed to keep the undo guard: "), "{seen:#?}");
    for line in [without_agent, without_connection] {
        assert!(line.contains("failed: host a vanished"), "{line}: {seen:#?}");
    }
    assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&1.into(), &3.into()), "{seen:#?}");
}

/// A treatment of the client whose undo takes seconds when [`UNDO_SLOWLY`] exists: more than a new agent needs until it takes the lock of its host.
fn slow_undo() -> String {
    format!(
        "{{ command = [\"true\"], undo = [\"sh\", \"-c\", \"[ ! -e {UNDO_SLOWLY} ] || {{ rm {UNDO_SLOWLY}; sleep 8; }}\"], \
         on = \"client\" }}"
    )
}

/// The next agent restores what is left in the journal. An agent that its coordinator cannot reach restores its host by itself.
fn agent_is_killed_with_its_guard_and_the_network_fails(
    bed: &mut Bed,
    coordinator: &Coordinator,
    treated: Treated<'_>,
) {
    let (mut stepped, lines) = without_agent_and_guard_then_valid(bed, coordinator, treated, &[]);
    begin_without_network(&mut stepped, bed, treated);
    let without_network = stepped.line();
    // The restarts of the agent would fail as long as the host is out of reach.
    stepped.interrupt(bed);
    await_restored_without_network(bed, treated);
    let (report, seen) = stepped.report();
    assert_lost(&lines, 1, &report, &seen);
    assert!(without_network.contains("failed: host a: it has sent nothing for "), "{seen:#?}");
}

/// A trial in which guest a loses agent and guard, and a valid one in which it loses the processes of these subcommands. Nothing of the treatments is
/// in force before each. Returns the lines about both.
fn without_agent_and_guard_then_valid(
    bed: &mut Bed,
    coordinator: &Coordinator,
    treated: Treated<'_>,
    lost_in_valid: &[&str],
) -> (SteppedRun, [String; 2]) {
    for printed in run_in_both(treated.guests(bed), |_| treated.look()) {
        treated.assert_shown(&printed, false);
    }
    let after = format!(", {}", treated.in_plan());
    let steps = Steps { address: treated.address, before: "", after: &after, seconds: SECONDS };
    let mut stepped = SteppedRun::start(bed, coordinator, &steps);
    let both = ids_when_waiting(&mut stepped, bed, &[GUARD, AGENT]);
    let without_both = trial_that_loses(&mut stepped, bed, &both, treated);
    treated.assert_shown(&stepped.when_waiting(&bed.guests()[0], &treated.look()), false);
    let lost = match lost_in_valid {
        [] => "true".to_owned(),
        _ => kill_in_guest(&ids_when_waiting(&mut stepped, bed, lost_in_valid)),
    };
    stepped.begin(&bed.guests()[0], &lost);
    for printed in run_in_both(treated.guests(bed), |_| take_shown()) {
        treated.assert_shown(&printed, true);
    }
    let valid = stepped.line();
    (stepped, [without_both, valid])
}

/// Lets a trial begin, and takes the network to guest a away while the treatments are in force.
fn begin_without_network(stepped: &mut SteppedRun, bed: &mut Bed, treated: Treated<'_>) {
    let both = ids_when_waiting(stepped, bed, &[GUARD, AGENT]);
    // ssh cannot show it: the address appears when the settings are restored.
    let watch = format!(
        "{}; ({UNTIL_LINK_IS_LOST}; kill -9 $session; {}; cat /sys/class/net/mgmt/carrier > /tmp/carrier; \
         {{ {} }} > /tmp/restored 2>&1; {}) > /dev/null 2>&1 < /dev/null & {}",
        session_of(&both[1]),
        until_ended(&both),
        treated.look(),
        change_third_address("add", treated.address),
        take_shown()
    );
    let printed = stepped.begin(&bed.guests()[0], &watch);
    bed.guests()[0].end_connections().unwrap();
    set_management_link(&mut bed.guests()[0], false);
    treated.assert_shown(&printed, true);
}

/// Waits until guest a has restored its settings, which it does without its network, and then gives that back.
fn await_restored_without_network(bed: &mut Bed, treated: Treated<'_>) {
    let third = format!("{}3", subnet_of(treated.address));
    reach(&bed.guests()[1], &answer_of(&third));
    set_management_link(&mut bed.guests()[0], true);
    let take = format!("{}; cat /tmp/carrier /tmp/restored", change_third_address("del", treated.address));
    let printed = run(&bed.guests()[0], &take);
    let Some(restored) = printed.strip_prefix("0\n") else { panic!("it had its network: {printed}") };
    treated.assert_shown(restored, false);
}

/// Adds a third address to the interface of guest a on the path to a server, or deletes it.
fn change_third_address(verb: &str, server: &str) -> String {
    let subnet = subnet_of(server);
    format!("set -- $(ip -o address show to {subnet}1); ip address {verb} {subnet}3/24 dev $2")
}

/// The address of a server without its last digit: those of guest a end with 1, and those of guest b with 2.
fn subnet_of(server: &str) -> &str {
    server.strip_suffix('2').unwrap()
}

/// Of a run whose first trial lost agent and guard, whose second one is valid, and which has this number of excluded trials. One that ends within
/// the second block, after three trials, has one: that block does not count.
#[track_caller]
fn assert_lost([without_both, valid]: &[String; 2], excluded: u64, report: &Value, seen: &[String]) {
    assert!(without_both.contains("failed: host a vanished"), "{seen:#?}");
    assert!(is_undisturbed(valid), "{seen:#?}");
    assert_eq!(
        (&report["trials_valid"], &report["trials_excluded"]),
        (&1.into(), &excluded.into()),
        "{seen:#?}"
    );
    let restored = "restored settings on host a that an earlier run left behind: ";
    assert!(warnings(report).iter().any(|text| text.contains(restored)), "{:#}", report["warnings"]);
}

/// Whether the line is about a valid trial.
fn is_undisturbed(line: &str) -> bool {
    !line.contains("failed") && !line.contains("excluded")
}

/// A trial in which guest a loses these processes, in this order and at once, while the treatments are in force.
fn trial_that_loses(stepped: &mut SteppedRun, bed: &mut Bed, ids: &[String], treated: Treated<'_>) -> String {
    let script = format!("{}; {}", take_shown(), kill_in_guest(ids));
    let printed = stepped.begin(&bed.guests()[0], &script);
    treated.assert_shown(&printed, true);
    stepped.line()
}

/// The id of the one process of each of these subcommands in guest a. They are looked up while the next trial waits, which takes longer than a kill.
fn ids_when_waiting(stepped: &mut SteppedRun, bed: &mut Bed, subcommands: &[&str]) -> Vec<String> {
    ids_in(&stepped.when_waiting(&bed.guests()[0], PROCESSES), subcommands)
}

fn kill_in_guest(ids: &[String]) -> String {
    format!("kill -9 {}", ids.join(" "))
}

/// Waits for the end of processes of a guest. The program of a process that nothing has waited for is gone.
fn until_ended(ids: &[String]) -> String {
    let programs = ids.iter().map(|id| format!("[ -e /proc/{id}/exe ]")).collect::<Vec<_>>();
    format!("while {}; do usleep 50000; done", programs.join(" || "))
}

/// Sets `session` to the process of the ssh server that a process of a guest descends from.
fn session_of(process: &str) -> String {
    format!(
        "session={process}; read -r name < /proc/$session/comm; until [ \"$name\" = dropbear ]; do \
         read -r id name state session rest < /proc/$session/stat; read -r name < /proc/$session/comm; done"
    )
}

/// Waits until the interface that ssh uses has no carrier. The ssh server ends a session without its client after a time; the test ends it when
/// the link is lost, because on a busy machine a client may be silent for any time.
const UNTIL_LINK_IS_LOST: &str =
    "until read -r carrier < /sys/class/net/mgmt/carrier && [ $carrier = 0 ]; do usleep 50000; done";

/// The carrier of the interface that ssh uses.
fn set_management_link(guest: &mut Guest, is_up: bool) {
    guest.qmp("set_link", &json!({ "name": "mgmt", "up": is_up })).unwrap();
}

/// Lists the processes of netduel with their command lines. One program lists all processes: a program for each takes seconds.
const PROCESSES: &str = "for process in $(ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n 's,.* /proc/\\([0-9]*\\)/exe -> .*netduel.*,\\1,p'); do \
     echo \"$process $(tr '\\0' ' ' < \"/proc/$process/cmdline\")\"; done";

/// The id of the one process of each of these subcommands of netduel in a guest.
#[track_caller]
fn ids_of(guest: &Guest, subcommands: &[&str]) -> Vec<String> {
    ids_in(&run(guest, PROCESSES), subcommands)
}

/// The same in the list of [`PROCESSES`].
#[track_caller]
fn ids_in(found: &str, subcommands: &[&str]) -> Vec<String> {
    let of = |subcommand: &&str| {
        let lines = found.lines().filter_map(|line| line.split_once(' '));
        let ids: Vec<&str> = lines
            .filter(|(_, command)| command.split(' ').any(|word| word == *subcommand))
            .map(|(id, _)| id)
            .collect();
        let [id] = ids[..] else { panic!("one process of {subcommand}: {ids:?}\n{found}") };
        id.to_owned()
    };
    subcommands.iter().map(of).collect()
}

/// The coordinator's master connection to a guest.
fn connection_to(bed: &Bed, guest: &str) -> u32 {
    let is_to_guest = |id: &String| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&b"-M".as_slice()) && words.contains(&guest.as_bytes())
    };
    let found: Vec<String> = processes(bed.folder()).into_iter().filter(is_to_guest).collect();
    let [connection] = &found[..] else { panic!("one connection to {guest}: {found:?}") };
    connection.parse().unwrap()
}
