//! Kernel bypass with AF_XDP (Documentation/networking/af_xdp.rst): memory shared with the kernel, and four rings that pass the
//! ownership of each frame. One socket serves one queue of one interface. A program on the interface and a
//! [`crate::bpf::SocketMap`] decide which frames it receives.
pub mod attachment;
mod ring;
mod ring_memory;
mod socket;
mod umem;

pub use self::socket::{Counters, Settings, XdpSocket, ZeroCopy, no_room};
