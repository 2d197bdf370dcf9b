//! Treatments by device, as tables: those that it has, and those that it refuses with the reason.
use super::treatments::{InForce, Refused};

/// Counts the interrupts of queues that this core alone does not serve. Drivers give each queue another core, or all cores.
macro_rules! queue_interrupts_elsewhere {
    ($device:literal, $core:literal) => {
        concat!(
            "elsewhere=0; for i in $(ls /sys/class/net/",
            $device,
            "/msi_irqs); do case $(ls /proc/irq/$i) in *input*|*output*|*TxRx*|*rxtx*|*-rx-*|*-tx-*) \
             [ $(cat /proc/irq/$i/smp_affinity_list) = ",
            $core,
            " ] || elsewhere=$((elsewhere + 1)) ;; esac; done; echo elsewhere: $elsewhere"
        )
    };
}

pub const VIRTIO_IN_FORCE: [&[InForce]; 2] = [
    &[
        InForce {
            treatment: "ring = \"rx\", value = \"128\", interface = \"virt0\"",
            shown_by: "ethtool -g virt0",
            shows: "RX:\t\t128",
        },
        InForce {
            treatment: "rps = \"0-1\", interface = \"virt0\"",
            shown_by: "cat /sys/class/net/virt0/queues/rx-0/rps_cpus",
            shows: "3",
        },
        InForce {
            treatment: "xps = \"off\", interface = \"virt0\"",
            shown_by: "cat /sys/class/net/virt0/queues/tx-0/xps_cpus",
            shows: "0",
        },
        InForce {
            treatment: "irq_affinity = \"1\", interface = \"virt0\"",
            shown_by: queue_interrupts_elsewhere!("virt0/device/..", "1"),
            shows: "elsewhere: 0",
        },
    ],
    &[
        InForce {
            treatment: "queues = 1, interface = \"virt0\"",
            shown_by: "ethtool -l virt0",
            shows: "Combined:\t1",
        },
        InForce {
            treatment: "offload = \"tx-tcp-segmentation\", value = \"off\", interface = \"virt0\"",
            shown_by: "ethtool -k virt0",
            shows: "tx-tcp-segmentation: off",
        },
        InForce {
            treatment: "mtu = 1400, interface = \"virt0\"",
            shown_by: "cat /sys/class/net/virt0/mtu",
            shows: "1400",
        },
    ],
];

pub const VIRTIO_REFUSED: &[Refused] = &[
    Refused { treatment: "rss = \"equal 1\", interface = \"virt0\"", because: &["its driver", "virtio_net"] },
    Refused {
        treatment: "coalesce = \"rx-usecs\", value = \"100\", interface = \"virt0\"",
        because: &["virtio_net", "driver does not support"],
    },
    Refused { treatment: "pci = \"removed\", interface = \"virt0\"", because: &["virt0", "only connection"] },
    Refused { treatment: "vf = \"down\", interface = \"virt0\"", because: &["virt0", "only connection"] },
    Refused { treatment: "queues = 4, interface = \"virt0\"", because: &["1 to 2"] },
    // The driver changes the weight of its transmit polling while the interface is down only.
    Refused {
        treatment: "coalesce = \"tx-frames\", value = \"0\", interface = \"virt0\"",
        because: &["set tx-frames of virt0 to 0", "busy"],
    },
];

pub const IGB_IN_FORCE: [&[InForce]; 2] = [
    &[
        InForce {
            treatment: "ring = \"rx\", value = \"512\", interface = \"pf0\"",
            shown_by: "ethtool -g pf0",
            shows: "RX:\t\t512",
        },
        InForce {
            treatment: "rss = \"equal 1\", interface = \"pf0\"",
            shown_by: "ethtool -x pf0",
            // igb's own table has queue 1 in its second half.
            shows: "64:      0     0     0     0",
        },
        InForce {
            treatment: "coalesce = \"rx-usecs\", value = \"100\", interface = \"pf0\"",
            shown_by: "ethtool -c pf0",
            shows: "rx-usecs: 100",
        },
        InForce {
            treatment: "offload = \"tso\", value = \"off\", interface = \"pf0\"",
            shown_by: "ethtool -k pf0",
            shows: "tcp-segmentation-offload: off",
        },
        InForce {
            treatment: "rps = \"0-1\", interface = \"pf0\"",
            shown_by: "cat /sys/class/net/pf0/queues/rx-0/rps_cpus",
            shows: "3",
        },
        InForce {
            treatment: "xps = \"1\", interface = \"pf0\"",
            shown_by: "cat /sys/class/net/pf0/queues/tx-0/xps_cpus",
            shows: "2",
        },
        InForce {
            treatment: "irq_affinity = \"1\", interface = \"pf0\"",
            shown_by: queue_interrupts_elsewhere!("pf0/device", "1"),
            shows: "elsewhere: 0",
        },
    ],
    &[
        InForce {
            treatment: "queues = 1, interface = \"pf0\"",
            shown_by: "ethtool -l pf0",
            shows: "Combined:\t1",
        },
        InForce {
            treatment: "mtu = 1400, interface = \"pf0\"",
            shown_by: "cat /sys/class/net/pf0/mtu",
            shows: "1400",
        },
    ],
];

pub const IGBVF_IN_FORCE: [&[InForce]; 2] = [
    &[
        InForce {
            treatment: "ring = \"rx\", value = \"512\", interface = \"vf1\"",
            shown_by: "ethtool -g vf1",
            shows: "RX:\t\t512",
        },
        InForce {
            treatment: "coalesce = \"rx-usecs\", value = \"100\", interface = \"vf1\"",
            shown_by: "ethtool -c vf1",
            shows: "rx-usecs: 100",
        },
        InForce {
            // A remedy may have spread the packets over both cores.
            treatment: "rps = \"1\", interface = \"vf1\"",
            shown_by: "cat /sys/class/net/vf1/queues/rx-0/rps_cpus",
            shows: "2",
        },
        InForce {
            treatment: "irq_affinity = \"1\", interface = \"vf1\"",
            shown_by: queue_interrupts_elsewhere!("vf1/device", "1"),
            shows: "elsewhere: 0",
        },
    ],
    &[
        InForce {
            treatment: "offload = \"tso\", value = \"off\", interface = \"vf1\"",
            shown_by: "ethtool -k vf1",
            shows: "tcp-segmentation-offload: off",
        },
        InForce {
            treatment: "mtu = 1400, interface = \"vf1\"",
            shown_by: "cat /sys/class/net/vf1/mtu",
            shows: "1400",
        },
    ],
];

pub const IGB_REFUSED: &[Refused] = &[
    Refused { treatment: "vf = \"down\", interface = \"vf0\"", because: &["net_failover", "pci"] },
    Refused { treatment: "pci = \"removed\", interface = \"vf1\"", because: &["vf1", "only connection"] },
    Refused {
        treatment: "pci = \"removed\", interface = \"vf0\"",
        because: &["vf0 has the driver igbvf", "physical function"],
    },
    Refused {
        treatment: "coalesce = \"tx-usecs\", value = \"100\", interface = \"pf0\"",
        because: &["pf0 has the driver igb", "rx-usecs"],
    },
    Refused { treatment: "queues = 2, interface = \"vf1\"", because: &["igbvf", "driver does not support"] },
    // A table that is set names a queue that would go.
    Refused {
        treatment: "rss = \"weights 1 2\", interface = \"pf0\", on = \"client\" }, { queues = 1, interface = \"pf0\"",
        because: &["RSS table leads flows to queue 1", "ethtool -X pf0 default"],
    },
    Refused { treatment: "rss = \"equal 1\", interface = \"vf1\"", because: &["its driver", "igbvf"] },
    Refused { treatment: "pci = \"removed\", interface = \"pf0\"", because: &["pf0", "only connection"] },
    Refused { treatment: "vf = \"down\", interface = \"pf0\"", because: &["pf0", "only connection"] },
    Refused { treatment: "xps = \"1\", interface = \"vf1\"", because: &["igbvf", "one transmit queue"] },
];

pub const VMXNET3_IN_FORCE: [&[InForce]; 2] = [
    &[
        InForce {
            treatment: "offload = \"lro\", value = \"off\", interface = \"vmx0\"",
            shown_by: "ethtool -k vmx0",
            shows: "large-receive-offload: off",
        },
        InForce {
            treatment: "mtu = 1400, interface = \"vmx0\"",
            shown_by: "cat /sys/class/net/vmx0/mtu",
            shows: "1400",
        },
        InForce {
            treatment: "ring = \"rx\", value = \"512\", interface = \"vmx0\"",
            shown_by: "ethtool -g vmx0",
            shows: "RX:\t\t512",
        },
    ],
    &[
        // The changes above restart the device, with the RSS table of the driver.
        InForce {
            treatment: "rss = \"equal 1\", interface = \"vmx0\"",
            shown_by: "ethtool -x vmx0",
            shows: "0:      0     0     0     0",
        },
        // The remedy for interrupts on the other node may have moved them to core 1.
        InForce {
            treatment: "rps = \"0-1\", interface = \"vmx0\"",
            shown_by: "cat /sys/class/net/vmx0/queues/rx-0/rps_cpus",
            shows: "3",
        },
        InForce {
            treatment: "xps = \"1\", interface = \"vmx0\"",
            shown_by: "cat /sys/class/net/vmx0/queues/tx-0/xps_cpus",
            shows: "2",
        },
        InForce {
            treatment: "irq_affinity = \"0\", interface = \"vmx0\"",
            shown_by: queue_interrupts_elsewhere!("vmx0/device", "0"),
            shows: "elsewhere: 0",
        },
    ],
];

pub const VMXNET3_REFUSED: &[Refused] = &[
    Refused {
        treatment: "queues = 1, interface = \"vmx0\"",
        because: &["vmxnet3", "driver does not support"],
    },
    Refused {
        treatment: "coalesce = \"rx-usecs\", value = \"100\", interface = \"vmx0\"",
        because: &["vmxnet3", "driver does not support"],
    },
    Refused { treatment: "pci = \"removed\", interface = \"vmx0\"", because: &["vmx0", "only connection"] },
    Refused { treatment: "vf = \"down\", interface = \"vmx0\"", because: &["vmx0", "only connection"] },
];

pub const E1000E_IN_FORCE: [&[InForce]; 2] = [
    &[
        InForce {
            treatment: "ring = \"rx\", value = \"512\", interface = \"e1k0\"",
            shown_by: "ethtool -g e1k0",
            shows: "RX:\t\t512",
        },
        InForce {
            treatment: "offload = \"tso\", value = \"off\", interface = \"e1k0\"",
            shown_by: "ethtool -k e1k0",
            shows: "tcp-segmentation-offload: off",
        },
        // The remedy for its one queue has set both cores.
        InForce {
            treatment: "rps = \"1\", interface = \"e1k0\"",
            shown_by: "cat /sys/class/net/e1k0/queues/rx-0/rps_cpus",
            shows: "2",
        },
        InForce {
            treatment: "irq_affinity = \"1\", interface = \"e1k0\"",
            shown_by: queue_interrupts_elsewhere!("e1k0/device", "1"),
            shows: "elsewhere: 0",
        },
    ],
    &[
        InForce {
            treatment: "coalesce = \"rx-usecs\", value = \"100\", interface = \"e1k0\"",
            shown_by: "ethtool -c e1k0",
            shows: "rx-usecs: 100",
        },
        InForce {
            treatment: "mtu = 1400, interface = \"e1k0\"",
            shown_by: "cat /sys/class/net/e1k0/mtu",
            shows: "1400",
        },
        // net_failover passes its MTU on to its ports.
        InForce {
            treatment: "mtu = 1400, interface = \"fo0\"",
            shown_by: "cat /sys/class/net/fo0/mtu /sys/class/net/eth0/mtu",
            shows: "1400\n1400",
        },
        InForce {
            treatment: "offload = \"tx-tcp-segmentation\", value = \"off\", interface = \"fo0\"",
            shown_by: "ethtool -k fo0",
            shows: "tx-tcp-segmentation: off",
        },
        InForce {
            treatment: "rps = \"0-1\", interface = \"fo0\"",
            shown_by: "cat /sys/class/net/fo0/queues/rx-0/rps_cpus",
            shows: "3",
        },
        InForce {
            treatment: "xps = \"1\", interface = \"fo0\"",
            shown_by: "cat /sys/class/net/fo0/queues/tx-0/xps_cpus",
            shows: "2",
        },
    ],
];

pub const E1000E_REFUSED: &[Refused] = &[
    Refused {
        treatment: "queues = 2, interface = \"e1k0\"",
        because: &["e1000e", "driver does not support"],
    },
    Refused { treatment: "pci = \"removed\", interface = \"e1k0\"", because: &["e1k0", "only connection"] },
    Refused { treatment: "xps = \"1\", interface = \"e1k0\"", because: &["e1000e", "one transmit queue"] },
    Refused { treatment: "vf = \"down\", interface = \"e1k0\"", because: &["e1k0", "only connection"] },
    Refused { treatment: "rss = \"equal 1\", interface = \"e1k0\"", because: &["its driver", "e1000e"] },
    // A master has no rings, queues and interrupts of its own.
    Refused {
        treatment: "ring = \"rx\", value = \"512\", interface = \"fo0\"",
        because: &["fo0 has the driver net_failover", "driver does not support"],
    },
    Refused {
        treatment: "queues = 2, interface = \"fo0\"",
        because: &["fo0 has the driver net_failover", "driver does not support"],
    },
    Refused {
        treatment: "rss = \"equal 1\", interface = \"fo0\"",
        because: &["fo0 has the driver net_failover", "driver does not support"],
    },
    Refused {
        treatment: "coalesce = \"rx-usecs\", value = \"100\", interface = \"fo0\"",
        because: &["fo0 has the driver net_failover", "driver does not support"],
    },
    Refused {
        treatment: "irq_affinity = \"1\", interface = \"fo0\"",
        because: &["fo0 has the driver net_failover", "no interrupts of its own"],
    },
    Refused {
        treatment: "ring = \"rx\", value = \"512\", interface = \"bond0\"",
        because: &["bond0 has the driver bonding", "driver does not support"],
    },
    Refused {
        treatment: "queues = 2, interface = \"bond0\"",
        because: &["bond0 has the driver bonding", "driver does not support"],
    },
    Refused {
        treatment: "rss = \"equal 1\", interface = \"bond0\"",
        because: &["bond0 has the driver bonding", "driver does not support"],
    },
    Refused {
        treatment: "coalesce = \"rx-usecs\", value = \"100\", interface = \"bond0\"",
        because: &["bond0 has the driver bonding", "driver does not support"],
    },
    Refused {
        treatment: "irq_affinity = \"1\", interface = \"bond0\"",
        because: &["bond0 has the driver bonding", "no interrupts of its own"],
    },
];

/// What carries the packets of net_failover, under the name that the test gives it: it is back when it has its carrier.
pub const PRIMARY_REMOVED: &[InForce] = &[InForce {
    treatment: "pci = \"removed\", interface = \"fo0\"",
    shown_by: "[ \"$(cat /sys/class/net/prim0/carrier 2>/dev/null)\" = 1 ] || echo removed",
    shows: "removed",
}];

/// What carries the packets of the bond.
pub const PORT_DOWN: &[InForce] = &[InForce {
    treatment: "vf = \"down\", interface = \"bond0\"",
    shown_by: "cat /sys/class/net/bond0/bonding/active_slave",
    shows: "hot1",
}];
