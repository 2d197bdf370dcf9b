//! Per-core receive processing from `/proc/net/softnet_stat` (net/core/net-procfs.c). Pure: text in, differences out.
use netduel_model::observation::Softnet;

/// Column of the packets received through RPS; kernels before 2.6.35 have neither the column nor RPS.
const COLUMN_RPS: usize = 9;
/// Column of the core's number, since 5.10. Without it the lines are the online cores in order.
const COLUMN_CORE: usize = 12;

struct Line {
    core: u16,
    counters: [u32; 4],
}

fn lines(text: &str) -> Vec<Line> {
    text.lines()
        .enumerate()
        .filter_map(|(position, line)| {
            let columns: Vec<u32> = line
                .split_ascii_whitespace()
                .map_while(|column| u32::from_str_radix(column, 16).ok())
                .collect();
            let at = |index: usize| columns.get(index).copied().unwrap_or(0);
            let core = columns.get(COLUMN_CORE).map_or(position as u16, |core| *core as u16);
            (columns.len() >= 3).then(|| Line { core, counters: [at(0), at(1), at(2), at(COLUMN_RPS)] })
        })
        .collect()
}

/// Differences of the cores that have a line at both readings. The counters have 32 bits and wrap.
pub(crate) fn differences(before: &str, after: &str) -> Vec<Softnet> {
    let before = lines(before);
    lines(after)
        .iter()
        .filter_map(|last| {
            let first = before.iter().find(|first| first.core == last.core)?;
            let grown = |index: usize| u64::from(last.counters[index].wrapping_sub(first.counters[index]));
            Some(Softnet {
                core: last.core,
                processed: grown(0),
                dropped: grown(1),
                time_squeeze: grown(2),
                received_rps: grown(3),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_continues_after_a_wrap_at_32_bits() {
        let before = "fffffff0 00000000 00000001 0 0 0 0 0 0 00000002 0 0 00000000 0 0\n";
        let after = "00000010 00000003 00000001 0 0 0 0 0 0 00000009 0 0 00000000 0 0\n";
        let expected = Softnet { core: 0, processed: 0x20, dropped: 3, time_squeeze: 0, received_rps: 7 };
        assert_eq!(differences(before, after), [expected]);
    }

    #[test]
    fn core_is_read_from_its_column_or_is_the_line_number() {
        let named = "1 0 0 0 0 0 0 0 0 0 0 0 00000004 0 0\n";
        assert_eq!(differences(named, named)[0].core, 4);
        let unnamed = "1 0 0 0 0 0 0 0 0\n5 0 0 0 0 0 0 0 0\n";
        let cores: Vec<u16> = differences(unnamed, unnamed).iter().map(|line| line.core).collect();
        assert_eq!(cores, [0, 1]);
    }

    #[test]
    fn empty_file_has_no_values() {
        assert_eq!(differences("", "1 2 3\n"), []);
        assert_eq!(differences("1 2 3\n", "\n"), []);
    }
}
