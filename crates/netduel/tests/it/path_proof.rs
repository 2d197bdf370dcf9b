//! Path proof: a trial whose bytes used another path than its label is invalid.
use crate::support::{Bench, UnderWay, short_plan, until};

/// One pair of arms, with a workload long enough to change the path during it.
pub const LONG: &str = r#"
[[workloads]]
name = "stream"
type = "tcp-stream"
rate = "1 Gbit/s"
duration = "4 s"
congestion = "cubic"
"#;

#[test]
fn path_change_during_a_trial_makes_it_invalid() {
    let bench = Bench::new();
    let arm = "[[arms]]\nname = \"accelerated\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]";
    let plan = bench.plan(&short_plan(arm, LONG, "aa = true\nblocks_min = 2\nblocks_max = 2"));
    let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap(), "--verbose"]));
    // The lab of a run is named after the run's process.
    let lab = format!("run-short-{}", under_way.pid().as_raw_nonzero());
    let trial = wait_for_bytes(&bench, &lab);
    assert!(trial, "no traffic was seen on the accelerated path");
    bench.run(["lab", "path", "--lab", &lab, "synthetic"]).expect_code(0);
    let run = under_way.finish().expect_code(0);
    assert!(
        run.stderr.contains("excluded, wrong path") && run.stderr.contains("through vf0"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("path changed: 1 trial"), "the report does not say so:\n{}", run.stdout);
    let document = bench.run(["report", "last", "--json"]).json();
    assert_eq!((&document["trials_excluded"], &document["trials_valid"]), (&1.into(), &3.into()));
    bench.assert_nothing_left();
}

#[test]
fn vf_removal_and_return_during_a_trial_makes_it_invalid_with_the_event() {
    let bench = Bench::new();
    let arm = "[[arms]]\nname = \"accelerated\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]\n\
               expect_path = \"vf\"";
    let plan = bench.plan(&short_plan(arm, LONG, "aa = true\nblocks_min = 2\nblocks_max = 2"));
    let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
    let lab = format!("run-short-{}", under_way.pid().as_raw_nonzero());
    change_during_traffic(&bench, &lab, "ip link set vf0 down && ip link set vf0 up");
    let run = under_way.finish();
    // The counters show the full number of bytes; only the events show the change.
    assert!(
        run.stderr.contains("at the client the path changed during the trial")
            && run.stderr.contains("after the start vf0 went down"),
        "{}",
        run.stderr
    );
    let run = netduel_store::Store::open(bench.store()).unwrap().read("last").unwrap();
    let invalid: Vec<_> = run.trials.iter().filter(|trial| !trial.is_valid()).collect();
    assert_eq!((run.trials.len(), invalid.len()), (4, 1));
    let changes = |trial: &netduel_model::trial::Trial| -> Vec<String> {
        let events = trial.client.as_ref().unwrap().observation.link_events.as_ref().unwrap();
        events.iter().map(|event| format!("{} {:?}", event.interface, event.change)).collect()
    };
    assert_eq!(changes(invalid[0])[..2], ["vf0 Down", "vf0 Up"]);
    for trial in run.trials.iter().filter(|trial| trial.is_valid()) {
        assert_eq!(changes(trial), Vec::<String>::new());
        // The interface and the kind of path, at both ends.
        assert_eq!(trial.proofs.len(), 4);
        assert!(trial.proofs.iter().all(|proof| proof.failure().is_none()), "{:?}", trial.proofs);
    }
    bench.assert_nothing_left();
}

#[test]
fn setting_that_is_changed_and_set_back_during_a_trial_makes_it_invalid() {
    let bench = Bench::new();
    let arm = "[[arms]]\nname = \"accelerated\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]";
    let plan = bench.plan(&short_plan(arm, LONG, "aa = true\nblocks_min = 2\nblocks_max = 2"));
    let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
    let lab = format!("run-short-{}", under_way.pid().as_raw_nonzero());
    // Readings before and after the trial find the old value.
    change_during_traffic(&bench, &lab, "ip link set vf0 mtu 1400 && ip link set vf0 mtu 1500");
    let run = under_way.finish();
    assert!(
        run.stderr.contains("the MTU of vf0 changed from 1500 B to 1400 B")
            && run.stderr.contains("the MTU of vf0 changed from 1400 B to 1500 B"),
        "{}",
        run.stderr
    );
    let document = bench.run(["report", "last", "--json"]).json();
    assert_eq!((&document["trials_excluded"], &document["trials_valid"]), (&1.into(), &3.into()));
    bench.assert_nothing_left();
}

/// Runs commands in guest a as soon as its accelerated interface has carried a megabyte. A shell waits for
/// that in the guest, because the trial goes on while programs start.
fn change_during_traffic(bench: &Bench, lab: &str, commands: &str) {
    // Eight counters of received traffic are before the bytes sent.
    let script = format!(
        "carried() {{ while read -r name a b c d e f g h sent rest; do\n\
         [ \"$name\" != vf0: ] || [ \"$sent\" -lt 1000000 ] || return 0; done </proc/net/dev; return 1; }}\n\
         until carried; do sleep 0.01; done\n{commands}"
    );
    // There is no such lab at first.
    let is_changed =
        || bench.run(["lab", "exec", "--lab", lab, "a", "--", "sh", "-c", &script]).code == Some(0);
    assert!(until(is_changed), "no traffic was seen on the accelerated path");
}

/// Polls the lab's counters until the accelerated interface of guest a has carried a megabyte.
pub fn wait_for_bytes(bench: &Bench, lab: &str) -> bool {
    until(|| {
        let counters = bench.run(["lab", "exec", "--lab", lab, "a", "--", "cat", "/proc/net/dev"]);
        has_sent_a_megabyte(&counters.stdout, "vf0")
    })
}

/// Whether an interface has sent a megabyte, by the text of `/proc/net/dev`.
pub fn has_sent_a_megabyte(counters: &str, interface: &str) -> bool {
    counters
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))
        .filter_map(|counters| counters.split_whitespace().nth(8)?.parse::<u64>().ok())
        .any(|sent| sent > 1_000_000)
}
