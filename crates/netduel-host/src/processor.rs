//! CPU time and context switches from `/proc/stat` (proc(5)). Pure: text in, differences out.
use netduel_model::observation::CoreTime;

/// One core's line, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ticks {
    core: u16,
    user: u64,
    system: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
    idle: u64,
}

/// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`. Guest time is already in user and nice.
fn ticks(line: &str) -> Option<Ticks> {
    // The first line, `cpu  ...`, is the sum of all cores.
    let rest =
        line.strip_prefix("cpu").filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))?;
    let mut fields = rest.split_ascii_whitespace();
    let core = fields.next()?.parse().ok()?;
    let numbers: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    (numbers.len() >= 4).then(|| Ticks {
        core,
        user: at(0).saturating_add(at(1)),
        system: at(2),
        idle: at(3).saturating_add(at(4)),
        irq: at(5),
        softirq: at(6),
        steal: at(7),
    })
}

fn cores(stat: &str) -> Vec<Ticks> {
    stat.lines().take_while(|line| line.starts_with("cpu")).filter_map(ticks).collect()
}

/// CPU time of the cores that were online at both readings. `tick_ns` is the length of a clock tick.
pub(crate) fn core_times(before: &str, after: &str, tick_ns: u64) -> Vec<CoreTime> {
    let before = cores(before);
    let between = |first: u64, last: u64| {
        // The kernel's idle and iowait may step back by a tick when a core wakes: that is no time.
        last.saturating_sub(first).saturating_mul(tick_ns)
    };
    cores(after)
        .iter()
        .filter_map(|last| {
            let first = before.iter().find(|first| first.core == last.core)?;
            Some(CoreTime {
                core: last.core,
                user_ns: between(first.user, last.user),
                system_ns: between(first.system, last.system),
                irq_ns: between(first.irq, last.irq),
                softirq_ns: between(first.softirq, last.softirq),
                steal_ns: between(first.steal, last.steal),
                idle_ns: between(first.idle, last.idle),
            })
        })
        .collect()
}

/// Number of cores with a line.
pub(crate) fn core_count(stat: &str) -> u32 {
    cores(stat).len() as u32
}

/// Context switches of the host between two readings.
pub(crate) fn context_switches(before: &str, after: &str) -> Option<u64> {
    let count = |stat: &str| -> Option<u64> {
        stat.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()
    };
    count(after)?.checked_sub(count(before)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  300 11 51 1001 6 2 3 4 40 4\ncpu0 100 10 50 1000 5 1 2 3 40 4\ncpu2 1 1 1 1 1 1 1 1 0 0\nctxt 100\n";

    #[test]
    fn guest_time_is_not_counted_twice_and_nice_is_user() {
        let after = "cpu  390 12 51 1011 9 2 5 4 47 5\ncpu0 107 11 50 1010 8 1 4 3 47 5\nctxt 350\n";
        let times = core_times(BEFORE, after, 10_000_000);
        let expected = CoreTime {
            core: 0,
            user_ns: 80_000_000,
            softirq_ns: 20_000_000,
            idle_ns: 130_000_000,
            ..CoreTime::default()
        };
        assert_eq!(times, [expected]);
        assert_eq!(context_switches(BEFORE, after), Some(250));
    }

    #[test]
    fn times_beyond_the_range_of_a_number_are_the_largest() {
        let most = u64::MAX;
        let times = core_times("cpu0 0 0 0 0\n", &format!("cpu0 {most} {most} {most} {most} 1\n"), 10);
        assert_eq!((times[0].user_ns, times[0].system_ns, times[0].idle_ns), (most, most, most));
    }

    #[test]
    fn idle_time_that_steps_back_is_no_time() {
        let after = "cpu0 100 10 50 999 5 1 2 3 40 4\n";
        assert_eq!(core_times(BEFORE, after, 10_000_000)[0].idle_ns, 0);
        assert_eq!(context_switches(BEFORE, after), None);
    }

    #[test]
    fn core_that_came_online_between_the_readings_is_omitted() {
        let after = "cpu0 100 10 50 1000 5 1 2 3 40 4\ncpu1 9 9 9 9\ncpu2 2 1 1 1 1 1 1 1 0 0\n";
        let cores: Vec<u16> = core_times(BEFORE, after, 1).iter().map(|time| time.core).collect();
        assert_eq!(cores, [0, 2]);
    }

    #[test]
    fn stat_of_an_old_kernel_without_steal_is_parsed() {
        let times = core_times("cpu0 1 1 1 1\n", "cpu0 2 1 1 5\n", 1);
        assert_eq!((times[0].user_ns, times[0].idle_ns, times[0].steal_ns), (1, 4, 0));
    }
}
