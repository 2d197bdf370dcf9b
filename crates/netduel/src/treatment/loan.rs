//! What a program that is not ours is lent for a trial, and how it is given back: it may end without tidying up.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use netduel_sys::link;
use netduel_sys::xdp::attachment;
use serde::{Deserialize, Serialize};

use super::error::TreatmentError;
use super::lent_device::LentDevice;
use super::offload::index_of;
use super::undo::Undo;

/// What is lent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loan {
    /// An interface whose flags and XDP program are the program's while it runs.
    Interface {
        /// Its name.
        interface: String,
    },
    /// Huge pages: as many as there are to be.
    HugePages {
        /// The file that says how many there are.
        file: PathBuf,
        /// How many there are to be.
        pages: u64,
    },
    /// A device that gets another driver.
    Device {
        /// Its folder in `/sys/bus`.
        device: PathBuf,
        /// The folder of its bus.
        bus: PathBuf,
        /// The driver that it gets.
        driver: &'static str,
        /// The interface that goes with the driver that it has.
        interface: String,
    },
}

/// How it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lent", rename_all = "kebab-case")]
pub(super) enum Lent {
    /// An interface without an XDP program.
    Interface { interface: String, index: u32, promiscuous: bool },
    /// Huge pages.
    HugePages { file: PathBuf, pages: u64 },
    /// A device with its driver.
    Device(LentDevice),
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) enum LoanChange {
    /// The borrower changes it.
    None,
    /// A number of huge pages.
    HugePages { file: PathBuf, pages: u64 },
    /// Another driver.
    Device { device: LentDevice, driver: &'static str },
}

/// Reads what is there, and refuses what is in use; changes nothing.
pub(super) fn prepare(loan: &Loan) -> Result<(Undo, LoanChange), TreatmentError> {
    let (lent, change) = match loan {
        Loan::Interface { interface } => (of_interface(interface)?, LoanChange::None),
        Loan::HugePages { file, pages } => {
            let before = number(file).map_err(|cause| TreatmentError::Refused {
                doing: format!("read {}", file.display()),
                cause,
            })?;
            let lent = Lent::HugePages { file: file.clone(), pages: before };
            (lent, LoanChange::HugePages { file: file.clone(), pages: *pages })
        }
        Loan::Device { device, bus, driver, interface } => {
            let device = LentDevice::read(device, bus, interface)?;
            (Lent::Device(device.clone()), LoanChange::Device { device, driver })
        }
    };
    Ok((Undo::Lent(lent), change))
}

fn of_interface(interface: &str) -> Result<Lent, TreatmentError> {
    let index = index_of(interface)?;
    let doing = || format!("lend {interface} to another program");
    let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
    if let Some(number) = attachment::program(index).map_err(refused)? {
        let why = format!(
            "an XDP program is on it (number {number} in `bpftool prog`), so another program uses it; end that, or take it off with \
             `ip link set dev {interface} xdp off`"
        );
        return Err(TreatmentError::Unsupported { doing: doing(), interface: interface.to_owned(), why });
    }
    let promiscuous = link::is_promiscuous(interface).map_err(refused)?;
    Ok(Lent::Interface { interface: interface.to_owned(), index, promiscuous })
}

impl LoanChange {
    /// Makes the change.
    pub(super) fn make(&self) -> Result<(), TreatmentError> {
        match self {
            Self::None => Ok(()),
            Self::HugePages { file, pages } => set_pages(file, *pages),
            Self::Device { device, driver } => device.give(driver),
        }
    }
}

fn number(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("it says {text:?}")))
}

/// Sets the number of huge pages and reads it back: the kernel takes as many as it finds memory for.
fn set_pages(file: &Path, pages: u64) -> Result<(), TreatmentError> {
    let doing = || format!("have {pages} huge pages ({})", file.display());
    let refused = |cause| TreatmentError::Refused { doing: doing(), cause };
    fs::write(file, pages.to_string()).map_err(refused)?;
    let now = number(file).map_err(refused)?;
    if now >= pages {
        return Ok(());
    }
    let answered = format!(
        "{now}: too little memory is free in pieces of 2 MiB; reserve them soon after the start of the host"
    );
    Err(TreatmentError::NotTaken { doing: doing(), answered })
}

impl Lent {
    /// The interface's index, when it is one that keeps it.
    pub(super) fn index(&self) -> Option<u32> {
        match self {
            Self::Interface { index, .. } => Some(*index),
            Self::HugePages { .. } | Self::Device(_) => None,
        }
    }

    /// Makes it as it was. `interface`: its present name, for one that keeps its index.
    pub(super) fn give_back(&self, interface: &str) -> Result<(), TreatmentError> {
        match self {
            Self::Interface { index, promiscuous, .. } => {
                let doing = || format!("take back {interface}");
                let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
                attachment::detach(*index).map_err(refused)?;
                if link::is_promiscuous(interface).map_err(refused)? != *promiscuous {
                    link::set_promiscuous(interface, *promiscuous).map_err(refused)?;
                }
                Ok(())
            }
            // Pages that are in use still become fewer when they are given back.
            Self::HugePages { file, pages } => fs::write(file, pages.to_string()).map_err(|cause| {
                TreatmentError::Refused { doing: format!("write {}", file.display()), cause }
            }),
            Self::Device(device) => device.take_back(),
        }
    }

    /// What it is, for messages.
    pub(super) fn what(&self) -> String {
        match self {
            Self::Interface { interface, .. } => format!("the flags and the XDP program of {interface}"),
            Self::HugePages { file, .. } => format!("the number of huge pages in {}", file.display()),
            Self::Device(device) => device.what(),
        }
    }

    /// How to do it without this program.
    pub(super) fn by_hand(&self) -> String {
        match self {
            Self::Interface { interface, promiscuous, .. } => {
                let word = if *promiscuous { "on" } else { "off" };
                format!("`ip link set dev {interface} xdp off promisc {word}`")
            }
            Self::HugePages { file, pages } => format!("`echo {pages} > {}`", file.display()),
            Self::Device(device) => device.by_hand(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_lent_and_given_back_also_twice() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nr_hugepages");
        fs::write(&file, "7\n").unwrap();
        let (undo, change) = prepare(&Loan::HugePages { file: file.clone(), pages: 60 }).unwrap();
        change.make().unwrap();
        assert_eq!(number(&file).unwrap(), 60);
        for _ in 0..2 {
            undo.undo().unwrap();
            assert_eq!(number(&file).unwrap(), 7);
        }
        let missing = Loan::HugePages { file: folder.path().join("none"), pages: 1 };
        let error = prepare(&missing).unwrap_err().to_string();
        assert!(error.contains("none") && error.contains("No such file"), "{error}");
    }
}
