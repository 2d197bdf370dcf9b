//! A bond of two NICs that QEMU plugs, in the mode active-backup.
use netduel_guests::{Bed, Guest};

use super::{answer_of, reach, run};

/// A bond of two NICs in each guest.
pub fn set_up_bond(bed: &mut Bed) {
    let set_up = |guest: &mut Guest, number: u8| {
        run(guest, &format!("{ADD_BOND}; ip link set bond0 up; ip address add 10.2.0.{number}/24 dev bond0"));
        for interface in ["hot0", "hot1"] {
            plug_into_bond(guest, interface);
        }
        run(guest, ACTIVE_IN_BOND);
    };
    // At a time: each guest has a core of its own.
    std::thread::scope(|scope| {
        for (guest, number) in bed.guests().iter_mut().zip(1..) {
            scope.spawn(move || set_up(guest, number));
        }
    });
    reach(&bed.guests()[0], &answer_of("10.2.0.2"));
}

/// A bond without ports, which is down. Without `max_bonds` the module makes a bond0 of its own, in another mode.
pub const ADD_BOND: &str = "set -e; while read -r name; do insmod /modules/$name.ko max_bonds=0; done < /modules/bonding.order; \
     ip link add bond0 type bond mode active-backup miimon 100";

/// `hot0` carries the bond's traffic, whichever port had it.
pub const ACTIVE_IN_BOND: &str = "echo hot0 > /sys/class/net/bond0/bonding/primary; \
     until [ \"$(cat /sys/class/net/bond0/bonding/active_slave)\" = hot0 ]; do usleep 50000; done";

/// A new NIC is eth0, because all others have names of their own. Its address does not tell it from the other port: a bond gives its
/// ports one address, that of the port that it had first.
pub fn plug_into_bond(guest: &mut Guest, interface: &str) {
    guest.plug_model(interface, "e1000e").unwrap();
    run(guest, &join_bond(interface));
}

/// A new NIC joins the bond under this name.
pub fn join_bond(interface: &str) -> String {
    format!(
        "set -e; . /scene.sh; until [ -e /sys/class/net/eth0 ]; do usleep 50000; done; ip link set eth0 down; \
         ip link set eth0 name {interface}; ip link set {interface} master bond0; up {interface}"
    )
}
