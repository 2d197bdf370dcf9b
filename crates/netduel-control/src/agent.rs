//! The agent's loop: messages in, work done, messages out. The caller provides the work ([`Work`]) and the clock.
//!
//! It ends at the end of its input, at a limit that the coordinator set, or at a protocol error. In every case it restores the host.
mod session;
mod work;

use std::io::{Read, Write};
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::Duration;

pub use crate::protocol::{Bounds, FailureKind};
pub use session::{AgentError, Progress, Session};
pub use work::{Clock, Input, Waker, Work, WorkError};

/// Serves one coordinator until its end; `program` is the name and version of this program. Traffic is stopped and treatments
/// are undone in every case, also when the work panics.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write,
    work: &mut dyn Work,
    program: &str,
    clock: &dyn Clock,
) -> Result<(), AgentError> {
    serve_within(Bounds::default(), input, output, work, program, clock)
}

/// As [`serve`], for a coordinator whose requests are limited by `bounds`.
pub fn serve_within(
    bounds: Bounds,
    input: impl Read + Send + 'static,
    output: impl Write,
    work: &mut dyn Work,
    program: &str,
    clock: &dyn Clock,
) -> Result<(), AgentError> {
    let (sender, receiver) = work::inputs();
    let waker = Waker::new(sender.clone());
    std::thread::Builder::new()
        .name("control-in".to_owned())
        .spawn(move || read_all(input, &sender))
        .map_err(AgentError::Thread)?;
    let mut session = Session::new(output, work, waker, clock, (program, bounds));
    loop {
        let wait_ns = session.deadline_ns().saturating_sub(clock.now_ns());
        let progress = match receiver.recv_timeout(Duration::from_nanos(wait_ns)) {
            Ok(input) => session.input(input)?,
            Err(RecvTimeoutError::Timeout) => session.time_passed()?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        if progress == Progress::Ended {
            return Ok(());
        }
    }
}

/// Reads until the end. A coordinator that sends more than the agent takes is not read meanwhile.
fn read_all(mut input: impl Read, sender: &SyncSender<Input>) {
    let mut buffer = [0; 16 << 10];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                if sender.send(Input::Bytes(buffer[..read].to_vec())).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    drop(sender.send(Input::End));
}
