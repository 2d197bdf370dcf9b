//! Connections of one arm that had another configuration in some of its trials.
use crate::support::{Bench, LATENCY, TWO_PATHS, short_plan};

#[test]
fn congestion_control_that_a_route_sets_in_one_block_only_is_a_warning_of_the_run() {
    let bench = Bench::new();
    // In its first trial the arm changes the routes. They are as before at the end of the block, when the hosts are compared.
    let first = bench.path().join("first");
    let first = first.display();
    let apply = format!(
        "if mkdir '{first}' 2>/dev/null; then ip route show > '{first}/routes'; \
         sed 's/congctl [a-z]*/congctl reno/; s/^/route change /' '{first}/routes' | ip -batch -; fi"
    );
    let undo = format!("sed 's/^/route change /' '{first}/routes' | ip -batch -");
    let path = "{ path = \"accelerated\" }";
    let treated = format!(
        "{path}, {{ command = [\"sh\", \"-c\", {apply:?}], undo = [\"sh\", \"-c\", {undo:?}], on = \"client\" }}"
    );
    let arms = TWO_PATHS.replace(path, &treated);
    let plan = bench.plan(&short_plan(&arms, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    bench.run(["run", plan.to_str().unwrap()]).expect_code(0);
    let report = bench.run(["report", "last", "--json"]).json();
    assert_eq!((&report["trials_valid"], &report["trials_excluded"]), (&4.into(), &0.into()), "{report}");
    let warnings = report["warnings"].as_array().unwrap();
    let texts = warnings.iter().filter(|warning| warning["kind"] == "connections-differed");
    let texts: Vec<&str> = texts.filter_map(|warning| warning["text"].as_str()).collect();
    let expected = "connections differed: host a sent latency of accelerated with congestion control reno in block 1, cubic in block 2; ";
    assert!(matches!(texts[..], [text] if text.starts_with(expected)), "{report}");
    bench.assert_nothing_left();
}
