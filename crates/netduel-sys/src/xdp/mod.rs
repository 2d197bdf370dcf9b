//! Kernel bypass with AF_XDP (Documentation/networking/af_xdp.rst): memory that is shared with the kernel, and four rings that hand
//! each frame of it from one side to the other. One socket serves one queue of one interface. A program on the interface and an
//! [`crate::bpf::SocketMap`] decide which frames come here.
pub mod attachment;
mod ring;
mod ring_memory;
mod socket;
mod umem;

pub use self::socket::{Counters, Settings, XdpSocket, ZeroCopy, no_room};
