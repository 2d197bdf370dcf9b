//! Arrays that programs and this process share (`BPF_MAP_TYPE_ARRAY`): numbers of 64 bit by index.
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use super::{Command, NAME_LENGTH, call, object_name, own};

/// `BPF_MAP_TYPE_ARRAY`.
const ARRAY: u32 = 2;

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

/// The same for commands on one element.
#[repr(C)]
#[derive(Default)]
struct ElementAttributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// An array of 64-bit numbers in the kernel, all 0 at first. It lives as long as this, a program that names it, or a link.
#[derive(Debug)]
pub struct ArrayMap {
    descriptor: OwnedFd,
    entries: u32,
}

impl ArrayMap {
    /// An array of `entries` numbers. `name` is what bpftool(8) shows; 15 bytes of it are kept.
    ///
    /// # Errors
    /// `EPERM` without CAP_BPF, `ENOMEM`, `EINVAL` for no entries.
    pub fn new(name: &str, entries: u32) -> io::Result<Self> {
        let mut attributes = CreateAttributes {
            map_type: ARRAY,
            key_size: size_of::<u32>() as u32,
            value_size: size_of::<u64>() as u32,
            max_entries: entries,
            map_name: object_name(name),
            ..CreateAttributes::default()
        };
        // SAFETY: the structure is that of the command, and holds no address.
        let descriptor = unsafe { call(Command::MapCreate, &mut attributes) }?;
        // SAFETY: the kernel has just opened it for us.
        let descriptor = unsafe { own(descriptor) };
        Ok(Self { descriptor, entries })
    }

    /// How many numbers it has.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// The number at `index`.
    ///
    /// # Errors
    /// `ENOENT` beyond the end.
    pub fn read(&self, index: u32) -> io::Result<u64> {
        let mut value = 0_u64;
        let mut attributes = ElementAttributes {
            map: self.descriptor.as_raw_fd() as u32,
            key: (&raw const index) as u64,
            value: (&raw mut value) as u64,
            ..ElementAttributes::default()
        };
        // SAFETY: the structure is that of the command; key and value are live locals of the sizes the map was made with.
        unsafe { call(Command::MapLookup, &mut attributes) }?;
        Ok(value)
    }

    /// Sets the number at `index`.
    ///
    /// # Errors
    /// `E2BIG` beyond the end.
    pub fn write(&self, index: u32, value: u64) -> io::Result<()> {
        let mut attributes = ElementAttributes {
            map: self.descriptor.as_raw_fd() as u32,
            key: (&raw const index) as u64,
            value: (&raw const value) as u64,
            ..ElementAttributes::default()
        };
        // SAFETY: the structure is that of the command; key and value are live locals of the sizes the map was made with.
        unsafe { call(Command::MapUpdate, &mut attributes) }?;
        Ok(())
    }
}
