//! The times of plans on a machine that other programs use. A guest is slower there: a trial of the same length holds fewer round trips, and
//! less of what a test does while it runs. Judges no result.
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::{Mutex, PoisonError};

/// Share of the processor time that other programs may have on a quiet machine, percent.
const QUIET_PERCENT: u64 = 15;
/// The maximum factor: where guests hardly run, a longer trial helps no more.
const FACTOR_MAX: u64 = 4;
/// Ticks of all processors between two readings, at least: with fewer of them one tick of another program is a large share.
const TICKS_MIN: u64 = 100;
/// What is before a time in a plan: that of a workload, and that of an event.
const BEFORE_TIMES: [&str; 2] = ["duration = ", "{ at = "];
/// The parent of all threads of the kernel. Those that run beside guests work for them.
const KERNEL_THREADS: u32 = 2;
/// Ancestors of a process at most: its parent may have changed while the list was read.
const ANCESTORS_MAX: usize = 64;

/// The whole number by which the times of plans are multiplied: 1 on a quiet machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pace(u64);

impl Pace {
    /// That of a quiet machine.
    pub const QUIET: Self = Self(1);

    /// As other programs used the machine since an earlier reading.
    pub fn since(earlier: &ProcessorTime) -> Self {
        Self::between(earlier, &ProcessorTime::read(), std::process::id())
    }

    /// As other programs than the process `own` and its descendants used the machine between two readings.
    fn between(earlier: &ProcessorTime, later: &ProcessorTime, own: u32) -> Self {
        Self::of(later.all.saturating_sub(earlier.all), later.of_others_since(earlier, own))
    }

    /// One more than other programs slow the guests down on average: they are slower at times.
    fn of(all: u64, others: u64) -> Self {
        if others * 100 <= all * QUIET_PERCENT {
            return Self::QUIET;
        }
        let left = all.saturating_sub(others).max(1);
        Self((1 + all.div_ceil(left)).min(FACTOR_MAX))
    }

    /// A time as in a plan, for example `300 ms`, multiplied.
    #[track_caller]
    pub fn time(self, text: &str) -> String {
        let multiplied = text.split_once(' ').and_then(|(number, unit)| {
            let number: u64 = number.parse().ok()?;
            Some(format!("{} {unit}", number * self.0))
        });
        multiplied.unwrap_or_else(|| panic!("{text:?} is no whole number with a unit"))
    }

    /// A rate, divided: what waits behind it needs as many times longer.
    pub fn rate(self, rate: u64) -> u64 {
        rate / self.0
    }

    /// A plan whose durations and times of events are multiplied.
    #[track_caller]
    pub fn plan(self, text: &str) -> String {
        let mut is_time = false;
        let mut pieces = Vec::new();
        for piece in text.split('"') {
            pieces.push(if is_time { self.time(piece) } else { piece.to_owned() });
            is_time = BEFORE_TIMES.iter().any(|before| piece.ends_with(before));
        }
        pieces.join("\"")
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The pace of each plan of a scene: that of the scene's boot, and more while other programs have more of the machine.
#[derive(Debug)]
pub struct Paces {
    at_boot: Pace,
    /// The reading before the last plan, and that plan's pace.
    last: Mutex<(ProcessorTime, Pace)>,
}

impl Paces {
    /// From the boot of a scene on.
    pub fn since_boot(pace: Pace) -> Self {
        Self { at_boot: pace, last: Mutex::new((ProcessorTime::read(), pace)) }
    }

    /// That of the next plan; it is printed when it is another one than before.
    pub fn of_next_plan(&self) -> Pace {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = ProcessorTime::read();
        if now.all.saturating_sub(last.0.all) >= TICKS_MIN {
            let pace = self.at_boot.max(Pace::between(&last.0, &now, std::process::id()));
            if pace != last.1 {
                println!("the times of the next plans are multiplied by {pace}, and not by {}", last.1);
            }
            *last = (now, pace);
        }
        last.1
    }
}

/// Processor time since the start of the machine and of each process, in ticks of the kernel.
#[derive(Debug)]
pub struct ProcessorTime {
    /// Of all processors, idle or not.
    all: u64,
    processes: BTreeMap<u32, Process>,
}

/// A process, as proc_pid_stat(5) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// Of all its threads.
    ticks: u64,
}

impl ProcessorTime {
    /// Reads it now.
    pub fn read() -> Self {
        let all = machine_in(&fs::read_to_string("/proc/stat").unwrap()).unwrap();
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let entry = entry.ok()?;
            let id = entry.file_name().to_str()?.parse().ok()?;
            // One that has just ended has no file.
            Some((id, process_in(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
        });
        Self { all, processes: processes.collect() }
    }

    /// What other programs used since an earlier reading: not the descendants of the process `own`, which are guests and what works with them.
    fn of_others_since(&self, earlier: &Self, own: u32) -> u64 {
        let is_other = |id: u32| !self.is_of(id, own) && !self.is_of(id, KERNEL_THREADS);
        let others = self.processes.iter().filter(|(id, _)| is_other(**id));
        let used = others.map(|(id, process)| {
            let before = earlier.processes.get(id).map_or(0, |before| before.ticks);
            process.ticks.saturating_sub(before)
        });
        used.sum()
    }

    /// Whether a process is this one or its descendant.
    fn is_of(&self, id: u32, ancestor: u32) -> bool {
        let parent = |id: &u32| Some(self.processes.get(id)?.parent);
        std::iter::successors(Some(id), parent).take(ANCESTORS_MAX).any(|found| found == ancestor)
    }
}

/// All ticks of /proc/stat.
fn machine_in(stat: &str) -> Option<u64> {
    let ticks = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    // user, nice, system, idle, iowait, irq, softirq, steal; what follows is a part of the first two.
    ticks.take(8).map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Parent and ticks of the text of a process. The name before them may contain anything.
fn process_in(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| -> Option<u64> { fields.get(field)?.parse().ok() };
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks: number(11)? + number(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_plan_are_multiplied_and_nothing_else() {
        let text = "duration = \"300 ms\"\nrequest_rate = \"20 /s\"\n\
                    treatments = [{ command = [\"sh\", \"-c\", \"echo \\\"1 s\\\"\"], undo = [\"true\"] }]\n\
                    set = { events = [{ at = \"1 s\", do = \"down\" }, { at = \"4 s\", do = \"return\" }] }\n";
        let expected = "duration = \"900 ms\"\nrequest_rate = \"20 /s\"\n\
                        treatments = [{ command = [\"sh\", \"-c\", \"echo \\\"1 s\\\"\"], undo = [\"true\"] }]\n\
                        set = { events = [{ at = \"3 s\", do = \"down\" }, { at = \"12 s\", do = \"return\" }] }\n";
        assert_eq!(Pace(3).plan(text), expected);
        assert_eq!(Pace::QUIET.plan(text), text);
    }

    #[test]
    fn times_are_multiplied_where_other_programs_have_a_part_of_the_processors() {
        for (others, factor) in [(0, 1), (15, 1), (25, 3), (50, 3), (60, 4), (100, 4)] {
            assert_eq!(Pace::of(100, others), Pace(factor), "{others}");
        }
    }

    #[test]
    fn own_programs_and_threads_of_the_kernel_are_not_counted() {
        let at = |ticks: u64| {
            let process = |parent: u32| Process { parent, ticks };
            // The tests, a guest of theirs, its parent between both, a thread of the kernel, two other programs.
            let processes = [(40, 30), (42, 41), (41, 40), (50, 2), (30, 1), (60, 1)];
            let processes = processes.into_iter().map(|(id, parent)| (id, process(parent))).collect();
            ProcessorTime { all: 100 * ticks, processes }
        };
        assert_eq!(at(10).of_others_since(&at(4), 40), 6 + 6);
        assert_eq!(Pace::between(&at(4), &at(10), 40), Pace::QUIET);
    }

    #[test]
    fn pace_of_a_plan_is_never_less_than_that_of_the_boot() {
        let paces = Paces::since_boot(Pace(FACTOR_MAX));
        assert_eq!(paces.of_next_plan(), Pace(FACTOR_MAX));
        // As if the boot had been long ago, and no other program had run since.
        let ProcessorTime { all, processes } = ProcessorTime::read();
        let earlier = ProcessorTime { all: all - TICKS_MIN, processes };
        *paces.last.lock().unwrap() = (earlier, Pace(FACTOR_MAX));
        assert_eq!(paces.of_next_plan(), Pace(FACTOR_MAX));
    }

    #[test]
    fn ticks_are_read_whatever_the_name_of_a_process() {
        let text = "12 (a) b (c)) S 3 12 12 0 -1 4194304 1 0 0 0 250 50 7 8 20 0 1 0 77 1 1 1\n";
        assert_eq!(process_in(text), Some(Process { parent: 3, ticks: 300 }));
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(machine_in(text), Some(36));
        let now = ProcessorTime::read();
        assert_eq!(now.of_others_since(&now, std::process::id()), 0);
    }
}
