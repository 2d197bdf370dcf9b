//! Frames past the network stack (AF_XDP, Documentation/networking/af_xdp.rst): a piece of memory that is shared with the kernel
//! and four rings that say whose each frame of it is. One socket serves one queue of one interface. Which frames come here is
//! said by a program on the interface and an [`crate::bpf::SocketMap`].
pub mod attachment;
mod ring;
mod ring_memory;
mod socket;
mod umem;

pub use self::socket::{Counters, Settings, XdpSocket, ZeroCopy, no_room};
