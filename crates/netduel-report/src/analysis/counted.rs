//! Rates of bulk traffic between two times of a trial, by the count of one end on its own clock.
use netduel_model::sample::{Flow, IntervalSample};
use netduel_model::trial::Trial;
use netduel_model::workload::{Role, SAMPLE_INTERVAL_NS, Workload};
use netduel_stats::series::{interval_rates, steady_window};

/// A series that covers this share of the window was only not sampled to its end.
const COVERED_MIN: f64 = 0.98;
/// A shorter interval has no rate of its own: it depends on when the sampler woke.
const INTERVAL_LEAST_NS: u64 = SAMPLE_INTERVAL_NS / 2;

/// End, length and amount of each sample.
type Samples = Vec<(u64, u64, u64)>;

/// Units per second that an end moved between two times of its own clock; absent where its series covers none of it.
pub(super) fn rate_on_its_clock(
    flow: &Flow,
    (from, to): (u64, u64),
    amount: impl Fn(&IntervalSample) -> u64,
) -> Option<f64> {
    let (amount, seconds) = steady_window(&samples(flow, 0, amount), from, to)?;
    (seconds > 0.0).then(|| amount / seconds)
}

/// End, length and amount of each sample from a time on.
fn samples(flow: &Flow, begins_ns: u64, amount: impl Fn(&IntervalSample) -> u64) -> Samples {
    let length = |sample: &IntervalSample| sample.length_ns.min(sample.end_ns.saturating_sub(begins_ns));
    flow.series.iter().map(|sample| (sample.end_ns, length(sample), amount(sample))).collect()
}

/// What an end counted of a direction.
#[derive(Clone, Copy)]
pub(super) struct Counted<'a> {
    flow: &'a Flow,
    /// The count of the sender, of what another end received.
    sender: Option<&'a Flow>,
}

/// An amount, and the time in which it was moved.
struct Moved {
    amount: f64,
    seconds: f64,
}

impl<'a> Counted<'a> {
    /// What an end received; absent when it received no bulk traffic.
    pub(super) fn received_by(role: Role, trial: &'a Trial) -> Option<Self> {
        let flow = trial.end(role)?.report.received.as_ref()?;
        let sender = trial.end(role.opposite()).and_then(|end| end.report.sent.as_ref());
        Some(Self { flow, sender })
    }

    /// What an end sent. It begins at its own start.
    pub(super) fn sent_by(role: Role, trial: &'a Trial) -> Option<Self> {
        Some(Self { flow: trial.end(role)?.report.sent.as_ref()?, sender: None })
    }

    /// The flow.
    pub(super) fn flow(self) -> &'a Flow {
        self.flow
    }

    /// How much later than the start of this end the trial began on its clock. A receiver is started before its sender, by a round trip between
    /// the hosts and what a busy host adds to it. Its first data are later by that, and so are its last: what is missing at the beginning only was
    /// lost. With a warm-up in steps of a sample, so that the edges of a window stay on samples: what remains is a part of the warm-up.
    pub(super) fn late_ns(self, workload: &Workload) -> u64 {
        let Some(sender) = self.sender else { return 0 };
        let planned = workload.traffic.facts().load_begins.unwrap_or_default().0;
        let first = self.flow.first_ns.unwrap_or_default().saturating_sub(planned);
        let last = self.flow.last_ns.unwrap_or_default().saturating_sub(sender.last_ns.unwrap_or_default());
        let late = first.min(last);
        match workload.timing.warmup.0 {
            0 => late,
            warmup => late - late % warmup.min(SAMPLE_INTERVAL_NS),
        }
    }

    /// Units per second in the steady window. A window in which nothing arrived of what was sent has a rate of 0, and one whose data stopped early
    /// the mean of all of it; only a volume or a search ends before the window does.
    pub(super) fn in_steady_window(
        self,
        workload: &Workload,
        amount: impl Fn(&IntervalSample) -> u64,
    ) -> Option<f64> {
        if !ends_by_time(workload) {
            return self.moved_until_over(workload, amount).map(|moved| moved.amount / moved.seconds);
        }
        let window = workload.steady_window();
        let moved = self.moved(workload, (window.start, window.end), amount);
        let length = window.end.checked_sub(window.start).filter(|length| *length > 0)? as f64 / 1e9;
        Some(match moved {
            Some(moved) if is_covered(moved.seconds, length) => moved.amount / moved.seconds,
            Some(moved) => moved.amount / length,
            None => return self.was_sent().then_some(0.0),
        })
    }

    /// Units per second of the intervals between the samples in the steady window. The mean of [`Self::in_steady_window`] lies between the smallest
    /// and the largest. A part of the window behind the last sample, which that mean counts as time in which nothing was moved, is an interval
    /// with a rate of 0: each end samples until it has counted all.
    pub(super) fn in_steady_intervals(
        self,
        workload: &Workload,
        amount: impl Fn(&IntervalSample) -> u64,
    ) -> Vec<f64> {
        let window = workload.steady_window();
        let length = window.end.saturating_sub(window.start) as f64 / 1e9;
        let (samples, from, to) = self.on_its_clock(workload, (window.start, window.end), amount);
        let mut rates = interval_rates(&samples, from, to, INTERVAL_LEAST_NS);
        let seconds = steady_window(&samples, from, to).map_or(0.0, |(_, seconds)| seconds);
        if ends_by_time(workload) && !is_covered(seconds, length) {
            rates.push(0.0);
        }
        rates
    }

    /// Units per second in an interval of the trial: the mean of the part of it that the series of this end covers.
    pub(super) fn in_interval(
        self,
        workload: &Workload,
        interval: (u64, u64),
        amount: impl Fn(&IntervalSample) -> u64,
    ) -> Option<f64> {
        match self.moved(workload, interval, amount) {
            Some(moved) => Some(moved.amount / moved.seconds),
            None => (ends_by_time(workload) && self.was_sent()).then_some(0.0),
        }
    }

    /// Whether the sender sent anything.
    fn was_sent(self) -> bool {
        self.sender.is_some_and(|sender| sender.bytes > 0)
    }

    /// What was moved in the steady window of a trial that may end before it. Datagrams of a volume with a rate leave at equal intervals. Without
    /// a warm-up the time begins with the first of them, so it has one interval less than datagrams, and one datagram is not of this time: with
    /// it few datagrams would look faster than their schedule. The samples of several flows end before the last datagram of all.
    fn moved_until_over(self, workload: &Workload, amount: impl Fn(&IntervalSample) -> u64) -> Option<Moved> {
        let window = workload.steady_window();
        let moved = self.moved(workload, (window.start, window.end), amount)?;
        let facts = workload.traffic.facts();
        let has_schedule = facts.volume().is_some() && facts.paced.is_some() && facts.flows.is_some();
        if !has_schedule || workload.timing.warmup.0 > 0 {
            return Some(moved);
        }
        let last_ns = self.flow.last_ns.unwrap_or_default().saturating_sub(self.late_ns(workload));
        let seconds = moved.seconds.max(last_ns.min(window.end) as f64 / 1e9);
        let datagrams = self.flow.messages as f64;
        (datagrams > 1.0).then(|| Moved { amount: moved.amount * (datagrams - 1.0) / datagrams, seconds })
    }

    fn moved(
        self,
        workload: &Workload,
        interval: (u64, u64),
        amount: impl Fn(&IntervalSample) -> u64,
    ) -> Option<Moved> {
        let (samples, from, to) = self.on_its_clock(workload, interval, amount);
        let (amount, seconds) = steady_window(&samples, from, to)?;
        (seconds > 0.0).then_some(Moved { amount, seconds })
    }

    /// The samples of this end, and the bounds of an interval of the trial on its clock.
    fn on_its_clock(
        self,
        workload: &Workload,
        (from, to): (u64, u64),
        amount: impl Fn(&IntervalSample) -> u64,
    ) -> (Samples, u64, u64) {
        let late = self.late_ns(workload);
        // Without a warm-up the first data arrive in the first sample that counts: it begins with them.
        let begins_ns = if workload.timing.warmup.0 == 0 { late } else { 0 };
        (samples(self.flow, begins_ns, amount), from.saturating_add(late), to.saturating_add(late))
    }
}

/// Units per second in the steady window of a trial that ends with its volume, over all directions: what they moved in the time of the slowest.
/// The sum of their rates would be one that the path never had, where one direction is over before the other.
pub(super) fn rate_of_volumes(
    directions: &[Counted<'_>],
    workload: &Workload,
    amount: impl Fn(&IntervalSample) -> u64,
) -> Option<f64> {
    let (mut all, mut longest) = (0.0, 0.0_f64);
    for direction in directions {
        let Moved { amount, seconds } = direction.moved_until_over(workload, &amount)?;
        all += amount;
        longest = longest.max(seconds);
    }
    (longest > 0.0).then(|| all / longest)
}

/// Whether a series covers a window, both in seconds.
fn is_covered(seconds: f64, length: f64) -> bool {
    seconds >= length * COVERED_MIN
}

/// Whether the time ends the traffic of a trial.
fn ends_by_time(workload: &Workload) -> bool {
    let facts = workload.traffic.facts();
    facts.volume().is_none() && facts.search().is_none()
}
