//! Run files, and reports of the runs in them: a user may have a file from elsewhere.
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;

use netduel_model::run::Run;
use netduel_report::json::envelope::Origin;
use netduel_report::json::report::ReportDocument;
use netduel_report::{analyse_run, csv, document, html, markdown, terminal};
use netduel_store::{Store, checksum};
use rustix::fs::{MemfdFlags, memfd_create};

/// Reads a file as it is, and with right checksums.
pub(crate) fn run(bytes: &[u8]) {
    read(bytes);
    read(&with_checksums(bytes));
}

/// Makes the report of a run in every format.
pub(crate) fn report(bytes: &[u8]) {
    if let Some(run) = read(&with_checksums(bytes)) {
        check_reports(&run);
    }
}

fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    bytes.split_inclusive(|byte| *byte == b'\n').flat_map(with_checksum).collect()
}

/// A line whose checksum is right.
fn with_checksum(line: &[u8]) -> Vec<u8> {
    let Some(record) = line.strip_suffix(b"}\n") else { return line.to_vec() };
    let mut line = [record, b"}"].concat();
    checksum::take(&mut line);
    checksum::add(&mut line);
    line.push(b'\n');
    line
}

/// Reads a file. All ways to read it agree.
fn read(bytes: &[u8]) -> Option<Run> {
    let mut file = File::from(memfd_create("run", MemfdFlags::CLOEXEC).expect("a file in memory"));
    file.write_all(bytes).expect("memory");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let store = Store::at("/nonexistent");
    let run = store.read(&path);
    let integrity = store.verify(&path);
    assert_eq!(run.is_ok(), integrity.is_ok(), "{:?} {integrity:?}", run.as_ref().err());
    if let (Ok(run), Ok(integrity)) = (&run, &integrity) {
        assert_eq!(run.trials.len() as u64, integrity.trials);
        let stored = serde_json::to_string(&run.header).expect("a header can be stored");
        serde_json::from_str::<netduel_model::run::RunHeader>(&stored).expect("a stored header can be read");
    }
    run.ok()
}

/// Renders every format of a report.
fn check_reports(run: &Run) {
    let analysis = analyse_run(run);
    let report = document(run);
    let origin = Origin { program_version: String::new(), created_unix_ms: 0 };
    let json = serde_json::to_string(&ReportDocument::of(run, &analysis, &origin)).expect("a report is JSON");
    let texts = [
        json,
        markdown::page(&report),
        html::page(&report),
        terminal::report(&report, 80, false),
        csv::trials(run),
    ];
    assert!(texts.iter().all(|text| !text.is_empty()));
}
