//! The ioctl, and the facts that it can only read: driver, link speed, counters.
//!
//! `ETHTOOL_GSTRINGS` and `ETHTOOL_GSTATS` write as many entries as the driver has at that time, regardless of the size of the
//! caller's buffer, so a device that gains queues between two calls would write past a heap buffer. All exchanges
//! therefore go through one mapping that ends in an inaccessible page: the kernel then answers `EFAULT`.
use std::ffi::c_void;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::link::{request, request_socket};

use super::memory::GuardedMemory;

const GET_DRIVER_INFO: u32 = 0x03;
pub(super) const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_STRING_SET_INFO: u32 = 0x37;
const GET_LINK_SETTINGS: u32 = 0x4c;
/// String sets (`enum ethtool_stringset`).
const SET_STATISTICS_NAMES: u32 = 1;
/// Bytes of one name (`ETH_GSTRING_LEN`).
const NAME_LEN: usize = 32;
/// Bytes of `struct ethtool_drvinfo`.
const DRIVER_INFO_LEN: usize = 196;
/// Bytes of `struct ethtool_link_settings` without its bit maps.
const LINK_SETTINGS_LEN: usize = 48;
/// Memory for an exchange: 64 Ki names, an order of magnitude above the busiest NIC (about 60 counters on each of 128
/// queues). Pages that are not touched cost nothing.
const ROOM: usize = 2 << 20;
/// Maximum number of attempts to read names and values when their number changes in between.
const ATTEMPTS: usize = 4;

/// `ethtool -i`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfo {
    /// Driver, for example `virtio_net`.
    pub driver: String,
    /// Firmware version; empty when the driver reports none.
    pub firmware: String,
    /// Bus address, for example `0000:00:04.0`; empty for virtual devices.
    pub bus: String,
}

/// A socket and a piece of memory for exchanges with the drivers of one network namespace.
#[derive(Debug)]
pub struct Ethtool {
    pub(super) device: Device,
    pub(super) memory: GuardedMemory,
}

/// Answers to requests: it gets the memory with the request in it and writes the answer over it, as a driver does.
pub type Answer = Box<dyn FnMut(&mut [u8]) -> io::Result<()> + Send>;

/// Who answers.
pub(super) enum Device {
    /// The drivers of a network namespace, by a socket in it.
    Kernel(OwnedFd),
    /// A function.
    Function(Answer),
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel(_) => "Kernel",
            Self::Function(_) => "Function",
        })
    }
}

impl Ethtool {
    /// Opens a socket to the drivers of the calling thread's network namespace.
    ///
    /// # Errors
    /// When no descriptor or address space is available.
    pub fn open() -> io::Result<Self> {
        Ok(Self { device: Device::Kernel(request_socket()?), memory: GuardedMemory::new(ROOM)? })
    }

    /// As [`Self::open`], with the answers of a function: those of a driver that this machine lacks, captured or invented.
    ///
    /// # Errors
    /// When no address space is available.
    pub fn answered_by(answer: Answer) -> io::Result<Self> {
        Ok(Self { device: Device::Function(answer), memory: GuardedMemory::new(ROOM)? })
    }

    /// Driver, firmware and bus address of an interface.
    ///
    /// # Errors
    /// `ENODEV` without such an interface, `EOPNOTSUPP` when the device has no driver information.
    pub fn driver(&mut self, interface: &str) -> io::Result<DriverInfo> {
        self.memory.clear(DRIVER_INFO_LEN);
        self.exchange(interface, GET_DRIVER_INFO)?;
        let bytes = self.memory.bytes();
        Ok(DriverInfo {
            driver: text(&bytes[4..36]),
            firmware: text(&bytes[68..100]),
            bus: text(&bytes[100..132]),
        })
    }

    /// Link speed in Mbit/s; `None` when the device does not report it.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the device has no link settings.
    pub fn speed(&mut self, interface: &str) -> io::Result<Option<u32>> {
        // The first call has no space for bit maps, so the kernel returns the negated number of words that they need.
        self.memory.clear(LINK_SETTINGS_LEN);
        self.exchange(interface, GET_LINK_SETTINGS)?;
        let words = self.memory.bytes()[15].cast_signed().unsigned_abs();
        self.memory.clear(LINK_SETTINGS_LEN + usize::from(words) * 3 * 4);
        self.memory.bytes_mut()[15] = words;
        self.exchange(interface, GET_LINK_SETTINGS)?;
        let speed = self.memory.word(4);
        Ok((speed != 0 && speed != u32::MAX).then_some(speed))
    }

    /// The names of the driver's counters (`ethtool -S`), in the driver's order.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the driver has none.
    pub fn statistic_names(&mut self, interface: &str) -> io::Result<Vec<String>> {
        self.names(interface, SET_STATISTICS_NAMES)
    }

    /// Reads the driver's counters into `values`, in the order of their names. `count` is the number of names; when the
    /// driver now has another number, `values` is left empty and the names have to be read again.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the driver has none.
    pub fn statistics(&mut self, interface: &str, count: usize, values: &mut Vec<u64>) -> io::Result<()> {
        values.clear();
        self.memory.clear(8);
        self.memory.set_word(4, count as u32);
        self.exchange(interface, GET_STATISTICS)?;
        if self.memory.word(4) as usize != count {
            return Ok(());
        }
        let bytes = self.memory.bytes().get(8..8 + count * 8).ok_or_else(too_large)?;
        values.extend(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_ne_bytes(*chunk)));
        Ok(())
    }

    /// A set of names, including empty ones, because the position is the number.
    pub(super) fn names(&mut self, interface: &str, set: u32) -> io::Result<Vec<String>> {
        for _ in 0..ATTEMPTS {
            let count = self.count(interface, set)?;
            if count == 0 {
                return Ok(Vec::new());
            }
            self.memory.clear(12);
            self.memory.set_word(4, set);
            self.memory.set_word(8, count as u32);
            self.exchange(interface, GET_STRINGS)?;
            if self.memory.word(8) as usize == count {
                let bytes = self.memory.bytes().get(12..12 + count * NAME_LEN).ok_or_else(too_large)?;
                return Ok(bytes.chunks_exact(NAME_LEN).map(text).collect());
            }
        }
        Err(io::Error::other("the driver's number of names changed at every reading"))
    }

    pub(super) fn count(&mut self, interface: &str, set: u32) -> io::Result<usize> {
        self.memory.clear(20);
        self.memory.bytes_mut()[8..16].copy_from_slice(&(1u64 << set).to_ne_bytes());
        self.exchange(interface, GET_STRING_SET_INFO)?;
        let mask = self.memory.bytes()[8..16] != [0; 8];
        Ok(if mask { self.memory.word(16) as usize } else { 0 })
    }

    /// Runs the command at the start of the memory.
    pub(super) fn exchange(&mut self, interface: &str, command: u32) -> io::Result<()> {
        let mut request = request(interface)?;
        self.memory.set_word(0, command);
        let socket = match &mut self.device {
            Device::Kernel(socket) => socket,
            Device::Function(answer) => return answer(self.memory.bytes_mut()),
        };
        request.ifr_ifru.ifru_data = self.memory.start().cast();
        let argument = (&raw mut request).cast::<c_void>();
        // SAFETY: `argument` points to a live `ifreq` whose data pointer is the mapping. The kernel copies to and from
        // it in ascending order from its start, and a copy that would leave it meets the inaccessible page after it and
        // ends in EFAULT. `&mut self` keeps every reference into the mapping away during the call.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

pub(super) fn too_large() -> io::Error {
    io::Error::other("the driver has more counters than there is room for")
}

/// The text before the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
