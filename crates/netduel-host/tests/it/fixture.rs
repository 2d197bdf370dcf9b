//! Trees of files, lists of links and drivers that represent a host. Numbers are in little-endian order, as captured.
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use netduel_host::{DeviceSource, FilterSource, LinkSource, Sources};
use netduel_sys::ethtool::{Channels, Coalesce, DriverInfo, Feature, Rings, Rss};
use netduel_sys::netlink::{RTM_NEWADDR, RTM_NEWLINK, Request};
use tempfile::TempDir;

/// `EOPNOTSUPP`.
const NOT_SUPPORTED: i32 = 95;
/// `EPERM`.
const NOT_PERMITTED: i32 = 1;

/// The current answers of the kernel of a host; may be changed between two readings.
#[derive(Default)]
pub struct Kernel {
    pub links: Vec<u8>,
    pub addresses: Vec<u8>,
    pub driver: BTreeMap<String, String>,
    /// Bus addresses.
    pub bus: BTreeMap<String, String>,
    pub speed: BTreeMap<String, u32>,
    pub features: BTreeMap<String, Vec<Feature>>,
    pub statistics: BTreeMap<String, Vec<(String, u64)>>,
    pub firmware: BTreeMap<String, String>,
    pub channels: BTreeMap<String, Channels>,
    pub rings: BTreeMap<String, Rings>,
    pub coalesce: BTreeMap<String, Coalesce>,
    pub rss: BTreeMap<String, Rss>,
    /// `RTM_NEWQDISC` messages; empty: no disciplines are listed.
    pub queueing: Vec<u8>,
    /// `RTM_NEWROUTE` messages.
    pub routes: Vec<u8>,
    /// Number of nftables rules; absent: listing them is not permitted.
    pub rules: Option<u32>,
}

/// A host made of files and a kernel.
pub struct Host {
    pub folder: TempDir,
    pub kernel: Arc<Mutex<Kernel>>,
}

struct Door(Arc<Mutex<Kernel>>);

impl Host {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), kernel: Arc::default() }
    }

    pub fn sources(&self) -> Sources {
        Sources {
            root: self.folder.path().to_owned(),
            links: Box::new(Door(Arc::clone(&self.kernel))),
            devices: Box::new(Door(Arc::clone(&self.kernel))),
            filter: Box::new(Door(Arc::clone(&self.kernel))),
            allowed: None,
            metadata: None,
        }
    }

    /// Writes a file, in place if a reader has it open.
    pub fn write(&self, below: &str, text: &str) {
        let path = self.folder.path().join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces files and lists by those of a captured tree.
    pub fn take(&self, tree: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured").join(tree);
        copy(&from, self.folder.path());
        let mut kernel = self.kernel.lock().unwrap();
        kernel.links = fs::read(from.join("links.bin")).unwrap();
        kernel.addresses = fs::read(from.join("addresses.bin")).unwrap();
    }

    pub fn set_statistics(&self, interface: &str, counters: &[(&str, u64)]) {
        let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        self.kernel.lock().unwrap().statistics.insert(interface.to_owned(), counters);
    }

    /// The one address of an interface.
    pub fn set_address(&self, index: u32, address: Ipv4Addr) {
        let mut body = [0; 8];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let message = Request::new(RTM_NEWADDR, 0, &body).bytes(2, &address.octets()).finish(0);
        self.kernel.lock().unwrap().addresses = message;
    }

    /// A driver, and the bus address of its device.
    pub fn set_driver(&self, interface: &str, driver: &str, bus: &str) {
        let mut kernel = self.kernel.lock().unwrap();
        kernel.driver.insert(interface.to_owned(), driver.to_owned());
        kernel.bus.insert(interface.to_owned(), bus.to_owned());
    }

    pub fn set_links(&self, links: &[Link]) {
        self.kernel.lock().unwrap().links = links.iter().flat_map(Link::message).collect();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_symlink() {
            let _ = fs::remove_file(&target);
            std::os::unix::fs::symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            // Overwrites the existing file, because an observer has it open.
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

fn absent() -> io::Error {
    io::Error::from_raw_os_error(NOT_SUPPORTED)
}

impl LinkSource for Door {
    fn links(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        into.clone_from(&self.0.lock().unwrap().links);
        Ok(())
    }
    fn addresses(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        into.clone_from(&self.0.lock().unwrap().addresses);
        Ok(())
    }
    fn queueing(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        into.clone_from(&self.0.lock().unwrap().queueing);
        if into.is_empty() { Err(absent()) } else { Ok(()) }
    }
    fn xdp(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        into.clear();
        Err(absent())
    }
    fn routes(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        into.clone_from(&self.0.lock().unwrap().routes);
        Ok(())
    }
}

impl FilterSource for Door {
    fn rules(&mut self) -> io::Result<u32> {
        self.0.lock().unwrap().rules.ok_or_else(|| io::Error::from_raw_os_error(NOT_PERMITTED))
    }
}

impl DeviceSource for Door {
    fn driver(&mut self, interface: &str) -> io::Result<DriverInfo> {
        let kernel = self.0.lock().unwrap();
        let driver = kernel.driver.get(interface).ok_or_else(absent)?.clone();
        let bus = kernel.bus.get(interface).cloned().unwrap_or_default();
        let firmware = kernel.firmware.get(interface).cloned().unwrap_or_default();
        Ok(DriverInfo { driver, bus, firmware })
    }
    fn speed(&mut self, interface: &str) -> io::Result<Option<u32>> {
        Ok(self.0.lock().unwrap().speed.get(interface).copied())
    }
    fn features(&mut self, interface: &str) -> io::Result<Vec<Feature>> {
        self.0.lock().unwrap().features.get(interface).cloned().ok_or_else(absent)
    }
    fn statistic_names(&mut self, interface: &str) -> io::Result<Vec<String>> {
        let kernel = self.0.lock().unwrap();
        let counters = kernel.statistics.get(interface).ok_or_else(absent)?;
        Ok(counters.iter().map(|(name, _)| name.clone()).collect())
    }
    fn statistics(&mut self, interface: &str, count: usize, values: &mut Vec<u64>) -> io::Result<()> {
        let kernel = self.0.lock().unwrap();
        let counters = kernel.statistics.get(interface).ok_or_else(absent)?;
        values.clear();
        if counters.len() == count {
            values.extend(counters.iter().map(|(_, value)| *value));
        }
        Ok(())
    }
    fn channels(&mut self, interface: &str) -> io::Result<Channels> {
        self.0.lock().unwrap().channels.get(interface).copied().ok_or_else(absent)
    }
    fn rings(&mut self, interface: &str) -> io::Result<Rings> {
        self.0.lock().unwrap().rings.get(interface).copied().ok_or_else(absent)
    }
    fn coalesce(&mut self, interface: &str) -> io::Result<Coalesce> {
        self.0.lock().unwrap().coalesce.get(interface).copied().ok_or_else(absent)
    }
    fn rss(&mut self, interface: &str) -> io::Result<Rss> {
        self.0.lock().unwrap().rss.get(interface).cloned().ok_or_else(absent)
    }
}

/// A listed link.
#[derive(Debug, Clone, Default)]
pub struct Link {
    pub index: u32,
    pub name: &'static str,
    /// As `veth`; hardware has none.
    pub kind: Option<&'static str>,
    pub master: u32,
    /// The link below a VLAN, or the other end of a veth.
    pub lower: u32,
    pub mac: Option<[u8; 6]>,
    pub mtu: Option<u32>,
    pub qdisc: Option<&'static str>,
    /// Transmit and receive queues.
    pub queues: Option<(u32, u32)>,
    pub is_down: bool,
    /// Received and sent packets, received and sent bytes, received and sent errors, received and sent drops.
    pub counters: [u64; 8],
}

impl Link {
    fn message(&self) -> Vec<u8> {
        let mut body = [0; 16];
        body[4..8].copy_from_slice(&self.index.to_ne_bytes());
        // IFF_UP.
        body[8..12].copy_from_slice(&u32::from(!self.is_down).to_ne_bytes());
        let mut message = Request::new(RTM_NEWLINK, 0, &body).text(3, self.name);
        if self.master > 0 {
            message = message.u32(10, self.master);
        }
        if self.lower > 0 {
            message = message.u32(5, self.lower);
        }
        if let Some(kind) = self.kind {
            message = message.nested(18, |info| info.text(1, kind));
        }
        if let Some(mac) = self.mac {
            message = message.bytes(1, &mac).u8(33, u8::from(!self.is_down));
        }
        if let Some(mtu) = self.mtu {
            message = message.u32(4, mtu);
        }
        if let Some(qdisc) = self.qdisc {
            message = message.text(6, qdisc);
        }
        if let Some((sending, receiving)) = self.queues {
            message = message.u32(31, sending).u32(32, receiving);
        }
        let counters: Vec<u8> = self.counters.iter().flat_map(|counter| counter.to_ne_bytes()).collect();
        // An unknown attribute before the counters.
        message.bytes(0x3ffe, &[1, 2, 3]).bytes(23, &counters).finish(0)
    }
}
