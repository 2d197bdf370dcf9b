//! DPDK's testpmd as a child process: its command line, its prompt, its telemetry socket, and its statistics.
//!
//! Commands go through a pipe, so that testpmd ends when it is closed. Output comes from a pseudo-terminal, because testpmd
//! buffers output to a pipe until its end. Nothing here sleeps: readiness is the prompt. `docs/design/0020-dpdk.md` has the
//! reasons.
mod command;
mod deadline;
mod error;
mod forward;
mod program;
mod prompt;
mod prompt_output;
mod running;
mod telemetry;
mod version;

pub use command::{Command, Cores, Device, FRAME_LEN_MIN, Memory, Mode};
pub use error::{DpdkError, Ending};
pub use forward::{ForwardCounts, Forwarded, StreamCounts};
pub use program::{ForwardingCore, Testpmd};
pub use prompt_output::{PromptOutput, without_echo};
pub use running::{Notify, Running, Traffic};
pub use telemetry::{PortInfo, PortStats, Telemetry};
pub use version::Version;
