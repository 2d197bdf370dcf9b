//! Tests that wait for a minute. The harness starts tests in the order of their names: these wait while it runs the others.
use netduel_test_support::NewNamespace;

use crate::support::{Bench, LATENCY, TWO_PATHS, short_plan};
use crate::treatment::{must, plan_of_two_arms};

#[test]
fn undo_that_succeeds_and_restores_nothing_ends_the_run() {
    let test = "awaited::undo_that_succeeds_and_restores_nothing_ends_the_run";
    NewNamespace { prepare: "ip link set lo up", ..NewNamespace::default() }.run(test, || {
        let bench = Bench::new();
        // The plan uses lo. A token bucket stays in the same way, and needs a module of the kernel.
        let treatment = r#"{ command = ["tc", "qdisc", "replace", "dev", "lo", "root", "pfifo"], undo = ["true"], on = "client" }"#;
        let plan = plan_of_two_arms(&bench, treatment);
        // A difference from the first block that may end by itself is awaited.
        let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(4);
        assert!(run.stderr.contains("qdisc of lo is pfifo instead of noqueue"), "{}", run.stderr);
        let report = bench.run(["report", "last", "--json"]).json();
        assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&0.into(), &0.into()), "{report}");
        assert!(report["warnings"].to_string().contains("block 1 was not finished"), "{report}");
        must("tc", &["qdisc", "del", "dev", "lo", "root"]);
    });
}

#[test]
fn route_with_another_congestion_control_ends_the_run() {
    let bench = Bench::new();
    let change =
        "ip route show | sed 's/congctl [a-z]*//; s/^/route change /; s/$/ congctl reno/' | ip -batch -";
    let treatments = format!(
        "treatments = [{{ path = \"synthetic\" }}, {{ command = [\"sh\", \"-c\", \"{change}\"], undo = [\"true\"], on = \"client\" }}]"
    );
    let arms = TWO_PATHS.replace("treatments = [{ path = \"accelerated\" }]", &treatments);
    let plan = bench.plan(&short_plan(&arms, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(4);
    assert!(run.stderr.contains(" with congctl reno instead of by "), "{}", run.stderr);
    bench.assert_nothing_left();
}
