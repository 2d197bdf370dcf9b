//! The work of one thread of an end. Starts no thread.
use crate::counted::Counted;
use crate::error::LoadError;
use crate::worker::Worker;

/// Moves traffic, and returns what it counted besides the stream counters.
///
/// # Errors
/// Why there is no traffic. Errors of the traffic itself are counted in the worker.
pub(crate) type Work = Box<dyn FnOnce(&mut Worker) -> Result<Counted, LoadError> + Send>;

/// The work of one thread.
pub(crate) struct Job {
    /// Indices of its streams or flows; the first is the worker's own.
    pub streams: Vec<usize>,
    /// The thread number, which selects its core. The sending and the receiving thread of a stream share one.
    pub thread: usize,
    /// Whether it begins with the first data of the peer.
    pub follows_peer: bool,
    pub work: Work,
}

impl Job {
    /// A job on one stream.
    pub(crate) fn new(
        stream: usize,
        thread: usize,
        work: impl FnOnce(&mut Worker) -> Result<Counted, LoadError> + Send + 'static,
    ) -> Self {
        Self { streams: vec![stream], thread, follows_peer: false, work: Box::new(work) }
    }

    /// A job on one stream that cannot fail.
    pub(crate) fn infallible(
        stream: usize,
        thread: usize,
        work: impl FnOnce(&mut Worker) -> Counted + Send + 'static,
    ) -> Self {
        Self::new(stream, thread, move |worker| Ok(work(worker)))
    }

    /// Replaces the result of the job.
    pub(crate) fn map(self, result: impl FnOnce(&Worker, Counted) -> Counted + Send + 'static) -> Self {
        let Self { streams, thread, follows_peer, work } = self;
        let work = Box::new(move |worker: &mut Worker| {
            let counted = work(worker)?;
            Ok(result(worker, counted))
        });
        Self { streams, thread, follows_peer, work }
    }
}
