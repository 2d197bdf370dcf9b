//! Datagrams past the network stack: the sender writes whole frames, the receiver takes or counts them before the stack does. Flows
//! are greeted over their sockets as ever, and the frames are those that these sockets would send, so that ports, tokens and
//! accounting are the same for all engines.
pub(crate) mod bypass;
mod bypass_path;
mod frame;
mod kernel_generator;
mod programs;
mod receiver;
pub(crate) mod sender;

pub use bypass_path::BypassPath;
