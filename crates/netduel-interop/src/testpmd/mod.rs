//! DPDK's testpmd, driven as a child: its command line, its prompt, its telemetry socket, and what its statistics mean.
//!
//! Commands go in by a pipe, so that testpmd ends by itself when that is closed; its words come out of a pseudo-terminal, because
//! before a pipe it holds them back until its end. Nothing here waits for a time to pass: readiness is the prompt.
//! `docs/design/0020-dpdk.md` has the reasons.
mod command;
mod error;
mod forward;
mod program;
mod prompt;
mod running;
mod telemetry;
mod version;

pub use command::{Command, Cores, Device, FRAME_LEN_MIN, Memory, Mode};
pub use error::{DpdkError, Ending};
pub use forward::{ForwardCounts, Forwarded, StreamCounts};
pub use program::{ForwardingCore, Testpmd};
pub use running::{Notify, Running, Traffic};
pub use telemetry::{PortInfo, PortStats, Telemetry};
pub use version::Version;
