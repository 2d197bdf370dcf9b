//! What one thread of an end does.
use crate::worker::Worker;

/// What one thread does.
pub(crate) struct Job {
    /// The stream or flow that it works on, the first when there are several.
    pub stream: usize,
    /// Its number, by which it is pinned. Both threads of a stream that sends and receives have the stream's.
    pub thread: usize,
    pub work: Box<dyn FnOnce(&mut Worker) + Send>,
}
