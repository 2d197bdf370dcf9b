//! The ethtool ioctl (include/uapi/linux/ethtool.h): driver, counters, features, speed. Must hold no policy.
//!
//! `ETHTOOL_GSTRINGS` and `ETHTOOL_GSTATS` write as many entries as the driver has at that moment, whatever size the
//! caller names, so a device that gains queues between two calls would write past a heap buffer. All exchanges
//! therefore go through one mapping that ends in an inaccessible page: the kernel then answers `EFAULT`.
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use crate::link::{request, request_socket};

const GET_DRIVER_INFO: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_STRING_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const GET_LINK_SETTINGS: u32 = 0x4c;
/// String sets (`enum ethtool_stringset`).
const SET_STATISTICS_NAMES: u32 = 1;
const SET_FEATURE_NAMES: u32 = 4;
/// Bytes of one name (`ETH_GSTRING_LEN`).
const NAME_LEN: usize = 32;
/// Bytes of `struct ethtool_drvinfo`.
const DRIVER_INFO_LEN: usize = 196;
/// Bytes of `struct ethtool_link_settings` without its bit maps.
const LINK_SETTINGS_LEN: usize = 48;
/// Room for an exchange: 64 Ki names, an order of magnitude above the busiest NIC (about 60 counters on each of 128
/// queues). Pages that are not touched cost nothing.
const ROOM: usize = 2 << 20;
/// How often names and values are read anew when their number changes in between.
const ATTEMPTS: usize = 4;

/// `ethtool -i`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverInfo {
    /// Driver, for example `virtio_net`.
    pub driver: String,
    /// Firmware version; empty when the driver tells none.
    pub firmware: String,
    /// Where on the bus, for example `0000:00:04.0`; empty for virtual devices.
    pub bus: String,
}

/// One line of `ethtool -k`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name, for example `tx-tcp-segmentation`.
    pub name: String,
    /// Whether the device or the kernel keeps it as it is (`[fixed]`).
    pub fixed: bool,
    /// What was asked for last.
    pub requested: bool,
    /// What is in force.
    pub active: bool,
}

/// A socket and a piece of memory for exchanges with the drivers of one network namespace.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
    memory: GuardedMemory,
}

impl Ethtool {
    /// Opens the door to the drivers of the calling thread's network namespace.
    ///
    /// # Errors
    /// Without a descriptor or address space to spare.
    pub fn open() -> io::Result<Self> {
        Ok(Self { socket: request_socket()?, memory: GuardedMemory::new(ROOM)? })
    }

    /// Driver and place of an interface.
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

    /// Link speed in Mbit/s; `None` when the device does not know.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the device has no link settings.
    pub fn speed(&mut self, interface: &str) -> io::Result<Option<u32>> {
        // The first call asks with no room for bit maps and is answered with the negated number of words they need.
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

    /// The device's features (`ethtool -k`), in the kernel's order, unnamed bits left out.
    ///
    /// # Errors
    /// `ENODEV` without such an interface.
    pub fn features(&mut self, interface: &str) -> io::Result<Vec<Feature>> {
        let names = self.names(interface, SET_FEATURE_NAMES)?;
        let blocks = names.len().div_ceil(32);
        self.memory.clear(8 + blocks * 16);
        self.memory.set_word(4, blocks as u32);
        self.exchange(interface, GET_FEATURES)?;
        let bit = |index: usize, field: usize| {
            let word = self.memory.word(8 + (index / 32) * 16 + field * 4);
            word & (1 << (index % 32)) != 0
        };
        let features = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
        Ok(features
            .map(|(index, name)| Feature {
                name,
                // `struct ethtool_get_features_block`: available, requested, active, never_changed.
                fixed: !bit(index, 0) || bit(index, 3),
                requested: bit(index, 1),
                active: bit(index, 2),
            })
            .collect())
    }

    /// Asks for features by their kernel names (`ethtool -K`), all in one request. Whether the device did as asked has
    /// to be read back: features depend on each other.
    ///
    /// # Errors
    /// `EINVAL` when a name is not the kernel's, `EPERM` without `CAP_NET_ADMIN`, whatever the driver answers.
    pub fn request_features(&mut self, interface: &str, wanted: &[(String, bool)]) -> io::Result<()> {
        let names = self.names(interface, SET_FEATURE_NAMES)?;
        let blocks = names.len().div_ceil(32);
        self.memory.clear(8 + blocks * 8);
        self.memory.set_word(4, blocks as u32);
        for (name, enabled) in wanted {
            let index = names
                .iter()
                .position(|known| known == name)
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            let (at, mask) = (8 + (index / 32) * 8, 1 << (index % 32));
            self.memory.set_word(at, self.memory.word(at) | mask);
            if *enabled {
                self.memory.set_word(at + 4, self.memory.word(at + 4) | mask);
            }
        }
        self.exchange(interface, SET_FEATURES)
    }

    /// A set of names, empty ones kept because their place is their number.
    fn names(&mut self, interface: &str, set: u32) -> io::Result<Vec<String>> {
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

    fn count(&mut self, interface: &str, set: u32) -> io::Result<usize> {
        self.memory.clear(20);
        self.memory.bytes_mut()[8..16].copy_from_slice(&(1u64 << set).to_ne_bytes());
        self.exchange(interface, GET_STRING_SET_INFO)?;
        let mask = self.memory.bytes()[8..16] != [0; 8];
        Ok(if mask { self.memory.word(16) as usize } else { 0 })
    }

    /// Runs the command at the head of the memory.
    fn exchange(&mut self, interface: &str, command: u32) -> io::Result<()> {
        let mut request = request(interface)?;
        self.memory.set_word(0, command);
        request.ifr_ifru.ifru_data = self.memory.start.as_ptr().cast();
        let argument = (&raw mut request).cast::<c_void>();
        // SAFETY: `argument` points to a live `ifreq` whose data pointer is the mapping. The kernel copies to and from
        // it in ascending order from its start, and a copy that would leave it meets the inaccessible page after it and
        // ends in EFAULT. `&mut self` keeps every reference into the mapping away during the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn too_large() -> io::Error {
    io::Error::other("the driver has more counters than there is room for")
}

/// The text before the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Private memory that is followed by a page nobody can touch.
#[derive(Debug)]
struct GuardedMemory {
    start: NonNull<u8>,
    len: usize,
    mapped: usize,
}

// SAFETY: the mapping belongs to this value alone and is not bound to the thread that made it.
unsafe impl Send for GuardedMemory {}

impl GuardedMemory {
    /// `len` is rounded up to whole pages.
    fn new(len: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let len = len.next_multiple_of(page);
        let mapped = len + page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without a wanted address the kernel chooses a free range, so no memory in use is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let memory = Self { start, len, mapped };
        // SAFETY: the first `len` bytes are ours since the call above; the last page keeps PROT_NONE.
        let result =
            unsafe { libc::mprotect(start.as_ptr().cast(), len, libc::PROT_READ | libc::PROT_WRITE) };
        if result == 0 { Ok(memory) } else { Err(io::Error::last_os_error()) }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are mapped readable and initialised (the kernel zeroes them) as long as `self`
        // lives, and only `&mut self` methods write to them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Zeroes the head of the memory.
    fn clear(&mut self, len: usize) {
        self.bytes_mut()[..len].fill(0);
    }

    fn word(&self, at: usize) -> u32 {
        self.bytes()[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn set_word(&mut self, at: usize, value: u32) {
        self.bytes_mut()[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
}

impl Drop for GuardedMemory {
    fn drop(&mut self) {
        // SAFETY: `start` and `mapped` are those of our own mapping, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_tells_its_features_and_no_counters() {
        let mut ethtool = Ethtool::open().unwrap();
        let features = ethtool.features("lo").unwrap();
        let loopback = features.iter().find(|feature| feature.name == "loopback").unwrap();
        assert!(loopback.active && loopback.fixed, "{loopback:?}");
        assert!(features.iter().any(|feature| !feature.fixed));
        assert_eq!(ethtool.statistic_names("lo").unwrap_or_default(), Vec::<String>::new());
    }

    #[test]
    fn a_missing_interface_is_named_as_such() {
        let mut ethtool = Ethtool::open().unwrap();
        assert_eq!(ethtool.driver("no-such-link").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(ethtool.features("no-such-link").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn a_feature_that_the_kernel_does_not_know_is_refused_before_anything_is_asked() {
        let mut ethtool = Ethtool::open().unwrap();
        let refused = ethtool.request_features("lo", &[("no-such-feature".to_owned(), true)]).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn the_kernel_cannot_write_past_the_memory() {
        let mut ethtool = Ethtool::open().unwrap();
        let mut short = GuardedMemory::new(1).unwrap();
        // The names of the features need some 2 KiB; they are asked for where 100 bytes are left.
        let room = short.len;
        for (field, value) in [GET_STRINGS, SET_FEATURE_NAMES, 0].into_iter().enumerate() {
            short.set_word(room - 100 + field * 4, value);
        }
        let mut wanted = request("lo").unwrap();
        // SAFETY: the offset lies within the mapping.
        let inside = unsafe { short.start.as_ptr().add(room - 100) };
        wanted.ifr_ifru.ifru_data = inside.cast();
        let argument = (&raw mut wanted).cast::<c_void>();
        // SAFETY: the kernel's copy meets the inaccessible page; that is what is tested.
        let result = unsafe { libc::ioctl(ethtool.socket.as_raw_fd(), libc::SIOCETHTOOL as _, argument) };
        let error = io::Error::last_os_error();
        assert_eq!((result, error.raw_os_error()), (-1, Some(libc::EFAULT)));
        assert!(ethtool.features("lo").is_ok());
    }

    #[test]
    fn the_door_may_be_carried_to_another_thread() {
        let mut ethtool = Ethtool::open().unwrap();
        std::thread::spawn(move || ethtool.features("lo").unwrap()).join().unwrap();
    }
}
