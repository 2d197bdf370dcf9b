//! Kernel drivers of PCI network functions. From the PCI id tables of the Linux drivers (v6.12: mlx4/main.c,
//! mlx5/core/main.c, mana/gdma_main.c, ena_netdev.c, gve_main.c, iavf, ixgbevf, igbvf, virtio, vmxnet3).
use netduel_model::snapshot::PciFunction;

/// Drivers that bind a function to a user-space program instead of the kernel's network stack.
const USER_SPACE: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// Product and driver module of a function, for the functions of cloud guests.
pub(super) fn known(function: &PciFunction) -> Option<(&'static str, &'static str)> {
    match (function.vendor, function.device) {
        (0x15b3, 0x1002 | 0x1004) => Some(("ConnectX-3 Virtual Function", "mlx4_en")),
        (0x15b3, 0x1014) => Some(("ConnectX-4 Virtual Function", "mlx5_core")),
        (0x15b3, 0x1016) => Some(("ConnectX-4 Lx Virtual Function", "mlx5_core")),
        (0x15b3, 0x1018 | 0x101a) => Some(("ConnectX-5 Virtual Function", "mlx5_core")),
        (0x15b3, 0x101c) => Some(("ConnectX-6 Virtual Function", "mlx5_core")),
        (0x15b3, 0x101e) => Some(("ConnectX Virtual Function", "mlx5_core")),
        (0x1414, 0x00ba) => Some(("Microsoft Azure Network Adapter Virtual Function", "mana")),
        (0x1d0f, 0x0ec2 | 0x1ec2 | 0xec20 | 0xec21) => Some(("Elastic Network Adapter", "ena")),
        (0x1d0f, 0xefa0..=0xefa3) => Some(("Elastic Fabric Adapter", "efa")),
        (0x1ae0, 0x0042) => Some(("Google Virtual NIC", "gve")),
        (0x8086, 0x154c | 0x37cd | 0x1889) => Some(("Intel adaptive Virtual Function", "iavf")),
        (0x8086, 0x10ed | 0x1515 | 0x1565 | 0x15a8 | 0x15c5) => {
            Some(("Intel 10 GbE Virtual Function", "ixgbevf"))
        }
        (0x8086, 0x10ca | 0x1520) => Some(("Intel 1 GbE Virtual Function", "igbvf")),
        (0x1af4, 0x1000 | 0x1041) => Some(("virtio network device", "virtio_net")),
        (0x15ad, 0x07b0) => Some(("VMXNET3", "vmxnet3")),
        _ => None,
    }
}

/// The product of a function, where its ids are known.
pub(crate) fn product(function: &PciFunction) -> Option<&'static str> {
    known(function).map(|(product, _)| product)
}

/// For people: `ConnectX-4 Lx Virtual Function (15b3:1016) at 0001:00:02.0`.
pub(super) fn words(function: &PciFunction) -> String {
    let product = known(function).map_or("a network function", |(product, _)| product);
    format!("{product} ({:04x}:{:04x}) at {}", function.vendor, function.device, function.slot)
}

/// Whether a function is bound to a user-space program (DPDK, a virtual machine).
pub(super) fn is_user_space(function: &PciFunction) -> bool {
    function.driver.as_deref().is_some_and(|driver| USER_SPACE.contains(&driver))
}

/// Whether a function belongs below a paravirtual interface.
pub(super) fn is_virtual(function: &PciFunction) -> bool {
    function.virtual_function == Some(true)
        || known(function).is_some_and(|(product, _)| product.ends_with("Virtual Function"))
}
