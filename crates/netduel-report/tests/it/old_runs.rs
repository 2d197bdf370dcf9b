//! Runs that a program of an older format stored: every output has the figures that the old program reported.
use std::path::{Path, PathBuf};

use netduel_model::run::Run;
use netduel_report::{csv, document, html, markdown, terminal};
use netduel_store::Store;

use crate::json;

/// The runs that programs of older formats wrote, by format and name: each beside the CSV that the same program made of it.
const RUNS: [&str; 10] = [
    "1-real-excluded",
    "1-real-resumed",
    "1-real-types",
    "2-real-dpdk",
    "2-real-failover",
    "2-real-latency",
    "2-real-packets",
    "2-real-resumed",
    "2-real-search",
    "2-real-treatments",
];

fn golden(name: &str, extension: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netduel-store/tests/golden");
    folder.join(format!("format-{name}.{extension}"))
}

fn read(name: &str) -> Run {
    let file = golden(name, "netduel");
    let store = Store::open(file.parent().unwrap()).unwrap();
    store.read(file.to_str().unwrap()).unwrap()
}

/// A row of an old table, whose blocks counted from 0. The heading stays as it is.
fn with_block_from_1(row: &str) -> String {
    let mut cells: Vec<String> = row.split(',').map(str::to_owned).collect();
    if let Ok(block) = cells[1].parse::<u32>() {
        cells[1] = (block + 1).to_string();
    }
    cells.join(",")
}

/// A later program may know more metrics of an old trial. It must not know fewer, or give another value.
#[test]
fn every_figure_that_the_old_program_reported_is_reported_unchanged() {
    for name in RUNS {
        let now = csv::trials(&read(name));
        let then = std::fs::read_to_string(golden(name, "csv")).unwrap();
        assert!(then.lines().count() > 1, "{name} has no figures");
        let rows = then.lines().map(with_block_from_1);
        let lost: Vec<String> = rows.filter(|row| !now.lines().any(|line| line == row)).collect();
        assert!(lost.is_empty(), "of {name}:\n{}\nis not in\n{now}", lost.join("\n"));
    }
}

#[test]
fn runs_of_an_older_program_are_shown_in_every_format() {
    for name in RUNS {
        let run = read(name);
        let report = document(&run);
        let arms = run.header.plan.arms.iter().map(|arm| arm.name.as_str());
        // Compares it with the schema.
        let json = json::report(&run).to_string();
        let pages =
            [terminal::report(&report, 120, false), markdown::page(&report), html::page(&report), json];
        for arm in arms {
            assert!(pages.iter().all(|page| page.replace('\\', "").contains(arm)), "{arm} of {name}");
        }
        assert!(pages[0].contains(&run.header.plan.question), "{name}: {}", pages[0]);
    }
}
