//! Network functions on the PCI bus, with or without a driver.
use std::path::Path;

use netduel_model::snapshot::PciFunction;

use crate::file::{hexadecimal, names_in, target_name};

/// The base class of network controllers in the upper 8 of 24 bits (PCI Code and ID Assignment Specification).
const CLASS_NETWORK: u32 = 0x02;
/// Virtual functions by vendor and device: in a guest they have no `physfn`, so only these numbers identify them.
/// Sources: the kernel's `mlx4/main.c`, `mlx5/core/main.c`, `mana/gdma.h`, `ena_pci_id_tbl.h`, `iavf_type.h`, `ixgbe_type.h`, `e1000_hw.h`.
const VIRTUAL_FUNCTIONS: &[(u16, &[u16])] = &[
    (0x15b3, &[0x1002, 0x1004, 0x1012, 0x1014, 0x1016, 0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3]),
    (0x1414, &[0x00ba]),
    (0x1d0f, &[0xec20, 0xec21]),
    (0x8086, &[0x10ca, 0x10ed, 0x1515, 0x1520, 0x154c, 0x1565, 0x1571, 0x1889, 0x37cd]),
];

/// Every network function of the machine, in the order of the slots. The caller adds the interfaces.
pub(crate) fn functions(root: &Path) -> Vec<PciFunction> {
    let folder = root.join("sys/bus/pci/devices");
    names_in(&folder).iter().filter_map(|slot| function(&folder.join(slot), slot)).collect()
}

fn function(folder: &Path, slot: &str) -> Option<PciFunction> {
    let class = hexadecimal(&folder.join("class"))?;
    if class >> 16 != CLASS_NETWORK {
        return None;
    }
    let vendor = hexadecimal(&folder.join("vendor"))? as u16;
    let device = hexadecimal(&folder.join("device"))? as u16;
    let physical = folder.join("physfn").exists();
    let named = VIRTUAL_FUNCTIONS.iter().any(|(of, devices)| *of == vendor && devices.contains(&device));
    // A function that supports virtual functions is a physical one. For others the answer is unknown.
    let parent = folder.join("sriov_totalvfs").exists();
    let virtual_function = (physical || named).then_some(true).or(parent.then_some(false));
    let driver = target_name(&folder.join("driver"));
    Some(PciFunction {
        slot: slot.to_owned(),
        vendor,
        device,
        driver,
        virtual_function,
        interfaces: Vec::new(),
    })
}
