//! The cores on which an interface's interrupts are served (`/proc/irq`).
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use netduel_model::plan::tuning::{CoreChoice, cores};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::ethtool_socket;
use super::error::TreatmentError;
use super::roots::Roots;
use super::steering::{all, check};

/// Readings of a list until two in succession are equal. Each lasts microseconds, and a request changes the list once.
const READINGS: u32 = 100;

/// The cores of an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct IrqCores {
    /// `smp_affinity_list` of its number.
    file: PathBuf,
    /// Its handler, by which it is known from another device's that was given the same number later.
    handler: String,
    /// The cores, as the kernel writes them.
    list: String,
}

/// The cores of interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct IrqOriginal {
    interface: String,
    interrupts: Vec<IrqCores>,
}

impl Original for IrqOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        restore(&self.interrupts)
    }

    fn what(&self) -> String {
        format!("the change of the cores of the interrupts of {}", self.interface)
    }

    fn by_hand(&self) -> String {
        let echo = |IrqCores { file, list, .. }: &IrqCores| format!("`echo {list} > {}`", file.display());
        self.interrupts.iter().map(echo).collect::<Vec<_>>().join(", ")
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct IrqChange {
    wanted: Vec<IrqCores>,
}

/// An interrupt that has a handler.
#[derive(Debug, PartialEq, Eq)]
struct Interrupt {
    number: u32,
    handler: String,
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(
    roots: &Roots,
    interface: &str,
    choice: &CoreChoice,
) -> Result<(IrqOriginal, IrqChange), TreatmentError> {
    let doing = || format!("have the interrupts of {interface} served on {choice}");
    let refused = |cause| TreatmentError::Refused { doing: doing(), cause };
    if let Some(process) = netduel_host::irqbalance_process(&roots.proc) {
        return Err(TreatmentError::Balanced { doing: doing(), process });
    }
    let online = fs::read_to_string(roots.sys.join("devices/system/cpu/online")).map_err(refused)?;
    let online =
        cores(&online).map_err(|wrong| refused(io::Error::new(io::ErrorKind::InvalidData, wrong)))?;
    check(choice, &online, doing)?;
    let interrupts = of_queues(interrupts(roots, interface).map_err(refused)?);
    if interrupts.is_empty() {
        let why =
            "no interrupts of its own are known (neither its own PCI function's nor by its name)".to_owned();
        return Err(TreatmentError::unsupported(interface, doing(), why));
    }
    let mut original = Vec::new();
    let mut wanted = Vec::new();
    for (place, (interrupt, queue)) in interrupts.iter().enumerate() {
        let file = roots.proc.join(format!("irq/{}/smp_affinity_list", interrupt.number));
        let handler = &interrupt.handler;
        let cores = |list| IrqCores { file: file.clone(), handler: handler.clone(), list };
        original.push(cores(read(&file).map_err(refused)?));
        let list = match choice {
            CoreChoice::Spread => {
                // The receiving and the sending interrupt of a queue have its number, and share a core.
                let queue = queue.map_or(place, |queue| queue as usize);
                online[queue % online.len()].to_string()
            }
            other => other.to_string(),
        };
        wanted.push(cores(list));
    }
    Ok((IrqOriginal { interface: interface.to_owned(), interrupts: original }, IrqChange { wanted }))
}

/// The interrupts of the interface's PCI function, or those named after it, that have a handler.
fn interrupts(roots: &Roots, interface: &str) -> io::Result<Vec<Interrupt>> {
    let bus = ethtool_socket()
        .ok()
        .and_then(|mut socket| socket.driver(interface).ok())
        .map(|driver| driver.bus)
        .unwrap_or_default();
    let of_function = roots.sys.join("bus/pci/devices").join(&bus).join("msi_irqs");
    let linked = roots.sys.join("class/net").join(interface).join("device/msi_irqs");
    let folder = if bus.is_empty() { linked } else { of_function };
    let own: Option<Vec<u32>> = fs::read_dir(folder).ok().map(|entries| {
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    });
    let mut found = Vec::new();
    for entry in fs::read_dir(roots.proc.join("irq"))?.flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A handler shows as a folder of its name.
        let handlers = fs::read_dir(entry.path()).map(|files| {
            files
                .flatten()
                .filter(|file| file.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|file| file.file_name().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        });
        let Some(handler) = handlers.unwrap_or_default().into_iter().next() else { continue };
        let is_own = match &own {
            Some(numbers) => numbers.contains(&number),
            None => {
                handler == interface
                    || handler.strip_prefix(interface).is_some_and(|rest| rest.starts_with('-'))
            }
        };
        if is_own {
            found.push(Interrupt { number, handler });
        }
    }
    found.sort_unstable_by_key(|interrupt| interrupt.number);
    Ok(found)
}

/// Those of queues, each with its queue; all, when no name identifies them.
fn of_queues(all: Vec<Interrupt>) -> Vec<(Interrupt, Option<u32>)> {
    let names: Vec<&str> = all.iter().map(|interrupt| interrupt.handler.as_str()).collect();
    let queues = netduel_host::interrupt_queues(&names);
    let is_any_known = queues.iter().any(Option::is_some);
    all.into_iter().zip(queues).filter(|(_, queue)| queue.is_some() || !is_any_known).collect()
}

/// The cores in the file of an interrupt, as the kernel writes them.
fn read(file: &Path) -> io::Result<String> {
    settled(|| Ok(fs::read_to_string(file)?.trim().to_owned()))
}

/// What two readings in succession give. A requested list is in the kernel's `pending_mask` until the next interrupt moves it, and a reading
/// in that moment sees the mask while it is cleared: no core, or some of them (kernel/irq/proc.c, `show_irq_affinity`, takes no lock against
/// kernel/irq/migration.c, `irq_move_masked_irq`).
fn settled(mut reading: impl FnMut() -> io::Result<String>) -> io::Result<String> {
    let mut last = reading()?;
    for _ in 0..READINGS {
        let next = reading()?;
        if next == last && !next.is_empty() {
            return Ok(next);
        }
        last = next;
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{READINGS} readings gave no constant list of cores"),
    ))
}

impl Change for IrqChange {
    fn make(&self) -> Result<(), TreatmentError> {
        self.wanted.iter().try_for_each(set)
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        self.wanted.iter().try_for_each(read_back)
    }
}

/// Sets the cores of all interrupts that are still there; one that cannot be set keeps none of the others.
fn restore(interrupts: &[IrqCores]) -> Result<(), TreatmentError> {
    all(interrupts.iter().filter(|interrupt| interrupt.is_there()).map(|interrupt| {
        match set(interrupt) {
            // It went while it was being set.
            Err(_) if !interrupt.is_there() => Ok(()),
            result => result,
        }
    }))
}

impl IrqCores {
    fn is_there(&self) -> bool {
        self.file.with_file_name(&self.handler).exists()
    }
}

/// Writes the file if it differs and reads it back.
fn set(interrupt: &IrqCores) -> Result<(), TreatmentError> {
    let IrqCores { file, list, .. } = interrupt;
    let refused = |cause: io::Error| match cause.raw_os_error() {
        Some(code) if code == rustix::io::Errno::IO.raw_os_error() => {
            TreatmentError::ManagedInterrupt { doing: doing(interrupt) }
        }
        _ => TreatmentError::Refused { doing: doing(interrupt), cause },
    };
    if read(file).map_err(refused)? == *list {
        return Ok(());
    }
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(file)
        .and_then(|mut file| file.write_all(list.as_bytes()))
        .map_err(refused)?;
    read_back(interrupt)
}

fn doing(interrupt: &IrqCores) -> String {
    format!("set {} to {}", interrupt.file.display(), interrupt.list)
}

fn read_back(interrupt: &IrqCores) -> Result<(), TreatmentError> {
    let refused = |cause| TreatmentError::Refused { doing: doing(interrupt), cause };
    let now = read(&interrupt.file).map_err(refused)?;
    if now == interrupt.list {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(interrupt), answered: now })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of a file, in this order; the last one is repeated.
    fn readings(given: &'static [&'static str]) -> impl FnMut() -> io::Result<String> {
        let mut rest = given.iter();
        let mut last = "";
        move || {
            last = rest.next().copied().unwrap_or(last);
            Ok(last.to_owned())
        }
    }

    #[test]
    fn list_that_is_read_while_an_interrupt_moves_is_read_again() {
        assert_eq!(settled(readings(&["0-3"])).unwrap(), "0-3");
        assert_eq!(settled(readings(&["", "0-1"])).unwrap(), "0-1");
        assert_eq!(settled(readings(&["", "", "2"])).unwrap(), "2");
        assert_eq!(settled(readings(&["0-3,64", "64", "0-3,64"])).unwrap(), "0-3,64");
        let error = settled(readings(&[""])).unwrap_err().to_string();
        assert!(error.contains("no constant list of cores"), "{error}");
        let mut of_missing = || Err(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(settled(&mut of_missing).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// A PCI function with the interrupts of a virtio NIC of two queues, on four cores, and another device's interrupt.
    fn roots() -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().unwrap();
        let roots = Roots { sys: folder.path().join("sys"), proc: folder.path().join("proc") };
        let device = roots.sys.join("class/net/netduel-none/device/msi_irqs");
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(roots.sys.join("devices/system/cpu")).unwrap();
        fs::write(roots.sys.join("devices/system/cpu/online"), "0-3\n").unwrap();
        for (number, handler) in [
            (37, "virtio2-config"),
            (38, "virtio2-input.0"),
            (39, "virtio2-output.0"),
            (40, "virtio2-input.1"),
            (41, "virtio2-output.1"),
        ] {
            fs::write(device.join(number.to_string()), "msix").unwrap();
            interrupt(&roots, number, handler);
        }
        interrupt(&roots, 50, "virtio3-input.0");
        (folder, roots)
    }

    fn interrupt(roots: &Roots, number: u32, handler: &str) {
        let folder = roots.proc.join(format!("irq/{number}"));
        fs::create_dir_all(folder.join(handler)).unwrap();
        fs::write(folder.join("smp_affinity_list"), "0-3\n").unwrap();
    }

    fn lists(roots: &Roots) -> Vec<String> {
        lists_of(roots, &[37, 38, 39, 40, 41, 50])
    }

    fn lists_of(roots: &Roots, numbers: &[u32]) -> Vec<String> {
        numbers
            .iter()
            .map(|n| read(&roots.proc.join(format!("irq/{n}/smp_affinity_list"))).unwrap())
            .collect()
    }

    #[test]
    fn queues_are_dealt_out_over_the_cores_and_set_back() {
        let (_folder, roots) = roots();
        let (undo, change) = prepare(&roots, "netduel-none", &CoreChoice::Spread).unwrap();
        change.make().unwrap();
        assert_eq!(lists(&roots), ["0-3", "0", "0", "1", "1", "0-3"]);
        undo.restore().unwrap();
        undo.restore().unwrap();
        assert_eq!(lists(&roots), ["0-3"; 6]);
        let (_, change) = prepare(&roots, "netduel-none", &"1-2".parse().unwrap()).unwrap();
        change.make().unwrap();
        assert_eq!(lists(&roots), ["0-3", "1-2", "1-2", "1-2", "1-2", "0-3"]);
    }

    #[test]
    fn failed_restore_of_one_interrupt_does_not_stop_the_others() {
        let (_folder, roots) = roots();
        let (undo, change) = prepare(&roots, "netduel-none", &CoreChoice::Spread).unwrap();
        change.make().unwrap();
        // The first is gone, and the second has the number of another device's now.
        fs::remove_dir_all(roots.proc.join("irq/38")).unwrap();
        fs::rename(roots.proc.join("irq/39/virtio2-output.0"), roots.proc.join("irq/39/nvme0q1")).unwrap();
        undo.restore().unwrap();
        assert_eq!(lists_of(&roots, &[39, 40, 41]), ["0", "0-3", "0-3"]);

        change.make().unwrap_err();
        let third = roots.proc.join("irq/40/smp_affinity_list");
        fs::remove_file(&third).unwrap();
        fs::create_dir(&third).unwrap();
        fs::write(roots.proc.join("irq/41/smp_affinity_list"), "1").unwrap();
        let failed = undo.restore().unwrap_err().to_string();
        assert!(failed.contains("irq/40/smp_affinity_list to 0-3"), "{failed}");
        assert_eq!(lists_of(&roots, &[41]), ["0-3"]);
    }

    #[test]
    fn a_balancer_a_core_that_is_not_there_and_an_interface_without_interrupts_are_refused() {
        let (_folder, roots) = roots();
        let refused = |interface: &str, choice: &str| {
            prepare(&roots, interface, &choice.parse().unwrap()).unwrap_err().to_string()
        };
        assert!(refused("netduel-none", "7").contains("0-3"), "{}", refused("netduel-none", "7"));
        assert!(refused("lo", "0").contains("no interrupts of its own"), "{}", refused("lo", "0"));
        fs::create_dir_all(roots.proc.join("77")).unwrap();
        fs::write(roots.proc.join("77/comm"), "irqbalance\n").unwrap();
        assert!(refused("netduel-none", "0").contains("irqbalance (process 77)"));
        assert_eq!(lists(&roots), ["0-3"; 6]);
    }

    #[test]
    fn interrupts_of_no_queue_stay_where_they_are() {
        let chosen = |handlers: &[&str]| -> Vec<(String, Option<u32>)> {
            let all = (0..).zip(handlers);
            let all = all.map(|(number, handler)| Interrupt { number, handler: (*handler).to_owned() });
            of_queues(all.collect())
                .into_iter()
                .map(|(interrupt, queue)| (interrupt.handler, queue))
                .collect()
        };
        let blocks = ["gve-mgmnt@pci:0000:00:04.0", "gve-ntfy-blk1@pci:0000:00:04.0"];
        assert_eq!(chosen(&blocks), [(blocks[1].to_owned(), Some(1))]);
        assert_eq!(chosen(&["eth0", "eth0-Tx-Rx-4"]), [("eth0-Tx-Rx-4".to_owned(), Some(4))]);
        assert_eq!(chosen(&["some", "other"]), [("some".to_owned(), None), ("other".to_owned(), None)]);
    }
}
