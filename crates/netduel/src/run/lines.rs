//! The lines of the progress display, fitted to the width of the terminal. Pure: nothing is drawn here.

/// Maximum length of the bar, characters.
const BAR_MAX: usize = 30;
/// Minimum length of the bar.
const BAR_MIN: usize = 4;

/// Progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Number of finished trials.
    pub done: u32,
    /// Maximum number of trials.
    pub total: u32,
    /// Seconds since the start.
    pub elapsed_s: u64,
    /// Estimated seconds left.
    pub left_s: u64,
}

/// The progress line: a bar if it fits, counts and times.
pub fn run_line(standing: Standing, width: usize) -> String {
    let Standing { done, total, elapsed_s, left_s } = standing;
    let words = format!("{done} of {total} trials, {} elapsed, about {} left", time(elapsed_s), time(left_s));
    // Two spaces, the brackets and a space.
    let room = width.saturating_sub(words.chars().count() + 5).min(BAR_MAX);
    if room < BAR_MIN {
        return fit(&format!("  {words}"), width);
    }
    let share = if total == 0 { 0.0 } else { f64::from(done.min(total)) / f64::from(total) };
    let full = (share * room as f64) as usize;
    format!("  [{}{}] {words}", "=".repeat(full), " ".repeat(room - full))
}

/// A text truncated to the width, with a mark.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}~", kept.trim_end())
}

/// A duration in seconds: `50 s`, `2 min 5 s`, `1 h 3 min`.
fn time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits_the_width() {
        for width in [20, 40, 80, 110] {
            for (done, total, elapsed_s, left_s) in
                [(0, 120, 0, 50), (119, 120, 3_599, 1), (99_999, 100_000, 86_400, 360_000), (0, 0, 0, 0)]
            {
                let line = run_line(Standing { done, total, elapsed_s, left_s }, width);
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(fit(&"wörkload ".repeat(20), width).chars().count() <= width);
        }
    }

    #[test]
    fn line_of_80_columns_has_bar_counts_and_times() {
        let line = run_line(Standing { done: 60, total: 120, elapsed_s: 65, left_s: 62 }, 80);
        assert!(line.contains("60 of 120 trials, 1 min 5 s elapsed, about 1 min 2 s left"), "{line}");
        let bar = line.split(['[', ']']).nth(1).expect("a bar");
        assert_eq!(bar.trim_end().chars().count() * 2, bar.chars().count(), "{line}");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("shorter", 5), "shor~");
    }
}
