//! A run file that changed on the disk: every listing and report says so, and no figure contains the changed records.
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Bench, LATENCY, TWO_PATHS, short_plan, stored};

/// Changes one bit of the second trial's record.
fn damage(file: &std::path::Path) -> usize {
    let mut bytes = std::fs::read(file).unwrap();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    let trials: Vec<usize> =
        (0..starts.len()).filter(|line| bytes[starts[*line]..].starts_with(b"{\"trial\"")).collect();
    let line = trials[1];
    // A digit stays a digit, so that only the checksum shows it.
    let record = starts[line]..starts[line + 1];
    let digit = bytes[record.clone()].iter().rposition(|byte| (b'2'..b'4').contains(byte)).unwrap();
    bytes[record.start + digit] ^= 1;
    std::fs::write(file, bytes).unwrap();
    line + 1
}

/// A run to its end. On a busy machine a comparison may have no data, which does not matter here: each trial is stored.
#[track_caller]
fn run(bench: &Bench, words: &[&str]) {
    let run = bench.run(words);
    assert!(matches!(run.code, Some(0 | 6)), "{:?}\n{}\n{}", run.code, run.stderr, run.stdout);
}

#[test]
fn block_of_a_damaged_record_is_measured_again_and_every_block_counts_once() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 3\nblocks_max = 3"));
    run(&bench, &["run", plan.to_str().unwrap()]);
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    damage(std::path::Path::new(listed["runs"][0]["path"].as_str().unwrap()));
    run(&bench, &["run", "--resume", "last"]);
    let run = netduel_store::Store::open(bench.store()).unwrap().read("last").unwrap();
    let repeated: Vec<u32> =
        run.trials.iter().filter(|trial| trial.attempt > 0).map(|trial| trial.slot.block).collect();
    assert_eq!((run.trials.len(), repeated), (7, vec![0, 0]));
    let analysis = netduel_report::analysis::analyse(&run.header.plan, None, &run.trials, &[], None);
    let metrics = analysis.workloads.iter().flat_map(|workload| &workload.judged);
    let comparisons = metrics.flat_map(|metric| &metric.comparisons);
    let pairs: Vec<usize> = comparisons.map(|comparison| comparison.pairs.len()).collect();
    // A trial that the rules exclude, as on a busy machine, has no pair.
    assert!(!pairs.is_empty() && pairs.iter().all(|pairs| *pairs <= 3), "{pairs:?}");
}

#[test]
fn damaged_record_is_named_by_every_listing_and_report() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    run(&bench, &["run", plan.to_str().unwrap()]);
    let sound = bench.run(["runs", "verify"]).expect_code(0).stdout;
    assert!(sound.contains(": sound, 4 trials"), "{sound}");
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    assert_eq!(listed["runs"][0]["damaged_records"], 0, "{listed}");

    let file = listed["runs"][0]["path"].as_str().unwrap();
    let line = damage(std::path::Path::new(file));
    let named = format!("line {line}");
    let verified = bench.run(["runs", "verify", "last"]).expect_code(5);
    assert!(
        verified.stdout.contains(&format!("damaged, 3 trials can be read; {named}: its checksum")),
        "{}",
        verified.stdout
    );
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    assert_eq!(
        (&listed["runs"][0]["damaged_records"], &listed["runs"][0]["trials"]),
        (&1.into(), &3.into()),
        "{listed}"
    );
    let listed = bench.run(["runs"]).expect_code(0).stdout;
    assert!(listed.contains("1 record is damaged"), "{listed}");
    for format in ["text", "md", "html", "json"] {
        let report = bench.run(["report", "last", "--format", format]).expect_code(0).stdout;
        // Terminals and pages break lines.
        let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("damaged run file: 1 record") && words.contains(&named), "{format}: {report}");
    }
    assert_stated_in_every_format(&bench, "damaged run file");
}

#[test]
fn run_file_that_lacks_a_trial_is_named_by_every_report() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    run(&bench, &["run", plan.to_str().unwrap()]);
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    let file = std::path::Path::new(listed["runs"][0]["path"].as_str().unwrap());
    let whole = std::fs::read_to_string(file).unwrap();
    // Lines without these trials, of four.
    let without = |removed: &[usize]| {
        let mut trials = 0..;
        let is_kept = |line: &&str| {
            let trial = if line.starts_with("{\"trial\"") { trials.next() } else { None };
            trial.is_none_or(|trial| !removed.contains(&trial))
        };
        whole.split_inclusive('\n').filter(is_kept).collect::<String>()
    };
    for (removed, stated) in [
        (&[0, 1, 2, 3][..], "it has no trial of block 1 to 2, although its end requires 2 blocks"),
        (&[3], "it lacks trials of block 2, although the run stored them"),
        (&[1], "it lacks trials of block 1, although the run stored them"),
    ] {
        std::fs::write(file, without(removed)).unwrap();
        let verified = bench.run(["runs", "verify", "last"]).expect_code(5).stdout;
        assert!(verified.contains(": damaged, ") && verified.contains(stated), "{removed:?}: {verified}");
    }
    assert_stated_in_every_format(&bench, "incomplete run file");
}

/// The end of a record is missing, as after a loss of power.
#[test]
fn incomplete_record_is_named_by_every_listing_and_report() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    for _ in 0..2 {
        run(&bench, &["run", plan.to_str().unwrap()]);
    }
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    let file = std::path::Path::new(listed["runs"][0]["path"].as_str().unwrap());
    let length = std::fs::metadata(file).unwrap().len();
    std::fs::File::options().write(true).open(file).unwrap().set_len(length - 5).unwrap();
    let listed = bench.run(["runs"]).expect_code(0).stdout;
    assert!(listed.contains("incomplete"), "{listed}");
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    assert_eq!(listed["runs"][0]["torn"], true, "{listed}");
    assert_stated_in_every_format(&bench, "incomplete run file");
    let first = listed["runs"][1]["id"].as_str().unwrap();
    let compared = bench.run(["compare", first, "last"]).expect_code(0).stdout;
    let compared = compared.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(compared.contains("incomplete run file"), "{compared}");
    for format in ["md", "html", "json", "github", "junit"] {
        let compared = bench.run(["compare", first, "last", "--format", format]).expect_code(0);
        let both = format!("{} {}", compared.stdout, compared.stderr);
        let words = both.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("incomplete run file"), "{format}: {both}");
    }
}

#[test]
fn folder_and_pipe_with_the_name_of_a_run_file_are_named_by_every_listing() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    std::fs::create_dir(bench.store().join("folder-1.netduel")).unwrap();
    let pipe = bench.store().join("pipe-1.netduel");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let listed = bench.run(["runs"]).expect_code(0).stdout;
    let json = bench.run(["runs", "--json"]).expect_code(0).stdout;
    let verified = bench.run(["runs", "verify"]).expect_code(5).stdout;
    let history = bench.run(["history", "old-1"]).stderr;
    for (name, what) in [("folder-1", "it is a folder; "), ("pipe-1", "it is a pipe; ")] {
        for text in [&listed, &json, &verified, &history] {
            assert!(text.contains(name) && text.contains(what), "{name}: {text}");
        }
    }
    assert!(verified.contains("old-1: ") && verified.lines().count() == 3, "{verified}");
    let used = bench.run(["runs", "du"]).expect_code(0).stdout;
    assert!(used.contains("pipe-1") && used.contains("old-1"), "{used}");
}

/// Every format of a report and a history states what is wrong with the file; a format without a place for it does so on standard error.
fn assert_stated_in_every_format(bench: &Bench, stated: &str) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for format in ["text", "md", "html", "json", "github", "junit", "csv", "prometheus", "influx"] {
        let report = bench.run(["report", "last", "--format", format]).expect_code(0);
        let both = format!("{} {}", report.stdout, report.stderr);
        assert!(words(&both).contains(stated), "{format}: {both}");
        let has_place = ["text", "md", "html", "json"].contains(&format);
        assert_eq!(words(&report.stdout).contains(stated), has_place, "{format}: {both}");
    }
    for format in ["text", "md", "html", "json"] {
        let history = bench.run(["history", "last", "--format", format]).expect_code(0).stdout;
        assert!(words(&history).contains(stated), "history as {format}: {history}");
    }
}
