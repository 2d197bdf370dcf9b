//! One reading of all counters that are compared around a trial: raw bytes with a time stamp, parsed only afterwards.
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use netduel_model::observation::HostIdentity;
use netduel_model::snapshot::LOOPBACK;
use netduel_sys::clock::{monotonic_ns, realtime_ns};
use netduel_sys::usage::{Usage, of_this_process};

use crate::bus_address::{bus_address, bus_address_in_class};
use crate::error::HostError;
use crate::identity;
use crate::link::{Link, links};
use crate::source::{DeviceSource, LinkSource, Sources};

/// Retries when the number of a driver's counters changes during the reading.
const ATTEMPTS: usize = 3;
/// Growth of the buffer of a file.
const CHUNK: usize = 16 << 10;

/// Counters of one driver.
#[derive(Debug, Clone, Default)]
pub(crate) struct DriverCounters {
    pub index: u32,
    pub names: Arc<Vec<String>>,
    pub values: Vec<u64>,
}

/// Files and lists at one point in time. A missing file is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
    pub usage: Usage,
    pub stat: Vec<u8>,
    pub interrupts: Vec<u8>,
    pub softnet: Vec<u8>,
    pub snmp: Vec<u8>,
    pub snmp6: Vec<u8>,
    pub netstat: Vec<u8>,
    pub links: Vec<u8>,
    pub queueing: Vec<u8>,
    pub drivers: Vec<DriverCounters>,
    /// Index, bus and name of devices whose bus the kernel does not report with the link.
    pub places: Vec<(u32, String, String)>,
}

impl Reading {
    /// The links, each with the bus of its device if known.
    pub fn present(&self) -> Vec<Link> {
        let mut present = links(&self.links);
        for link in &mut present {
            if let Some((_, bus, name)) = self.places.iter().find(|(index, ..)| *index == link.index) {
                (link.bus, link.device) = (Some(bus.clone()), Some(name.clone()));
            }
        }
        present
    }
}

/// A file that is opened once and read from its start each time.
struct Source {
    path: PathBuf,
    file: Option<File>,
}

impl Source {
    /// Absent when the file does not exist or this user may not read it.
    fn open(root: &Path, below: &str) -> Result<Self, HostError> {
        let path = root.join(below);
        let file = match File::open(&path) {
            Ok(file) => Some(file),
            Err(cause)
                if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                None
            }
            Err(cause) => return Err(HostError::Read { path, cause }),
        };
        Ok(Self { path, file })
    }

    /// Replaces `into` by the contents.
    fn read(&self, into: &mut Vec<u8>) -> Result<(), HostError> {
        let Some(file) = &self.file else {
            into.clear();
            return Ok(());
        };
        into.resize(into.capacity().max(CHUNK), 0);
        let mut length = 0;
        loop {
            match file.read_at(&mut into[length..], length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(HostError::Read { path: self.path.clone(), cause }),
            }
            if into.len() - length < CHUNK / 4 {
                into.resize(into.len() + CHUNK, 0);
            }
        }
        into.truncate(length);
        Ok(())
    }
}

/// The open files and sockets of an observer.
pub(crate) struct Reader {
    stat: Source,
    interrupts: Source,
    softnet: Source,
    snmp: Source,
    snmp6: Source,
    netstat: Source,
    links: Box<dyn LinkSource>,
    drivers: Box<dyn DeviceSource>,
    root: PathBuf,
    /// Names by interface index; an empty list for a device without counters.
    names: HashMap<u32, Arc<Vec<String>>>,
}

impl Reader {
    pub fn new(sources: Sources) -> Result<Self, HostError> {
        let Sources { root, links, devices, .. } = sources;
        // `/proc/net` shows the namespace of the process's first thread; `thread-self` that of the reader.
        let network = |name: &str| Source::open(&root, &format!("proc/thread-self/net/{name}"));
        Ok(Self {
            stat: Source::open(&root, "proc/stat")?,
            interrupts: Source::open(&root, "proc/interrupts")?,
            softnet: network("softnet_stat")?,
            snmp: network("snmp")?,
            snmp6: network("snmp6")?,
            netstat: network("netstat")?,
            links,
            drivers: devices,
            root,
            names: HashMap::new(),
        })
    }

    /// The reading before the traffic: values that are compared with the clock are read last.
    pub fn before(&mut self, reading: &mut Reading) -> Result<(), HostError> {
        self.files(reading)?;
        self.devices(reading)?;
        self.stat.read(&mut reading.stat)?;
        stamp(reading)
    }

    /// The reading after the traffic, in the opposite order, so that the work of both readings is outside the interval. `drained` returns when
    /// the packets of the traffic have left the queues of this host: counters of interfaces are read after it, and those that are compared
    /// with the clock before it.
    pub fn after(
        &mut self,
        reading: &mut Reading,
        drained: impl FnOnce() -> Result<(), HostError>,
    ) -> Result<(), HostError> {
        stamp(reading)?;
        self.stat.read(&mut reading.stat)?;
        drained()?;
        self.devices(reading)?;
        self.files(reading)
    }

    fn files(&mut self, reading: &mut Reading) -> Result<(), HostError> {
        self.interrupts.read(&mut reading.interrupts)?;
        self.softnet.read(&mut reading.softnet)?;
        self.snmp.read(&mut reading.snmp)?;
        self.snmp6.read(&mut reading.snmp6)?;
        self.netstat.read(&mut reading.netstat)
    }

    /// The links' counters and those of their drivers.
    fn devices(&mut self, reading: &mut Reading) -> Result<(), HostError> {
        let list = &mut reading.links;
        self.links.links(list).map_err(|cause| HostError::List { what: "links", cause })?;
        let present = links(list);
        // A kernel without queueing disciplines has none that could drop anything.
        if self.links.queueing(&mut reading.queueing).is_err() {
            reading.queueing.clear();
        }
        self.names.retain(|index, _| present.iter().any(|link| link.index == *index));
        reading.drivers.clear();
        reading.places.clear();
        for link in present.iter().filter(|link| link.name != LOOPBACK) {
            reading.drivers.extend(self.driver(link));
            reading.places.extend(self.unknown_bus_address(link));
        }
        Ok(())
    }

    /// The identity of the host, with the links and cores of a reading.
    pub fn identity(&mut self, reading: &Reading) -> HostIdentity {
        identity::of(&self.root, &reading.present(), &reading.stat, self.drivers.as_mut())
    }

    /// The bus of a device, on kernels before 5.14. A link with a kind has none.
    fn unknown_bus_address(&mut self, link: &Link) -> Option<(u32, String, String)> {
        if link.bus.is_some() || link.kind.is_some() {
            return None;
        }
        let mut from_driver =
            || self.drivers.driver(&link.name).ok().and_then(|info| bus_address(&self.root, &info.bus));
        let (bus, name) = bus_address_in_class(&self.root, link)
            .or_else(|| from_driver().map(|place| (place.bus.to_owned(), place.name)))?;
        Some((link.index, bus, name))
    }

    fn names_of(&mut self, link: &Link) -> Arc<Vec<String>> {
        let drivers = &mut self.drivers;
        let read = || Arc::new(drivers.statistic_names(&link.name).unwrap_or_default());
        Arc::clone(self.names.entry(link.index).or_insert_with(read))
    }

    /// The driver's counters; absent when it has none, or the device disappears during the call.
    fn driver(&mut self, link: &Link) -> Option<DriverCounters> {
        let mut values = Vec::new();
        for _ in 0..ATTEMPTS {
            let names = self.names_of(link);
            if names.is_empty() {
                return None;
            }
            self.drivers.statistics(&link.name, names.len(), &mut values).ok()?;
            if values.len() == names.len() {
                return Some(DriverCounters { index: link.index, names, values });
            }
            self.names.remove(&link.index);
        }
        None
    }
}

fn stamp(reading: &mut Reading) -> Result<(), HostError> {
    let path = || PathBuf::from("getrusage(2)");
    reading.usage = of_this_process().map_err(|cause| HostError::Read { path: path(), cause })?;
    reading.monotonic_ns = monotonic_ns();
    reading.realtime_ns = realtime_ns();
    Ok(())
}
