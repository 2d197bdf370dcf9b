//! A host whose kernel answers with the bytes of an input.
use std::io;
use std::path::PathBuf;

use netduel_host::{FilterSource, LinkSource, Sources, snapshot_of};
use netduel_sys::ethtool::{Answer, Ethtool};

/// Lists of the kernel, as raw netlink messages. All are the same bytes: a reader takes the messages of its own types out of them.
struct Lists(Vec<u8>);

impl LinkSource for Lists {
    fn links(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        into.clone_from(&self.0);
        Ok(())
    }
    fn addresses(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.links(into)
    }
    fn queueing(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.links(into)
    }
    fn xdp(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.links(into)
    }
    fn routes(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        self.links(into)
    }
}

/// A kernel without a packet filter.
struct NoFilter;

impl FilterSource for NoFilter {
    fn rules(&mut self) -> io::Result<u32> {
        Ok(0)
    }
}

/// Takes a snapshot of a host without files, with these lists and this driver. The snapshot is the same after it was stored and read.
pub(crate) fn check_snapshot(lists: Vec<u8>, driver: Answer) {
    let mut sources = Sources {
        root: PathBuf::from("/nonexistent"),
        links: Box::new(Lists(lists)),
        devices: Box::new(Ethtool::answered_by(driver).expect("address space")),
        filter: Box::new(NoFilter),
        allowed: None,
        metadata: None,
    };
    if let Ok(snapshot) = snapshot_of(&mut sources) {
        let stored = serde_json::to_string(&snapshot).expect("a snapshot can be stored");
        assert_eq!(snapshot, serde_json::from_str(&stored).expect("a stored snapshot can be read"));
    }
}
