//! DPDK's testpmd on NICs that are bound to vfio-pci behind an IOMMU: the packets of trials, and the NICs
//! afterwards.
use netduel_guests::{Bed, Scene};
use netduel_test_support::skip;
use serde_json::Value;

use super::coordinator::{Coordinator, assert_all_valid, plan};
use super::scenes::with_scene;
use super::{answer_of, end, prepared, reach, run_in_both};

/// Other packets of a port in a trial, which testpmd counts as well: neighbor discovery of both ends.
const FOREIGN: u64 = 32;

/// The NICs with their addresses in the second guest, and settings that their drivers do not make by themselves.
const NICS: [(&str, &str, &str); 2] = [
    (
        "virt0",
        "10.1.0.2",
        "ethtool -G virt0 rx 128; ethtool -K virt0 tso off; \
         echo 1 > /sys/class/net/virt0/queues/rx-0/rps_cpus",
    ),
    (
        "pf0",
        "10.2.0.2",
        "ethtool -L pf0 combined 1; ethtool -G pf0 rx 512; ethtool -C pf0 rx-usecs 100; \
         ethtool -K pf0 tso off",
    ),
];

/// testpmd drives the NICs of the scene `dpdk`, and the kernel gets them back.
pub fn check_testpmd() {
    let scene = Scene::named("dpdk").unwrap();
    let Some(prepared) = prepared() else { return };
    if !prepared.has_dpdk(scene.kernel) {
        return skip(
            "there was no dpdk-testpmd with its drivers when the guests were prepared; install it \
             (Debian 12: `apt-get install dpdk-dev`)",
        );
    }
    with_scene("dpdk", &[1, 2], |mut bed, timed| {
        timed.check("IOMMU", || nics_are_behind_an_iommu(&mut bed));
        let coordinator = Coordinator::new(&mut bed, timed.pace);
        for nic in NICS {
            timed.check(nic.0, || testpmd_drives_a_nic_that_returns(&mut bed, &coordinator, nic));
        }
        end(bed);
    });
}

/// Each NIC is the only device of its group, so that it can be handed over alone.
fn nics_are_behind_an_iommu(bed: &mut Bed) {
    for interface in ["virt0", "pf0"] {
        let slot = slot(bed, interface);
        let look = format!("ls /sys/bus/pci/devices/{slot}/iommu_group/devices; ls /dev/vfio");
        for printed in run_in_both(bed.guests(), |_| look.clone()) {
            assert_eq!(printed.split_whitespace().collect::<Vec<_>>(), [slot.as_str(), "vfio"]);
        }
    }
}

/// The address of a NIC on the PCI bus, which is the same in both guests.
#[track_caller]
fn slot(bed: &mut Bed, interface: &str) -> String {
    let script = format!(
        "device=$(readlink -f /sys/class/net/{interface}/device); \
         case $device in */virtio*) device=${{device%/*}} ;; esac; basename $device"
    );
    let slots = run_in_both(bed.guests(), |_| script.clone());
    assert_eq!(slots[0], slots[1]);
    slots[0].trim().to_owned()
}

/// Driver, MTU, flags, addresses and settings of the interface of a function, whatever its name, and the guest's huge pages.
fn state(bed: &mut Bed, slot: &str) -> Vec<String> {
    let script = format!(
        "device=/sys/bus/pci/devices/{slot}; basename $(readlink $device/driver); \
         cat $device/driver_override; \
         for entry in $device/net/* $device/virtio*/net/*; do [ ! -e $entry ] || name=${{entry##*/}}; done; \
         cat /sys/class/net/$name/mtu /sys/class/net/$name/flags /sys/class/net/$name/address; \
         ip -o -4 address show dev $name scope global | awk '{{ print $4 }}'; cat /proc/sys/vm/nr_hugepages; \
         for option in -k -g -l -c; do ethtool $option $name 2>&1 | tail -n +2; done; \
         cat /sys/class/net/$name/queues/rx-0/rps_cpus"
    );
    run_in_both(bed.guests(), |_| script.clone())
}

fn testpmd_drives_a_nic_that_returns(
    bed: &mut Bed,
    coordinator: &Coordinator,
    (interface, address, settings): (&str, &str, &str),
) {
    let slot = slot(bed, interface);
    let defaults = state(bed, &slot);
    run_in_both(bed.guests(), |_| settings.to_owned());
    let before = state(bed, &slot);
    assert_ne!(before, defaults);
    let workload = format!(
        "[[workloads]]\nname = \"frames\"\ntype = \"pps\"\ngenerator = \"dpdk\"\nreceiver = \"dpdk\"\n\
         duration = \"1 s\"\n[workloads.dpdk]\ndevice = \"{slot}\"\n"
    );
    // The settings of the arm are in force when the device is bound and when it returns, with another index.
    let treated = format!(
        "treatments = [{{ mtu = 1400, interface = \"{interface}\", on = \"both\" }}, \
         {{ offload = \"gro\", value = \"off\", interface = \"{interface}\", on = \"client\" }}]"
    );
    let arms = [("one", ""), ("two", treated.as_str())];
    let report = coordinator.report(bed, &plan(address, &arms, &workload, 2));
    assert_all_valid(&report, 4);
    for way in directions(&report) {
        let (sent, received) = (way["sent"].as_u64().unwrap(), way["received"].as_u64().unwrap());
        assert!(received > 0 && received <= sent + FOREIGN, "{way:#}");
    }
    assert_eq!(state(bed, &slot), before);
    // By the kernel again, and not by what testpmd left in the NIC.
    reach(&bed.guests()[0], &answer_of(address));
}

/// The directions of all arms.
#[track_caller]
fn directions(report: &Value) -> Vec<&Value> {
    let arms = report["workloads"][0]["arms"].as_array().unwrap();
    let directions: Vec<&Value> = arms.iter().flat_map(|arm| arm["datagrams"].as_array().unwrap()).collect();
    assert!(!directions.is_empty(), "{report:#}");
    directions
}
