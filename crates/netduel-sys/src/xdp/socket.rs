//! The socket: it owns memory and rings, so that at any time either the kernel or one closure has access to a frame.
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::ring::{Consumer, Producer};
use super::ring_memory::Mapping;
use super::umem::{FRAME, Umem};
use crate::{busy_poll, clock, socket_option};

/// Whether frames are copied between the memory of the driver and of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZeroCopy {
    /// Without copies if the driver supports it.
    #[default]
    Auto,
    /// With copies; every driver supports it.
    Never,
    /// Without copies, or opening fails.
    Always,
}

/// Settings of a socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Index of the interface.
    pub interface: u32,
    /// Its queue.
    pub queue: u32,
    /// Frames for sending, a power of two; 0 for a socket that only receives.
    pub send_frames: u32,
    /// Frames for receiving, a power of two; 0 for a socket that only sends.
    pub receive_frames: u32,
    /// Whether frames may or must be shared with the driver.
    pub zero_copy: ZeroCopy,
    /// Microseconds that a system call polls the driver (`SO_PREFER_BUSY_POLL`, `SO_BUSY_POLL`); `None` leaves the driver to its
    /// interrupts.
    pub busy_poll_us: Option<u32>,
}

/// The kernel's counters of a socket since it was opened (`XDP_STATISTICS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Dropped for another reason than those below, too long for a frame for example.
    pub rx_dropped: u64,
    /// Dropped because the receive ring was full: the program was too slow.
    pub rx_ring_full: u64,
    /// Times that no free frame was available for receiving.
    pub fill_ring_empty: u64,
    /// Invalid frames in the transmit ring.
    pub tx_invalid: u64,
    /// Times that the driver found the transmit ring empty.
    pub tx_ring_empty: u64,
}

/// Time in which a queue may still belong to a closed socket: a worker of the kernel releases it, which may be late on a busy machine
/// (`xp_release_deferred` in net/xdp/xsk_buff_pool.c). There is no notification, so binding is tried again.
const RELEASE_NS: u64 = 10_000_000_000;
const RELEASE_PAUSE_NS: u64 = 1_000_000;

/// An AF_XDP socket on one queue.
#[derive(Debug)]
pub struct XdpSocket {
    // The socket is closed before its memory is unmapped: fields are dropped in this order.
    descriptor: OwnedFd,
    fill: Producer<Mapping<u64>>,
    completion: Consumer<Mapping<u64>>,
    received: Option<Consumer<Mapping<libc::xdp_desc>>>,
    outgoing: Option<Producer<Mapping<libc::xdp_desc>>>,
    /// Addresses of free frames for sending.
    free: Vec<u64>,
    memory: Umem,
    is_zero_copy: bool,
    is_preferred: bool,
}

impl XdpSocket {
    /// Opens a socket in the calling thread's network namespace. It receives nothing until a program redirects frames to it.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW (and CAP_BPF for the program), `ENODEV` without the interface, `EINVAL` without the queue or for
    /// numbers that are no powers of two, `EBUSY` when the queue has another socket for longer than ten seconds, `EOPNOTSUPP` without zero-copy where
    /// it is required, `ENOBUFS` beyond RLIMIT_MEMLOCK.
    pub fn open(settings: &Settings) -> io::Result<Self> {
        let Settings { send_frames, receive_frames, .. } = *settings;
        let invalid = |count: u32| count != 0 && !count.is_power_of_two();
        if invalid(send_frames) || invalid(receive_frames) || (send_frames | receive_frames) == 0 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let descriptor = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let memory = Umem::new(send_frames + receive_frames)?;
        register(&descriptor, &memory)?;
        // Both rings of the memory are required, even when one of them stays empty.
        let (fills, completions) = (receive_frames.max(1), send_frames.max(1));
        set(&descriptor, libc::XDP_UMEM_FILL_RING, &fills)?;
        set(&descriptor, libc::XDP_UMEM_COMPLETION_RING, &completions)?;
        if receive_frames > 0 {
            set(&descriptor, libc::XDP_RX_RING, &receive_frames)?;
        }
        if send_frames > 0 {
            set(&descriptor, libc::XDP_TX_RING, &send_frames)?;
        }
        let offsets: libc::xdp_mmap_offsets = get(&descriptor, libc::XDP_MMAP_OFFSETS)?;
        let fd = descriptor.as_fd();
        let fill = Mapping::new(fd, libc::XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, fills)?;
        let completion = Mapping::new(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, completions)?;
        let received = (receive_frames > 0)
            .then(|| Mapping::new(fd, libc::XDP_PGOFF_RX_RING as u64, &offsets.rx, receive_frames))
            .transpose()?;
        let outgoing = (send_frames > 0)
            .then(|| Mapping::new(fd, libc::XDP_PGOFF_TX_RING as u64, &offsets.tx, send_frames))
            .transpose()?;
        // The first frames are for sending, the others for receiving; they are not exchanged.
        let address = |frame: u32| u64::from(frame) * FRAME as u64;
        let free = (0..send_frames).map(address).collect();
        let mut socket = Self {
            descriptor,
            fill: Producer::new(fill),
            completion: Consumer::new(completion),
            received: received.map(Consumer::new),
            outgoing: outgoing.map(Producer::new),
            free,
            memory,
            is_zero_copy: false,
            is_preferred: false,
        };
        for frame in send_frames..socket.memory.frames() {
            socket.fill.put(address(frame));
        }
        socket.fill.submit();
        socket.bind(settings)?;
        Ok(socket)
    }

    fn bind(&mut self, settings: &Settings) -> io::Result<()> {
        let mode = match settings.zero_copy {
            ZeroCopy::Auto => 0,
            ZeroCopy::Never => libc::XDP_COPY,
            ZeroCopy::Always => libc::XDP_ZEROCOPY,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: mode | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: settings.interface,
            sxdp_queue_id: settings.queue,
            sxdp_shared_umem_fd: 0,
        };
        let pointer: *const libc::sockaddr_xdp = &raw const address;
        let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        let patience_ends = clock::monotonic_ns() + RELEASE_NS;
        loop {
            // SAFETY: `pointer` is to a live structure of `length` bytes, which the kernel only reads; the descriptor is open.
            let result = unsafe { libc::bind(self.descriptor.as_raw_fd(), pointer.cast(), length) };
            if result == 0 {
                break;
            }
            let error = io::Error::last_os_error();
            let now = clock::monotonic_ns();
            if error.raw_os_error() != Some(libc::EBUSY) || now > patience_ends {
                return Err(error);
            }
            clock::sleep_until(now + RELEASE_PAUSE_NS);
        }
        if let Some(microseconds) = settings.busy_poll_us {
            let length = Duration::from_micros(microseconds.into());
            self.is_preferred = busy_poll::enable(&self.descriptor, length)?.preferred;
        }
        let options: libc::xdp_options = get(&self.descriptor, libc::XDP_OPTIONS)?;
        self.is_zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(())
    }

    /// Whether driver and program share the frames.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Number of frames that can be written now.
    pub fn free_frames(&self) -> usize {
        self.free.len()
    }

    /// Writes up to `most` frames for sending: `write` receives the whole frame with its previous content and returns the new length.
    /// Returns the number of written frames; the kernel may need [`XdpSocket::kick`] to start.
    pub fn send(&mut self, most: usize, mut write: impl FnMut(&mut [u8]) -> usize) -> usize {
        let Some(outgoing) = &mut self.outgoing else { return 0 };
        let mut count = 0;
        while count < most && outgoing.has_room() {
            let Some(address) = self.free.pop() else { break };
            let length = write(self.memory.bytes_mut(address, FRAME)).min(FRAME);
            outgoing.put(libc::xdp_desc { addr: address, len: length as u32, options: 0 });
            count += 1;
        }
        if count > 0 {
            outgoing.submit();
        }
        count
    }

    /// Makes the kernel send the submitted frames, when it needs a wake-up. In copy mode it sends at most 32 frames per call, until
    /// the queue of the interface is full.
    ///
    /// # Errors
    /// `EAGAIN` and `EBUSY`: the queue is full or in use; call again. `ENOBUFS`: no memory. `ENETDOWN`.
    pub fn kick(&self) -> io::Result<()> {
        if !self.outgoing.as_ref().is_some_and(Producer::needs_wakeup) {
            return Ok(());
        }
        // SAFETY: the descriptor is open; without data and without an address nothing is read.
        let sent = unsafe {
            libc::sendto(
                self.descriptor.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Reclaims sent frames, and returns their number: these were passed to the driver.
    pub fn reclaim(&mut self) -> u32 {
        let Self { completion, free, .. } = self;
        completion.take(u32::MAX, |address| free.push(address))
    }

    /// Reads up to `most` received frames, and returns each to the kernel for reuse. Returns their number.
    pub fn receive(&mut self, most: u32, mut read: impl FnMut(&[u8])) -> u32 {
        let Self { received: Some(received), fill, memory, .. } = self else { return 0 };
        let count = received.take(most, |frame| {
            read(memory.bytes_mut(frame.addr, frame.len as usize));
            // The kernel needs the start of the frame. The ring has a free slot: each received frame has left it before.
            fill.put(frame.addr / FRAME as u64 * FRAME as u64);
        });
        if count > 0 {
            fill.submit();
        }
        count
    }

    /// Makes the kernel check for frames, when it needs a wake-up: with busy polling, or after it ran out of free frames.
    ///
    /// # Errors
    /// `EAGAIN` when there is none, `EBUSY`, `ENETDOWN`.
    pub fn poll_driver(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; without a buffer and without an address nothing is written.
        let got = unsafe {
            libc::recvfrom(
                self.descriptor.as_raw_fd(),
                std::ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        if got < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Whether receiving waits for [`XdpSocket::poll_driver`].
    pub fn receiver_needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }

    /// The kernel's counters.
    ///
    /// # Errors
    /// Errors of getsockopt(2).
    pub fn counters(&self) -> io::Result<Counters> {
        let statistics: libc::xdp_statistics = get(&self.descriptor, libc::XDP_STATISTICS)?;
        Ok(Counters {
            rx_dropped: statistics.rx_dropped,
            rx_ring_full: statistics.rx_ring_full,
            fill_ring_empty: statistics.rx_fill_ring_empty_descs,
            tx_invalid: statistics.tx_invalid_descs,
            tx_ring_empty: statistics.tx_ring_empty_descs,
        })
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The error of a full ring: `ENOBUFS`.
pub fn no_room() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOBUFS)
}

fn register(descriptor: &OwnedFd, memory: &Umem) -> io::Result<()> {
    let (addr, len) = memory.region();
    // SAFETY: the structure is integers, for all of which zero is a valid value.
    let mut region: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    region.addr = addr;
    region.len = len;
    region.chunk_size = FRAME as u32;
    set(descriptor, libc::XDP_UMEM_REG, &region)
}

/// A structure of the kernel that consists of integers only.
///
/// # Safety
/// Any bytes are a valid value.
unsafe trait Integers: Copy {}
// SAFETY: a C integer.
unsafe impl Integers for u32 {}
// SAFETY: a C structure of integers.
unsafe impl Integers for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Integers for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Integers for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl Integers for libc::xdp_options {}

fn set<T: Integers>(descriptor: &OwnedFd, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let pointer: *const T = value;
    // SAFETY: `pointer` is to a live value of `length` bytes, which the kernel only reads; the descriptor is open.
    let result =
        unsafe { libc::setsockopt(descriptor.as_raw_fd(), libc::SOL_XDP, name, pointer.cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A structure of which this kernel has a shorter form is extended with zeros.
fn get<T: Integers>(descriptor: &OwnedFd, name: i32) -> io::Result<T> {
    let mut bytes = vec![0_u8; size_of::<T>()];
    let read = socket_option::read_bytes(descriptor, libc::SOL_XDP, name, &mut bytes)?;
    // Before Linux 5.4 the offsets had no flags and another layout; such kernels are not supported.
    if name == libc::XDP_MMAP_OFFSETS && read < bytes.len() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "AF_XDP needs Linux 5.4 or later"));
    }
    // SAFETY: the bytes are as many as the type has, initialised, and any are a valid value of it.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
