//! CPU time of a run, measured in the same way for every tool.
//!
//! It is the time of the processes of both ends over their whole lives (wait4(2)), plus softirq time that the kernel charges to
//! no process. The kernel's configuration decides how much that is:
//! - without `CONFIG_IRQ_TIME_ACCOUNTING` softirq time is charged to the interrupted process (on a veth this includes the receive
//!   path up to the other end's socket), so only the threads `ksoftirqd` are added. Adding `softirq` of `/proc/stat` would
//!   count the same time twice;
//! - with it processes are charged for their own work only, and `softirq` and `irq` of `/proc/stat` are added.
//!
//! Both are recorded raw, together with the busy time of the whole machine, which shows the load of other programs.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use netduel_sys::clock;
use serde::{Deserialize, Serialize};

/// Clock ticks a second in `/proc/stat`: fixed by the kernel's interface (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// The accounting of softirq time in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// The interrupted process; `ksoftirqd` is added.
    InProcesses,
    /// No process; `softirq` and `irq` of the machine are added.
    Separate,
    /// Unknown configuration: as [`Self::InProcesses`], which may be too little, equally for both tools.
    Unknown,
}

impl Accounting {
    /// Reads the kernel's configuration.
    pub fn of_this_kernel(release: &str) -> Self {
        match configuration(release) {
            None => Self::Unknown,
            Some(text) if text.lines().any(|line| line == "CONFIG_IRQ_TIME_ACCOUNTING=y") => Self::Separate,
            Some(_) => Self::InProcesses,
        }
    }

    /// Label for the head of a table.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::InProcesses => {
                "processes of both ends over their whole lives (wait4) and the threads ksoftirqd; this kernel charges softirq \
                 time to the interrupted process (no CONFIG_IRQ_TIME_ACCOUNTING), so softirq of /proc/stat is not added"
            }
            Self::Separate => {
                "processes of both ends over their whole lives (wait4), and softirq and irq of /proc/stat, which this kernel \
                 charges to no process (CONFIG_IRQ_TIME_ACCOUNTING)"
            }
            Self::Unknown => {
                "processes of both ends over their whole lives (wait4) and the threads ksoftirqd; the kernel's \
                 accounting of softirq time is unknown, so some may be missing, for both tools"
            }
        }
    }
}

fn configuration(release: &str) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(format!("/boot/config-{release}")) {
        return Some(text);
    }
    let packed = File::open("/proc/config.gz").ok()?;
    let output = Command::new("gzip").arg("-dc").stdin(packed).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// CPU seconds of a run.
#[expect(clippy::struct_field_names, reason = "each field says its unit, as everywhere in stored figures")]
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The client's process.
    pub client_s: f64,
    /// The server's process.
    pub server_s: f64,
    /// The `ksoftirqd` threads of all cores; absent when they are not visible.
    pub ksoftirqd_s: Option<f64>,
    /// `softirq` and `irq` of `/proc/stat`, all cores and all programs; resolution 10 ms.
    pub softirq_s: f64,
    /// Non-idle time of all cores and all programs; resolution 10 ms.
    pub busy_s: f64,
    /// Stolen by the hypervisor; resolution 10 ms.
    pub steal_s: f64,
    /// Duration of the run with start-up and end, seconds.
    pub wall_s: f64,
}

impl Cost {
    /// CPU seconds charged to the tool.
    pub fn counted_s(&self, accounting: Accounting) -> f64 {
        let processes = self.client_s + self.server_s;
        match accounting {
            Accounting::Separate => processes + self.softirq_s,
            Accounting::InProcesses | Accounting::Unknown => processes + self.ksoftirqd_s.unwrap_or(0.0),
        }
    }

    /// CPU seconds of the machine used by other programs.
    pub fn others_s(&self, accounting: Accounting) -> f64 {
        (self.busy_s - self.counted_s(accounting)).max(0.0)
    }
}

/// The machine's counters, opened before the `/proc` of the bench's own pid namespace is mounted, which has no kernel threads.
#[derive(Debug)]
pub struct Counters {
    ksoftirqd: Vec<File>,
}

/// A reading of the counters.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    at_ns: u64,
    ksoftirqd_ns: Option<u64>,
    ticks: Ticks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    interrupts: u64,
    steal: u64,
}

impl Counters {
    /// Finds the threads.
    pub fn open() -> Self {
        let numbers = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let is_ksoftirqd = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/comm"))
                .is_ok_and(|name| name.starts_with("ksoftirqd/"))
        };
        let files = numbers.filter(is_ksoftirqd).filter_map(|id| {
            // The first number is the time on the processor, nanoseconds (Documentation/scheduler/sched-stats.rst).
            File::open(format!("/proc/{id}/schedstat")).ok()
        });
        Self { ksoftirqd: files.collect() }
    }

    /// Reads the counters.
    pub fn now(&self) -> Result<Moment> {
        let stat = std::fs::read_to_string("/proc/stat").context("failed to read /proc/stat")?;
        let ticks = ticks(&stat).context("/proc/stat does not begin with the sum of all cores")?;
        let of_thread = |file: &File| {
            let mut text = [0; 128];
            let length = file.read_at(&mut text, 0).ok()?;
            std::str::from_utf8(&text[..length]).ok()?.split_whitespace().next()?.parse::<u64>().ok()
        };
        let times: Option<Vec<u64>> = self.ksoftirqd.iter().map(of_thread).collect();
        let ksoftirqd_ns = times.filter(|times| !times.is_empty()).map(|times| times.iter().sum());
        Ok(Moment { at_ns: clock::monotonic_ns(), ksoftirqd_ns, ticks })
    }
}

impl Moment {
    /// The cost between two readings.
    pub fn until(&self, later: &Self, client_s: f64, server_s: f64) -> Cost {
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SECOND;
        let ksoftirqd = self.ksoftirqd_ns.zip(later.ksoftirqd_ns);
        Cost {
            client_s,
            server_s,
            ksoftirqd_s: ksoftirqd.map(|(before, after)| after.saturating_sub(before) as f64 / 1e9),
            softirq_s: seconds(later.ticks.interrupts.saturating_sub(self.ticks.interrupts)),
            busy_s: seconds(later.ticks.busy.saturating_sub(self.ticks.busy)),
            steal_s: seconds(later.ticks.steal.saturating_sub(self.ticks.steal)),
            wall_s: (later.at_ns - self.at_ns) as f64 / 1e9,
        }
    }
}

/// The first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal.
fn ticks(stat: &str) -> Option<Ticks> {
    let numbers: Vec<u64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = numbers[..] else { return None };
    Some(Ticks { busy: user + nice + system + irq + softirq, interrupts: irq + softirq, steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_stat_fields_are_read_by_position() {
        let stat = "cpu  1 2 4 8 16 32 64 128 256 512\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(ticks(stat), Some(Ticks { busy: 1 + 2 + 4 + 32 + 64, interrupts: 96, steal: 128 }));
        assert_eq!(ticks("cpu0 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(ticks("cpu  1 2 3\n"), None);
    }

    #[test]
    fn soft_interrupts_are_counted_once() {
        let cost = Cost {
            client_s: 1.0,
            server_s: 2.0,
            ksoftirqd_s: Some(0.25),
            softirq_s: 0.5,
            busy_s: 4.0,
            ..Cost::default()
        };
        let counted = |accounting| cost.counted_s(accounting);
        assert!((counted(Accounting::InProcesses) - 3.25).abs() < 1e-12);
        assert!((counted(Accounting::Separate) - 3.5).abs() < 1e-12);
        assert!((cost.others_s(Accounting::InProcesses) - 0.75).abs() < 1e-12);
    }
}
