//! Writes the report of a made-up run, to look at the page without measuring anything: `sample [FILE [SHAPE]]`, where SHAPE is
//! `clear`, `same`, `few`, `new` (the newer workloads) `hosts` (two virtual machines of a cloud, one with
//! faults, and a guest of a lab) or `captured` (a host of each cloud and state).
#[expect(clippy::unwrap_used, reason = "the names that the builder gives are constants that parse")]
#[path = "../tests/it/builder.rs"]
mod builder;
#[expect(clippy::unwrap_used, reason = "what is written here is well formed")]
#[path = "../tests/it/hosts.rs"]
mod hosts;

use builder::Recipe;
use netduel_report::{document, html, terminal};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "report.html".to_owned());
    let recipe = match std::env::args().nth(2).as_deref() {
        Some("same") => Recipe { effect: 1.0, noise: 0.006, loss: [0.0, 0.0], ..Recipe::default() },
        Some("few") => {
            Recipe { blocks: 3, effect: 0.97, failed: vec![(1, 1)], end: None, ..Recipe::default() }
        }
        Some("new") => Recipe { workloads: vec!["crr", "load"], ..Recipe::default() },
        _ => Recipe::default(),
    };
    let mut run = builder::build(&recipe);
    match std::env::args().nth(2).as_deref() {
        Some("hosts") => run.header.hosts = hosts::of_a_run(),
        Some("captured") => {
            let hosts = hosts::captured().into_iter();
            run.header.hosts = hosts.filter_map(|(name, host)| Some((name.parse().ok()?, host))).collect();
        }
        _ => {}
    }
    print!("{}", terminal::report(&document(&run), 120, true));
    std::fs::write(&path, html::page(&document(&run)))?;
    println!("\nwrote {path}");
    Ok(())
}
