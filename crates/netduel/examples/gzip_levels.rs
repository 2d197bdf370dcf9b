//! Prints size and time of each gzip level for a file, for the choice of the level of the copy by ssh (docs/design/0033-ssh.md).
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use netduel_sys::clock::monotonic_ns;

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: gzip_levels FILE"))?;
    let plain = std::fs::read(path)?;
    let mut out = io::stdout();
    writeln!(out, "level  bytes       share   seconds")?;
    for level in 1..=9 {
        let start_ns = monotonic_ns();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(&plain)?;
        let bytes = encoder.finish()?.len();
        let seconds = monotonic_ns().saturating_sub(start_ns) as f64 / 1e9;
        let share = 100.0 * bytes as f64 / plain.len().max(1) as f64;
        writeln!(out, "{level:<6} {bytes:<11} {share:4.1} % {seconds:9.2}")?;
    }
    Ok(())
}
