//! Host resources that another program gets for a trial (interface, huge pages, device), and how they are restored: the program may end
//! without cleaning up.
use std::path::{Path, PathBuf};

use netduel_sys::xdp::attachment;
use netduel_sys::{link, random};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::error::TreatmentError;
use super::huge_pages::{self, number};
use super::rebound_device::ReboundDevice;
use super::recorded_interface::RecordedInterface;

/// A resource of the host for another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostResource {
    /// An interface whose flags and XDP program are the program's while it runs.
    Interface {
        /// Its name.
        interface: String,
    },
    /// Huge pages, as many as have to be free.
    HugePages {
        /// The file that says how many there are; another beside it says how many are free.
        file: PathBuf,
        /// How many have to be free.
        free: u64,
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

/// The original state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "resource", rename_all = "kebab-case")]
pub(super) enum ResourceOriginal {
    /// An interface without an XDP program.
    Interface { interface: RecordedInterface, promiscuous: bool },
    /// Huge pages that were to be added; `token` states how many were.
    HugePages { file: PathBuf, added: u64, token: PathBuf },
    /// A device with its driver.
    Device(Box<ReboundDevice>),
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) enum ResourceChange {
    /// The borrower changes it.
    None,
    /// More huge pages.
    HugePages { file: PathBuf, added: u64, token: PathBuf },
    /// Another driver.
    Device { device: Box<ReboundDevice>, driver: &'static str },
}

/// Reads what is there, and refuses what is in use; changes nothing.
pub(super) fn prepare(resource: &HostResource) -> Result<(ResourceOriginal, ResourceChange), TreatmentError> {
    let (original, change) = match resource {
        HostResource::Interface { interface } => (of_interface(interface)?, ResourceChange::None),
        HostResource::HugePages { file, free } => of_pages(file, *free)?,
        HostResource::Device { device, bus, driver, interface } => {
            let device = Box::new(ReboundDevice::read(device, bus, interface)?);
            (ResourceOriginal::Device(device.clone()), ResourceChange::Device { device, driver })
        }
    };
    Ok((original, change))
}

fn of_pages(file: &Path, wanted: u64) -> Result<(ResourceOriginal, ResourceChange), TreatmentError> {
    let refused = |doing: String| move |cause| TreatmentError::Refused { doing, cause };
    let beside = file.with_file_name("free_hugepages");
    let free = number(&beside).map_err(refused(format!("read {}", beside.display())))?;
    let bytes = random::bytes16().map_err(refused("name a file".to_owned()))?;
    let token = huge_pages::token(u128::from_ne_bytes(bytes));
    let (file, added) = (file.to_owned(), wanted.saturating_sub(free));
    let change = match added {
        0 => ResourceChange::None,
        _ => ResourceChange::HugePages { file: file.clone(), added, token: token.clone() },
    };
    Ok((ResourceOriginal::HugePages { file, added, token }, change))
}

fn of_interface(interface: &str) -> Result<ResourceOriginal, TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let doing = || format!("hand {interface} over to another program");
    let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
    if let Some(number) = attachment::program(recorded.index()).map_err(refused)? {
        let why = format!(
            "an XDP program is on it (number {number} in `bpftool prog`), so another program uses it; end that, or take it off with \
             `ip link set dev {interface} xdp off`"
        );
        return Err(TreatmentError::unsupported(interface, doing(), why));
    }
    let promiscuous = link::is_promiscuous(interface).map_err(refused)?;
    Ok(ResourceOriginal::Interface { interface: recorded, promiscuous })
}

impl Change for ResourceChange {
    fn make(&self) -> Result<(), TreatmentError> {
        match self {
            Self::None => Ok(()),
            Self::HugePages { file, added, token } => huge_pages::add(file, *added, token),
            Self::Device { device, driver } => device.give(driver),
        }
    }

    /// The borrower changes it.
    fn read_back(&self) -> Result<(), TreatmentError> {
        Ok(())
    }
}

impl Original for ResourceOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        match self {
            Self::Interface { interface, promiscuous } => {
                interface.restore(|interface, index| take_back(interface, index, *promiscuous))
            }
            Self::HugePages { file, added, token } => {
                huge_pages::take(file, *added, token).map_err(|cause| TreatmentError::Refused {
                    doing: format!("restore the number of huge pages in {}", file.display()),
                    cause,
                })
            }
            Self::Device(device) => device.take_back(),
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Interface { interface, .. } => format!("the flags and the XDP program of {interface}"),
            Self::HugePages { file, .. } => format!("the number of huge pages in {}", file.display()),
            Self::Device(device) => device.what(),
        }
    }

    fn by_hand(&self) -> String {
        match self {
            Self::Interface { interface, promiscuous } => {
                let word = if *promiscuous { "on" } else { "off" };
                format!("`ip link set dev {interface} xdp off promisc {word}`")
            }
            Self::HugePages { file, added, .. } => {
                let file = file.display();
                format!(
                    "`echo $(($(cat {file}) - {added})) > {file}`, if it has {added} more than before the run"
                )
            }
            Self::Device(device) => device.by_hand(),
        }
    }
}

fn take_back(interface: &str, index: u32, promiscuous: bool) -> Result<(), TreatmentError> {
    let doing = || format!("restore {interface}");
    let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
    attachment::detach(index).map_err(refused)?;
    if link::is_promiscuous(interface).map_err(refused)? != promiscuous {
        link::set_promiscuous(interface, promiscuous).map_err(refused)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn huge_pages_for_two_programs_are_added_and_removed_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nr_hugepages");
        let free =
            |pages: u64| fs::write(folder.path().join("free_hugepages"), format!("{pages}\n")).unwrap();
        fs::write(&file, "7\n").unwrap();
        free(7);
        let resource = HostResource::HugePages { file: file.clone(), free: 60 };
        let (first, change) = prepare(&resource).unwrap();
        change.make().unwrap();
        assert_eq!(number(&file).unwrap(), 60);
        // The first has taken all of them.
        free(0);
        let (second, change) = prepare(&resource).unwrap();
        change.make().unwrap();
        assert_eq!(number(&file).unwrap(), 120);
        for _ in 0..2 {
            first.restore().unwrap();
            assert_eq!(number(&file).unwrap(), 67);
        }
        second.restore().unwrap();
        assert_eq!(number(&file).unwrap(), 7);
        free(60);
        let (enough, change) = prepare(&resource).unwrap();
        change.make().unwrap();
        enough.restore().unwrap();
        assert_eq!(number(&file).unwrap(), 7);
        let missing = HostResource::HugePages { file: folder.path().join("no/nr_hugepages"), free: 1 };
        let error = prepare(&missing).unwrap_err().to_string();
        assert!(error.contains("free_hugepages") && error.contains("No such file"), "{error}");
    }
}
