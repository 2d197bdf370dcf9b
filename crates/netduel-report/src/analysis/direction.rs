//! One direction of the probes of a failover around an event, over the trials of an arm.
use super::dip::Dip;

/// One direction around an event.
#[derive(Debug, Clone, Default)]
pub struct DirectionFigures {
    /// Longest gap between probes, minus the probe interval, nanoseconds, by trial.
    pub outage_ns: Vec<f64>,
    /// Whether the outage lasted until the end of the traffic, so that its value is a lower bound, by trial.
    pub is_open: Vec<bool>,
    /// No-event baseline: the longest gap in the time before the event, nanoseconds, by trial.
    pub baseline_ns: Vec<f64>,
    /// Lost probes, by trial.
    pub lost: Vec<f64>,
    /// Duplicate probes, by trial.
    pub duplicated: Vec<f64>,
    /// Reordered probes, by trial.
    pub reordered: Vec<f64>,
    /// One-way delays of all trials before, during and after the event, nanoseconds, ascending. Trials whose clocks are not known have none.
    pub delay_ns: [Vec<f64>; 3],
    /// Throughput of the streams, by trial; empty without streams in this direction.
    pub dips: Vec<Dip>,
}

/// The phases around an event, in the order of [`DirectionFigures::delay_ns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// 500 ms before the event.
    Before,
    /// From the event to the end of the outage and of the calls to the kernel.
    During,
    /// 500 ms after that.
    After,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 3] = [Self::Before, Self::During, Self::After];
}

/// One direction of one trial at one event.
pub(super) struct Seen {
    pub outage: f64,
    /// Whether a probe followed the outage.
    pub is_over: bool,
    pub baseline: f64,
    pub lost: u64,
    pub duplicated: usize,
    pub reordered: usize,
    pub delays: [Vec<f64>; 3],
    pub dip: Option<Dip>,
}

/// The smallest value with at least `share` of the values at or below it (nearest rank); absent without values.
pub fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    let rank = (share * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.clamp(1, ascending.len().max(1)) - 1).copied()
}

impl DirectionFigures {
    /// Number of trials whose outage lasted until the end of the traffic.
    pub fn open_ended(&self) -> u32 {
        self.is_open.iter().filter(|is_open| **is_open).count() as u32
    }

    /// A quantile of the outage over the trials (nearest rank), nanoseconds, and whether it is a lower bound: an outage up to it was open, and
    /// may have been longer than it.
    pub fn outage(&self, share: f64) -> Option<(f64, bool)> {
        let mut ascending = self.outage_ns.clone();
        ascending.sort_by(f64::total_cmp);
        let value = quantile(&ascending, share)?;
        let mut trials = self.outage_ns.iter().zip(&self.is_open);
        Some((value, trials.any(|(outage, is_open)| *is_open && *outage <= value)))
    }

    /// The median of the time to recover (nearest rank), nanoseconds; infinite when less than half of the trials recovered. Absent without streams.
    pub fn recovery_p50(&self) -> Option<f64> {
        let mut ascending: Vec<f64> =
            self.dips.iter().map(|dip| dip.recovery_ns.unwrap_or(f64::INFINITY)).collect();
        ascending.sort_by(f64::total_cmp);
        quantile(&ascending, 0.5)
    }

    pub(super) fn take(&mut self, seen: Seen) {
        self.outage_ns.push(seen.outage);
        self.is_open.push(!seen.is_over);
        self.baseline_ns.push(seen.baseline);
        self.lost.push(seen.lost as f64);
        self.duplicated.push(seen.duplicated as f64);
        self.reordered.push(seen.reordered as f64);
        for (all, delays) in self.delay_ns.iter_mut().zip(seen.delays) {
            all.extend(delays);
        }
        self.dips.extend(seen.dip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_a_bound_when_an_outage_up_to_it_was_open() {
        let of = |open: &[usize]| DirectionFigures {
            outage_ns: vec![3.0, 1.0, 2.0, 9.0],
            is_open: (0..4).map(|trial| open.contains(&trial)).collect(),
            ..DirectionFigures::default()
        };
        let at = |open: &[usize]| [0.5, 0.9].map(|share| of(open).outage(share));
        assert_eq!(at(&[]), [Some((2.0, false)), Some((9.0, false))]);
        assert_eq!(at(&[3]), [Some((2.0, false)), Some((9.0, true))], "it is above the median anyway");
        assert_eq!(at(&[1]), [Some((2.0, true)), Some((9.0, true))], "the shortest may be the longest");
        assert_eq!((of(&[1, 3]).open_ended(), DirectionFigures::default().outage(0.5)), (2, None));
    }

    #[test]
    fn trial_without_recovery_counts_as_the_slowest() {
        let of = |recoveries: &[Option<f64>]| {
            let (rate, lowest_bps) = (Some(1.0), Some(0.0));
            let steady = Dip { before_bps: rate, lowest_bps, settled_bps: rate, recovery_ns: None };
            let dips = recoveries.iter().map(|took| Dip { recovery_ns: *took, ..steady }).collect();
            DirectionFigures { dips, ..DirectionFigures::default() }.recovery_p50()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[Some(3.0), Some(1.0), None]), Some(3.0));
        assert_eq!(of(&[Some(3.0), None, None]), Some(f64::INFINITY));
    }
}
