//! The machine of the measurement: hardware, kernel, path, commit and date.
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use netduel_sys::affinity;

use crate::hosts::{CONGESTION, Hosts, MTU};
use crate::record::Machine;

/// Sysctls that limit socket buffers.
const BUFFERS: [&str; 4] =
    ["net/core/rmem_max", "net/core/wmem_max", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"];

/// The machine and the path between the two hosts.
pub fn describe(hosts: &Hosts) -> Result<Machine> {
    let cores = affinity::allowed().context("failed to read the allowed cores")?;
    let sysctl = |name: &str| Some((name.replace('/', "."), one_line(&format!("/proc/sys/{name}"))?));
    Ok(Machine {
        kernel: kernel()?,
        cpu: cpu(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cores: cores.len(),
        clock_source: one_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        congestion: CONGESTION.to_owned(),
        mtu: MTU,
        offloads: hosts.offloads()?,
        buffers: BUFFERS.iter().filter_map(|name| sysctl(name)).collect(),
    })
}

/// The kernel's release.
pub fn kernel() -> Result<String> {
    one_line("/proc/sys/kernel/osrelease").context("failed to read the kernel's release from /proc/sys")
}

/// The measured commit, marked when files differ from it; absent outside a repository.
pub fn commit() -> Option<String> {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A file of one line, with single spaces.
fn one_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn cpu(table: &str) -> String {
    let model = table.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Date and time, UTC, from nanoseconds since the epoch. The calendar repeats every 400 years of 146,097 days; years that start
/// on 1 March have the leap day at their end.
pub fn utc(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, in_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * march_month + 2) / 5 + 1;
    let (month, late) = if march_month < 10 { (march_month + 3, 0) } else { (march_month - 9, 1) };
    let year = era * 400 + year + late;
    let (hour, minute, second) = (in_day / 3600, in_day / 60 % 60, in_day % 60);
    format!("{year:04}-{month:02}-{day_of_month:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date_1() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_795_248_443, "2026-11-21 08:07:23"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000), expected);
        }
    }

    #[test]
    fn the_processor_is_named_once() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: AMD EPYC\n"), "AMD EPYC");
        assert_eq!(cpu(""), "unknown");
    }
}
