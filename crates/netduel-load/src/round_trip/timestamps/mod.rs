//! Round trips with time stamps: some requests are stamped by both kernels when they are sent and received, and the rest of
//! them are not, so that the stamps' cost can be seen within one trial.
//!
//! The server's times travel back in the stamped response. Its transmit stamp is known only when the response has left, so it
//! travels with the next stamped one. Kernels stamp on the wall clock; everything here is brought to the monotonic clock
//! of its host, so a step of the wall clock moves no figure.
mod clock_id;
mod collector;
mod parts;
mod realtime_offset;
mod request_stamps;
mod responder;
mod response_stamps;
mod server_times;
mod stamp_keys;
mod stamped_calls;
mod transport;

pub(super) use responder::StampedResponder;
pub(super) use transport::{of_datagrams, of_stream};
