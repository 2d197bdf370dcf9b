//! Round trips with time stamps. Both kernels stamp a part of the requests; the other requests show the cost of the stamps within
//! the same trial.
//!
//! The stamped response carries the server's times. Its own transmit stamp is known only after it has left, so the next stamped
//! response carries that. Kernels use the realtime clock; all stamps are converted to the monotonic clock of their host, so a clock
//! step shifts no figure.
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
