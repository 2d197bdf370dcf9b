//! The handle of an end whose traffic is running.
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use netduel_model::sample::{EndReport, LiveFigures};

use crate::control::Control;
use crate::error::LoadError;
use crate::supervisor::Supervisor;

/// Called once, when an end is over or was aborted, from a thread of the end, or from its caller when that thread could not be started.
pub type Notify = Box<dyn Fn() + Send + Sync>;

/// An end whose traffic is running.
pub struct Running {
    control: Arc<Control>,
    thread: Result<JoinHandle<Result<EndReport, LoadError>>, LoadError>,
}

impl Running {
    pub(crate) fn start(supervisor: Supervisor, notify: Notify) -> Self {
        let control = Arc::clone(&supervisor.control);
        supervisor.control.start(supervisor.connect_ns());
        let notify = Arc::new(notify);
        let notify_of_thread = Arc::clone(&notify);
        let thread = Builder::new().name("load".to_owned()).spawn(move || {
            let control = Arc::clone(&supervisor.control);
            let result = supervisor.run();
            control.mark_done();
            notify_of_thread();
            result
        });
        let thread = thread.map_err(|source| {
            // Its sockets are closed by now, and it is over.
            control.mark_done();
            notify();
            LoadError::Thread { operation: "start the thread of an end".to_owned(), source }
        });
        Self { control, thread }
    }

    /// The figures so far. Cheap enough for a progress line.
    pub fn live(&self) -> LiveFigures {
        self.control.live()
    }

    /// The peer is done: a sender stops, a receiver takes the data in flight, and then the end is over.
    pub fn finish(&self) {
        self.control.finish();
    }

    /// Ends all threads at once. The counts so far are kept.
    pub fn abort(&self) {
        self.control.abort();
    }

    /// Whether [`Self::join`] would return at once.
    pub fn is_done(&self) -> bool {
        self.control.is_done()
    }

    /// Waits until the end is over, and returns its report.
    ///
    /// # Errors
    /// [`LoadError`] when the client never came, or a thread could not be started.
    ///
    /// # Panics
    /// When a thread of the end panicked, which is a bug of this program.
    pub fn join(self) -> Result<EndReport, LoadError> {
        self.thread?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
