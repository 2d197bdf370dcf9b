//! How the sender passed datagrams to the kernel. Reads no clock and no socket.
use netduel_model::sample::DatagramSendReport;
use netduel_stats::histogram::Histogram;

/// The send calls of one thread, or of all threads of an end.
pub(crate) struct SendCount {
    /// Calls in which the kernel took datagrams.
    pub calls: u64,
    /// Datagrams of the largest of them.
    pub burst: u32,
    /// Calls that failed because the queue was full.
    pub refused: u64,
    /// With a schedule: how late each call was.
    pub pacing_error: Option<Histogram>,
}

impl SendCount {
    /// Before the first call of a sender, on a schedule or without one.
    pub(crate) fn new(is_paced: bool) -> Self {
        Self { calls: 0, burst: 0, refused: 0, pacing_error: is_paced.then(Histogram::new) }
    }

    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.burst = self.burst.max(other.burst);
        self.refused += other.refused;
        if let (Some(all), Some(other)) = (&mut self.pacing_error, &other.pacing_error) {
            all.merge(other);
        }
    }

    pub(crate) fn report(&self) -> DatagramSendReport {
        let pacing_error = self.pacing_error.as_ref().map(Histogram::to_record);
        DatagramSendReport { calls: self.calls, burst_max: self.burst, refused: self.refused, pacing_error }
    }
}
