//! Writes the report of a made-up run, to look at the page without measuring anything: `sample [FILE]`.
#[path = "../tests/it/builder.rs"]
mod builder;

use netduel_report::{analyse_run, html, terminal};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "report.html".to_owned());
    let run = builder::build(&builder::Recipe::default());
    let analysis = analyse_run(&run);
    print!("{}", terminal::table(&analysis, 120, true));
    std::fs::write(&path, html::page(&run, &analysis))?;
    println!("\nwrote {path}");
    Ok(())
}
