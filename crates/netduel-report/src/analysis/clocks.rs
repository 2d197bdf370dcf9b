//! The clocks of the two ends of a failover, by the fastest probes of each direction.
use netduel_model::failover::FailoverReport;

/// The clock of the server against that of the client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clocks {
    /// How far it is ahead, nanoseconds.
    pub lead_ns: i64,
    /// Maximum error of this, nanoseconds; absent where no probe arrived in a direction, so that nothing limits it.
    pub error_ns: Option<f64>,
}

impl Clocks {
    /// Half the difference between the minimum delays of both directions, if the path is symmetric. Without an arrival in one direction the fastest
    /// probe of the other one counts as if it took no time, and without any the ends as if they had started together: with any other offset
    /// events would be hours away from the gaps that belong to them.
    pub(super) fn of(client: &FailoverReport, server: &FailoverReport, is_shared: bool) -> Self {
        if is_shared {
            return Self { lead_ns: 0, error_ns: Some(0.0) };
        }
        let fastest = |report: &FailoverReport| report.arrivals.delays_ns.iter().copied().min();
        let started = |report: &FailoverReport| report.started_ns.cast_signed();
        match (fastest(server), fastest(client)) {
            (Some(up), Some(down)) => Self {
                lead_ns: up.wrapping_sub(down) / 2,
                error_ns: Some((up.wrapping_add(down) as f64 / 2.0).abs()),
            },
            (Some(up), None) => Self { lead_ns: up, error_ns: None },
            (None, Some(down)) => Self { lead_ns: down.wrapping_neg(), error_ns: None },
            (None, None) => Self { lead_ns: started(server).wrapping_sub(started(client)), error_ns: None },
        }
    }
}
