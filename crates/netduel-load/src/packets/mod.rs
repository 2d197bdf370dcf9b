//! Kernel bypass for datagrams: the sender writes whole frames, the receiver reads or counts them before the network stack. The
//! handshake runs over ordinary sockets, and the frames are those that these sockets would send, so ports, tokens and accounting
//! are the same for all engines.
mod attachment;
pub(crate) mod bypass;
mod bypass_path;
mod frame;
mod kernel_generator;
mod programs;
mod receiver;
pub(crate) mod sender;

pub use attachment::Attachment;
pub use bypass_path::BypassPath;
pub use frame::payload as frame_payload;
