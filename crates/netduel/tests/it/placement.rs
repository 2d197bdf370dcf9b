//! Automatic placement: the threads run on the recorded cores, which every report shows.
use serde_json::Value;

use crate::support::{Bench, LATENCY, PACED, TWO_PATHS, short_plan};

const AUTO: &str = "pin_client = \"auto\"\npin_server = \"auto\"\n";

/// The cores that an end of a quick test selected.
fn chosen(end: &Value) -> Vec<u64> {
    let placement = &end["observation"]["placement"];
    assert!(placement["reason"].as_str().unwrap().contains("allowed cores"), "{placement}");
    placement["cores"].as_array().unwrap().iter().map(|core| core.as_u64().unwrap()).collect()
}

#[test]
fn automatic_placement_runs_on_the_reported_cores() {
    let bench = Bench::new();
    let latency = LATENCY.replace("pin_client = [0]\npin_server = [0]\n", AUTO);
    let workloads = format!("{PACED}{AUTO}{latency}");
    let plan = bench.plan(&short_plan(TWO_PATHS, &workloads, "blocks_min = 2\nblocks_max = 2"));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    for workload in run.json()["workloads"].as_array().unwrap() {
        for arm in workload["arms"].as_array().unwrap() {
            let placements = arm["placements"].as_array().unwrap();
            let ends: Vec<_> = placements.iter().map(|placed| &placed["role"]).collect();
            assert_eq!(ends, ["client", "server"], "{arm}");
            // A busy machine may make one of the two trials invalid.
            let counted = |placed: &Value| matches!(placed["trials"].as_u64(), Some(1 | 2));
            assert!(placements.iter().all(counted), "{placements:?}");
        }
    }
    for format in ["text", "md", "html"] {
        let text = bench.run(["report", "last", "--format", format]).expect_code(0).stdout;
        assert!(text.contains("CPU placement"), "{format}");
    }
    let trials = std::fs::read_dir(bench.store()).unwrap();
    let stored: String = trials.map(|run| std::fs::read_to_string(run.unwrap().path()).unwrap()).collect();
    let mut ends = 0;
    for line in stored.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        for end in [&record["trial"]["client"], &record["trial"]["server"]] {
            if !end.is_object() {
                continue;
            }
            ends += 1;
            let cores = chosen(end);
            for stream in end["report"]["streams"].as_array().unwrap() {
                assert!(cores.contains(&stream["core"].as_u64().unwrap()), "{stream} {cores:?}");
            }
        }
    }
    assert_eq!(ends, 16);
    bench.assert_nothing_left();
}
