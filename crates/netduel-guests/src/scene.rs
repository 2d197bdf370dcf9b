//! The scenes of the test bed as a table: which NICs each of the two guests has, and how they are connected. It starts nothing.
use std::collections::BTreeSet;

use crate::kernels::Kernel;

/// A topology of two guests with the same NICs.
#[derive(Debug)]
pub struct Scene {
    /// Its name, as in `cargo xtask guests up NAME`.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// The kernel of its guests.
    pub kernel: Kernel,
    /// Whether its guests have two NUMA nodes, a core in each, with the NICs at the second.
    pub has_nodes: bool,
    /// Whether its guests have testpmd, an IOMMU, and the driver that hands their NICs to programs.
    pub has_dpdk: bool,
    /// The NICs of each guest, in the order of their slots and of their set-up.
    pub nics: &'static [Nic],
}

/// A NIC of each guest. Its MAC address contains the numbers of guest and NIC.
#[derive(Debug)]
pub struct Nic {
    /// Its interface in the guest, and its device and tap in QEMU; at most 8 characters.
    pub interface: &'static str,
    /// The bridge that connects it with the same NIC of the other guest.
    pub wire: u8,
    /// N of the addresses 10.N.0.1 and 10.N.0.2; `None` without an address.
    pub subnet: Option<u8>,
    /// The device.
    pub device: Device,
}

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// virtio-net.
    Virtio {
        /// Pairs of queues.
        queues: u8,
    },
    /// virtio-net as the standby of net_failover. The interface is its master; the standby has the suffix `nsby`.
    Standby,
    /// Intel 82576 with SR-IOV.
    Igb {
        /// The virtual functions that are made.
        functions: &'static [Function],
    },
    /// Intel 82574.
    E1000e {
        /// The interface of the standby below whose master it is the primary; QEMU plugs it when the guest knows net_failover.
        primary_of: Option<&'static str>,
    },
    /// VMware's paravirtual NIC.
    Vmxnet3,
    /// No device yet: a port for hot plug, and a tap for the device.
    FreePort,
}

/// A virtual function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its interface in the guest.
    pub interface: &'static str,
    /// What it is used for.
    pub role: Role,
}

/// The use of a virtual function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It has an address of its own in this subnet.
    Alone {
        /// N of 10.N.0.1 and 10.N.0.2.
        subnet: u8,
    },
    /// It is the primary below the master with this interface.
    PrimaryOf(&'static str),
}

/// The suffix of a standby's interface, as the kernel's own names have it.
pub const STANDBY: &str = "nsby";

/// Tests of scenes that run at a time. QEMU emulates each guest on one core, and most checks use one guest or wait: two scenes use all cores,
/// and with more of them deadlines in the guests pass.
pub const SCENES_AT_A_TIME: usize = 2;

/// Tests of them at a time: one more, whose scene mostly waits.
pub const TESTS_AT_A_TIME: usize = SCENES_AT_A_TIME + 1;

/// All scenes.
pub const SCENES: &[Scene] = &[
    Scene {
        name: "virtio",
        about: "virtio-net with two queues, and with one on a second wire",
        kernel: Kernel::Backports,
        has_nodes: false,
        has_dpdk: false,
        nics: &[
            Nic { interface: "virt0", wire: 1, subnet: Some(1), device: Device::Virtio { queues: 2 } },
            Nic { interface: "virt1", wire: 2, subnet: Some(2), device: Device::Virtio { queues: 1 } },
        ],
    },
    Scene {
        name: "igb",
        about: "igb with two virtual functions: one under net_failover with its standby, one alone",
        kernel: Kernel::Backports,
        has_nodes: false,
        has_dpdk: false,
        nics: &[
            Nic { interface: "fo0", wire: 1, subnet: Some(3), device: Device::Standby },
            Nic {
                interface: "pf0",
                wire: 1,
                subnet: Some(1),
                device: Device::Igb {
                    functions: &[
                        Function { interface: "vf0", role: Role::PrimaryOf("fo0") },
                        Function { interface: "vf1", role: Role::Alone { subnet: 2 } },
                    ],
                },
            },
        ],
    },
    Scene {
        name: "vmxnet3",
        about: "vmxnet3, and virtio-net on a second wire, at the second of two NUMA nodes",
        kernel: Kernel::Backports,
        has_nodes: true,
        has_dpdk: false,
        nics: &[
            Nic { interface: "vmx0", wire: 1, subnet: Some(1), device: Device::Vmxnet3 },
            Nic { interface: "virt0", wire: 2, subnet: Some(2), device: Device::Virtio { queues: 1 } },
        ],
    },
    Scene {
        name: "e1000e",
        about: "e1000e as the primary of net_failover, and alone on a second wire",
        kernel: Kernel::Backports,
        has_nodes: false,
        has_dpdk: false,
        nics: &[
            Nic { interface: "fo0", wire: 1, subnet: Some(1), device: Device::Standby },
            // Before the primary: it is eth0 until it has its name.
            Nic { interface: "e1k0", wire: 2, subnet: Some(2), device: Device::E1000e { primary_of: None } },
            // Named as the kernel names it when it is plugged again.
            Nic {
                interface: "eth0",
                wire: 1,
                subnet: None,
                device: Device::E1000e { primary_of: Some("fo0") },
            },
        ],
    },
    Scene {
        name: "hotplug",
        about: "virtio-net, and two free ports with taps on a second wire",
        kernel: Kernel::Backports,
        has_nodes: false,
        has_dpdk: false,
        nics: &[
            Nic { interface: "virt0", wire: 1, subnet: Some(1), device: Device::Virtio { queues: 1 } },
            Nic { interface: "hot0", wire: 2, subnet: None, device: Device::FreePort },
            Nic { interface: "hot1", wire: 2, subnet: None, device: Device::FreePort },
        ],
    },
    Scene {
        name: "azure",
        about: "e1000e as the primary of net_failover, and virtio-net with four queues on a second wire",
        kernel: Kernel::Backports,
        has_nodes: false,
        has_dpdk: false,
        nics: &[
            Nic { interface: "fo0", wire: 1, subnet: Some(1), device: Device::Standby },
            Nic { interface: "virt0", wire: 2, subnet: Some(2), device: Device::Virtio { queues: 4 } },
            Nic {
                interface: "eth0",
                wire: 1,
                subnet: None,
                device: Device::E1000e { primary_of: Some("fo0") },
            },
        ],
    },
    Scene {
        name: "dpdk",
        about: "virtio-net and igb behind an IOMMU, and DPDK's testpmd of this machine",
        kernel: Kernel::Backports,
        has_nodes: false,
        has_dpdk: true,
        nics: &[
            Nic { interface: "virt0", wire: 1, subnet: Some(1), device: Device::Virtio { queues: 1 } },
            Nic { interface: "pf0", wire: 2, subnet: Some(2), device: Device::Igb { functions: &[] } },
        ],
    },
    Scene {
        name: "slow-ssh",
        about: "virtio-net with two queues, for an ssh connection that is slow and loses packets",
        kernel: Kernel::Backports,
        has_nodes: false,
        has_dpdk: false,
        nics: ONE_VIRTIO,
    },
    Scene {
        name: "linux-6.1",
        about: "virtio-net with two queues, Linux 6.1",
        kernel: Kernel::Bookworm,
        has_nodes: false,
        has_dpdk: false,
        nics: ONE_VIRTIO,
    },
    Scene {
        name: "linux-5.10",
        about: "virtio-net with two queues, Linux 5.10",
        kernel: Kernel::Bullseye,
        has_nodes: false,
        has_dpdk: false,
        nics: ONE_VIRTIO,
    },
];

const ONE_VIRTIO: &[Nic] =
    &[Nic { interface: "virt0", wire: 1, subnet: Some(1), device: Device::Virtio { queues: 2 } }];

impl Scene {
    /// The scene with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCENES.iter().find(|scene| scene.name == name)
    }

    /// The numbers of its wires.
    pub fn wires(&self) -> BTreeSet<u8> {
        self.nics.iter().map(|nic| nic.wire).collect()
    }

    /// The modules that its guests load; a scene with free ports loads those of all devices.
    pub fn modules(&self) -> BTreeSet<&'static str> {
        // The bus of virtio is a part of the kernel itself since 6.12 of Debian.
        let mut modules: BTreeSet<&str> = ["virtio_pci", "virtio_net"].into();
        for nic in self.nics {
            modules.extend(nic.device.modules());
        }
        if self.has_dpdk {
            modules.extend(["vfio_pci", "vfio_iommu_type1"]);
        }
        modules
    }

    /// The NIC with this interface.
    pub fn nic(&self, interface: &str) -> Option<&'static Nic> {
        self.nics.iter().find(|nic| nic.interface == interface)
    }

    /// The slot of a NIC, from 1 up.
    pub fn slot_of(&self, nic: &Nic) -> usize {
        self.number_of(nic.interface)
    }

    /// The position of a NIC, from 1 up: a part of its MAC address.
    fn number_of(&self, interface: &str) -> usize {
        self.nics.iter().take_while(|nic| nic.interface != interface).count() + 1
    }

    /// The MAC address of a NIC. A primary has that of its standby.
    pub fn mac(&self, guest: u8, nic: &Nic) -> String {
        let named = match nic.device {
            Device::E1000e { primary_of: Some(standby) } => standby,
            _ => nic.interface,
        };
        mac(guest, self.number_of(named), 0)
    }

    /// The MAC address of a virtual function, `index` from 0 up. A primary has that of its standby.
    pub fn function_mac(&self, guest: u8, nic: &Nic, index: usize, function: &Function) -> String {
        match function.role {
            Role::PrimaryOf(standby) => mac(guest, self.number_of(standby), 0),
            Role::Alone { .. } => mac(guest, self.number_of(nic.interface), index + 1),
        }
    }
}

/// The MAC address of a guest's management interface.
pub fn management_mac(guest: u8) -> String {
    mac(guest, 0, 0)
}

fn mac(guest: u8, nic: usize, function: usize) -> String {
    format!("52:54:00:{guest:02x}:{nic:02x}:{function:02x}")
}

/// The modules of all scenes with a kernel.
pub fn modules(kernel: Kernel) -> BTreeSet<&'static str> {
    SCENES.iter().filter(|scene| scene.kernel == kernel).flat_map(Scene::modules).collect()
}

impl Device {
    fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Virtio { .. } => &["virtio_pci", "virtio_net"],
            Self::Standby => &["net_failover", "virtio_net"],
            Self::Igb { .. } => &["igb", "igbvf"],
            Self::E1000e { .. } => &["e1000e"],
            Self::Vmxnet3 => &["vmxnet3"],
            Self::FreePort => &["igb", "igbvf", "e1000e", "vmxnet3"],
        }
    }

    /// Pairs of queues that its tap needs.
    pub fn tap_queues(self) -> u8 {
        match self {
            Self::Virtio { queues } => queues,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scene_has_its_own_name_and_each_nic_a_short_one() {
        let names: BTreeSet<&str> = SCENES.iter().map(|scene| scene.name).collect();
        assert_eq!(names.len(), SCENES.len());
        for scene in SCENES {
            let interfaces: BTreeSet<&str> = scene.nics.iter().map(|nic| nic.interface).collect();
            assert_eq!(interfaces.len(), scene.nics.len(), "{}", scene.name);
            // IFNAMSIZ is 16 with its zero; a tap has the guest's name before, a standby has its suffix.
            assert!(interfaces.iter().all(|name| name.len() + STANDBY.len() < 16), "{interfaces:?}");
        }
    }

    #[test]
    fn kernel_of_each_scene_is_fetched_at_one_time() {
        for scene in SCENES {
            let is_in = |kernels: &[Kernel]| kernels.contains(&scene.kernel);
            assert_ne!(is_in(&Kernel::PREPARED), is_in(&Kernel::ON_DEMAND), "{}", scene.name);
        }
    }

    #[test]
    fn primary_has_the_address_of_its_standby_and_others_their_own() {
        let igb = Scene::named("igb").unwrap();
        let Device::Igb { functions } = igb.nics[1].device else { panic!("{igb:?}") };
        let standby = igb.mac(1, &igb.nics[0]);
        assert_eq!(igb.function_mac(1, &igb.nics[1], 0, &functions[0]), standby);
        let alone = igb.function_mac(1, &igb.nics[1], 1, &functions[1]);
        assert_eq!(
            BTreeSet::from([standby, alone, igb.mac(1, &igb.nics[1]), igb.mac(2, &igb.nics[1])]).len(),
            4
        );
        let e1000e = Scene::named("e1000e").unwrap();
        assert_eq!(e1000e.mac(2, &e1000e.nics[0]), e1000e.mac(2, &e1000e.nics[2]));
    }
}
