//! A warning before runs that the daily shutdown of their bed may end. Nothing is refused: the estimate is rough, and runs may end earlier.
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::plan::ResolvedPlan;

use super::session::now_unix_s;
use crate::console::tell;
use crate::expected_time::longest_s;

/// Warns when runs that begin now may reach the next shutdown of their bed.
pub fn warn<'p>(
    bed: &str,
    shutdown: Option<ShutdownTime>,
    plans: impl IntoIterator<Item = &'p ResolvedPlan>,
) {
    let runs_s: f64 = plans.into_iter().map(longest_s).sum();
    if let Some(warning) = shutdown.and_then(|time| warning(bed, time, now_unix_s(), runs_s)) {
        tell(&warning);
    }
}

fn warning(bed: &str, time: ShutdownTime, now_unix_s: u64, runs_s: f64) -> Option<String> {
    let left_s = time.next_unix_s(now_unix_s).saturating_sub(now_unix_s);
    (runs_s >= left_s as f64).then(|| {
        format!(
            "warning: the daily shutdown of the bed {bed} at {time} UTC is in {} min, and its runs may take {:.0} min: it stops the VMs, and the \
             run then fails; begin earlier, or name a later `shutdown` in the bed file and repeat `netduel azure up`",
            left_s / 60,
            (runs_s / 60.0).ceil()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22T18:30:07Z.
    const NOW_UNIX_S: u64 = 1_795_372_207;

    #[test]
    fn run_that_may_reach_the_shutdown_is_warned_of() {
        let warned = |runs_s: f64| warning("x", ShutdownTime::DEFAULT, NOW_UNIX_S, runs_s);
        assert_eq!(warned(1700.0), None);
        let text = warned(1800.0).unwrap();
        assert!(text.contains("bed x at 19:00 UTC is in 29 min, and its runs may take 30 min: "), "{text}");
        let page = include_str!("../../../../docs/azure-errors.md");
        assert!(page.contains(&text), "docs/azure-errors.md lacks this text: {text}");
    }
}
