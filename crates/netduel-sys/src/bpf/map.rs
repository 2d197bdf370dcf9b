//! Maps shared by programs and this process: 64-bit numbers by index (`BPF_MAP_TYPE_ARRAY`), the same for each core
//! (`BPF_MAP_TYPE_PERCPU_ARRAY`), by another number (`BPF_MAP_TYPE_HASH`), and AF_XDP sockets by queue (`BPF_MAP_TYPE_XSKMAP`).
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use super::call::{Command, NAME_LENGTH, call, object_name, own};

/// Kinds of map (include/uapi/linux/bpf.h, `enum bpf_map_type`).
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const PER_CORE_ARRAY: u32 = 6;
const SOCKETS: u32 = 17;

/// A map that code can refer to.
pub trait Map {
    /// Its descriptor.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// The head of `union bpf_attr` for `BPF_MAP_CREATE`.
#[repr(C)]
#[derive(Default)]
struct CreateAttributes {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map: u32,
    numa_node: u32,
    map_name: [u8; NAME_LENGTH],
}

/// The same for commands about one element.
#[repr(C)]
#[derive(Default)]
struct ElementAttributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// An array of 64-bit numbers in the kernel, initially 0. It exists as long as this, a program that uses it, or a link.
#[derive(Debug)]
pub struct ArrayMap {
    descriptor: OwnedFd,
    entries: u32,
}

impl ArrayMap {
    /// An array of `entries` numbers. `name` is shown by bpftool(8), at most 15 bytes.
    ///
    /// # Errors
    /// `EPERM` without CAP_BPF, `ENOMEM`, `EINVAL` for no entries.
    pub fn new(name: &str, entries: u32) -> io::Result<Self> {
        Ok(Self { descriptor: create(name, ARRAY, (KEY_INDEX, size_of::<u64>()), entries)?, entries })
    }

    /// Number of entries.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// The number at `index`.
    ///
    /// # Errors
    /// `ENOENT` beyond the end.
    pub fn read(&self, index: u32) -> io::Result<u64> {
        let mut value = [0_u64];
        // SAFETY: one number is what a value of this map has.
        unsafe { look_up(&self.descriptor, index, &mut value) }?;
        Ok(value[0])
    }

    /// Sets the number at `index`.
    ///
    /// # Errors
    /// `E2BIG` beyond the end.
    pub fn write(&self, index: u32, value: u64) -> io::Result<()> {
        // SAFETY: an index and one number are what this map was made with.
        unsafe { update(&self.descriptor, &index, &value) }
    }
}

impl Map for ArrayMap {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// An array of 64-bit numbers for each core, so that counting causes no cache line transfers between cores.
#[derive(Debug)]
pub struct PerCoreArray {
    descriptor: OwnedFd,
    entries: u32,
    cores: usize,
}

impl PerCoreArray {
    /// As [`ArrayMap::new`].
    ///
    /// # Errors
    /// As there; `Unsupported` when the kernel does not list its possible cores.
    pub fn new(name: &str, entries: u32) -> io::Result<Self> {
        let descriptor = create(name, PER_CORE_ARRAY, (KEY_INDEX, size_of::<u64>()), entries)?;
        Ok(Self { descriptor, entries, cores: possible_cores()? })
    }

    /// Number of entries for each core.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// The numbers at `index`, one for each possible core, in order.
    ///
    /// # Errors
    /// `ENOENT` beyond the end.
    pub fn read(&self, index: u32) -> io::Result<Vec<u64>> {
        let mut values = vec![0; self.cores];
        // SAFETY: the kernel writes a number of 64 bit for each possible core, which is how many there are.
        unsafe { look_up(&self.descriptor, index, &mut values) }?;
        Ok(values)
    }
}

impl Map for PerCoreArray {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// AF_XDP sockets by their queue, for [`super::Helper::RedirectMap`].
#[derive(Debug)]
pub struct SocketMap {
    descriptor: OwnedFd,
}

impl SocketMap {
    /// With capacity for this number of queues.
    ///
    /// # Errors
    /// As [`ArrayMap::new`].
    pub fn new(name: &str, queues: u32) -> io::Result<Self> {
        Ok(Self { descriptor: create(name, SOCKETS, (KEY_INDEX, size_of::<u32>()), queues)? })
    }

    /// Redirects the frames of this queue to this socket, until it is closed.
    ///
    /// # Errors
    /// `E2BIG` beyond the last queue, `EOPNOTSUPP` when it is not an AF_XDP socket.
    pub fn put(&self, queue: u32, socket: impl AsFd) -> io::Result<()> {
        let value = socket.as_fd().as_raw_fd();
        // SAFETY: an index and one descriptor are what this map was made with.
        unsafe { update(&self.descriptor, &queue, &value) }
    }
}

impl Map for SocketMap {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// 64-bit numbers by 64-bit keys.
#[derive(Debug)]
pub struct HashMap {
    descriptor: OwnedFd,
}

impl HashMap {
    /// With this capacity.
    ///
    /// # Errors
    /// As [`ArrayMap::new`].
    pub fn new(name: &str, entries: u32) -> io::Result<Self> {
        Ok(Self { descriptor: create(name, HASH, (size_of::<u64>(), size_of::<u64>()), entries)? })
    }

    /// Sets the number of `key`.
    ///
    /// # Errors
    /// `E2BIG` when the map is full.
    pub fn write(&self, key: u64, value: u64) -> io::Result<()> {
        // SAFETY: two numbers of 64 bit are what this map was made with.
        unsafe { update(&self.descriptor, &key, &value) }
    }
}

impl Map for HashMap {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Bytes of an index.
const KEY_INDEX: usize = size_of::<u32>();

fn create(name: &str, map_type: u32, (key, value): (usize, usize), entries: u32) -> io::Result<OwnedFd> {
    let mut attributes = CreateAttributes {
        map_type,
        key_size: key as u32,
        value_size: value as u32,
        max_entries: entries,
        map_name: object_name(name),
        ..CreateAttributes::default()
    };
    // SAFETY: the structure is that of the command, and holds no address.
    let descriptor = unsafe { call(Command::MapCreate, &mut attributes) }?;
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { own(descriptor) })
}

/// Reads the value at `index`.
///
/// # Safety
/// A value of the map is as long as `values`, or shorter.
unsafe fn look_up(map: &OwnedFd, index: u32, values: &mut [u64]) -> io::Result<()> {
    let mut attributes = ElementAttributes {
        map: map.as_raw_fd() as u32,
        key: (&raw const index) as u64,
        value: values.as_mut_ptr() as u64,
        ..ElementAttributes::default()
    };
    // SAFETY: the structure is that of the command; the key is a live local, and the caller vouches for the length of the value.
    unsafe { call(Command::MapLookup, &mut attributes) }?;
    Ok(())
}

/// Sets the value of a key.
///
/// # Safety
/// Key and value have the sizes of the map.
unsafe fn update<K, V>(map: &OwnedFd, key: &K, value: &V) -> io::Result<()> {
    let mut attributes = ElementAttributes {
        map: map.as_raw_fd() as u32,
        key: std::ptr::from_ref(key) as u64,
        value: std::ptr::from_ref(value) as u64,
        ..ElementAttributes::default()
    };
    // SAFETY: the structure is that of the command; key and value are borrowed, and the caller vouches for their sizes.
    unsafe { call(Command::MapUpdate, &mut attributes) }?;
    Ok(())
}

/// Number of possible cores, including those that can be added later (`/sys/devices/system/cpu/possible`): a map has a value for each.
fn possible_cores() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|number| number.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| {
        io::Error::new(io::ErrorKind::Unsupported, "the kernel does not list its possible cores")
    })
}
