//! What one thread of an end does. Starts no thread.
use crate::counted::Counted;
use crate::error::LoadError;
use crate::worker::Worker;

/// Moves traffic, and returns what it counted besides its lanes.
///
/// # Errors
/// Why there is no traffic that could be counted. Errors of the traffic itself go into the worker's errors.
pub(crate) type Work = Box<dyn FnOnce(&mut Worker) -> Result<Counted, LoadError> + Send>;

/// What one thread does.
pub(crate) struct Job {
    /// The streams or flows that it works on, the first of which has its lane.
    pub streams: Vec<usize>,
    /// Its number, by which it is pinned. Both threads of a stream that sends and receives have the stream's.
    pub thread: usize,
    pub work: Work,
}

impl Job {
    /// A job on one stream.
    pub(crate) fn new(
        stream: usize,
        thread: usize,
        work: impl FnOnce(&mut Worker) -> Result<Counted, LoadError> + Send + 'static,
    ) -> Self {
        Self { streams: vec![stream], thread, work: Box::new(work) }
    }

    /// A job on one stream that cannot fail.
    pub(crate) fn infallible(
        stream: usize,
        thread: usize,
        work: impl FnOnce(&mut Worker) -> Counted + Send + 'static,
    ) -> Self {
        Self::new(stream, thread, move |worker| Ok(work(worker)))
    }

    /// The same job, whose result becomes another.
    pub(crate) fn map(self, result: impl FnOnce(&Worker, Counted) -> Counted + Send + 'static) -> Self {
        let Self { streams, thread, work } = self;
        let work = Box::new(move |worker: &mut Worker| {
            let counted = work(worker)?;
            Ok(result(worker, counted))
        });
        Self { streams, thread, work }
    }
}
