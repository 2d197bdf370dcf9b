//! The proof of path: a trial whose bytes took another way than its label says does not count.
use crate::support::{Bench, UnderWay, short_plan};

/// One arm pair, and a workload long enough to change the path under it.
const LONG: &str = r#"
[[workloads]]
name = "stream"
type = "tcp-stream"
duration = "4 s"
congestion = "cubic"
"#;

#[test]
fn a_path_that_is_swapped_under_a_running_trial_makes_it_invalid() {
    let bench = Bench::new();
    let arm = "[[arms]]\nname = \"accelerated\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]";
    let plan = bench.plan(&short_plan(arm, LONG, "aa = true\nblocks_min = 2\nblocks_max = 2"));
    let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
    // The lab of a run is named after the run's process.
    let lab = format!("run-short-{}", under_way.pid().as_raw_nonzero());
    let trial = wait_for_bytes(&bench, &lab);
    assert!(trial, "no traffic was seen on the accelerated path");
    bench.run(["lab", "path", "--lab", &lab, "synthetic"]).expect_code(0);
    let run = under_way.finish().expect_code(0);
    assert!(
        run.stderr.contains("left out, wrong path") && run.stderr.contains("through vf0"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("path changed: 1 trial"), "the report does not say so:\n{}", run.stdout);
    let document = bench.run(["report", "last", "--json"]).json();
    assert_eq!((&document["trials_left_out"], &document["trials_valid"]), (&1.into(), &3.into()));
    bench.assert_nothing_left();
}

/// Asks the lab for its counters until the accelerated interface of guest a has carried a megabyte.
pub fn wait_for_bytes(bench: &Bench, lab: &str) -> bool {
    for _ in 0..2000 {
        let counters = bench.run(["lab", "exec", "--lab", lab, "a", "--", "cat", "/proc/net/dev"]);
        let carried = counters
            .stdout
            .lines()
            .filter(|line| line.trim_start().starts_with("vf0:"))
            .filter_map(|line| line.split_whitespace().nth(9)?.parse::<u64>().ok())
            .any(|sent| sent > 1_000_000);
        if carried {
            return true;
        }
    }
    false
}
