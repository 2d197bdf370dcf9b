//! The second example of the README as it is written, between two guests on which no netduel is installed,
//! with a transcript for people: `cargo xtask guests transcript`.
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use netduel_guests::Bed;
use netduel_test_support::not_requested;

use super::coordinator::Coordinator;
use super::readme::{become_its_machines, example, words};
use super::scenes::with_scene;
use super::{end, run};

/// The folder of the transcript, set by `cargo xtask guests transcript`.
const REQUESTED: &str = "NETDUEL_TRANSCRIPT";

#[test]
fn example_of_the_readme_is_recorded() {
    let Some(folder) = std::env::var_os(REQUESTED) else {
        return not_requested("a transcript of the README's example; run `cargo xtask guests transcript`");
    };
    with_scene("virtio", &[1, 2], |mut bed, timed| {
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        become_its_machines(&mut bed);
        timed.check("transcript", || record(&mut bed, &coordinator, Path::new(&folder)));
        end(bed);
    });
}

/// Writes what a terminal would show, and the reports.
fn record(bed: &mut Bed, coordinator: &Coordinator, folder: &Path) {
    fs::write(folder.join("eight.toml"), example().0).unwrap();
    let path = folder.join("transcript.txt");
    let mut transcript = File::create(&path).unwrap();
    let look = "ls /bin/netduel ~/.cache/netduel 2>&1 || true";
    for (guest, name) in bed.guests().iter().zip(["vm1", "vm2"]) {
        let shown = run(guest, look);
        assert_eq!(shown.matches("No such file").count(), 2, "{shown}");
        write!(transcript, "$ ssh {name} '{look}'\n{shown}").unwrap();
    }
    for start in ["plan check eight.toml", "run eight.toml --out", "report last --out"] {
        let words = words(start);
        writeln!(transcript, "$ netduel {}", words.join(" ")).unwrap();
        add_output(&transcript, coordinator.command(bed, &words).current_dir(folder));
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("copying netduel (").count(), 2, "{text}");
    for report in ["report/report.html", "report.md"] {
        let page = fs::read_to_string(folder.join(report)).unwrap();
        assert!(page.contains("eight TCP streams"), "{report}");
    }
}

/// Runs a command that has to succeed; what it prints is added to the file, in the order of printing.
#[track_caller]
fn add_output(transcript: &File, command: &mut Command) {
    command.stdout(transcript.try_clone().unwrap()).stderr(transcript.try_clone().unwrap());
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}; its output is in the transcript");
}
