//! Parquet files, read by pandas, and the notebook of docs/examples. `cargo xtask test exports` builds with the feature and installs pandas.
use crate::compare::stored_run;
use crate::support::Bench;

#[cfg(not(feature = "parquet"))]
#[test]
fn build_without_parquet_names_the_feature() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    for words in [&["--out", "x.parquet"][..], &["--format", "parquet", "--out", "x"]] {
        let refused = bench.run([&["report", "before"][..], words].concat()).expect_code(2);
        let words =
            "built without the feature `parquet`; build it with `cargo build --release --features parquet`";
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    let printed = bench.run(["report", "before", "--format", "parquet"]).expect_code(2);
    assert!(printed.stderr.contains("it is two files"), "{}", printed.stderr);
    let refused = bench.run(["run", "no-plan.toml", "--out", "x.parquet"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(!bench.path().join("x.parquet").exists());
}

#[cfg(feature = "parquet")]
#[test]
fn series_that_cannot_be_written_are_found_before_anything_is_started() {
    use crate::support::{LATENCY, TWO_PATHS, short_plan};

    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, ""));
    std::fs::create_dir(bench.path().join("x-series.parquet")).unwrap();
    let refused = bench.run(["run", plan.to_str().unwrap(), "--out", "x.parquet"]).expect_code(5).stderr;
    let has_reason = refused.contains("failed to write x-series.parquet: it is a folder");
    assert!(has_reason && !refused.contains("lab:"), "{refused}");
    assert!(bench.run(["runs"]).stdout.contains("no run is stored"));
}

#[cfg(feature = "parquet")]
mod with_pandas {
    use std::path::PathBuf;
    use std::process::Command;

    use netduel_test_support::not_requested;

    use super::{Bench, stored_run};
    use crate::redaction::name_the_user;
    use crate::support::Finished;

    /// The folder with `python`, set by xtask.
    const FOLDER_VARIABLE: &str = "NETDUEL_PYTHON_FOLDER";

    fn python() -> Option<PathBuf> {
        let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
        if folder.is_none() {
            not_requested("Parquet files with pandas; run `cargo xtask test exports`");
        }
        folder.map(|folder| folder.join("python"))
    }

    /// Compares the file of trials with the CSV of the same run, cell by cell, and looks at the types of both files.
    const READ: &str = r#"
import pandas as pd, pyarrow.parquet as pq
csv = pd.read_csv("trials.csv")
trials = pd.read_parquet("trials.parquet")
assert len(trials) == len(csv) > 0
for column in ["run", "block", "position", "attempt", "arm", "workload", "valid", "metric", "unit", "reason", "bound", "doubt", "settings"]:
    one, other = trials[column], csv[column]
    assert ((one == other) | (one.isna() & other.isna())).all(), column
assert ((trials.value == csv.value) | (trials.value.isna() & csv.value.isna())).all()
assert (trials.started.astype("int64") // (10**6 if trials.started.dtype.unit == "ns" else 1) == csv.started_unix_ms).all()
assert str(trials.started.dt.tz) == "UTC" and trials.value.dtype == "float64" and trials.valid.dtype == bool
series = pd.read_parquet("trials-series.parquet")
assert len(series) > 0 and set(series.kind) <= {"sent", "received", "round-trips"}
trips = series[series.kind == "round-trips"]
assert len(trips) > 0 and (trips.round_trips > 0).any() and trips.bytes.isna().all()
assert pq.ParquetFile("trials.parquet").metadata.row_group(0).column(0).compression == "SNAPPY"
print(len(trials), len(series))
"#;

    #[test]
    fn pandas_reads_the_values_of_the_csv_and_the_series() {
        let Some(python) = python() else { return };
        let bench = Bench::new();
        stored_run(&bench, "before", "6.18.44");
        let printed = bench.run(["report", "before", "--out", "trials.parquet"]).expect_code(0).stdout;
        assert_eq!(printed, "trials.parquet\ntrials-series.parquet\n");
        bench.run(["report", "before", "--out", "trials.csv"]).expect_code(0);
        let mut command = Command::new(python);
        bench.mark(&mut command);
        let read = command.args(["-c", READ]).current_dir(bench.path()).output().unwrap();
        Finished::from(read).expect_code(0);
    }

    /// Counts the cells that have the name.
    const NAMED: &str = r#"
import pandas as pd
frames = [pd.read_parquet(name) for name in ["trials.parquet", "trials-series.parquet"]]
columns = [frame[column].astype(str) for frame in frames for column in frame.columns]
print(sum(int(column.str.contains("mallory7").sum()) for column in columns))
"#;

    #[test]
    fn redacted_files_have_no_name() {
        let Some(python) = python() else { return };
        let bench = Bench::new();
        stored_run(&bench, "by-mallory7", "6.18.44");
        name_the_user(&bench, "by-mallory7");
        let named = |redact: &[&str]| {
            let words = ["report", "by-mallory7", "--out", "trials.parquet"];
            bench.run([&words[..], redact].concat()).expect_code(0);
            let mut command = Command::new(&python);
            bench.mark(&mut command);
            let read = command.args(["-c", NAMED]).current_dir(bench.path()).output().unwrap();
            Finished::from(read).expect_code(0).stdout.trim().parse::<u32>().unwrap()
        };
        assert!(named(&[]) > 0);
        assert_eq!(named(&["--redact"]), 0);
    }

    /// Executes the notebook as it stands, in the folder of the files.
    const EXECUTE: &str = r#"
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=600, resources={"metadata": {"path": "."}}).execute()
print(sum(len(cell.get("outputs", [])) for cell in notebook.cells))
"#;

    #[test]
    fn example_notebook_runs_and_finds_the_values_of_the_report() {
        let Some(python) = python() else { return };
        let bench = Bench::new();
        stored_run(&bench, "before", "6.18.44");
        bench.run(["report", "before", "--out", "trials.parquet"]).expect_code(0);
        bench.run(["report", "before", "--out", "report.json"]).expect_code(0);
        let notebook = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/netduel.ipynb");
        let mut command = Command::new(python);
        bench.mark(&mut command);
        let executed = command.args(["-c", EXECUTE, notebook]).current_dir(bench.path()).output().unwrap();
        let outputs = Finished::from(executed).expect_code(0).stdout;
        assert!(outputs.trim().parse::<u32>().unwrap() >= 4, "{outputs}");
    }
}
